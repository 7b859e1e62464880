use std::sync::{Arc, Mutex};
use std::time::Duration;

use acceptance::served::{answer, body, served};
use aws_smithy_runtime_api::client::http::HttpConnectorFuture;
use aws_smithy_runtime_api::client::result::ConnectorError;
use rowmill_aws::adapters::lambda::LambdaTarget;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::processor::Item;
use rowmill_core::ports::{Target, TargetError, TargetItem, TargetRequest};
use rowmill_core::text::Record;
use serde_json::{Map, Value, json};

const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:geocode";

/// The answer to an invocation.
enum Reply {
    /// A response with this status and these headers.
    Http(u16, Vec<(&'static str, &'static str)>, Value),
    /// Never.
    Hang,
    /// No connection.
    Unreachable,
}

/// The result of a call if every invocation gets this answer, and the invocations.
async fn call(reply: Reply, timeout: Duration) -> (Result<Vec<u8>, TargetError>, Vec<(String, Value)>) {
    let invocations = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&invocations);
    let config = served(move |request| {
        seen.lock().unwrap().push((request.uri().to_owned(), body(&request)));
        match &reply {
            Reply::Http(status, headers, said) => answer(*status, headers, said),
            Reply::Hang => HttpConnectorFuture::new(std::future::pending()),
            Reply::Unreachable => {
                HttpConnectorFuture::ready(Err(ConnectorError::io(std::io::Error::other("refused").into())))
            }
        }
    });
    let client = aws_sdk_lambda::Client::new(&config.await);
    let job_guid: JobGuid = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
    let item = Item { job_guid, row: 7, record: Record::Json(json!({ "a": 1 })) };
    let params = Map::new();
    let items = vec![TargetItem::from(&item)];
    let request = TargetRequest::of(job_guid, "geocode", &params, items);
    let end = LambdaTarget::new(client, FUNCTION, timeout).call(&request).await;
    let invocations = invocations.lock().unwrap().clone();
    (end, invocations)
}

const LONG: Duration = Duration::from_secs(60);

async fn error(status: u16, headers: &[(&'static str, &'static str)], body: Value) -> TargetError {
    call(Reply::Http(status, headers.to_vec(), body), LONG).await.0.expect_err("an error")
}

#[tokio::test]
async fn a_function_is_invoked_with_the_items_and_its_payload_is_the_answer() {
    let (end, invocations) = call(Reply::Http(200, vec![], json!({ "batchItemFailures": [] })), LONG).await;
    assert_eq!(end.unwrap(), br#"{"batchItemFailures":[]}"#);
    let [(uri, payload)] = &invocations[..] else { panic!("one invocation") };
    assert!(uri.contains("/functions/arn") && uri.ends_with("geocode/invocations"), "{uri}");
    assert_eq!((&payload["jobType"], &payload["items"][0]["record"]), (&json!("geocode"), &json!({ "a": 1 })));
}

#[tokio::test]
async fn a_function_that_throws_has_failed() {
    let thrown = json!({ "errorType": "KeyError", "errorMessage": "'x'" });
    let failed = error(200, &[("x-amz-function-error", "Unhandled")], thrown).await;
    assert!(matches!(&failed, TargetError::Failed { detail } if detail.contains("KeyError")), "{failed}");
}

#[tokio::test]
async fn a_function_that_is_throttled_or_not_ready_is_busy() {
    let throttled = [("x-amzn-errortype", "TooManyRequestsException"), ("retry-after", "7")];
    let busy = error(429, &throttled, json!({ "Reason": "ReservedFunctionConcurrentInvocationLimitExceeded" })).await;
    let TargetError::Busy { retry_after, detail } = &busy else { panic!("{busy}") };
    assert_eq!(*retry_after, Some(Duration::from_secs(7)));
    assert!(detail.contains("TooManyRequestsException"), "{detail}");
    for (status, code) in
        [(500, "ServiceException"), (502, "ENILimitReachedException"), (409, "ResourceConflictException")]
    {
        let busy = error(status, &[("x-amzn-errortype", code)], json!({})).await;
        assert!(matches!(busy, TargetError::Busy { retry_after: None, .. }), "{code}: {busy}");
    }
}

#[tokio::test]
async fn a_call_that_lambda_does_not_allow_is_refused() {
    for (status, code) in
        [(403, "AccessDeniedException"), (404, "ResourceNotFoundException"), (413, "RequestTooLargeException")]
    {
        let refused = error(status, &[("x-amzn-errortype", code)], json!({ "Message": "no" })).await;
        assert!(matches!(&refused, TargetError::Refused { detail } if detail.contains(code)), "{code}: {refused}");
    }
}

#[tokio::test]
async fn a_timeout_and_a_failed_connection_are_no_answer() {
    let (end, invocations) = call(Reply::Hang, Duration::from_millis(100)).await;
    let error = end.unwrap_err();
    assert!(matches!(&error, TargetError::Unreachable { detail, .. } if detail.contains("within")), "{error}");
    assert_eq!(invocations.len(), 1, "its time is up for good");
    let (end, _) = call(Reply::Unreachable, LONG).await;
    let error = end.unwrap_err();
    assert!(matches!(&error, TargetError::Unreachable { source: Some(_), .. }), "{error}");
}
