//! What a run tells the breaker of its job type, and what the breaker makes of it.

use rowmill_core::model::breaker::FailedRun;
use rowmill_core::model::messages::DeliveryMode;
use rowmill_core::ports::processor::ItemError;

use crate::delivery::Delivery;
use crate::prepared::Prepared;
use crate::process::{ChunkEnd, ChunkProcessor};
use crate::run::{Progress, RunError};

impl ChunkProcessor {
    /// A run that went well says something about the target only if the target was called.
    pub(crate) fn note_good_run(&self, prepared: &Prepared, progress: &Progress) {
        if !self.breaker.is_off() && !prepared.spec.is_dry_run() && !progress.is_stopped() {
            self.good_runs.add(&prepared.spec.job_type);
        }
    }

    /// A run that has finished no item because of transient errors: pauses the job if its target is down. Otherwise the
    /// chunk returns to its queue.
    pub(crate) async fn still_failing(
        &self,
        delivery: &Delivery<'_>,
        prepared: &Prepared,
        open: usize,
        error: ItemError,
    ) -> Result<ChunkEnd, RunError> {
        let (message, job) = (delivery.message, delivery.watch.job(delivery.message.job_guid).await?);
        let run = FailedRun {
            job: message.job_guid,
            attempt: message.address.attempt,
            began: delivery.began,
            code: &error.code,
            good: self.good_runs.take(&prepared.spec.job_type),
            lanes: self.type_limits.of(&prepared.spec.job_type).concurrency,
            is_isolated: message.delivery_mode == DeliveryMode::Isolated,
        };
        if let Some(held_back) = self.breaker.after_failure(&job, &run, &error.message).await? {
            tracing::warn!(
                job.id = %message.job_guid, job.type_name = job.job_type, error.code = error.code,
                breaker.probe_at = %held_back.probe_at, breaker.has_opened = held_back.has_opened,
                "target down, job paused"
            );
            return Ok(ChunkEnd::Paused);
        }
        Err(RunError::StillFailing { open, error })
    }
}
