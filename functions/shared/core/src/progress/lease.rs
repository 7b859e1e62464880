//! Taking the lease of a job.

use std::time::Duration;

use crate::model::ids::RunId;
use crate::model::job::{Job, Lease};
use crate::ports::{Clock, Leased, Leases, PortError};

/// Takes the lease of a job's present attempt for the run `holder`, or extends it. It expires after `duration`, which must
/// be longer than the invocation can run: see [`LEASE_MARGIN`](crate::model::job::LEASE_MARGIN).
///
/// # Errors
/// `NotFound` if the job is gone; `Unavailable`.
pub async fn take_lease(
    jobs: &dyn Leases,
    clock: &dyn Clock,
    job: &Job,
    holder: RunId,
    duration: Duration,
) -> Result<Leased, PortError> {
    let now = clock.now();
    let lease = Lease { holder, until: now + duration };
    jobs.lease(job.job_guid, job.attempt, lease, now).await
}
