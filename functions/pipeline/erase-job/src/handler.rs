//! From the schedule's event to the use case, and its metrics.

use rowmill_aws::observe::metrics::{self, Metric};
use rowmill_core::ports::PortError;

use crate::erase::Eraser;

/// Erases the jobs that are due.
///
/// # Errors
/// Where a job could not be erased: the invocation counts as failed. The job is due again later.
pub async fn handle(eraser: &Eraser) -> Result<(), PortError> {
    let (erased, failure) = eraser.erase_due().await;
    tracing::info!(?erased, "erased");
    metrics::add(Metric::JobsErased, erased.jobs);
    failure.map_or(Ok(()), Err)
}
