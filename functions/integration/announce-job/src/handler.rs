//! From the stream's event to the use case and back.

use std::error::Error;

use rowmill_aws::adapters::dynamodb::{JobChange, RowChange};
use rowmill_core::ports::PortError;

use crate::announce::{Announced, Announcer};

/// Announces these changes. Returns the sequence number to start from next time, if some could not be announced.
///
/// A change that cannot be read, or whose event the bus will never accept, is logged and passed over: it would block
/// all changes after it. Jobs that wait for an ended one are started; if that fails, the sweep does.
///
/// # Errors
/// None could be announced: the invocation counts as failed.
pub async fn handle(announcer: &Announcer, changes: Vec<RowChange>) -> Result<Option<String>, PortError> {
    let (places, changes): (Vec<String>, Vec<JobChange>) = changes.into_iter().filter_map(job_change).unzip();
    let announced = announcer.announce(changes.iter().map(|change| (change.before.as_ref(), &change.after))).await;
    for ended in changes.iter().map(|change| &change.after).filter(|job| job.is_ended()) {
        if let Err(error) = announcer.waker.wake(ended.job_guid.0).await {
            tracing::warn!(job.id = %ended.job_guid, error = &error as &dyn Error, "jobs that wait are not told");
        }
    }
    let mut told = false;
    let mut open = None;
    for (place, announced) in places.into_iter().zip(announced) {
        match announced {
            Announced::Nothing => {}
            Announced::Event(event) => {
                told = true;
                tracing::info!(job.id = %event.job_guid, event.id = event.event_id, "event published");
            }
            Announced::Failed(event, error @ (PortError::Unavailable { .. } | PortError::Denied { .. })) => {
                tracing::warn!(
                    job.id = %event.job_guid, event.id = event.event_id, error = &error as &dyn Error,
                    "event not published yet, to be tried again"
                );
                open.get_or_insert((place, error));
            }
            Announced::Failed(event, error) => tracing::error!(
                job.id = %event.job_guid, event.id = event.event_id, error = &error as &dyn Error,
                "event refused by the bus, never published"
            ),
        }
    }
    match open {
        Some((_, error)) if !told => Err(error),
        open => Ok(open.map(|(place, _)| place)),
    }
}

fn job_change(change: RowChange) -> Option<(String, JobChange)> {
    let place = change.sequence_number().to_owned();
    match change.job() {
        Ok(change) => change.map(|change| (place, change)),
        Err(error) => {
            tracing::error!(error = &error as &dyn Error, change.number = place, "invalid change, never published");
            None
        }
    }
}
