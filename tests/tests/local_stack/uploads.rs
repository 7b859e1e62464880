//! The three ways a file comes in, and what becomes of an upload that breaks off.

use std::sync::Arc;

use acceptance::files;
use acceptance::local_stack::{LocalStack, answer, refused};
use reqwest::{Method, StatusCode};
use rowmill::api::ApiClient;
use rowmill::progress::{ByteProgress, Transferred};
use rowmill::upload::{RememberedUploads, SourceFile, UploadMethod, store};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::stack::on_the_stack;

/// Announces a file that is to go straight into the bucket.
pub async fn announce(stack: &LocalStack, name: &str, size: usize, sha256: Option<&str>) -> Value {
    let content_type = if name.ends_with(".csv") { "text/csv" } else { "application/octet-stream" };
    let body = json!({ "fileName": name, "contentType": content_type, "size": size, "sha256": sha256 });
    let (status, upload) = answer(stack.post("/api/uploads").json(&body)).await;
    assert_eq!(status, StatusCode::CREATED, "{upload}");
    assert_eq!(upload["status"], "pending");
    let mut requests: Vec<&Value> = upload["parts"].as_array().map(|parts| parts.iter().collect()).unwrap_or_default();
    requests.extend(upload.get("upload"));
    for request in requests {
        let headers = request["headers"].as_object().expect("headers");
        assert!(headers.contains_key("content-length"), "the size is signed in: {request}");
        assert!(!headers.contains_key("x-amzn-trace-id"), "what is not signed is not asked for: {request}");
    }
    upload
}

#[test]
fn a_small_file_is_stored_at_once() {
    on_the_stack(async |stack| {
        let bytes = files::plain_csv(10);
        let request = stack.post("/api/uploads?fileName=ten.csv").header("content-type", "text/csv");
        let (status, upload) = answer(request.body(bytes.clone())).await;
        assert_eq!((status, &upload["status"]), (StatusCode::CREATED, &json!("ready")));
        assert_eq!((&upload["size"], &upload["fileName"]), (&json!(bytes.len()), &json!("ten.csv")));
        let path = format!("/api/uploads/{}", upload["fileGuid"].as_str().expect("a guid"));
        assert_eq!(answer(stack.get(&path)).await, (StatusCode::OK, upload));
    });
}

#[test]
fn a_body_that_the_gateway_altered_is_refused() {
    on_the_stack(async |stack| {
        let post = |content_type: &str| stack.post("/api/uploads").header("content-type", content_type);
        let (status, problem) = answer(post("text/csv").body(&b"a,b\n\xff,1\n"[..])).await;
        assert_eq!((status, &problem["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("body_altered")));
        let (status, upload) = answer(post("application/octet-stream").body(&b"a,b\n\xff,1\n"[..])).await;
        assert_eq!((status, &upload["size"]), (StatusCode::CREATED, &json!(8)));
        let form = post("multipart/form-data; boundary=x").body("--x\r\n\r\na,b\r\n--x--\r\n");
        assert_eq!(answer(form).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    });
}

#[test]
fn a_bigger_file_goes_straight_into_the_bucket() {
    on_the_stack(async |stack| {
        let bytes = files::plain_csv(1000);
        let upload = announce(stack, "thousand.csv", bytes.len(), None).await;
        let file = upload["fileGuid"].as_str().expect("a guid");
        let body = json!({ "jobType": "validate", "fileGuid": file });
        let (status, problem) = answer(stack.post("/api/jobs").json(&body)).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("upload_incomplete")));

        assert_eq!(stack.send_signed(&upload["upload"], bytes).await, StatusCode::OK);
        let (_, shown) = answer(stack.get(&format!("/api/uploads/{file}"))).await;
        assert_eq!(shown["status"], "ready");
        let job = stack.create("validate", file, json!({})).await;
        assert_eq!(stack.ended(&job).await["itemsSucceeded"], 1000);
    });
}

#[test]
fn a_presigned_request_stores_a_file_once() {
    on_the_stack(async |stack| {
        let bytes = files::plain_csv(10);
        let upload = announce(stack, "ten.csv", bytes.len(), None).await;
        assert_eq!(stack.send_signed(&upload["upload"], bytes.clone()).await, StatusCode::OK);
        let file = upload["fileGuid"].as_str().expect("a guid");
        let job = stack.create("validate", file, json!({})).await;
        // Anyone who finds the link cannot put other bytes in the place of the file, however long the link can be used.
        let others = vec![b'x'; bytes.len()];
        assert_eq!(stack.send_signed(&upload["upload"], others).await, StatusCode::PRECONDITION_FAILED);
        assert_eq!(stack.ended(&job).await["itemsSucceeded"], 10);
        let again = stack.create("validate", file, json!({})).await;
        assert_eq!(stack.ended(&again).await["itemsSucceeded"], 10);
    });
}

#[test]
fn a_big_file_goes_in_parts() {
    on_the_stack(async |stack| {
        let bytes = big_csv(70);
        let upload = announce(stack, "big.csv", bytes.len(), None).await;
        let file = upload["fileGuid"].as_str().expect("a guid");
        let parts = upload["parts"].as_array().expect("parts").clone();
        assert_eq!(parts.iter().map(|part| part["size"].as_u64().expect("a size")).sum::<u64>(), bytes.len() as u64);

        let complete = format!("/api/uploads/{file}/complete");
        let (status, problem) = answer(stack.post(&complete)).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("upload_incomplete")));

        let mut rest = bytes.as_slice();
        for part in &parts {
            let (head, tail) = rest.split_at(usize::try_from(part["size"].as_u64().expect("a size")).expect("fits"));
            assert_eq!(stack.send_signed(part, head.to_vec()).await, StatusCode::OK);
            rest = tail;
        }
        for _ in 0..2 {
            let (status, upload) = answer(stack.post(&complete)).await;
            assert_eq!((status, &upload["status"]), (StatusCode::OK, &json!("ready")), "{upload}");
        }
        let job = stack.create("validate", file, json!({})).await;
        assert_eq!(stack.ended(&job).await["itemsSucceeded"], 70);
    });
}

