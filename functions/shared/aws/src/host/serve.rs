//! From an invocation to a handler and back.
//!
//! Handlers are boxed here, so that the Lambda runtime is compiled once, in this crate, and not once per function.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::{Context, Poll};

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use futures::future::{BoxFuture, FutureExt, LocalBoxFuture};
use jiff::Timestamp;
use lambda_http::{Body, Request, RequestExt, Response};
use lambda_runtime::layers::TracingLayer;
use lambda_runtime::tower::layer::layer_fn;
use lambda_runtime::{Error, LambdaEvent, Service, service_fn};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::adapters::dynamodb::RowChange;
use crate::host::batch_threads::end_process_if_held;
use crate::host::forever;
use crate::host::http::{Api, Call, Guard, Problem};
use crate::host::invocation::Invocation;
use crate::observe::metrics::{self, Metric};
use crate::observe::trace::{self, TraceId};
use crate::runtime::Runtime;
use crate::sdk::patience;

#[derive(Clone, PartialEq, Debug)]
pub struct Batch<M> {
    pub deliveries: Vec<Delivery<M>>,
    /// When Lambda kills the invocation.
    pub deadline: Timestamp,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Delivery<M> {
    pub message_id: String,
    pub message: M,
    /// Number of deliveries, this one included.
    pub receive_count: u32,
    /// The queue's handle of this delivery.
    pub receipt: String,
}

/// A handler of events of type `E`, boxed.
pub(crate) type Handler<E, R> = Arc<dyn Fn(E) -> BoxFuture<'static, R> + Send + Sync>;

/// Serves the API's routes of a function until the execution environment ends.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn api<U, H, F>(runtime: &Runtime, use_case: U, handler: H) -> Result<(), Error>
where
    U: Send + Sync + 'static,
    H: Fn(&'static U, Call) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Result<Response<Body>, Problem>> + Send + 'static,
{
    let function = runtime.built()?;
    let guard = Guard::of(function, &runtime.ports)?;
    let api = forever(Api { function, access: runtime.settings()?, guard });
    let use_case = forever(use_case);
    let answer = move |request| api.answer(request, move |call| handler(use_case, call)).boxed();
    serve_http(function, Arc::new(answer)).await
}

fn serve_http(
    function_name: &'static str,
    handler: Handler<Request, Response<Body>>,
) -> LocalBoxFuture<'static, Served> {
    lambda_http::run_concurrent(service_fn(move |request: Request| {
        let context = request.lambda_context_ref();
        let request_id = context.map(|context| context.request_id.clone());
        let lambda_trace = context.and_then(|context| context.xray_trace_id.as_deref());
        let trace = trace::of_request(request.headers(), lambda_trace);
        let invocation = Invocation::begin_apart(function_name, request_id);
        let answer = trace::within(trace, handler(request));
        async move {
            let response = answer.await;
            invocation.finish();
            Ok::<_, Error>(response)
        }
    }))
    .boxed_local()
}

/// Serves batches of a queue's messages until the execution environment ends. The handler returns the ids of the
/// messages to deliver again.
pub async fn queue<U, M, H, F>(runtime: &Runtime, use_case: U, handler: H) -> Result<(), Error>
where
    U: Send + Sync + 'static,
    M: DeserializeOwned + Send + 'static,
    H: Fn(&'static U, Batch<M>) -> F + Send + Sync + 'static,
    F: Future<Output = Vec<String>> + Send + 'static,
{
    let use_case = forever(use_case);
    let handler = move |(event, deadline): (SqsEvent, Timestamp)| {
        let received = Received::new(event, deadline);
        let again = received.batch.deliveries.iter().filter(|delivery| delivery.receive_count > 1).count();
        metrics::add_any(Metric::MessagesRedelivered, again as u64);
        let work = (!received.batch.deliveries.is_empty()).then(|| handler(use_case, received.batch));
        async move {
            let retry = match work {
                Some(work) => work.await,
                None => Vec::new(),
            };
            let answer = answer(&received.message_ids, received.unreadable, retry);
            metrics::add_any(Metric::MessagesReturned, answer.batch_item_failures.len() as u64);
            answer
        }
        .boxed()
    };
    serve_queue(runtime.built()?, Arc::new(handler)).await
}

fn serve_queue(
    function_name: &'static str,
    handler: Handler<(SqsEvent, Timestamp), SqsBatchResponse>,
) -> LocalBoxFuture<'static, Served> {
    let service = service_fn(move |event: LambdaEvent<SqsEvent>| {
        let invocation = Invocation::begin(function_name, Some(event.context.request_id.clone()));
        let trace = event.context.xray_trace_id.as_deref().and_then(TraceId::of_xray);
        let deadline = deadline(event.context.deadline);
        let work = patience::until(deadline, trace::within(trace, handler((event.payload, deadline))));
        async move {
            let response = work.await;
            invocation.finish();
            Ok::<_, Error>(response)
        }
    });
    let runtime = lambda_runtime::Runtime::new(service).layer(TracingLayer::new());
    // The outermost layer: what it calls sends the answer.
    let end_if_held = layer_fn(|service| AfterAnswer { service, then: || end_process_if_held().boxed() });
    runtime.layer(end_if_held).run_concurrent().boxed_local()
}

/// Does something after each answer of a service, before the next call.
#[derive(Clone)]
struct AfterAnswer<S> {
    service: S,
    then: fn() -> BoxFuture<'static, ()>,
}

impl<S, I> Service<I> for AfterAnswer<S>
where
    S: Service<I>,
    S::Future: Send + 'static,
    S::Response: Send,
    S::Error: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, input: I) -> Self::Future {
        let (answered, then) = (self.service.call(input), self.then);
        async move {
            let answered = answered.await;
            then().await;
            answered
        }
        .boxed()
    }
}

