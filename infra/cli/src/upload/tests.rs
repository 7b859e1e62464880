use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use rowmill_api::upload::RequestView;
use serde_json::json;
use tempfile::NamedTempFile;

use super::*;
use crate::api::RetryPolicy;
use crate::fake_api::{FakeApi, Reply, Request};
use crate::fixtures::{file_guid, upload_json, with};

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
    let stored = store(&client(&api.url), &file, None, &progress).await.unwrap();
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
    let stored = store(&client(&api.url), &file, None, &progress).await.unwrap();
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
    store(&client(&api.url), &file, None, &progress).await.unwrap();

    let api = single_put_api(|_| Reply::text(412, "")).await;
    let refused = store(&client(&api.url), &file, None, &progress).await.unwrap_err();
    assert!(matches!(refused, UploadError::Refused { status: 412, .. }), "{refused}");
}

#[tokio::test]
async fn a_refusal_of_the_storage_is_shown_without_the_signed_address() {
    let body = "<Error><Code>BadDigest</Code><Message>no match</Message></Error>";
    let api = single_put_api(move |_| Reply::text(400, body)).await;
    let (_source, file) = csv_of(2_000_000).await;
    let (_, progress) = recorded();
    let error = store(&client(&api.url), &file, None, &progress).await.unwrap_err();
    assert_eq!(error.to_string(), "the storage refused the file: BadDigest: no match (HTTP 400)");
    assert!(!format!("{error:?}").contains("secret"));
}

/// A bucket and an API of uploads in parts of 1,000,000 bytes.
#[derive(Default)]
struct Multipart {
    stored: BTreeMap<u32, Vec<u8>>,
    /// Number of sent parts by number.
    sent: BTreeMap<u32, usize>,
    announced: usize,
    size: usize,
    is_ready: bool,
}

const PART: usize = 1_000_000;

impl Multipart {
    /// Serves it. `put` may answer a sent part in the place of the bucket: it gets the bucket, the part's number and
    /// the signature.
    async fn serve(
        put: impl Fn(&mut Self, u32, &str) -> Option<Reply> + Send + Sync + 'static,
    ) -> (FakeApi, Arc<Mutex<Self>>) {
        let bucket: Arc<Mutex<Self>> = Arc::default();
        let (served, signed) = (Arc::clone(&bucket), AtomicUsize::new(0));
        let api = FakeApi::serve(move |request, _| {
            let mut bucket = served.lock().unwrap();
            let host = &request.headers["host"];
            if request.method == "PUT" {
                let (number, signature) = request.target.trim_start_matches("/part?").split_once('&').unwrap();
                let number = number.parse().unwrap();
                *bucket.sent.entry(number).or_default() += 1;
                return put(&mut bucket, number, signature).unwrap_or_else(|| {
                    bucket.stored.insert(number, request.body.clone());
                    Reply::text(200, "")
                });
            }
            if request.method == "DELETE" {
                return Reply::text(204, "");
            }
            let numbers = 1..=u32::try_from(bucket.size.div_ceil(PART)).unwrap();
            if request.target.ends_with("/complete") {
                bucket.is_ready = bucket.stored.keys().copied().eq(numbers);
                return match bucket.is_ready {
                    true => Reply::json(200, bucket.view(json!({"status": "ready"}))),
                    false => Reply::json(409, json!({"code": "upload_incomplete", "detail": "Some are missing."})),
                };
            }
            if request.method == "GET" {
                let status = if bucket.is_ready { "ready" } else { "pending" };
                return Reply::json(200, bucket.view(json!({"status": status, "partSize": PART})));
            }
            let signature = signed.fetch_add(1, Ordering::Relaxed);
            let is_announced = !request.target.ends_with("/parts");
            if is_announced {
                bucket.announced += 1;
                bucket.size = usize::try_from(request.json()["size"].as_u64().unwrap()).unwrap();
            }
            let numbers = 1..=u32::try_from(bucket.size.div_ceil(PART)).unwrap();
            let missing = numbers.filter(|number| !bucket.stored.contains_key(number));
            // Out of order on purpose: the number decides.
            let parts: Vec<_> = missing
                .rev()
                .map(|number| {
                    let url = format!("http://{host}/part?{number}&{signature}");
                    let size = PART.min(bucket.size - (number as usize - 1) * PART);
                    json!({"partNumber": number, "method": "PUT", "url": url, "headers": {}, "size": size,
                    "expiresAt": Timestamp::MAX})
                })
                .collect();
            let view = bucket.view(json!({"status": "pending", "partSize": PART, "parts": parts}));
            Reply::json(if is_announced { 201 } else { 200 }, view)
        })
        .await;
        (api, bucket)
    }

    fn view(&self, fields: serde_json::Value) -> serde_json::Value {
        let stored: usize = self.stored.values().map(Vec::len).sum();
        upload_json(with(json!({"size": self.size, "bytesStored": stored}), fields))
    }

    fn content(&self) -> Vec<u8> {
        self.stored.values().flatten().copied().collect()
    }
}

#[tokio::test]
async fn a_big_file_is_sent_in_parts() {
    let (api, bucket) = Multipart::serve(|_, _, _| None).await;
    let (_source, file) = csv_of(2_000_005).await;
    let (last, progress) = recorded();
    let stored = store(&client(&api.url), &file, None, &progress).await.unwrap();
    assert_eq!((stored.way, stored.upload.status.as_str()), (UploadMethod::Multipart(3), "ready"));
    assert_eq!(bucket.lock().unwrap().content(), std::fs::read(&file.path).unwrap());
    assert_eq!(api.seen().last().unwrap().target, format!("/api/uploads/{}/complete", file_guid()));
    assert_eq!(*last.lock().unwrap(), 2_000_005);
}

