//! Redriving: an ended job is started once more, over exactly the items that failed.
//!
//! Everything is decided before anything is written that counts: a corrected file is read and matched with the failed rows,
//! its rows are left for the split under a name of their own; then one transaction takes the slots and starts the attempt;
//! only then the message leaves. If the process dies in between, the sweep sends it.

use rowmill_core::model::keys;
use std::sync::Arc;
use std::time::Duration;

pub use rowmill_api::request::RedriveRequest;
use rowmill_core::items::failed::FailedItems;
use rowmill_core::items::input::Correction;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::{Job, Redrive};
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::ports::{
    Ceilings, Clock, Entropy, Full, JobStore, NewAttempt, Objects, PortError, Queue, RedriveError, UploadStore,
};

use crate::corrected::{CorrectedError, read_corrected};

/// Over a gap of more rows than this, the walk through the failed items begins anew behind it.
const GAP_ROWS: u64 = 50_000;

/// How many rows an error names.
const ROWS_NAMED: usize = 10;

/// The use case and the ports it works through.
pub struct Redriver {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// The uploads, of which one may be a corrected file.
    pub uploads: Arc<dyn UploadStore>,
    /// Their objects, and those of the job.
    pub objects: Arc<dyn Objects>,
    /// Where the splitter listens.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names for attempts.
    pub entropy: Arc<dyn Entropy>,
    /// The limits.
    pub limits: RedriveLimits,
}

/// What a redrive may take.
#[derive(Clone, Copy, Debug)]
pub struct RedriveLimits {
    /// How many jobs may be active at once.
    pub ceilings: Ceilings,
    /// After how many seconds the attempt is stopped, unless its client says otherwise.
    pub deadline_seconds: u64,
    /// The most a client may say.
    pub maximum_deadline_seconds: u64,
    /// After what time without a sign of life the sweep looks at a job.
    pub stale: Duration,
    /// The largest corrected file; it is held in memory.
    pub corrected_max_bytes: u64,
    /// The longest a client that is turned away is told to wait.
    pub retry_after_max: Duration,
}

