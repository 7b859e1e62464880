//! From the event of the WebSocket API to the use case.

use std::error::Error;

use rowmill_aws::host::live_events::{LiveEvent, LiveEventType};

use crate::subscribe::Subscriber;

/// Answers a message. The answer goes to the connection; the status that is returned here reaches nobody.
pub async fn handle(subscriber: &Subscriber, event: LiveEvent) -> u16 {
    if event.event_type() != LiveEventType::Message {
        return 404;
    }
    let id = event.connection();
    match subscriber.answer(&id, event.text()).await {
        Ok(()) => 200,
        Err(error) => {
            tracing::error!(connection.id = %id, error = &error as &dyn Error, "live message not answered");
            503
        }
    }
}
