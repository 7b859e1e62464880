//! Sends to WebSocket connections through API Gateway's management API.

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_apigatewaymanagement::Client;
use aws_sdk_apigatewaymanagement::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_apigatewaymanagement::primitives::Blob;
use rowmill_core::model::live::ConnectionId;
use rowmill_core::ports::{ConnectionSender, PortError, SendError};

use crate::denied::{denied, is_denied};

/// Timeout of a request. Those who send give up earlier; this ends the request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// The connections of a WebSocket API.
#[derive(Clone, Debug)]
pub struct ApiGatewayConnections {
    client: Client,
}

impl ApiGatewayConnections {
    /// The connections that this client manages. It must not retry, and have the endpoint of [`management_endpoint`].
    pub const fn new(client: Client) -> Self {
        Self { client }
    }
}

/// The endpoint of the management API of a WebSocket API with this address: `https:` in place of `wss:`.
pub fn management_endpoint(live_url: &str) -> String {
    match live_url.strip_prefix("ws") {
        Some(rest) => format!("http{rest}"),
        None => live_url.to_owned(),
    }
}

fn is_gone<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    error.code() == Some("GoneException")
}

fn port_error<E, R>(doing: &'static str, error: SdkError<E, R>) -> PortError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    match error.code() {
        code if is_denied(code) || code == Some("ForbiddenException") => {
            let reason = error.message().map_or_else(|| DisplayErrorContext(&error).to_string(), str::to_owned);
            denied(doing, Some(&reason), error)
        }
        _ => PortError::unavailable(doing, error),
    }
}

#[async_trait]
impl ConnectionSender for ApiGatewayConnections {
    async fn send(&self, to: &ConnectionId, text: &str) -> Result<(), SendError> {
        let request = self.client.post_to_connection().connection_id(&to.0).data(Blob::new(text));
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) if is_gone(&error) => Err(SendError::Gone),
            Err(error) => Err(port_error("sending a live message", error).into()),
        }
    }

    async fn hang_up(&self, connection: &ConnectionId) -> Result<(), PortError> {
        match self.client.delete_connection().connection_id(&connection.0).send().await {
            Ok(_) => Ok(()),
            Err(error) if is_gone(&error) => Ok(()),
            Err(error) => Err(port_error("closing a live connection", error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_management_api_is_at_the_same_address() {
        let at = "wss://a1.execute-api.eu-west-1.amazonaws.com/live";
        assert_eq!(management_endpoint(at), "https://a1.execute-api.eu-west-1.amazonaws.com/live");
        let local = "ws://127.0.0.1:4566/_aws/execute-api/a1/live";
        assert_eq!(management_endpoint(local), "http://127.0.0.1:4566/_aws/execute-api/a1/live");
    }
}
