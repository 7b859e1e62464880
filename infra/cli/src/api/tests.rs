use std::collections::HashSet;
use std::time::Instant;

use rowmill_api::request::Tolerance;
use serde_json::json;

use super::*;
use crate::fake_api::{FakeApi, Reply};
use crate::fixtures::{file_guid, job_guid, job_json};

fn impatient(url: &str) -> ApiClient {
    let retry = RetryPolicy { first_delay: Duration::from_millis(1), ..RetryPolicy::default() };
    ApiClient::new(url, Some("secret-token")).unwrap().with_patience(retry, Duration::from_millis(500))
}

fn new_job() -> CreateJobRequest {
    let (file_guid, deadline_seconds) = (Some(file_guid()), Some(60));
    CreateJobRequest { job_type: "validate".into(), file_guid, deadline_seconds, ..CreateJobRequest::default() }
}

fn job() -> serde_json::Value {
    job_json(json!({"jobType": "validate"}))
}

fn refusal(code: ProblemCode, detail: &str) -> Reply {
    Reply::json(code.status(), serde_json::to_value(code.problem(detail)).unwrap())
}

#[tokio::test]
async fn a_job_whose_creation_is_retried_keeps_its_idempotency_key() {
    let api = FakeApi::serve(|_, n| match n {
        0 => Reply::hang_up(),
        1 => refusal(ProblemCode::JobTypeFull, "busy"),
        _ => Reply::json(202, job()),
    })
    .await;
    let created = impatient(&api.url).create_job(&new_job(), Uuid::new_v4()).await.unwrap();
    assert_eq!(created.job_guid, job_guid());
    let seen = api.seen();
    assert_eq!(seen.len(), 3);
    let keys: HashSet<_> = seen.iter().map(|request| &request.headers["idempotency-key"]).collect();
    assert_eq!(keys.len(), 1, "one key in all tries");
    assert_eq!(seen[0].json(), json!({"jobType": "validate", "fileGuid": file_guid(), "deadlineSeconds": 60}));
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
    impatient(&api.url).job(job_guid()).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn bounds_of_a_job_are_sent_as_the_api_names_them() {
    let api = FakeApi::serve(|_, _| Reply::json(202, job())).await;
    let tolerance = Tolerance { percent: Some(2.5), count: None, minimum_items: Some(100) };
    let bounded = CreateJobRequest { tolerance: Some(tolerance), max_concurrency: Some(8), ..new_job() };
    impatient(&api.url).create_job(&bounded, Uuid::new_v4()).await.unwrap();
    let sent = api.seen()[0].json();
    assert_eq!(sent["tolerance"], json!({"percent": 2.5, "minimumItems": 100}));
    assert_eq!(sent["maxConcurrency"], 8);
}

#[tokio::test]
async fn a_redrive_with_a_lost_reply_is_not_mistaken_for_a_refused_one() {
    let active = || refusal(ProblemCode::JobActive, "The job runs.");
    let api = FakeApi::serve(move |request, n| match (n, request.method.as_str()) {
        (0, _) => Reply::hang_up(),
        (_, "POST") => active(),
        _ => Reply::json(200, job()),
    })
    .await;
    let redrive = RedriveRequest { file_guid: Some(file_guid()), select: None, deadline_seconds: None };
    assert_eq!(impatient(&api.url).redrive_job(job_guid(), &redrive).await.unwrap().job_guid, job_guid());
    assert_eq!(api.seen()[1].target, format!("/api/jobs/{}/redrive", job_guid()));
    assert_eq!(api.seen()[1].json(), json!({"fileGuid": file_guid()}));

    let api = FakeApi::serve(move |_, _| active()).await;
    let error = impatient(&api.url).redrive_job(job_guid(), &redrive).await.unwrap_err();
    assert!(error.is(ProblemCode::JobActive), "nobody but somebody else can have started it");
}

#[tokio::test]
async fn a_permanent_error_is_not_retried() {
    let api = FakeApi::serve(|_, _| refusal(ProblemCode::UnknownUpload, "There is no upload f.")).await;
    let error = impatient(&api.url).create_job(&new_job(), Uuid::new_v4()).await.unwrap_err();
    let expected = "create job: There is no upload f (HTTP 422, unknown_upload)";
    assert_eq!(error.to_string(), expected);
    assert_eq!(api.seen().len(), 1);
}

#[tokio::test]
async fn tries_are_bounded() {
    let api = FakeApi::serve(|_, _| Reply::text(500, "")).await;
    assert!(impatient(&api.url).job(job_guid()).await.is_err());
    assert_eq!(api.seen().len(), RetryPolicy::default().tries as usize);
}

#[tokio::test]
async fn an_api_that_never_answers_is_an_error_in_time() {
    // The system completes the connection; nobody ever accepts it.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    let client = ApiClient::new(&url, None).unwrap().with_patience(RetryPolicy::once(), Duration::from_millis(100));
    let error = client.job(job_guid()).await.unwrap_err();
    assert!(matches!(error, ApiError::TimedOut { .. }), "{error}");
    assert!(error.to_string().contains("gave no answer within 0.1 s"), "{error}");
}

#[tokio::test]
async fn a_closed_port_is_named() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    drop(socket);
    let error = impatient(&url).job(job_guid()).await.unwrap_err().to_string();
    assert!(error.contains(&url) && error.contains("refused"), "{error}");
    assert!(!error.contains("secret-token"));
}

#[tokio::test]
async fn addresses_with_a_path_and_names_with_odd_characters_are_kept() {
    let api = FakeApi::serve(|_, _| Reply::json(200, json!({"jobs": [], "next": null}))).await;
    let client = impatient(&format!("{}/_aws/execute-api/abc/$default/", api.url));
    let filter = JobFilter { status: Some(Status::Failed), job_type: Some("a&b".into()), ..JobFilter::default() };
    client.jobs(&filter, 5, Some(job_guid())).await.unwrap();
    let targets: Vec<String> = api.seen().into_iter().map(|request| request.target).collect();
    let base = "/_aws/execute-api/abc/$default/api/jobs";
    assert_eq!(targets, [format!("{base}?limit=5&status=failed&jobType=a%26b&after={}", job_guid())]);
}

#[tokio::test]
async fn the_error_says_that_an_answer_is_not_from_rowmill() {
    let api = FakeApi::serve(|_, _| Reply::text(200, "<html>")).await;
    let error = impatient(&api.url).job(job_guid()).await.unwrap_err().to_string();
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
fn an_invalid_address_is_rejected_with_the_reason() {
    for address in ["", "example.org", "ftp://example.org", "mailto:a@b"] {
        assert!(matches!(ApiClient::new(address, None), Err(ApiError::Address { .. })), "{address}");
    }
}
