//! Redrives an ended job: starts its next attempt, over exactly the items that failed.
//!
//! All decisions come before the first write that counts. A corrected file is read and matched with the failed rows,
//! and its rows are stored for the split under a name of their own. Then one transaction takes the admission slots and
//! starts the attempt. Only then the message is sent. If the process dies in between, the sweep sends it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
pub use rowmill_api::request::RedriveRequest;
use rowmill_core::items::failed::FailedItems;
use rowmill_core::items::input::Correction;
use rowmill_core::items::manifest::read_manifest;
use rowmill_core::items::stored_job::StoredJob;
use rowmill_core::model::causes::{RowRange, Selection};
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::{End, Job, Redrive, details_until};
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::keys;
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::model::results::Manifest;
use rowmill_core::model::upload::UploadState;
use rowmill_core::ports::{
    Clock, Entropy, Full, JobStore, NewAttempt, Objects, PortError, Queue, RedriveError, UploadStore,
};

use crate::corrected::{CorrectedError, read_corrected};
pub use crate::limits::RedriveLimits;

/// The longest selection, in bytes of JSON. It is kept in the job row.
const SELECTION_MAX_BYTES: usize = 4096;

/// If the gap to the next corrected row has more rows than this, the walk through the failed items restarts after it.
const GAP_ROWS: u64 = 50_000;

/// Maximum number of rows an error message names.
const ROWS_NAMED: usize = 10;

/// The use case and the ports it works through.
pub struct Redriver {
    pub jobs: Arc<dyn JobStore>,
    /// The uploads, which may hold a corrected file.
    pub uploads: Arc<dyn UploadStore>,
    /// The objects of the uploads and of the job.
    pub objects: Arc<dyn Objects>,
    /// The jobs queue, which invokes the splitter.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    pub clock: Arc<dyn Clock>,
    /// Generates the names of attempts.
    pub entropy: Arc<dyn Entropy>,
    pub limits: RedriveLimits,
    pub type_limits: Arc<JobTypeLimits>,
}

