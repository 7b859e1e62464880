use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::{JobGuid, Owner};
use crate::model::job::Job;
use crate::model::job_type_limits::TypeLimits;
use crate::model::spec::Spec;
use crate::ports::PortError;

/// Creating jobs, up to a number of active jobs.
#[async_trait]
pub trait Admissions: Send + Sync {
    /// Creates a job, all or nothing: its row, its spec, one slot each of its owner, its type and the system, its
    /// idempotency key and its dedupe key.
    async fn create(&self, job: &NewJob) -> Result<Created, CreateError>;

    /// The slots that are taken, of this owner, this type and the system. A cheap look before a job is prepared: the
    /// answer may be a moment old, and [`create`](Self::create) decides.
    async fn taken(&self, owner: &Owner, job_type: &str) -> Result<SlotsTaken, PortError>;

    /// The job that a request with this idempotency key of the owner was answered with, if the key has not expired by
    /// `now`, with the fingerprint of the request.
    async fn remembered(
        &self,
        owner: &Owner,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<(JobGuid, String)>, PortError>;

    /// Remembers the idempotency key of a request that is answered with this job, which another request created.
    /// Returns the job that the key has: this one, or that of an earlier answer to the same request.
    ///
    /// # Errors
    /// `KeyReused`, if it was used for another request.
    async fn remember(
        &self,
        owner: &Owner,
        wanted: &Idempotency,
        job: JobGuid,
        now: Timestamp,
    ) -> Result<JobGuid, CreateError>;

    /// The last job that was created with this dedupe key of the owner, if that is known still. It may have ended, and
    /// it may be gone.
    async fn deduped(&self, owner: &Owner, key: &str, now: Timestamp) -> Result<Option<JobGuid>, PortError>;
}

/// Everything that is written for a new job.
#[derive(Clone, PartialEq, Debug)]
pub struct NewJob {
    pub job: Job,
    pub spec: Spec,
    /// The ceilings of the slots that it takes.
    pub ceilings: Ceilings,
    /// The idempotency key of the request, if the client sent one.
    pub idempotency: Option<Idempotency>,
    /// The dedupe key of the job, if the client asked for one job per file.
    pub dedupe: Option<Dedupe>,
}

/// Maximum number of active (not ended) jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ceilings {
    pub owner: u32,
    pub job_type: u32,
    pub system: u32,
}

impl Ceilings {
    /// These ceilings for a job of a type with limits of its own.
    #[must_use]
    pub fn of_type(self, limits: TypeLimits) -> Self {
        Self { job_type: limits.active_jobs.unwrap_or(self.job_type), ..self }
    }
}

/// The stored idempotency key of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Idempotency {
    pub key: String,
    /// A digest of the request.
    pub fingerprint: String,
    /// Until when a repeated request is recognised.
    pub expires_at: Timestamp,
}

/// The stored dedupe key of a job: a name for what it does. An owner has at most one job under a key, apart from those
/// that were replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dedupe {
    /// A digest of what the job reads and does.
    pub key: String,
    /// The job that has this key and is of no use to the client: it was stopped, or is gone.
    pub replaces: Option<JobGuid>,
    /// Until when the job is found by the key. Not after the job expires.
    pub expires_at: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    /// The job now exists.
    New,
    /// An earlier request with the same idempotency key and payload has this job; nothing was written.
    Before(JobGuid),
    /// The dedupe key names this job, which is not the one to replace; nothing was written.
    Same(JobGuid),
}

/// The slots of active jobs under each limit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SlotsTaken {
    pub owner: ActiveJobs,
    pub job_type: ActiveJobs,
    pub system: ActiveJobs,
}

/// The active jobs under one limit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ActiveJobs {
    /// Number of slots that are taken.
    pub active: u64,
    /// When the last jobs ended: at most [`ENDS_KEPT`] times, in any order.
    pub recent_ends: Vec<Timestamp>,
}

impl SlotsTaken {
    /// The first limit that has no slot left.
    pub fn reached(self, ceilings: Ceilings) -> Option<Full> {
        let limits = [
            (self.owner, ceilings.owner, Admission::OwnerFull),
            (self.job_type, ceilings.job_type, Admission::TypeFull),
            (self.system, ceilings.system, Admission::SystemFull),
        ];
        let mut limits = limits.into_iter();
        let (jobs, _, admission) = limits.find(|(jobs, ceiling, _)| jobs.active >= u64::from(*ceiling))?;
        Some(Full { admission, recent_ends: jobs.recent_ends })
    }
}

/// The limit that is reached, and how fast its slots become free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Full {
    /// Which limit.
    pub admission: Admission,
    /// When the last jobs under it ended: at most [`ENDS_KEPT`] times, in any order.
    pub recent_ends: Vec<Timestamp>,
}

/// Number of stored ends of jobs for each limit.
pub const ENDS_KEPT: usize = 8;

impl Full {
    /// In how many seconds to expect a free slot: the mean time between the last ends. The time since the last end
    /// counts too, so that the wait grows while no job ends. `unknown` if fewer than two ends are stored; at least 1,
    /// at most `longest`.
    pub fn retry_after_seconds(&self, now: Timestamp, unknown: u64, longest: u64) -> u64 {
        let oldest = self.recent_ends.iter().min();
        let (Some(oldest), true) = (oldest, self.recent_ends.len() > 1) else { return unknown };
        let ms = now.duration_since(*oldest).as_millis().max(0);
        let interval = ms / i128::try_from(self.recent_ends.len() - 1).unwrap_or(1);
        u64::try_from((interval + 999) / 1000).unwrap_or(longest).clamp(1, longest)
    }
}

/// Which limit refuses the admission of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The limit of active jobs of the owner.
    OwnerFull,
    /// The limit of active jobs of the type.
    TypeFull,
    /// The limit of active jobs of the system.
    SystemFull,
}

impl Admission {
    /// Tells the client in full sentences which limit is reached and what to do.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::OwnerFull => "Your limit of active jobs is reached. Try again when one of your jobs has ended.",
            Self::TypeFull => "The limit of active jobs of this type is reached. Try again later.",
            Self::SystemFull => "The limit of active jobs of the system is reached. Try again later.",
        }
    }
}

/// Why no job was created. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// A limit of active jobs is reached: try again when a job has ended.
    #[error("a ceiling of active jobs is reached: {:?}", .0.admission)]
    Full(Full),
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    #[error(transparent)]
    Port(#[from] PortError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_derived_from_the_rate_at_which_jobs_end() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let full = |ends: &[i64]| Full {
            admission: Admission::SystemFull,
            recent_ends: ends.iter().map(|second| at(*second)).collect(),
        };
        assert_eq!(full(&[]).retry_after_seconds(at(100), 30, 300), 30, "the rate is unknown");
        assert_eq!(full(&[99]).retry_after_seconds(at(100), 30, 300), 30);
        assert_eq!(full(&[90, 80, 70]).retry_after_seconds(at(90), 30, 300), 10);
        assert_eq!(full(&[90, 80, 70]).retry_after_seconds(at(150), 30, 300), 40, "it has been quiet since");
        assert_eq!(full(&[90, 90, 90]).retry_after_seconds(at(90), 30, 300), 1);
        assert_eq!(full(&[1, 2]).retry_after_seconds(at(90_000), 30, 300), 300);
    }
}