/// Why no attempt was started.
#[derive(Debug, thiserror::Error)]
pub enum RedriveJobError {
    /// The caller has no such job.
    #[error("there is no job {0}; it may have expired")]
    UnknownJob(JobGuid),
    /// It has not ended.
    #[error("the job has not ended; wait until it has, or cancel it first")]
    Active,
    /// Nothing of it failed.
    #[error("the job has no failed items")]
    NothingFailed,
    /// The deadline is out of bounds.
    #[error("deadlineSeconds must be from 1 to {0}")]
    Deadline(u64),
    /// The caller has no such upload.
    #[error("there is no upload {0}; it may have expired, or its bytes were never sent: upload the file again")]
    UnknownUpload(FileGuid),
    /// The corrected file is too big.
    #[error("the corrected file takes {size} bytes, more than the {max} it may take; correct fewer rows at a time")]
    TooBig {
        /// Its bytes.
        size: u64,
        /// The most there may be.
        max: u64,
    },
    /// The corrected file cannot be used.
    #[error("the corrected file cannot be used: {0}")]
    Corrected(#[from] CorrectedError),
    /// Rows of the corrected file are none that failed.
    #[error("the corrected file has rows that are not failed rows of this job: {}", named(.0))]
    NotFailed(Vec<u64>),
    /// A ceiling is reached.
    #[error("{}", .0.admission.advice())]
    Full(Full),
    /// Something cannot be reached.
    #[error(transparent)]
    Port(#[from] PortError),
}

fn named(rows: &[u64]) -> String {
    let named: Vec<String> = rows.iter().take(ROWS_NAMED).map(u64::to_string).collect();
    let more = if rows.len() > ROWS_NAMED { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}

impl Redriver {
    /// Starts the next attempt of the owner's job.
    ///
    /// # Errors
    /// See [`RedriveJobError`]; the job is as it was then.
    pub async fn redrive(
        &self,
        owner: &Owner,
        job_guid: JobGuid,
        request: &RedriveRequest,
    ) -> Result<Job, RedriveJobError> {
        let maximum = self.limits.maximum_deadline_seconds;
        if request.deadline_seconds.is_some_and(|seconds| !(1..=maximum).contains(&seconds)) {
            return Err(RedriveJobError::Deadline(maximum));
        }
        let job = self.ended_job(owner, job_guid).await?;
        let before = job.counts.filter(|counts| counts.failed > 0).ok_or(RedriveJobError::NothingFailed)?;
        let by = self.entropy.run_id();
        let corrected = match request.file_guid {
            None => None,
            Some(file_guid) => {
                let rows = self.corrections(owner, &job, file_guid).await?;
                let key = keys::corrections(job_guid, job.attempt + 1, by);
                self.objects.put(&key, "application/x-ndjson", lines(&rows)?.into(), None).await?;
                Some(key)
            }
        };
        let at = self.clock.now();
        let deadline = request.deadline_seconds.unwrap_or(self.limits.deadline_seconds);
        let deadline_at = at + Duration::from_secs(deadline);
        let (base, unprocessed_from) = (job.failures_since(), job.unprocessed_from());
        let redrive = Redrive { by, before, base, unprocessed_from, corrected };
        let wake_at = deadline_at.min(at + self.limits.stale);
        let attempt = NewAttempt { seen: job, redrive, ceilings: self.limits.ceilings, at, deadline_at, wake_at };
        let job = self.jobs.redrive(&attempt).await.map_err(|error| match error {
            RedriveError::Full(full) => RedriveJobError::Full(full),
            RedriveError::Moved(_) => RedriveJobError::Active,
            RedriveError::Port(error) => error.into(),
        })?;
        // The attempt is started whether its message leaves or not, so a failure to send is not the client's.
        if let Err(error) = self.splits.send(&[SplitMessage::of(&job)]).await {
            tracing::error!(job.id = %job_guid, error = &error as &dyn std::error::Error, "job redriven, message not sent");
        }
        Ok(job)
    }

    async fn ended_job(&self, owner: &Owner, job_guid: JobGuid) -> Result<Job, RedriveJobError> {
        match self.jobs.owned(owner, job_guid, self.clock.now()).await {
            Ok(job) if job.status.is_terminal() => Ok(job),
            Ok(_) => Err(RedriveJobError::Active),
            Err(PortError::NotFound) => Err(RedriveJobError::UnknownJob(job_guid)),
            Err(error) => Err(error.into()),
        }
    }

    /// The rows of the corrected file, each of which must be a failed one of the job.
    async fn corrections(
        &self,
        owner: &Owner,
        job: &Job,
        file_guid: FileGuid,
    ) -> Result<Vec<Correction>, RedriveJobError> {
        let upload = match self.uploads.upload(file_guid, self.clock.now()).await {
            Ok(upload) if upload.owner == *owner => upload,
            Ok(_) | Err(PortError::NotFound) => return Err(RedriveJobError::UnknownUpload(file_guid)),
            Err(error) => return Err(error.into()),
        };
        let max = self.limits.corrected_max_bytes;
        let size = match self.objects.head(&upload.key).await {
            Err(PortError::NotFound) => return Err(RedriveJobError::UnknownUpload(file_guid)),
            head => head?.size,
        };
        if size > max {
            return Err(RedriveJobError::TooBig { size, max });
        }
        let spec = self.jobs.spec(job.job_guid).await?;
        let rows = read_corrected(&self.objects.read(&upload.key).await?, &spec)?;
        match self.not_failed(job, &rows).await? {
            strangers if strangers.is_empty() => Ok(rows),
            strangers => Err(RedriveJobError::NotFailed(strangers)),
        }
    }

    async fn failed_behind(&self, job: &Job, after: u64) -> Result<FailedItems, PortError> {
        FailedItems::of(Arc::clone(&self.jobs), Arc::clone(&self.objects), job, after).await
    }

    /// Those of these rows, which are in order, that did not fail; enough of them to be named.
    async fn not_failed(&self, job: &Job, rows: &[Correction]) -> Result<Vec<u64>, PortError> {
        let after = rows.first().map_or(0, |first| first.row.saturating_sub(1));
        let mut failed = self.failed_behind(job, after).await?;
        let mut rows = rows.iter().map(|correction| correction.row).collect::<Vec<u64>>().into_iter().peekable();
        let mut strangers = Vec::new();
        while rows.peek().is_some() && strangers.len() <= ROWS_NAMED {
            if rows.peek().is_some_and(|row| row.saturating_sub(failed.after()) > GAP_ROWS) {
                // What failed far before the next corrected row need not be read.
                let after = rows.peek().map_or(0, |row| row - 1);
                failed = self.failed_behind(job, after).await?;
            }
            let Some(items) = failed.next().await? else { break };
            for item in items {
                while let Some(stranger) = rows.next_if(|row| *row < item.row) {
                    strangers.push(stranger);
                }
                rows.next_if_eq(&item.row);
            }
        }
        if strangers.len() <= ROWS_NAMED {
            strangers.extend(rows);
        }
        Ok(strangers)
    }
}

fn lines(rows: &[Correction]) -> Result<Vec<u8>, PortError> {
    let mut bytes = Vec::new();
    for row in rows {
        serde_json::to_writer(&mut bytes, row)
            .map_err(|error| PortError::invalid("writing the corrected rows", error))?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}
