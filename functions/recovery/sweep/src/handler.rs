//! From the schedule's event to the use case, and its metrics.

use rowmill_aws::observe::metrics::{self, Metric};
use rowmill_core::ports::PortError;

use crate::sweep::{Sweeper, Swept};

/// Sweeps once.
///
/// # Errors
/// Where nothing could be swept: the invocation counts as failed.
pub async fn handle(sweeper: &Sweeper) -> Result<(), PortError> {
    let swept = sweeper.sweep().await?;
    tracing::info!(?swept, "swept");
    let Swept { looked_at, recovered, overdue, messages, tallies_closed, failed, capped } = swept;
    let counts = [
        (Metric::JobsLookedAt, looked_at),
        (Metric::JobsRecovered, recovered),
        (Metric::JobsOverdue, overdue),
        (Metric::MessagesSentAgain, messages),
        (Metric::TalliesClosed, tallies_closed),
        (Metric::LooksFailed, failed),
        (Metric::SweepsCapped, capped.into()),
    ];
    for (metric, count) in counts {
        metrics::add(metric, count);
    }
    Ok(())
}
