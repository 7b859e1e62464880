use std::time::Duration;

use jiff::Timestamp;
use lru::LruCache;
use parking_lot::Mutex;
use rowmill_core::model::ids::{JobGuid, Owner};

use crate::limits::{JOBS_REMEMBERED, PROGRESS_EVERY};

/// The jobs that the process remembers. It can lose all of them: they are read again, or a message comes earlier.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Jobs>);

#[derive(Debug)]
struct Jobs {
    owners: LruCache<JobGuid, Owner>,
    told: LruCache<JobGuid, Timestamp>,
}

impl Default for Jobs {
    fn default() -> Self {
        Self { owners: LruCache::new(JOBS_REMEMBERED), told: LruCache::new(JOBS_REMEMBERED) }
    }
}

impl Memory {
    /// Whose job it is, if that is known. An owner never changes.
    pub fn owner(&self, job: JobGuid) -> Option<Owner> {
        self.0.lock().owners.get(&job).cloned()
    }

    /// Keeps in mind whose job it is.
    pub fn keep_owner(&self, job: JobGuid, owner: Owner) {
        self.0.lock().owners.put(job, owner);
    }

    /// Wait before the next `progress` of a job.
    pub fn wait(&self, job: JobGuid, now: Timestamp) -> Duration {
        let Some(told) = self.0.lock().told.get(&job).copied() else { return Duration::ZERO };
        // A clock that was set back must not make anybody wait longer.
        let since = Duration::try_from(now.duration_since(told)).unwrap_or(PROGRESS_EVERY);
        PROGRESS_EVERY.saturating_sub(since)
    }

    /// Notes that a `progress` of this job is about to be sent.
    ///
    /// The seconds of a busy job follow each other without a gap, so that the time that a message takes does not add
    /// up: a job that changes all the time has one message in each.
    pub fn tell(&self, job: JobGuid, now: Timestamp) {
        let mut jobs = self.0.lock();
        let next = jobs.told.get(&job).map(|told| *told + PROGRESS_EVERY);
        let now = next.filter(|next| *next <= now && now < *next + PROGRESS_EVERY).unwrap_or(now);
        jobs.told.put(job, now);
    }
}
