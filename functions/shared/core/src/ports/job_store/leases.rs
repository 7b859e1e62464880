use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::{JobGuid, RunId};
use crate::model::job::{Job, Lease};
use crate::ports::PortError;

/// The lease of a job: the right of one run to move the job row.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes the lease of an attempt that has not ended, if the lease is free, has expired by `now`, or is held by the same
    /// run. A waiting job is running from then on. A paused job is only leased if its split has ended, and stays paused.
    ///
    /// # Errors
    /// `NotFound`.
    async fn lease(&self, job: JobGuid, attempt: u32, lease: Lease, now: Timestamp) -> Result<Leased, PortError>;

    /// Gives the lease back, if this run still holds it.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn release(&self, job: JobGuid, holder: RunId) -> Result<(), PortError>;
}

/// The answer to taking a lease.
#[derive(Clone, PartialEq, Debug)]
pub enum Leased {
    /// This run holds it. Holds the job after the write.
    Taken(Job),
    /// Another run holds it, the attempt is past, or the job is paused. Holds the current job.
    Refused(Job),
}
