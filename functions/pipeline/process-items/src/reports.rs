//! Reports the runs of this process to the breakers of their job types.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use rowmill_core::model::breaker::FailedRun;
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::ports::PortError;
use rowmill_core::ports::processor::ItemError;
use rowmill_core::progress::breaker::{BreakerSteps, Reported};

use crate::end::{ChunkEnd, Conclusion};
use crate::open_chunk::OpenChunk;
use crate::prepared::Prepared;

/// Counts good runs in memory, so that they cost nothing. A failed run reports those since the last report.
pub struct RunReports {
    breaker: BreakerSteps,
    /// Number of good runs since the last report, by job type.
    good: Mutex<HashMap<String, u32>>,
}

impl RunReports {
    pub fn new(breaker: BreakerSteps) -> Self {
        Self { breaker, good: Mutex::default() }
    }

    /// A run that went well says something about the target only if the target was called.
    pub(crate) fn note_good(&self, prepared: &Prepared) {
        if self.breaker.is_off() || prepared.spec.is_dry_run() {
            return;
        }
        let mut good = self.good.lock();
        let count = good.entry(prepared.spec.job_type.clone()).or_default();
        *count = count.saturating_add(1);
    }

    /// Reports a run that has finished no item because of transient errors, and holds the job back if its target is
    /// down. `None` if it is not known to be down. The invocation ends by `deadline`.
    pub(crate) async fn report_failed(
        &self,
        chunk: &OpenChunk<'_>,
        type_limits: &JobTypeLimits,
        error: &ItemError,
        deadline: Timestamp,
    ) -> Result<Option<Conclusion>, PortError> {
        let message = chunk.delivery.message;
        let job = chunk.delivery.watch.job(message.job_guid).await?;
        let good = self.good.lock().remove(&job.job_type);
        let run = FailedRun {
            job: message.job_guid,
            attempt: message.address.attempt,
            began: chunk.began,
            code: &error.code,
            good: good.unwrap_or(0),
            lanes: type_limits.of(&job.job_type).concurrency,
            is_isolated: chunk.is_isolated(),
        };
        Ok(match self.breaker.after_failure(&job, &run, &error.message, deadline).await? {
            Reported::Up => None,
            Reported::HeldBack(held_back) => {
                tracing::warn!(
                    job.id = %message.job_guid, job.type_name = job.job_type, error.code = error.code,
                    breaker.probe_at = %held_back.probe_at, breaker.has_opened = held_back.has_opened,
                    "target down, job held back"
                );
                Some(Conclusion::End(ChunkEnd::Dropped))
            }
            Reported::Over(job) if job.is_past(message.address.attempt) => Some(Conclusion::End(ChunkEnd::Past)),
            Reported::Over(_) => Some(Conclusion::Skip),
        })
    }
}