/// A file of so many rows of a mebibyte less a little.
fn big_csv(rows: u32) -> Vec<u8> {
    let mut bytes = b"id,text\n".to_vec();
    for row in 1..=rows {
        bytes.extend_from_slice(format!("{row},{}\n", "x".repeat((1 << 20) - 100)).as_bytes());
    }
    bytes
}

fn path_of(upload: &Value) -> String {
    format!("/api/uploads/{}", upload["fileGuid"].as_str().expect("a guid"))
}

fn parts_stored(upload: &Value) -> u64 {
    let ranges = upload["partsStored"].as_array().unwrap_or_else(|| panic!("ranges: {upload}"));
    ranges.iter().map(|range| range["last"].as_u64().unwrap() + 1 - range["first"].as_u64().unwrap()).sum()
}

#[test]
fn an_upload_whose_client_died_half_way_is_resumed_with_what_is_missing() {
    on_the_stack(async |stack| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("big.csv");
        std::fs::write(&path, big_csv(110)).expect("a file");
        let file = SourceFile::open(&path, None).await.expect("a file");
        let api = Arc::new(ApiClient::new(stack.api_url(), None).expect("a client"));
        let remembered = RememberedUploads::in_folder(folder.path().join("state"));

        // It dies as soon as the bucket has confirmed a part.
        let confirmed = Arc::new(Notify::new());
        let progress = ByteProgress::watched({
            let confirmed = Arc::clone(&confirmed);
            move |Transferred { stored, .. }| {
                if stored > 0 {
                    confirmed.notify_one();
                }
            }
        });
        let first = tokio::spawn({
            let (api, file, remembered) = (Arc::clone(&api), file.clone(), remembered.clone());
            async move { store(&api, &file, Some(&remembered), &progress).await }
        });
        confirmed.notified().await;
        first.abort();
        assert!(first.await.is_err_and(|ended| ended.is_cancelled()), "it was not done yet");
        let begun = remembered.of_file(&api.server(), &file).expect("nobody works on it").file_guid().expect("a guid");
        let path = format!("/api/uploads/{begun}");
        let (_, shown) = answer(stack.get(&path)).await;
        assert_eq!(shown["status"], "pending");
        let before = parts_stored(&shown);
        assert!((1..7).contains(&before), "{shown}");
        assert_eq!(shown["bytesStored"].as_u64(), Some(before * 16 * 1024 * 1024), "{shown}");

        // The same file, in another run.
        let stored = store(&api, &file, Some(&remembered), &ByteProgress::new(|_| ())).await.expect("it is resumed");
        assert_eq!(stored.upload.file_guid, begun);
        let UploadMethod::Multipart(sent) = stored.way else { panic!("{:?}", stored.way) };
        assert!(sent as u64 <= 7 - before, "{sent} parts were sent, and {before} were there");
        let (_, shown) = answer(stack.get(&path)).await;
        assert_eq!((&shown["status"], &shown["bytesStored"]), (&json!("ready"), &json!(file.size)));
        refused(stack.post(&format!("{path}/parts")), StatusCode::CONFLICT, "upload_ready").await;
        let job = stack.create("validate", &begun.to_string(), json!({})).await;
        assert_eq!(stack.ended(&job).await["itemsSucceeded"], 110);
    });
}

