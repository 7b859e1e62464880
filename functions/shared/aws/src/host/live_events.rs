//! From an event of a WebSocket API to a handler and back.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures::future::{FutureExt, LocalBoxFuture};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use rowmill_core::model::live::ConnectionId;
use serde::{Deserialize, Serialize};

use crate::host::forever;
use crate::host::invocation::Invocation;
use crate::host::serve::{Handler, Served};
use crate::runtime::Runtime;

/// An event on a connection of a WebSocket API.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveEvent {
    request_context: LiveContext,
    #[serde(default)]
    query_string_parameters: Option<HashMap<String, String>>,
    #[serde(default)]
    body: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LiveContext {
    connection_id: String,
    event_type: LiveEventType,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LiveEventType {
    /// A connection is being opened.
    Connect,
    Message,
    Disconnect,
}

impl LiveEvent {
    pub const fn event_type(&self) -> LiveEventType {
        self.request_context.event_type
    }

    pub fn connection(&self) -> ConnectionId {
        ConnectionId(self.request_context.connection_id.clone())
    }

    /// A parameter of the address by which the connection is opened.
    pub fn query_parameter(&self, name: &str) -> Option<&str> {
        self.query_string_parameters.as_ref()?.get(name).map(String::as_str)
    }

    pub fn text(&self) -> &str {
        self.body.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for LiveEvent {
    /// Anyone who has the ticket in the address can open the connection, so it must not reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveEvent").field("event_type", &self.event_type()).finish_non_exhaustive()
    }
}

/// Serves what happens on the connections of a WebSocket API until the execution environment ends.
///
/// The handler returns the HTTP status of its answer: an opening connection with another status than 200 is refused.
/// The answer has no body: API Gateway drops one, and an emulator may send it to the client.
pub async fn live<U, H, F>(runtime: &Runtime, use_case: U, handler: H) -> Result<(), Error>
where
    U: Send + Sync + 'static,
    H: Fn(&'static U, LiveEvent) -> F + Send + Sync + 'static,
    F: Future<Output = u16> + Send + 'static,
{
    let use_case = forever(use_case);
    serve_live(runtime.built()?, Arc::new(move |event| handler(use_case, event).boxed())).await
}

fn serve_live(function_name: &'static str, handler: Handler<LiveEvent, u16>) -> LocalBoxFuture<'static, Served> {
    lambda_runtime::run_concurrent(service_fn(move |event: LambdaEvent<LiveEvent>| {
        let invocation = Invocation::begin(function_name, Some(event.context.request_id));
        let work = handler(event.payload);
        async move {
            let status_code = work.await;
            invocation.finish();
            Ok::<_, Error>(LiveAnswer { status_code })
        }
    }))
    .boxed_local()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LiveAnswer {
    status_code: u16,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_names_its_connection_and_a_log_never_its_ticket() {
        let event: LiveEvent = serde_json::from_value(json!({
            "requestContext": {"connectionId": "L0SM9cOFvHcCIhw=", "eventType": "CONNECT", "routeKey": "$connect"},
            "queryStringParameters": {"ticket": "secret"}, "isBase64Encoded": false,
        }))
        .unwrap();
        assert_eq!((event.event_type(), event.connection().0.as_str()), (LiveEventType::Connect, "L0SM9cOFvHcCIhw="));
        assert_eq!((event.query_parameter("ticket"), event.text()), (Some("secret"), ""));
        assert!(!format!("{event:?}").contains("secret"));
    }
}
