//! Sends to WebSocket connections through API Gateway's management API.

use async_trait::async_trait;
use aws_sdk_apigatewaymanagement::Client;
use aws_sdk_apigatewaymanagement::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_apigatewaymanagement::primitives::Blob;
use rowmill_core::model::live::ConnectionId;
use rowmill_core::ports::{ConnectionSender, PortError, SendError};

use crate::sdk::denied::{denied, is_denied};

/// The connections of a WebSocket API.
#[derive(Clone, Debug)]
pub struct ApiGatewayConnections {
    client: Client,
}

impl ApiGatewayConnections {
    /// The connections that this client manages: one of
    /// [`Clients::connections`](crate::sdk::clients::Clients::connections), which does not retry.
    pub const fn new(client: Client) -> Self {
        Self { client }
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
