use std::io::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_api::upload::RequestView;
use serde_json::json;
use tempfile::NamedTempFile;

use super::*;
use crate::api::RetryPolicy;
use crate::fake_api::{FakeApi, Reply, Request};
use crate::fixtures::{file_guid, upload_json};

fn client(url: &str) -> ApiClient {
    let retry = RetryPolicy { first_delay: Duration::from_millis(1), ..RetryPolicy::default() };
    ApiClient::new(url, Some("secret-token")).unwrap().with_patience(retry, Duration::from_secs(5))
}

async fn csv_of(size: usize) -> (NamedTempFile, SourceFile) {
    let mut source = NamedTempFile::with_suffix(".csv").unwrap();
    let content: Vec<u8> = (0..size).map(|n| b'a' + (n % 23) as u8).collect();
    source.write_all(&content).unwrap();
    let file = SourceFile::open(source.path(), None).await.unwrap();
    (source, file)
}

/// Keeps the last byte count it was told.
fn recorded() -> (Arc<Mutex<u64>>, Arc<ByteProgress>) {
    let last = Arc::new(Mutex::new(0));
    let told = Arc::clone(&last);
    (last, ByteProgress::new(move |bytes| *told.lock().unwrap() = bytes))
}

fn puts(seen: &[Request]) -> Vec<&Request> {
    seen.iter().filter(|request| request.method == "PUT").collect()
}

#[tokio::test]
async fn a_small_text_travels_with_its_request() {
    let api = FakeApi::serve(|_, _| Reply::json(201, upload_json(json!({})))).await;
    let (_source, file) = csv_of(1000).await;
    let (last, progress) = recorded();
    let stored = store(&client(&api.url), &file, &progress).await.unwrap();
    assert_eq!((stored.way, stored.upload.file_guid), (UploadMethod::Direct, file_guid()));
    let request = &api.seen()[0];
    assert_eq!(request.headers["content-type"], "text/csv");
    assert!(request.target.starts_with("/api/uploads?fileName="));
    assert_eq!(request.body, std::fs::read(&file.path).unwrap());
    assert_eq!(*last.lock().unwrap(), 1000);
}

/// Announces every upload as one PUT to `/bucket`, and answers the PUTs with `put`.
async fn single_put_api(put: impl Fn(usize) -> Reply + Send + Sync + 'static) -> FakeApi {
    FakeApi::serve(move |request, n| match request.method.as_str() {
        "PUT" => put(n),
        _ => {
            let url = format!("http://{}/bucket?X-Amz-Signature=secret", request.headers["host"]);
            let headers = json!({"x-amz-checksum-sha256": "abc", "content-type": "text/csv"});
            let upload = json!({"method": "PUT", "url": url, "headers": headers, "expiresAt": Timestamp::MAX});
            Reply::json(201, upload_json(json!({"status": "pending", "upload": upload})))
        }
    })
    .await
}

#[tokio::test]
async fn a_bigger_file_is_put_where_the_api_says_with_the_signed_headers_and_without_the_token() {
    let api = single_put_api(|n| Reply::text(if n == 1 { 503 } else { 200 }, "")).await;
    let (_source, file) = csv_of(2_000_000).await;
    let (last, progress) = recorded();
    let stored = store(&client(&api.url), &file, &progress).await.unwrap();
    assert_eq!(stored.way, UploadMethod::SinglePut);
    let printed = serde_json::to_string(&stored.upload).unwrap();
    assert!(printed.contains("pending") && !printed.contains("Signature"), "{printed}");
    let seen = api.seen();
    assert_eq!(seen[0].json()["sha256"].as_str().unwrap(), file.sha256().await.unwrap());
    assert_eq!(seen[0].json()["size"], 2_000_000);
    let puts = puts(&seen);
    assert_eq!(puts.len(), 2, "the refused one is sent again");
    for put in puts {
        assert_eq!(put.headers["x-amz-checksum-sha256"], "abc");
        assert!(!put.headers.contains_key("authorization"), "the token is the API's alone");
        assert_eq!(put.body, std::fs::read(&file.path).unwrap());
    }
    assert_eq!(*last.lock().unwrap(), 2_000_000, "the repeated bytes are counted once");
}