#[test]
fn an_aborted_upload_leaves_no_parts_and_takes_no_more() {
    on_the_stack(async |stack| {
        let size = 70 << 20;
        let upload = announce(stack, "big.csv", size, None).await;
        let (path, parts) = (path_of(&upload), upload["parts"].as_array().expect("parts"));
        let part = vec![b'x'; usize::try_from(parts[0]["size"].as_u64().expect("a size")).expect("fits")];
        assert_eq!(stack.send_signed(&parts[0], part.clone()).await, StatusCode::OK);
        let owner = "uploads#local";
        let outstanding = format!("u{}", upload["fileGuid"].as_str().expect("a guid").replace('-', ""));
        let counts = async || stack.admission_row(owner).await.is_some_and(|row| row.has(&outstanding));
        assert!(counts().await);

        let aborted = stack.call(Method::DELETE, &path).send().await;
        assert_eq!((aborted.status, aborted.body.len()), (StatusCode::NO_CONTENT, 0));
        assert!(!counts().await, "its quota is free again");
        refused(stack.get(&path), StatusCode::NOT_FOUND, "not_found").await;
        refused(stack.call(Method::DELETE, &path), StatusCode::NOT_FOUND, "not_found").await;
        refused(stack.post(&format!("{path}/complete")), StatusCode::NOT_FOUND, "not_found").await;
        assert!(!stack.send_signed(&parts[1], part).await.is_success(), "its links store nothing");
    });
}

#[test]
fn a_link_whose_signature_no_longer_holds_is_replaced_by_a_new_one() {
    on_the_stack(async |stack| {
        let upload = announce(stack, "big.csv", 70 << 20, None).await;
        let (path, mut parts) = (path_of(&upload), upload["parts"].as_array().expect("parts").clone());
        let last = parts.pop().expect("a part");
        let bytes = vec![b'x'; usize::try_from(last["size"].as_u64().expect("a size")).expect("fits")];
        let mut expired = last.clone();
        expired["url"] = json!(last["url"].as_str().expect("a URL").replace("X-Amz-Date=20", "X-Amz-Date=19"));
        assert_eq!(stack.send_signed(&expired, bytes.clone()).await, StatusCode::FORBIDDEN);
        let (status, signed) =
            answer(stack.post(&format!("{path}/parts")).json(&json!({ "from": last["partNumber"] }))).await;
        assert_eq!(status, StatusCode::OK, "{signed}");
        let [again] = &signed["parts"].as_array().expect("parts")[..] else { panic!("{signed}") };
        assert_eq!(stack.send_signed(again, bytes).await, StatusCode::OK);
        let (_, shown) = answer(stack.get(&path)).await;
        assert_eq!((&shown["bytesStored"], parts_stored(&shown)), (&last["size"], 1));
        assert_eq!(stack.call(Method::DELETE, &path).send().await.status, StatusCode::NO_CONTENT);

        let small = announce(stack, "small.csv", 3, None).await;
        let (_, signed) = answer(stack.post(&format!("{}/parts", path_of(&small)))).await;
        assert_eq!(stack.send_signed(&signed["upload"], b"a\n1".to_vec()).await, StatusCode::OK);
        let again = stack.post(&format!("{}/parts", path_of(&small)));
        refused(again, StatusCode::CONFLICT, "upload_ready").await;
        // Deleted, its link still stores a file, which is no upload.
        assert_eq!(stack.call(Method::DELETE, &path_of(&small)).send().await.status, StatusCode::NO_CONTENT);
        assert_eq!(stack.send_signed(&signed["upload"], b"a\n1".to_vec()).await, StatusCode::OK);
        refused(stack.get(&path_of(&small)), StatusCode::NOT_FOUND, "not_found").await;
    });
}
