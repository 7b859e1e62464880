//! The clients that pause, resume and retune jobs.

use std::sync::Arc;

use cancel_job::error::ChangeError;
use cancel_job::retune::RetuneRequest;
use rowmill_core::model::ids::JobGuid;

use super::functions::Reply;
use super::plan::{Operation, Planned};
use super::run::Run;

/// One in this many pauses is followed by no resume of its own.
const FORGOTTEN_ONE_IN: u32 = 16;

impl Run {
    pub(super) fn pause(&mut self, planned: Planned, job: usize) {
        let Some((guid, owner)) = self.job_of(job) else { return };
        if self.adversary.rng.u32(0..FORGOTTEN_ONE_IN) > 0 {
            let step = self.step + self.adversary.rng.u64(0..400);
            self.operations.push(Planned { step, operation: Operation::Resume(guid), retries: 3 });
        }
        let changer = Arc::clone(&self.world.changer);
        self.invoke_api(planned, async move { reply("paused", changer.pause(&owner, guid).await) });
    }

    pub(super) fn resume(&mut self, planned: Planned, job: JobGuid) {
        let jobs = self.world.store.every_job();
        let Some(owner) = jobs.iter().find(|row| row.job_guid == job).map(|row| row.owner.clone()) else { return };
        let changer = Arc::clone(&self.world.changer);
        self.invoke_api(planned, async move { reply("resumed", changer.resume(&owner, job).await) });
    }

    /// Gives a job another width, as its owner may.
    pub(super) fn widen(&mut self, planned: Planned, job: usize, width: u32) {
        self.retune_to(planned, job, RetuneRequest { max_concurrency: Some(width), ..RetuneRequest::default() });
    }

    /// Gives a job these limits.
    pub(super) fn retune_to(&mut self, planned: Planned, job: usize, limits: RetuneRequest) {
        let Some((job, owner)) = self.job_of(job) else { return };
        self.world.invariants.retunes(job, limits.tolerance.map(Into::into));
        let changer = Arc::clone(&self.world.changer);
        self.invoke_api(planned, async move { reply("retuned", changer.retune(&owner, job, &limits).await) });
    }

    /// Once there are no more faults, somebody finds the paused jobs and resumes them. The breaker must find its own.
    pub(super) fn resume_forgotten(&mut self) {
        for job in self.world.store.every_job().into_iter().filter(|job| job.is_paused_by_owner()) {
            if self.adversary.rng.u8(..) < 64 {
                let operation = Operation::Resume(job.job_guid);
                self.operations.push(Planned { step: self.step, operation, retries: 3 });
            }
        }
    }
}

/// The reply to a change of a job by its owner.
pub(super) fn reply<T>(done: &str, end: Result<T, ChangeError>) -> Reply {
    match end {
        Ok(_) => Reply::Done(done.into()),
        Err(ChangeError::Port(error)) => Reply::Failed(error.to_string()),
        Err(error) => Reply::Refused(error.to_string()),
    }
}