#[tokio::test]
async fn a_file_that_an_earlier_attempt_has_stored_is_not_refused() {
    let api = single_put_api(|n| Reply::text(if n == 1 { 503 } else { 412 }, "")).await;
    let (_source, file) = csv_of(2_000_000).await;
    let (_, progress) = recorded();
    store(&client(&api.url), &file, &progress).await.unwrap();

    let api = single_put_api(|_| Reply::text(412, "")).await;
    let refused = store(&client(&api.url), &file, &progress).await.unwrap_err();
    assert!(matches!(refused, UploadError::Refused { status: 412, .. }), "{refused}");
}

#[tokio::test]
async fn a_refusal_of_the_storage_is_shown_without_the_signed_address() {
    let body = "<Error><Code>BadDigest</Code><Message>no match</Message></Error>";
    let api = single_put_api(move |_| Reply::text(400, body)).await;
    let (_source, file) = csv_of(2_000_000).await;
    let (_, progress) = recorded();
    let error = store(&client(&api.url), &file, &progress).await.unwrap_err();
    assert_eq!(error.to_string(), "the storage refused the file: BadDigest: no match (HTTP 400)");
    assert!(!format!("{error:?}").contains("secret"));
}

#[tokio::test]
async fn each_part_of_a_big_file_is_retried_separately() {
    let api = FakeApi::serve(|request, n| match request.method.as_str() {
        "PUT" if n == 2 => Reply::hang_up(),
        "PUT" => Reply::text(200, ""),
        _ if request.target.ends_with("/complete") => Reply::json(200, upload_json(json!({}))),
        _ => {
            let host = &request.headers["host"];
            let part = |number: u32, size: u32| {
                let url = format!("http://{host}/part?partNumber={number}");
                json!({"partNumber": number, "method": "PUT", "url": url, "headers": {}, "size": size,
                    "expiresAt": Timestamp::MAX})
            };
            // Out of order on purpose: the number decides.
            let parts = [part(2, 1_000_000), part(1, 1_000_000), part(3, 5)];
            Reply::json(201, upload_json(json!({"status": "pending", "parts": parts})))
        }
    })
    .await;
    let (_source, file) = csv_of(2_000_005).await;
    let (last, progress) = recorded();
    let stored = store(&client(&api.url), &file, &progress).await.unwrap();
    assert_eq!((stored.way, stored.upload.status.as_str()), (UploadMethod::Multipart(3), "ready"));
    let seen = api.seen();
    assert_eq!(puts(&seen).len(), 4);
    let content = std::fs::read(&file.path).unwrap();
    for (target, range) in [("1", 0..1_000_000), ("2", 1_000_000..2_000_000), ("3", 2_000_000..2_000_005)] {
        let put = puts(&seen).into_iter().rfind(|put| put.target.ends_with(&format!("={target}")));
        assert_eq!(put.unwrap().body, content[range]);
    }
    assert_eq!(seen.last().unwrap().target, format!("/api/uploads/{}/complete", file_guid()));
    assert_eq!(*last.lock().unwrap(), 2_000_005);
}

#[tokio::test]
async fn instructions_that_do_not_cover_the_file_are_refused_before_a_byte_is_sent() {
    let api = FakeApi::serve(|_, _| Reply::json(201, upload_json(json!({"status": "pending"})))).await;
    let (_source, file) = csv_of(2_000_000).await;
    let (_, progress) = recorded();
    let error = store(&client(&api.url), &file, &progress).await.unwrap_err();
    assert!(matches!(error, UploadError::Instructions(_)), "{error}");
}

#[tokio::test]
async fn a_stalled_transfer_is_aborted() {
    // The system completes the connection; nobody ever reads from it.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/bucket", socket.local_addr().unwrap());
    let (_source, file) = csv_of(2_000_000).await;
    let transfer = Transfer::to(&url, RetryPolicy::once()).unwrap().with_stall_limit(Duration::from_millis(200));
    let request = RequestView { method: "PUT".into(), url, headers: Default::default(), expires_at: Timestamp::MAX };
    let (last, progress) = recorded();
    let error = transfer.put(&file, &request, 0..file.size, &progress).await.unwrap_err();
    assert!(matches!(error, UploadError::Stalled(_)), "{error}");
    assert_eq!(*last.lock().unwrap(), 0, "what was sent in vain is counted back");
}
