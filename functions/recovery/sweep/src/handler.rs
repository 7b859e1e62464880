//! From the schedule's event to the use cases, and their metrics.

use std::time::Duration;

use rowmill_aws::observe::metrics::{self, Metric};
use rowmill_core::ports::PortError;
use tokio::time::timeout;

use crate::census::{TaskCensus, TaskCounts};
use crate::sweep::{Sweeper, Swept};

/// The time for counting tasks, which a sweep does not wait for.
const CENSUS_TIME: Duration = Duration::from_secs(20);

/// The use cases of a tick.
pub struct Ticks {
    pub sweeper: Sweeper,
    pub census: TaskCensus,
}

/// Sweeps once, and counts the tasks of workers meanwhile.
///
/// # Errors
/// Where nothing could be swept: the invocation counts as failed.
pub async fn handle(ticks: &Ticks) -> Result<(), PortError> {
    let (swept, ()) = tokio::join!(ticks.sweeper.sweep(), count_tasks(&ticks.census));
    let swept = swept?;
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

/// Writes the metrics of tasks. Without them jobs are swept all the same.
async fn count_tasks(census: &TaskCensus) {
    match timeout(CENSUS_TIME, census.count()).await {
        Ok(Ok(None)) => {}
        Ok(Ok(Some(TaskCounts { offered, held, dead, oldest }))) => {
            for (metric, count) in
                [(Metric::TasksOffered, offered), (Metric::TasksHeld, held), (Metric::TasksDead, dead)]
            {
                metrics::add(metric, count);
            }
            metrics::time(Metric::OldestTaskAge, oldest);
        }
        Ok(Err(error)) => tracing::warn!(error = &error as &dyn std::error::Error, "tasks not counted"),
        Err(_) => tracing::warn!("tasks not counted in time"),
    }
}
