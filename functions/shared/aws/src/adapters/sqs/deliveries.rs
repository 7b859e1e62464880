use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use rowmill_core::ports::{Deliveries, PortError};

use super::errors::port_error;

/// The maximum visibility timeout of SQS.
const LONGEST: Duration = Duration::from_secs(12 * 60 * 60);

#[derive(Debug)]
pub struct SqsDeliveries {
    client: Client,
    url: String,
}

impl SqsDeliveries {
    /// The deliveries of the queue at this URL.
    pub const fn new(client: Client, url: String) -> Self {
        Self { client, url }
    }
}

#[async_trait]
impl Deliveries for SqsDeliveries {
    async fn postpone(&self, receipt: &str, by: Duration) -> Result<(), PortError> {
        let seconds = i32::try_from(by.min(LONGEST).as_secs()).unwrap_or(i32::MAX);
        let request = self.client.change_message_visibility().queue_url(&self.url).receipt_handle(receipt);
        let sent = request.visibility_timeout(seconds).send().await;
        sent.map_err(|error| port_error("postponing a delivery", error))?;
        Ok(())
    }
}
