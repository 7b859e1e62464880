//! Finds permits for leases, and gives them back.

use jiff::Timestamp;

use crate::model::ids::RunId;
use crate::model::permit::{Permit, PermitSeen};
use crate::model::task::TaskId;
use crate::ports::{CheckpointMoved, JobStore, PortError, found};
use crate::progress::commit::committer::ChunkCommitter;

/// Number of taken permits that are looked at for one that is not valid any more, chosen at random.
const LOOKS: usize = 10;

/// Looks at the permits of a type that has `most`.
pub struct PermitLooks<'a> {
    pub jobs: &'a dyn JobStore,
    pub committer: &'a ChunkCommitter,
    /// The name by which a dead holder is given up.
    pub run: RunId,
    pub now: Timestamp,
    /// Chance, from 0 to 1.
    pub chance: f64,
}

impl PermitLooks<'_> {
    /// Finds a permit that is free: for `task`, which nobody holds, or for any.
    pub async fn find(&self, job_type: &str, most: u32, task: Option<TaskId>) -> Result<Option<PermitSeen>, PortError> {
        let taken = self.jobs.permits(job_type).await?;
        let seen = |number, token| Some(PermitSeen { job_type: job_type.to_owned(), number, token });
        let start = (self.chance * f64::from(most)) as u32;
        let mut numbers = (start..most).chain(0..start.min(most));
        if let Some(number) = numbers.find(|number| taken.iter().all(|permit| permit.number != *number)) {
            return Ok(seen(number, None));
        }
        let mut usable: Vec<&Permit> = taken.iter().filter(|permit| permit.number < most).collect();
        let from = start as usize % usable.len().max(1);
        usable.rotate_left(from);
        if let Some(own) = usable.iter().find(|permit| Some(permit.task) == task) {
            return Ok(seen(own.number, Some(own.token)));
        }
        for permit in usable.into_iter().take(LOOKS) {
            if !self.is_valid(permit).await? {
                return Ok(seen(permit.number, Some(permit.token)));
            }
        }
        Ok(None)
    }

    /// True if the token of a permit holds its task. A holder whose time is over is given up, whatever its job does. Else
    /// the permit of a dead holder would wait for a job that does not run.
    async fn is_valid(&self, permit: &Permit) -> Result<bool, PortError> {
        let TaskId { job, chunk } = permit.task;
        if found(self.jobs.job(job).await)?.is_none_or(|row| row.is_past(chunk.attempt)) {
            return Ok(false);
        }
        let checkpoint = self.jobs.checkpoint(job, chunk).await?;
        let Some(held) = checkpoint.filter(|held| held.held_by(permit.token).is_some()) else { return Ok(false) };
        if held.held_until().is_some_and(|until| until <= self.now) {
            let given_up = held.given_up(self.run, self.now);
            return Ok(self.jobs.move_checkpoint(job, &given_up).await? != CheckpointMoved::Won);
        }
        Ok(self.committer.committed(job, chunk).await?.is_none())
    }
}

/// Gives the permit of a token back, which holds its task no more. If this fails, a lease finds out.
pub async fn give_back(jobs: &dyn JobStore, job_type: &str, token: RunId) -> Result<(), PortError> {
    match jobs.permits(job_type).await?.into_iter().find(|permit| permit.token == token) {
        Some(permit) => jobs.give_permit_back(job_type, &permit).await,
        None => Ok(()),
    }
}
