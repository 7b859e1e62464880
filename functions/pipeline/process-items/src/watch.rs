//! The jobs of a batch: one read of a job row serves all of its chunks for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::ports::{Clock, JobStore, PortError};
use rowmill_core::progress::update::update_job;
use tokio::sync::Mutex;

/// The jobs of one batch of deliveries. It is created after the batch is received: no read is older than a delivery.
pub struct JobWatch {
    jobs: Arc<dyn JobStore>,
    clock: Arc<dyn Clock>,
    max_age: Duration,
    /// The jobs, each with the time of its read.
    seen: Mutex<HashMap<JobGuid, (Arc<Job>, Timestamp)>>,
}

impl JobWatch {
    /// A watch that reads a job again if its last read is older than `max_age`.
    pub fn new(jobs: Arc<dyn JobStore>, clock: Arc<dyn Clock>, max_age: Duration) -> Self {
        Self { jobs, clock, max_age, seen: Mutex::default() }
    }

    /// The job, as it was at most `max_age` ago.
    pub async fn job(&self, job_guid: JobGuid) -> Result<Arc<Job>, PortError> {
        // Held across the read on purpose: ten chunks of one job ask at the same moment, and one read serves all.
        let mut seen = self.seen.lock().await;
        if let Some((job, at)) = seen.get(&job_guid)
            && self.clock.now() < *at + self.max_age
        {
            return Ok(Arc::clone(job));
        }
        let at = self.clock.now();
        let job = Arc::new(self.jobs.job(job_guid).await?);
        seen.insert(job_guid, (Arc::clone(&job), at));
        Ok(job)
    }

    /// Notes that a chunk of this attempt begins, unless an earlier one has. Returns the job after that. One write
    /// serves all chunks of the batch. The sweep looks at the job within `look` from then on.
    pub async fn begin(&self, job_guid: JobGuid, attempt: u32, look: Option<Duration>) -> Result<Arc<Job>, PortError> {
        let mut seen = self.seen.lock().await;
        let at = self.clock.now();
        let job = match seen.get(&job_guid) {
            Some((job, _)) if job.first_chunk_at.is_some() => return Ok(Arc::clone(job)),
            Some((job, _)) if job.attempt == attempt => Arc::clone(job),
            _ => Arc::new(self.jobs.job(job_guid).await?),
        };
        let begin = |job: &Job| {
            let begun = job.begin(at).filter(|job| job.attempt == attempt)?;
            Some(match look {
                Some(look) if job.first_chunk_at.is_none() => begun.due_by(at + look),
                _ => begun,
            })
        };
        let job = Arc::new(update_job(&*self.jobs, &job, begin).await?.job());
        seen.insert(job_guid, (Arc::clone(&job), at));
        Ok(job)
    }
}
