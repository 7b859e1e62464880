//! Interpretation of the answers of a service.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::job_types::target_type::{TargetCalls, TargetType};
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::processor::{ItemProcessor, JobType};
use rowmill_core::ports::{ANSWER_MAX_BYTES, TargetError};
use serde_json::json;

use crate::server::{Reply, Server};
use crate::{LONG, call, items, job_guid, webhook};

/// The error of a call to a service that replies like this.
async fn error(reply: impl Fn() -> Reply + Send + Sync + 'static) -> TargetError {
    let server = Server::start(move |_, _| reply()).await;
    call(&webhook(&server.url("/"), LONG)).await.expect_err("an error")
}

#[tokio::test]
async fn a_call_to_a_service_that_hangs_times_out() {
    let short = Duration::from_millis(100);
    let server = Server::start(|_, _| Reply::Hang).await;
    let error = call(&webhook(&server.url("/"), short)).await.unwrap_err();
    assert!(matches!(error, TargetError::Unreachable { .. }), "{error}");
    assert_eq!(server.seen().len(), 1);

    let server = Server::start(|_, _| Reply::Endless(head("content-length: 90"), Vec::new())).await;
    let error = call(&webhook(&server.url("/"), short)).await.unwrap_err();
    assert!(matches!(error, TargetError::Unreachable { .. }), "the service hangs in the middle of the answer: {error}");
}

fn head(header: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\n").into_bytes()
}

#[tokio::test]
async fn an_incomplete_answer_counts_as_no_answer() {
    for header in ["content-length: 90", "transfer-encoding: chunked"] {
        let half = [head(header), b"10\r\n{\"batchItemFailur".to_vec()].concat();
        let error = error(move || Reply::Cut(half.clone())).await;
        assert!(matches!(error, TargetError::Unreachable { .. }), "{header}: {error}");
    }
    let nothing = error(|| Reply::Cut(Vec::new())).await;
    assert!(matches!(nothing, TargetError::Unreachable { .. }), "{nothing}");
    let no_http = error(|| Reply::Cut(b"220 smtp ready\r\n".to_vec())).await;
    assert!(matches!(no_http, TargetError::Unreachable { .. }), "{no_http}");
}

#[tokio::test]
async fn the_error_for_an_unreachable_service_hides_its_url() {
    let port = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let error = call(&webhook(&format!("http://127.0.0.1:{port}/?token=sesame"), LONG)).await.unwrap_err();
    assert!(matches!(error, TargetError::Unreachable { .. }), "{error}");
    assert!(!format!("{error:?}").contains("sesame"), "{error:?}");
}

#[tokio::test]
async fn reading_an_endless_answer_stops_at_the_limit() {
    let server = Server::start(|_, _| Reply::Endless(head("connection: close"), vec![b' '; 64 * 1024])).await;
    let error = call(&webhook(&server.url("/"), LONG)).await.unwrap_err();
    assert!(matches!(error, TargetError::BadAnswer { .. }), "{error}");
    // The system's socket buffers hold a little more than was read.
    assert!(server.written() < 4 * ANSWER_MAX_BYTES, "{} bytes", server.written());

    let announced = format!("content-length: {}", ANSWER_MAX_BYTES + 1);
    let server = Server::start(move |_, _| Reply::Endless(head(&announced), Vec::new())).await;
    let error = call(&webhook(&server.url("/"), LONG)).await.unwrap_err();
    assert!(matches!(error, TargetError::BadAnswer { .. }), "refused by its announced length: {error}");
}

#[tokio::test]
async fn each_status_maps_to_the_error_that_decides_what_the_caller_does() {
    for status in [408, 425, 429, 501, 502, 503, 504, 599] {
        let error = error(move || Reply::http(status, &[], "")).await;
        assert!(matches!(error, TargetError::Busy { retry_after: None, .. }), "{status}: {error}");
    }
    for status in [300, 304, 400, 401, 403, 404, 409, 410, 422, 499] {
        let error = error(move || Reply::http(status, &[], "")).await;
        assert!(matches!(error, TargetError::Refused { .. }), "{status}: {error}");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
    }
    let failed = error(|| Reply::http(500, &[], "")).await;
    assert!(matches!(failed, TargetError::Failed { .. }), "{failed}");
    let later = error(|| Reply::http(429, &[("retry-after", "Tue, 14 Nov 2023 22:14:20 GMT")], "")).await;
    let TargetError::Busy { retry_after, .. } = later else { panic!("{later}") };
    assert_eq!(retry_after, Some(Duration::from_secs(60)));
}

fn processor(url: &str) -> Arc<dyn ItemProcessor> {
    let calls = TargetCalls { batch_items: 2, concurrency: 1, outputs: false, cancel: false };
    let job_type = TargetType::new("notify", calls, Some(Arc::new(webhook(url, LONG))));
    job_type.prepare(&spec()).unwrap()
}

fn spec() -> Spec {
    serde_json::from_value(json!({
        "jobGuid": job_guid(), "owner": "local", "jobType": "notify", "createdAt": "2024-01-01T00:00:00Z",
        "source": {"file": {"fileGuid": job_guid(), "key": "uploads/x", "etag": "e", "size": 1}},
        "head": {"dialect": {"format": "jsonl", "delimiter": ","}, "columns": [], "dataStart": 0},
        "limits": {"maxItems": 500, "maxBytes": 1, "maxRecordBytes": 1},
        "scannerVersion": 1, "params": {}, "newDatasetPartitions": 256,
    }))
    .unwrap()
}

#[tokio::test]
async fn a_wrong_answer_fails_the_items_of_its_call_only() {
    let id = |row: u64| format!("{}/{row}", job_guid());
    let wrong_answers = [
        "All done!".to_owned(),
        r#"{"batchItemFailures": null}"#.to_owned(),
        json!({ "batchItemFailures": [{"itemIdentifier": id(1)}] }).to_string(),
        json!({ "batchItemFailures": [{"itemIdentifier": id(3)}, {"itemIdentifier": id(3)}] }).to_string(),
        json!({ "batchItemFailures": [], "outputs": [{"itemIdentifier": id(3), "output": {}}] }).to_string(),
    ];
    for wrong in wrong_answers {
        let body = wrong.clone();
        let script = move |seen: &crate::server::Seen, _| {
            let is_wrong = String::from_utf8_lossy(&seen.body).contains("/3\"");
            if is_wrong { Reply::http(200, &[], &body) } else { Reply::ok() }
        };
        let server = Server::start(script).await;
        let results = processor(&server.url("/")).process_batch(&items(6)).await;
        let codes: Vec<Option<&str>> =
            results.iter().map(|result| result.as_ref().err().map(|error| error.code.as_str())).collect();
        assert_eq!(codes, [None, None, Some("bad_answer"), Some("bad_answer"), None, None], "{wrong}");
        assert!(results[2..4].iter().all(|result| result.as_ref().is_err_and(|error| !error.transient)));
        assert_eq!(server.seen().len(), 4, "the wrong call is repeated once");
    }
}
