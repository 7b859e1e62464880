//! From the event of the WebSocket API to the use case and back.

use std::error::Error;

use rowmill_aws::host::live_events::{LiveEvent, LiveEventType};

use crate::connect::{Doorkeeper, Opened};

/// Answers `$connect` and `$disconnect`: the HTTP status. A connection that is not answered with 200 is refused.
pub async fn handle(door: &Doorkeeper, event: LiveEvent) -> u16 {
    let id = event.connection();
    match event.event_type() {
        LiveEventType::Connect => {
            match door.connect(id.clone(), event.query_parameter("ticket").unwrap_or_default()).await {
                Ok(Opened::Yes) => 200,
                Ok(Opened::TooMany) => {
                    tracing::info!(connection.id = %id, "live connection refused: its owner has too many");
                    429
                }
                Ok(Opened::NoTicket) => {
                    tracing::info!(connection.id = %id, "live connection refused: no such ticket, or used or expired");
                    401
                }
                Err(error) => {
                    tracing::error!(connection.id = %id, error = &error as &dyn Error, "live connection not opened");
                    503
                }
            }
        }
        LiveEventType::Disconnect => match door.disconnect(&id).await {
            Ok(()) => 200,
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::warn!(connection.id = %id, error, "closed live connection not removed, it expires by itself");
                503
            }
        },
        LiveEventType::Message => 404,
    }
}