#[tokio::test]
async fn a_part_that_the_bucket_refused_is_sent_again_and_the_others_are_not() {
    let (api, bucket) =
        Multipart::serve(|bucket, number, _| (number == 2 && bucket.sent[&2] == 1).then(|| Reply::text(503, ""))).await;
    let (_source, file) = csv_of(2_000_005).await;
    let (last, progress) = recorded();
    store(&client(&api.url), &file, None, &progress).await.unwrap();
    let bucket = bucket.lock().unwrap();
    assert_eq!(bucket.sent, BTreeMap::from([(1, 1), (2, 2), (3, 1)]));
    assert_eq!(bucket.content(), std::fs::read(&file.path).unwrap());
    assert_eq!(*last.lock().unwrap(), 2_000_005, "the repeated bytes are counted once");
}

#[tokio::test]
async fn a_part_whose_reply_was_lost_is_not_sent_again_if_it_is_stored() {
    let (api, bucket) = Multipart::serve(|bucket, number, _| {
        if number != 2 {
            return None;
        }
        bucket.stored.insert(2, vec![b'x'; PART]);
        Some(Reply::hang_up())
    })
    .await;
    let (_source, file) = csv_of(3_000_000).await;
    let (last, progress) = recorded();
    store(&client(&api.url), &file, None, &progress).await.unwrap();
    assert_eq!(bucket.lock().unwrap().sent, BTreeMap::from([(1, 1), (2, 1), (3, 1)]));
    assert_eq!(*last.lock().unwrap(), 3_000_000);
}

#[tokio::test]
async fn a_signature_that_has_expired_is_signed_again() {
    let (api, bucket) = Multipart::serve(|_, _, signature| {
        let body = "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>";
        (signature == "0").then(|| Reply::text(403, body))
    })
    .await;
    let (_source, file) = csv_of(2_500_000).await;
    let (_, progress) = recorded();
    store(&client(&api.url), &file, None, &progress).await.unwrap();
    assert_eq!(bucket.lock().unwrap().content(), std::fs::read(&file.path).unwrap());
}

#[tokio::test]
async fn an_upload_that_broke_off_is_resumed_by_a_later_run_with_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let remembered = RememberedUploads::in_folder(folder.path().join("state"));
    let is_down = Arc::new(AtomicBool::new(true));
    let down = Arc::clone(&is_down);
    let (api, bucket) =
        Multipart::serve(move |_, number, _| (number > 3 && down.load(Ordering::Relaxed)).then(Reply::hang_up)).await;
    let (_source, file) = csv_of(6_000_000).await;
    let (_, progress) = recorded();
    let error = store(&client(&api.url), &file, Some(&remembered), &progress).await.unwrap_err();
    let UploadError::Interrupted { stored, .. } = &error else { panic!("{error}") };
    assert_eq!(*stored, 3_000_000, "{error}");
    assert!(error.to_string().contains(&format!("rowmill delete upload {}", file_guid())), "{error}");
    assert!(error.to_string().contains("The same command sends the rest."), "{error}");

    is_down.store(false, Ordering::Relaxed);
    let (last, progress) = recorded();
    let stored = store(&client(&api.url), &file, Some(&remembered), &progress).await.unwrap();
    assert_eq!((stored.way, *last.lock().unwrap()), (UploadMethod::Multipart(3), 6_000_000));
    {
        let bucket = bucket.lock().unwrap();
        assert_eq!(bucket.announced, 1);
        assert_eq!([1, 2, 3].map(|number| bucket.sent[&number]), [1, 1, 1], "what is stored is not sent again");
        assert_eq!(bucket.content(), std::fs::read(&file.path).unwrap());
    }
    // It is forgotten: the next run makes a new upload.
    bucket.lock().unwrap().stored.clear();
    store(&client(&api.url), &file, Some(&remembered), &progress).await.unwrap();
    assert_eq!(bucket.lock().unwrap().announced, 2);
}

#[tokio::test]
async fn an_upload_whose_completion_was_not_noticed_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let remembered = RememberedUploads::in_folder(folder.path().join("state"));
    let (api, bucket) = Multipart::serve(|_, _, _| None).await;
    let (_source, file) = csv_of(2_000_000).await;
    let (_, progress) = recorded();
    bucket.lock().unwrap().is_ready = true;
    bucket.lock().unwrap().size = 2_000_000;
    remembered.of_file(&client(&api.url).server(), &file).unwrap().note(file_guid());
    store(&client(&api.url), &file, Some(&remembered), &progress).await.unwrap();
    let bucket = bucket.lock().unwrap();
    assert!(bucket.sent.is_empty() && bucket.announced == 0);
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_sent_is_aborted_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let remembered = RememberedUploads::in_folder(folder.path().join("state"));
    let (source, file) = csv_of(2_000_000).await;
    let path = source.path().to_owned();
    let (api, _bucket) = Multipart::serve(move |_, _, _| {
        let later = std::time::SystemTime::now() + Duration::from_secs(60);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        None
    })
    .await;
    let (_, progress) = recorded();
    let error = store(&client(&api.url), &file, Some(&remembered), &progress).await.unwrap_err();
    assert!(matches!(error, UploadError::Changed(_)), "{error}");
    assert!(api.seen().iter().any(|request| request.method == "DELETE"));
    assert_eq!(remembered.of_file(&client(&api.url).server(), &file).unwrap().file_guid(), None);
}

#[tokio::test]
async fn instructions_that_do_not_cover_the_file_are_refused_before_a_byte_is_sent() {
    let api = FakeApi::serve(|_, _| Reply::json(201, upload_json(json!({"status": "pending"})))).await;
    let (_source, file) = csv_of(2_000_000).await;
    let (_, progress) = recorded();
    let error = store(&client(&api.url), &file, None, &progress).await.unwrap_err();
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
