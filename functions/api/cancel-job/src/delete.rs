//! Deletes an ended job: from then on nobody sees it. `erase-job` erases it.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::ports::{Clock, JobStore};
use rowmill_core::progress::update::update_job;

use crate::error::{ChangeError, owned};

/// The use case and the ports it works through.
pub struct Deleter {
    pub jobs: Arc<dyn JobStore>,
    pub clock: Arc<dyn Clock>,
    /// Time after which an invocation that has read the job has ended, whatever its function.
    pub silent: Duration,
}

impl Deleter {
    /// Deletes the owner's job.
    pub async fn delete(&self, owner: &Owner, job_guid: JobGuid) -> Result<(), ChangeError> {
        let mut job = owned(&*self.jobs, owner, job_guid, self.clock.now()).await?;
        while job.is_ended() {
            let now = self.clock.now();
            match update_job(&*self.jobs, &job, |job| job.delete(now, self.silent)).await?.done() {
                Ok(_) => return Ok(()),
                // A redrive was first.
                Err(now) => job = *now,
            }
        }
        Err(ChangeError::Active)
    }
}
