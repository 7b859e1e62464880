//! From the schedule's event to the use case, and its metrics.

use rowmill_aws::metrics::{Unit, emit};
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
    let count = |name, value: u64| (name, Unit::Count, value);
    emit(
        "sweep",
        &[
            count("JobsLookedAt", looked_at),
            count("JobsRecovered", recovered),
            count("JobsOverdue", overdue),
            count("MessagesSentAgain", messages),
            count("TalliesClosed", tallies_closed),
            count("JobsFailed", failed),
            count("SweepsCapped", capped.into()),
        ],
    );
    Ok(())
}