/// Serves changes of a table's rows, in the order they were made, until the execution environment ends. The handler
/// answers with the sequence number from which to deliver again, or none. If it fails, the error is logged here, once,
/// reported to Lambda, and all changes are delivered again.
pub async fn stream<U, H, F, E>(runtime: &Runtime, use_case: U, handler: H) -> Result<(), Error>
where
    U: Send + Sync + 'static,
    H: Fn(&'static U, Vec<RowChange>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Option<String>, E>> + Send + 'static,
    E: Into<Error> + Send + 'static,
{
    let use_case = forever(use_case);
    let answer = move |changes| handler(use_case, changes).map(|done| done.map_err(E::into)).boxed();
    serve_stream(runtime.built()?, Arc::new(answer)).await
}

fn serve_stream(
    function_name: &'static str,
    handler: Handler<Vec<RowChange>, Result<Option<String>, Error>>,
) -> LocalBoxFuture<'static, Served> {
    lambda_runtime::run_concurrent(service_fn(move |event: LambdaEvent<Changes>| {
        let invocation = Invocation::begin(function_name, Some(event.context.request_id));
        let work = handler(event.payload.records);
        async move {
            let result = work.await.map(StreamResponse::again_from);
            if let Err(error) = &result {
                tracing::error!(
                    error = error.as_ref() as &dyn std::error::Error,
                    "changes not published, to be tried again"
                );
            }
            invocation.finish();
            result
        }
    }))
    .boxed_local()
}

/// Runs at the ticks of a schedule until the execution environment ends. A failed run is logged here, once, with its
/// causes, and reported to Lambda.
pub async fn schedule<U, H, F, E>(runtime: &Runtime, use_case: U, handler: H) -> Result<(), Error>
where
    U: Send + Sync + 'static,
    H: Fn(&'static U) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<Error> + Send + 'static,
{
    let use_case = forever(use_case);
    let answer = move |()| handler(use_case).map(|done| done.map_err(E::into)).boxed();
    serve_schedule(runtime.built()?, Arc::new(answer)).await
}

fn serve_schedule(
    function_name: &'static str,
    handler: Handler<(), Result<(), Error>>,
) -> LocalBoxFuture<'static, Served> {
    // The payload does not matter: everyone who may invoke the function can start it, also a person at a console.
    lambda_runtime::run_concurrent(service_fn(move |event: LambdaEvent<IgnoredAny>| {
        let invocation = Invocation::begin_apart(function_name, Some(event.context.request_id));
        let work = handler(());
        async move {
            let result = work.await;
            if let Err(error) = &result {
                tracing::error!(error = error.as_ref() as &dyn std::error::Error, "run failed");
            }
            invocation.finish();
            result
        }
    }))
    .boxed_local()
}

/// Serving never ends, unless the Lambda runtime API cannot be reached.
pub(crate) type Served = Result<(), Error>;

fn deadline(epoch_ms: u64) -> Timestamp {
    i64::try_from(epoch_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX)
}

/// The event of a stream.
#[derive(Deserialize)]
struct Changes {
    #[serde(rename = "Records")]
    records: Vec<RowChange>,
}

/// The partial batch response to a stream: it is read again from the first item named here.
#[derive(PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StreamResponse {
    batch_item_failures: Vec<StreamItem>,
}

#[derive(PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StreamItem {
    item_identifier: String,
}

impl StreamResponse {
    fn again_from(sequence_number: Option<String>) -> Self {
        let item = |item_identifier| StreamItem { item_identifier };
        Self { batch_item_failures: sequence_number.into_iter().map(item).collect() }
    }
}

/// The event of a queue, parsed.
struct Received<M> {
    batch: Batch<M>,
    message_ids: HashSet<String>,
    /// The ids of messages that cannot be parsed.
    unreadable: Vec<String>,
}

