use async_trait::async_trait;
use uuid::Uuid;

use crate::model::ids::JobGuid;
use crate::model::spec::Spec;
use crate::ports::PortError;

/// Jobs that wait for a file or for another job. [`create`](super::Admissions::create) notes what a job waits for.
#[async_trait]
pub trait Waits: Send + Sync {
    /// The jobs that were created to wait for this upload or job, at most [`AWAITING_MAX`]. They may have gone on since.
    async fn awaiting(&self, awaited: Uuid) -> Result<Vec<JobGuid>, PortError>;

    /// Puts the spec with the file that was found in the place of the one whose file is awaited. Condition: it is awaited
    /// still. Returns the stored spec: of two runs the first one counts.
    ///
    /// # Errors
    /// `NotFound`.
    async fn put_found(&self, found: &Spec) -> Result<Spec, PortError>;
}

/// The most jobs that are told of the end of what they wait for. The sweep finds the others.
pub const AWAITING_MAX: usize = 100;
