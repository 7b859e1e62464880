//! Undoes a job: creates the job that reverses what it has written.
//!
//! First the row of the job names its undo: from then on it gets no further attempt. Then the undo is created under that
//! name. If the process dies in between, the same request creates it.

use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::job_types::{JOB_GUID, NotUndoable, UNDO, undoable_dataset};
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::{End, Job, LEASE_MARGIN, REQUEST_LIMIT, created_at};
use rowmill_core::model::records::dataset_of;
use rowmill_core::model::spec::KeysOf;
use rowmill_core::ports::{PortError, found};
use rowmill_core::progress::update::update_job;
use serde_json::json;

use crate::create::{Accepted, CreateJobError, Creator};
use crate::request::CreateJobRequest;

/// Time after which nobody creates a job any more under a name that was drawn before. An older job that is not there was
/// deleted or has expired, and its name must not come back. No job is erased so soon.
const CUT_SHORT: Duration = REQUEST_LIMIT.saturating_add(LEASE_MARGIN);

impl Creator {
    /// Creates the undo of the owner's job, or finds the one that the same request created before.
    ///
    /// # Errors
    /// See [`CreateJobError`]; no job is written then.
    pub async fn undo(&self, owner: &Owner, undone: JobGuid) -> Result<Accepted, CreateJobError> {
        let now = self.clock.now();
        let job = found(self.jobs.owned(owner, undone, now).await)?.ok_or(CreateJobError::NoSuchJob(undone))?;
        let end = job.end().ok_or(CreateJobError::JobActive(undone))?;
        let named = match job.undone_by {
            Some(by) => found(self.jobs.job(by).await)?,
            None => None,
        };
        let is_drawn_now = |by| named.is_none() && created_at(by).is_some_and(|at| now < at + CUT_SHORT);
        let is_cut_short = job.undone_by.filter(|by| is_drawn_now(*by));
        let before = named.filter(|undo| !undo.is_gone(now));
        if let Some(by) = before.as_ref().and_then(|undo| undo.undone_by) {
            return Err(NotUndoable::UndoneAgain(by).into());
        }
        if let Some(undo) = before.as_ref().filter(|undo| !undo.has_left_items()) {
            return Ok(Accepted { job: self.woken(undo.clone()).await, is_same: true });
        }
        let spec = self.jobs.spec(undone).await?;
        let dataset = undoable_dataset(&spec)?;
        if self.records.opened(&dataset_of(owner, &dataset)).await?.is_none() {
            return Err(NotUndoable::NothingWritten.into());
        }
        self.refuse_while_runs_live(&job, end, now)?;
        let request = CreateJobRequest::of(UNDO, [(JOB_GUID.to_owned(), json!(undone))].into_iter().collect());
        self.refuse_if_full(owner, &request).await?;
        let by = match is_cut_short {
            Some(by) => by,
            // It left items, or was deleted, or has expired.
            None => self.named_undo(&job, job.undone_by, now).await?,
        };
        let new = self.over_keys(owner, &request, (dataset, KeysOf::Job(undone)), by, now).await?;
        let created = self.jobs.create(&new).await;
        // Another request may have created it.
        let undo = found(self.jobs.owned(owner, by, now).await)?;
        match (undo, created) {
            (Some(undo), _) => Ok(Accepted { job: self.woken(undo).await, is_same: false }),
            (None, Err(error)) => Err(error.into()),
            (None, Ok(_)) => Err(PortError::NotFound.into()),
        }
    }

    /// The name of a new undo of this job, written to its row; in place of the name of one that left items undone.
    async fn named_undo(&self, job: &Job, before: Option<JobGuid>, now: Timestamp) -> Result<JobGuid, CreateJobError> {
        let by = self.entropy.job_guid(now);
        match update_job(&*self.jobs, job, |job| job.undo(by, before)).await?.done() {
            Ok(job) => Ok(job.undone_by.unwrap_or(by)),
            Err(job) if job.is_gone(now) => Err(CreateJobError::NoSuchJob(job.job_guid)),
            // Another request was first, or a redrive.
            Err(job) => job.undone_by.filter(|by| Some(*by) != before).ok_or(CreateJobError::JobActive(job.job_guid)),
        }
    }

    /// A run that has not seen the end of its attempt may still write a record, until its time limit. Where all items
    /// succeeded, their records are there, so it finds nothing to write. Clocks differ.
    fn refuse_while_runs_live(&self, job: &Job, end: &End, now: Timestamp) -> Result<(), CreateJobError> {
        let last = match (job.has_left_items(), job.attempt) {
            (true, _) => end.finished_at,
            // Corrected rows may have other keys than those that runs of the attempt before still write.
            (false, 2..) => job.attempt_at,
            (false, _) => return Ok(()),
        };
        let until = last + self.limits.process.limit + LEASE_MARGIN;
        if now >= until { Ok(()) } else { Err(CreateJobError::RunsLive(until)) }
    }
}

impl From<NotUndoable> for CreateJobError {
    fn from(why: NotUndoable) -> Self {
        Self::NotUndoable(why)
    }
}
