//! The operations of clients on jobs: they create, cancel, retune and redrive them.

use std::sync::Arc;

use cancel_job::retune::RetuneRequest;
use create_job::create::CreateJobError;
use create_job::request::CreateJobRequest;
use redrive_job::redrive::{RedriveJobError, RedriveRequest};
use rowmill_api::request::Tolerance;
use rowmill_core::model::causes::{RowRange, Selection};
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::results::ResultsTo;
use serde_json::json;
use uuid::Uuid;

use super::files::{Kind, first_file};
use super::functions::Reply;
use super::pauses::reply;
use super::plan::{Operation, Planned, Redrive};
use super::run::Run;
use super::world::DEADLINE_SECONDS;
use crate::use_cases::OUTPUT_BUCKET;

impl Run {
    pub(super) fn create(&mut self, planned: Planned, job: usize) {
        let (creator, job) = (Arc::clone(&self.world.creator), self.plan.jobs[job].clone());
        let mut request: CreateJobRequest = serde_json::from_value(job.request).expect("a request");
        let before = job.after.and_then(|after| self.job_of(after)).filter(|(_, owner)| *owner == job.file.owner);
        request.after = before.map(|(before, _)| before);
        // The same for a repeated request.
        let is_copied = job.file.file_guid.0.as_u128().is_multiple_of(4);
        request.results_to = is_copied.then(|| ResultsTo { bucket: OUTPUT_BUCKET.to_owned(), prefix: String::new() });
        self.invoke_api(planned, async move {
            match creator.create(&job.file.owner, &request, job.key.as_deref()).await {
                Ok(created) => Reply::Created(job.key, created.job_guid),
                Err(CreateJobError::Full(full)) => Reply::Full(u64::from(full.recent_ends.len() as u32)),
                Err(CreateJobError::Port(error)) => Reply::Failed(error.to_string()),
                Err(error) => Reply::Refused(error.to_string()),
            }
        });
    }

    /// The job of a job plan, if it exists. If several exist, the one that was created last.
    pub(super) fn job_of(&self, job: usize) -> Option<(JobGuid, Owner)> {
        let file = self.plan.jobs[job].file.file_guid;
        let jobs = self.world.store.every_job();
        jobs.iter().rfind(|job| first_file(job) == Some(file)).map(|job| (job.job_guid, job.owner.clone()))
    }

    pub(super) fn cancel(&mut self, planned: Planned, job: usize) {
        let Some((job, owner)) = self.job_of(job) else { return };
        let changer = Arc::clone(&self.world.changer);
        self.invoke_api(planned, async move { reply("cancelled", changer.cancel(&owner, job, false).await) });
    }

    pub(super) fn retune(&mut self, planned: Planned, job: usize) {
        let rng = &mut self.adversary.rng;
        let limits = RetuneRequest {
            tolerance: rng.bool().then(|| Tolerance { percent: None, count: Some(rng.u64(0..8)), minimum_items: None }),
            // Some have passed already.
            deadline_seconds: Some([rng.u64(1..600), rng.u64(600..4000), DEADLINE_SECONDS][rng.usize(0..3)]),
            ..RetuneRequest::default()
        };
        self.retune_to(planned, job, limits);
    }

    pub(super) fn redrive(&mut self, planned: Planned, job: usize, redrive: Redrive) {
        let Some((guid, owner)) = self.job_of(job) else { return };
        let is_active = self.world.store.every_job().iter().any(|job| job.job_guid == guid && !job.is_ended());
        if is_active && self.adversary.rng.u8(..) < 250 {
            // The job is active, and most clients wait for its end.
            let step = self.step + self.adversary.rng.u64(1..300);
            self.operations.push(Planned { step, ..planned });
            return;
        }
        let file_guid = if redrive.corrected { self.upload_correction(guid, &owner) } else { None };
        let mut deadline_seconds = None;
        if redrive.stopped && self.adversary.rng.bool() {
            deadline_seconds = Some(self.adversary.rng.u64(1..200));
        } else if redrive.stopped {
            let step = self.step + self.adversary.rng.u64(0..120);
            self.operations.push(Planned { step, operation: Operation::Cancel(job), retries: 0 });
        }
        let select = redrive.selected.then(|| {
            let from = self.adversary.rng.u64(1..6);
            let rows = vec![RowRange { from, to: Some(from + self.adversary.rng.u64(0..20)) }];
            Selection { rows, ..Selection::default() }
        });
        let request = RedriveRequest { file_guid, select, deadline_seconds };
        let redriver = Arc::clone(&self.world.redriver);
        self.invoke_api(planned, async move {
            match redriver.redrive(&owner, guid, &request).await {
                Ok(job) => Reply::Done(format!("attempt {}", job.attempt)),
                Err(RedriveJobError::Full(full)) => Reply::Full(u64::from(full.recent_ends.len() as u32)),
                Err(RedriveJobError::Port(error)) => Reply::Failed(error.to_string()),
                Err(error) => Reply::Refused(error.to_string()),
            }
        });
    }

    /// Uploads a file that corrects most of the failed rows.
    fn upload_correction(&mut self, job: JobGuid, owner: &Owner) -> Option<FileGuid> {
        let failed = self.world.invariants.failed_rows(job);
        let file = self.world.invariants.file_of(job)?;
        let is_of_many = !file.pieces.is_empty();
        let mut text = if is_of_many { String::new() } else { "id,kind,note,row\n".to_owned() };
        for row in failed.iter().rev() {
            let place = usize::try_from(row - 1).unwrap_or(usize::MAX);
            if file.rows.get(place) == Some(&Kind::Unreadable) {
                // It is no row of a file, so it has no format.
                continue;
            }
            let kind = ["good", "good", "good", "bad", "slow:100"][self.adversary.rng.usize(0..5)];
            if self.adversary.rng.u8(..) < 200 || Some(row) == failed.first() {
                text += &match is_of_many {
                    false => format!("{row},{kind},\"corrected\",{row}\n"),
                    true => format!("{}\n", json!({ "row": row, "raw": format!("{row},{kind},corrected") })),
                };
            }
        }
        if failed.is_empty() || text.is_empty() {
            return None;
        }
        self.corrected_files += 1;
        let file_guid = FileGuid(Uuid::from_u128((0x4 << 76) | (0b10 << 62) | (0x1000 + self.corrected_files)));
        self.store_upload(file_guid, owner.clone(), text.into_bytes());
        Some(file_guid)
    }
}
