//! Taking the lease of a job.

use std::time::Duration;

use crate::model::ids::RunId;
use crate::model::job::{Job, Lease};
use crate::ports::{Clock, Leased, Leases, PortError};

/// How much longer a lease lasts than the invocation that takes it can run. So no other invocation works on the job
/// before that one is over, even if their clocks differ.
pub const LEASE_MARGIN: Duration = Duration::from_secs(20);

/// Takes or extends the lease of a job's current attempt for the run `holder`. It expires after `duration`, which must
/// be longer than the invocation can run: see [`LEASE_MARGIN`].
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
