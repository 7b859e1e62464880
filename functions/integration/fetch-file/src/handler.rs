//! From the fetches queue's event to the use case and back.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_aws::{Batch, Delivery};
use rowmill_core::model::messages::FetchMessage;
use rowmill_core::model::upload::FetchFailure;
use rowmill_core::ports::Deliveries;

use crate::fetch::{FetchError, Fetched, Fetcher, INTERNAL, MARGIN, TIME_LIMIT, UNAVAILABLE};

/// Deliveries after which a file is given up if its source is busy. Their delays add up to ten minutes. A message whose
/// parts are stored in part is followed by a new one.
const TRIES: u32 = 8;

/// Deliveries after which a file is given up whatever has failed: before its message is a dead letter.
const DELIVERIES: u32 = 16;

/// The delay before the second try. It doubles with each further one.
const DELAY: Duration = Duration::from_secs(5);

/// Time between the end of an invocation that dies and the next delivery.
const AFTER_DEATH: Duration = Duration::from_secs(10);

/// The longest delay, also if a server asks for a longer one.
const DELAY_MAX: Duration = Duration::from_secs(5 * 60);

pub struct Fetches {
    pub fetcher: Fetcher,
    /// Postpones messages of the fetches queue.
    pub deliveries: Arc<dyn Deliveries>,
}

/// Fetches files. Returns the ids of the messages to deliver again.
pub async fn handle(fetches: &Fetches, batch: Batch<FetchMessage>) -> Vec<String> {
    let until = batch.deadline - MARGIN;
    let mut again = Vec::new();
    for delivery in batch.deliveries {
        // The queue hides a message for six times as long.
        postpone(fetches, &delivery, TIME_LIMIT + AFTER_DEATH).await;
        if let Err(delay) = take(fetches, &delivery, until).await {
            postpone(fetches, &delivery, delay).await;
            again.push(delivery.message_id);
        }
    }
    again
}

/// Has the message delivered after this time, unless it is acknowledged before.
async fn postpone(fetches: &Fetches, delivery: &Delivery<FetchMessage>, time: Duration) {
    if let Err(error) = fetches.deliveries.postpone(&delivery.receipt, time).await {
        tracing::warn!(error = &error as &dyn Error, "not postponed: the queue delivers it in its own time");
    }
}

/// Handles a message. If it must be delivered again, returns the delay.
async fn take(fetches: &Fetches, delivery: &Delivery<FetchMessage>, until: Timestamp) -> Result<(), Duration> {
    let (message, tries) = (&delivery.message, delivery.receive_count);
    let fetched = match tries {
        ..DELIVERIES => fetches.fetcher.fetch(message, until).await,
        _ => Err(FetchError::Failed(FetchFailure {
            code: INTERNAL.to_owned(),
            detail: format!(
                "The file could not be stored in {DELIVERIES} tries. The operator of the stack can see why."
            ),
        })),
    };
    let error = match fetched {
        Ok(fetched) => {
            let has_ended = fetched == Fetched::Ended;
            tracing::info!(upload.id = %message.file_guid, has_ended, "fetched");
            if has_ended {
                wake(fetches, message).await;
            }
            return Ok(());
        }
        Err(error) => error,
    };
    tracing::warn!(upload.id = %message.file_guid, tries, error = &error as &dyn Error, "not fetched");
    let delay = DELAY.saturating_mul(1 << tries.clamp(1, TRIES).saturating_sub(1)).min(DELAY_MAX);
    let failure = match error {
        FetchError::Failed(failure) => failure,
        FetchError::Busy { detail, .. } if tries >= TRIES => FetchFailure {
            code: UNAVAILABLE.to_owned(),
            detail: format!("{detail} This was the last of {TRIES} tries."),
        },
        FetchError::Busy { retry_after, .. } => return Err(retry_after.unwrap_or(delay).clamp(DELAY, DELAY_MAX)),
        FetchError::Port(_) => return Err(delay),
    };
    if let Err(error) = fetches.fetcher.give_up(message, &failure).await {
        tracing::warn!(upload.id = %message.file_guid, error = &error as &dyn Error, "not given up yet");
        return Err(delay);
    }
    wake(fetches, message).await;
    Ok(())
}

/// Starts the jobs that wait for the file. If that fails, the sweep does.
async fn wake(fetches: &Fetches, message: &FetchMessage) {
    if let Err(error) = fetches.fetcher.waker.wake(message.file_guid.0).await {
        tracing::warn!(upload.id = %message.file_guid, error = &error as &dyn Error, "jobs that wait are not told");
    }
}
