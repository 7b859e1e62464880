//! Deletes an ended job: from then on nobody sees it. `erase-job` erases it.

use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::progress::update::update_job;

use crate::change::Changer;
use crate::error::ChangeError;

impl Changer {
    /// Deletes the owner's job.
    pub async fn delete(&self, owner: &Owner, job_guid: JobGuid) -> Result<(), ChangeError> {
        let mut job = self.owned(owner, job_guid).await?;
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