/// Why no attempt was started. The texts are the problem details that the client reads.
#[derive(Debug, thiserror::Error)]
pub enum RedriveJobError {
    /// The caller has no such job.
    #[error("There is no job {0}, or it has expired.")]
    UnknownJob(JobGuid),
    #[error("The job has not ended. Wait until it has, or cancel it first.")]
    Active,
    #[error("The job has no failed items to process again.")]
    NothingFailed,
    #[error("Job {0} undoes the job, so its failed items are not processed again. Create a new job of them.")]
    Undone(JobGuid),
    /// Rows that the attempt would read expire before it has ended and its results have expired.
    #[error(
        "The job is too old to process its failed items again: what is stored of its rows is kept until {0}, and the \
         results must be kept longer. Download its failed rows and create a new job from them."
    )]
    TooOld(Timestamp),
    #[error("`deadlineSeconds` must be from 1 to {0}.")]
    Deadline(u64),
    /// The selection is empty, too long, or selects nothing.
    #[error("`select` {0}")]
    Selection(String),
    /// The caller has no such upload.
    #[error("There is no upload {0}, it has expired, or its bytes were never sent. Upload the file again.")]
    UnknownUpload(FileGuid),
    #[error("The corrected file has {size} bytes, more than the maximum of {max}. Correct fewer rows at a time.")]
    TooBig { size: u64, max: u64 },
    /// The corrected file was replaced after its upload was complete, or while it was read.
    #[error("Upload {0} was replaced after it was complete. Upload the file again.")]
    UploadChanged(FileGuid),
    #[error("The corrected file cannot be used: {0}. Correct it and upload it again.")]
    Corrected(#[from] CorrectedError),
    /// The corrected file has rows that did not fail.
    #[error("The corrected file has rows that did not fail in this job ({}). Remove them and upload it again.", named(.0))]
    NotFailed(Vec<u64>),
    /// A limit of active jobs is reached.
    #[error("{}", .0.admission.advice())]
    Full(Full),
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
    /// See [`RedriveJobError`]; the job is unchanged then.
    pub async fn redrive(
        &self,
        owner: &Owner,
        job_guid: JobGuid,
        request: &RedriveRequest,
    ) -> Result<Job, RedriveJobError> {
        let maximum = self.limits.deadlines.maximum_seconds;
        if request.deadline_seconds.is_some_and(|seconds| !(1..=maximum).contains(&seconds)) {
            return Err(RedriveJobError::Deadline(maximum));
        }
        let (job, end) = self.ended_job(owner, job_guid).await?;
        if let Some(by) = job.undone_by {
            return Err(RedriveJobError::Undone(by));
        }
        let before = end.counts;
        if before.failed == 0 {
            return Err(RedriveJobError::NothingFailed);
        }
        let at = self.clock.now();
        let deadline = request.deadline_seconds.unwrap_or(self.limits.deadlines.default_seconds);
        let (deadline_at, until) = (at + Duration::from_secs(deadline), details_until(job_guid));
        if deadline_at + end.retention() > until {
            return Err(RedriveJobError::TooOld(until));
        }
        if let Some(selection) = &request.select {
            self.check_selection(&job, selection).await?;
        }
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
        let (base, unprocessed_from) = (job.failures_since(), job.unprocessed_from());
        let selection = request.select.clone();
        let redrive = Redrive { by, before, base, unprocessed_from, corrected, selection };
        let wake_at = deadline_at.min(at + self.limits.recovery.stale);
        let ceilings = self.limits.ceilings.of_type(self.type_limits.of(&job.job_type));
        let attempt = NewAttempt { seen: job, redrive, ceilings, at, deadline_at, wake_at };
        let job = self.jobs.redrive(&attempt).await.map_err(|error| match error {
            RedriveError::Full(full) => RedriveJobError::Full(full),
            RedriveError::Moved(job) => job.undone_by.map_or(RedriveJobError::Active, RedriveJobError::Undone),
            RedriveError::Port(error) => error.into(),
        })?;
        // A failure to send is only logged: the attempt has started, and the sweep sends the message.
        if let Err(error) = self.splits.send(&[SplitMessage::of(&job)]).await {
            tracing::error!(job.id = %job_guid, error = &error as &dyn std::error::Error, "job redriven, message not sent");
        }
        Ok(job)
    }

    async fn ended_job(&self, owner: &Owner, job_guid: JobGuid) -> Result<(Job, End), RedriveJobError> {
        match self.jobs.owned(owner, job_guid, self.clock.now()).await {
            Ok(job) => match job.end().cloned() {
                Some(end) => Ok((job, end)),
                None => Err(RedriveJobError::Active),
            },
            Err(PortError::NotFound) => Err(RedriveJobError::UnknownJob(job_guid)),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that a selection selects something, as far as the causes in the results tell.
    async fn check_selection(&self, job: &Job, selection: &Selection) -> Result<(), RedriveJobError> {
        let refused = |message: String| Err(RedriveJobError::Selection(message));
        if selection.is_all() {
            return refused("is empty. Leave it out to process all failed rows.".to_owned());
        }
        let bytes = serde_json::to_vec(selection).map_or(usize::MAX, |json| json.len());
        if bytes > SELECTION_MAX_BYTES {
            return refused(format!("has more than the maximum of {SELECTION_MAX_BYTES} bytes as JSON."));
        }
        let Some(end) = job.end() else { return Ok(()) };
        let is_wrong =
            |range: &&RowRange| range.from == 0 || range.last() < range.from || range.from > end.counts.sum();
        if let Some(RowRange { from, .. }) = selection.rows.iter().find(is_wrong) {
            return refused(format!("has a range from {from} that is no range of the rows of the job."));
        }
        let Some(results) = &end.results else { return Ok(()) };
        let manifest = read_manifest(&*self.objects, job.job_guid, results).await?;
        let tells =
            |manifest: &Manifest| manifest.causes.iter().map(|cause| cause.items).sum::<u64>() == end.counts.failed;
        let Some((manifest, _)) = manifest.filter(|(manifest, _)| tells(manifest)) else { return Ok(()) };
        match manifest.causes.iter().any(|cause| selection.may_have(&cause.name)) {
            true => Ok(()),
            false => refused("selects no failed row of the job: none has such a code, column or cause.".to_owned()),
        }
    }

    /// The rows of the corrected file. Each must be a failed row of the job.
    async fn corrections(
        &self,
        owner: &Owner,
        job: &Job,
        file_guid: FileGuid,
    ) -> Result<Vec<Correction>, RedriveJobError> {
        let upload = match self.uploads.owned(owner, file_guid, self.clock.now()).await {
            Err(PortError::NotFound) => return Err(RedriveJobError::UnknownUpload(file_guid)),
            upload => upload?,
        };
        let max = self.limits.corrected_max_bytes;
        let head = match self.objects.head(&upload.key).await {
            Err(PortError::NotFound) => return Err(RedriveJobError::UnknownUpload(file_guid)),
            head => head?,
        };
        if head.size > max {
            return Err(RedriveJobError::TooBig { size: head.size, max });
        }
        // The bytes that are read are those whose size was checked, and those that the upload was completed with.
        if matches!(&upload.state, UploadState::Ready { etag } if *etag != head.etag) {
            return Err(RedriveJobError::UploadChanged(file_guid));
        }
        let bytes = match self.objects.read_range(&upload.key, &head.etag, 0..head.size).await {
            Err(PortError::Changed) => return Err(RedriveJobError::UploadChanged(file_guid)),
            bytes => bytes?,
        };
        let spec = self.jobs.spec(job.job_guid).await?;
        let rows = read_corrected(&bytes, &spec)?;
        match self.not_failed(job, &rows).await? {
            strangers if strangers.is_empty() => Ok(rows),
            strangers => Err(RedriveJobError::NotFailed(strangers)),
        }
    }

    async fn failed_behind(&self, job: &Job, after: u64) -> Result<FailedItems, PortError> {
        FailedItems::of(StoredJob { jobs: &self.jobs, objects: &self.objects, job }, after).await
    }

    /// Filters to the rows that did not fail, or to enough of them for an error message. Expects the rows in row order.
    async fn not_failed(&self, job: &Job, rows: &[Correction]) -> Result<Vec<u64>, PortError> {
        let after = rows.first().map_or(0, |first| first.row.saturating_sub(1));
        let mut failed = self.failed_behind(job, after).await?;
        let mut rows = rows.iter().map(|correction| correction.row).collect::<Vec<u64>>().into_iter().peekable();
        let mut strangers = Vec::new();
        while rows.peek().is_some() && strangers.len() <= ROWS_NAMED {
            if rows.peek().is_some_and(|row| row.saturating_sub(failed.after()) > GAP_ROWS) {
                // Failed items far before the next corrected row need not be read.
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