impl<M: DeserializeOwned> Received<M> {
    fn new(event: SqsEvent, deadline: Timestamp) -> Self {
        let (mut deliveries, mut message_ids, mut unreadable) = (Vec::new(), HashSet::new(), Vec::new());
        for message in event.records {
            let message_id = message.message_id.clone().unwrap_or_default();
            message_ids.insert(message_id.clone());
            match serde_json::from_str(message.body.as_deref().unwrap_or_default()) {
                Ok(body) => {
                    let receive_count = receive_count(&message);
                    let receipt = message.receipt_handle.unwrap_or_default();
                    deliveries.push(Delivery { message_id, message: body, receive_count, receipt });
                }
                Err(error) => {
                    // Not acknowledged: the queue's redrive policy moves it to the dead-letter queue.
                    let queue = message.event_source_arn.as_deref().unwrap_or_default();
                    tracing::error!(message.id = message_id, message.queue = queue, %error, "message not understood");
                    unreadable.push(message_id);
                }
            }
        }
        Self { batch: Batch { deliveries, deadline }, message_ids, unreadable }
    }
}

fn receive_count(message: &SqsMessage) -> u32 {
    message.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// The partial batch response. An unknown id, or one named twice, would make Lambda take the whole batch for failed, so
/// both are left out.
fn answer(message_ids: &HashSet<String>, unreadable: Vec<String>, retry: Vec<String>) -> SqsBatchResponse {
    let mut named = HashSet::new();
    let failures = unreadable.into_iter().chain(retry);
    let failures = failures.filter(|id| message_ids.contains(id) && named.insert(id.clone()));
    let mut response = SqsBatchResponse::default();
    response.set_failures(failures);
    response
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use rowmill_core::model::messages::CompletionMessage;
    use serde_json::json;

    fn event(bodies: &[&str]) -> SqsEvent {
        let record = |(number, body): (usize, &&str)| {
            json!({
                "messageId": format!("m{number}"), "body": body, "receiptHandle": format!("r{number}"),
                "attributes": {"ApproximateReceiveCount": "3"}, "eventSourceARN": "arn:aws:sqs:eu-west-1:1:completions",
            })
        };
        let records: Vec<_> = bodies.iter().enumerate().map(record).collect();
        serde_json::from_value(json!({"Records": records})).unwrap()
    }

    const GOOD: &str = r#"{"jobGuid":"01890a5d-ac96-774b-bcce-b302099a8057","attempt":1,"owner":"local"}"#;

    #[test]
    fn an_unreadable_message_is_reported_as_failed_and_the_others_are_handled() {
        let received = Received::<CompletionMessage>::new(event(&[GOOD, "{", GOOD]), Timestamp::MAX);
        let ids: Vec<_> = received.batch.deliveries.iter().map(|delivery| delivery.message_id.as_str()).collect();
        assert_eq!(ids, ["m0", "m2"]);
        assert_eq!(received.batch.deliveries[1].receipt, "r2");
        assert!(received.batch.deliveries.iter().all(|delivery| delivery.receive_count == 3));
        assert_eq!(received.unreadable, ["m1"]);
    }

    #[tokio::test]
    async fn what_follows_an_answer_is_done_after_it_also_if_it_is_an_error() {
        static DONE: Mutex<Vec<&str>> = Mutex::new(Vec::new());
        let done = |what| DONE.lock().unwrap().push(what);
        let service = service_fn(move |answer: Result<(), &'static str>| async move {
            tokio::task::yield_now().await;
            done("answered");
            answer
        });
        let then = || async { DONE.lock().unwrap().push("then") }.boxed();
        let mut service = AfterAnswer { service, then };
        for answer in [Ok(()), Err("the Runtime API is gone")] {
            assert_eq!(service.call(answer).await, answer);
            assert_eq!(std::mem::take(&mut *DONE.lock().unwrap()), ["answered", "then"]);
        }
    }

    #[test]
    fn the_answer_names_the_change_from_which_the_stream_is_retried() {
        let answer = |from: Option<&str>| serde_json::to_value(StreamResponse::again_from(from.map(str::to_owned)));
        assert_eq!(answer(None).unwrap(), json!({"batchItemFailures": []}));
        assert_eq!(answer(Some("7")).unwrap(), json!({"batchItemFailures": [{"itemIdentifier": "7"}]}));
    }

    #[test]
    fn the_answer_names_each_failed_message_of_the_batch_once() {
        let ids = ["m0", "m1", "m2"].map(str::to_owned).into();
        let response = answer(&ids, vec!["m1".into()], vec!["m2".into(), "m1".into(), "other".into(), "m2".into()]);
        let failed: Vec<_> =
            response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect();
        assert_eq!(failed, ["m1", "m2"]);
        assert_eq!(
            serde_json::to_value(&response).unwrap(),
            json!({"batchItemFailures": [{"itemIdentifier": "m1"}, {"itemIdentifier": "m2"}]})
        );
    }
}
