//! The ports: what the use cases ask of the world. Adapters that speak AWS live in `rowmill-aws`; the in-memory ones, with
//! the contract suites that every adapter must pass, are in this crate under the feature `testing`.

mod clock;
mod events;
mod job_store;
mod job_writes;
mod objects;
pub mod processor;
mod queue;
mod record_store;
mod target;
mod upload_store;

pub use clock::{Clock, Entropy, expiry};
pub use events::Events;
pub use job_store::JobStore;
pub use job_writes::{
    Admission, Ceilings, CheckpointMoved, Committed, Completion, CreateError, Created, Due, ENDS_KEPT, Full,
    Idempotency, JobFilter, JobPage, Leased, NewAttempt, NewJob, RedriveError, Stopped, WAKE_SHARDS, WriteLost,
};
pub use objects::{
    DirectTransfers, MultipartObjects, ObjectHead, Objects, PART_MIN_BYTES, PresignedRequest, UploadedPart,
};
pub use queue::{Deliveries, Queue};
pub use record_store::RecordStore;
pub use target::{ANSWER_MAX_BYTES, REQUEST_MAX_BYTES, RecordObject, Target, TargetError, TargetItem, TargetRequest};
pub use upload_store::UploadStore;

/// What went wrong behind a port, by what the caller does about it.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// There is no such thing.
    #[error("not found")]
    NotFound,
    /// The object is not the one any more that was asked for.
    #[error("changed since it was first seen")]
    Changed,
    /// Not to be had just now, after the adapter's own retries: try again later.
    #[error("{doing}: unavailable")]
    Unavailable {
        /// What was being done.
        doing: &'static str,
        /// Why it could not be.
        #[source]
        source: BoxError,
    },
    /// The answer, or what is stored, cannot be understood: trying again does not help.
    #[error("{doing}: not understood")]
    Invalid {
        /// What was being done.
        doing: &'static str,
        /// Why it could not be understood.
        #[source]
        source: BoxError,
    },
}

/// The cause behind a [`PortError`].
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl PortError {
    /// Not to be had just now.
    pub fn unavailable(doing: &'static str, source: impl Into<BoxError>) -> Self {
        Self::Unavailable { doing, source: source.into() }
    }

    /// Not to be understood.
    pub fn invalid(doing: &'static str, source: impl Into<BoxError>) -> Self {
        Self::Invalid { doing, source: source.into() }
    }
}
