use std::collections::HashSet;
use std::time::Instant;

use serde_json::json;

use super::*;
use crate::fake_api::{FakeApi, Reply};

fn impatient(url: &str) -> ApiClient {
    let retry = RetryPolicy { first_delay: Duration::from_millis(1), ..RetryPolicy::default() };
    ApiClient::new(url, Some("secret-token")).unwrap().with_patience(retry, Duration::from_millis(500))
}

fn new_job() -> NewJob {
    NewJob { job_type: "validate".into(), file_guid: Some("f".into()), deadline_seconds: Some(60), ..NewJob::default() }
}

fn job() -> serde_json::Value {
    json!({"jobGuid": "g", "jobType": "validate", "fileGuid": "f", "status": "waiting"})
}

#[tokio::test]
async fn a_job_whose_creation_is_retried_keeps_its_idempotency_key() {
    let api = FakeApi::serve(|_, n| match n {
        0 => Reply::hang_up(),
        1 => Reply::json(503, json!({"title": "busy", "code": "type_ceiling"})),
        _ => Reply::json(202, job()),
    })
    .await;
    let created = impatient(&api.url).create_job(&new_job(), Uuid::new_v4()).await.unwrap();
    assert_eq!(created.job_guid, "g");
    let seen = api.seen();
    assert_eq!(seen.len(), 3);
    let keys: HashSet<_> = seen.iter().map(|request| &request.headers["idempotency-key"]).collect();
    assert_eq!(keys.len(), 1, "one key in all tries");
    assert_eq!(seen[0].json(), json!({"jobType": "validate", "fileGuid": "f", "deadlineSeconds": 60}));
    assert_eq!(seen[0].headers["authorization"], "Bearer secret-token");
}

#[tokio::test]
async fn the_wait_the_api_asks_for_is_kept() {
    let api = FakeApi::serve(|_, n| match n {
        0 => Reply::text(429, "").header("retry-after", "1"),
        _ => Reply::json(200, job()),
    })
    .await;
    let begun = Instant::now();
    impatient(&api.url).job("g").await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn bounds_of_a_job_are_sent_as_the_api_names_them() {
    let api = FakeApi::serve(|_, _| Reply::json(202, job())).await;
    let tolerance = Tolerance { percent: Some(2.5), count: None, minimum_items: Some(100) };
    let bounded = NewJob { tolerance: Some(tolerance), max_concurrency: Some(8), ..new_job() };
    impatient(&api.url).create_job(&bounded, Uuid::new_v4()).await.unwrap();
    let sent = api.seen()[0].json();
    assert_eq!(sent["tolerance"], json!({"percent": 2.5, "minimumItems": 100}));
    assert_eq!(sent["maxConcurrency"], 8);
}

#[tokio::test]
async fn a_redrive_whose_reply_was_lost_is_not_taken_for_refused() {
    let active = || Reply::json(409, json!({"detail": "The job runs.", "code": "job_active"}));
    let api = FakeApi::serve(move |request, n| match (n, request.method.as_str()) {
        (0, _) => Reply::hang_up(),
        (_, "POST") => active(),
        _ => Reply::json(200, job()),
    })
    .await;
    let redrive = Redrive { file_guid: Some("c".into()), deadline_seconds: None };
    assert_eq!(impatient(&api.url).redrive_job("g", &redrive).await.unwrap().job_guid, "g");
    assert_eq!(api.seen()[1].target, "/api/jobs/g/redrive");
    assert_eq!(api.seen()[1].json(), json!({"fileGuid": "c"}));

    let api = FakeApi::serve(move |_, _| active()).await;
    let error = impatient(&api.url).redrive_job("g", &redrive).await.unwrap_err();
    assert_eq!(error.code(), Some("job_active"), "nobody but somebody else can have started it");
}

#[tokio::test]
async fn a_clear_no_is_not_asked_again() {
    let api =
        FakeApi::serve(|_, _| Reply::json(404, json!({"detail": "There is no upload f.", "code": "unknown_upload"})))
            .await;
    let error = impatient(&api.url).create_job(&new_job(), Uuid::new_v4()).await.unwrap_err();
    let expected = "create job: There is no upload f (HTTP 404, unknown_upload)";
    assert_eq!(error.to_string(), expected);
    assert_eq!(api.seen().len(), 1);
}

#[tokio::test]
async fn tries_are_bounded() {
    let api = FakeApi::serve(|_, _| Reply::text(500, "")).await;
    assert!(impatient(&api.url).job("g").await.is_err());
    assert_eq!(api.seen().len(), RetryPolicy::default().tries as usize);
}

#[tokio::test]
async fn an_api_that_never_answers_is_an_error_in_time() {
    // The system completes the connection; nobody ever accepts it.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    let client = ApiClient::new(&url, None).unwrap().with_patience(RetryPolicy::once(), Duration::from_millis(100));
    let error = client.job("g").await.unwrap_err();
    assert!(matches!(error, ApiError::TimedOut { .. }), "{error}");
    assert!(error.to_string().contains("gave no answer within 0.1 s"), "{error}");
}

#[tokio::test]
async fn a_closed_port_is_named() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    drop(socket);
    let error = impatient(&url).job("g").await.unwrap_err().to_string();
    assert!(error.contains(&url) && error.contains("refused"), "{error}");
    assert!(!error.contains("secret-token"));
}

#[tokio::test]
async fn addresses_with_a_path_and_names_with_odd_characters_are_kept() {
    let api = FakeApi::serve(|_, _| Reply::json(200, json!({"jobs": [], "next": null}))).await;
    let client = impatient(&format!("{}/_aws/execute-api/abc/$default/", api.url));
    let filter = JobFilter { status: Some(JobStatus::Failed), job_type: Some("a&b".into()) };
    client.jobs(&filter, 5, Some("c=")).await.unwrap();
    let _ = client.job("../x?y").await;
    let targets: Vec<String> = api.seen().into_iter().map(|request| request.target).collect();
    let base = "/_aws/execute-api/abc/$default/api/jobs";
    assert_eq!(
        targets,
        [format!("{base}?limit=5&status=failed&jobType=a%26b&after=c%3D"), format!("{base}/..%2Fx%3Fy")]
    );
}

#[tokio::test]
async fn an_answer_that_is_no_rowmill_is_said_to_be_one() {
    let api = FakeApi::serve(|_, _| Reply::text(200, "<html>")).await;
    let error = impatient(&api.url).job("g").await.unwrap_err().to_string();
    assert!(error.contains("is this the address of Rowmill?"), "{error}");
}

#[test]
fn a_token_never_travels_unencrypted_to_another_machine() {
    assert!(ApiClient::new("http://example.org", Some("t")).is_err());
    assert!(ApiClient::new("http://localhost:1/x", Some("t")).is_ok());
    assert!(ApiClient::new("http://[::1]:1", Some("t")).is_ok());
    assert!(ApiClient::new("https://example.org", Some("a\nb")).is_err());
}

#[test]
fn addresses_that_are_none_are_refused_with_the_reason() {
    for address in ["", "example.org", "ftp://example.org", "mailto:a@b"] {
        assert!(matches!(ApiClient::new(address, None), Err(ApiError::Address { .. })), "{address}");
    }
}
