//! The three ways a file comes in.

use acceptance::files;
use acceptance::local_stack::{LocalStack, answer};
use reqwest::StatusCode;
use serde_json::{Value, json};

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

/// Sends bytes with a presigned request exactly as the API gave it.
pub async fn send(stack: &LocalStack, signed: &Value, bytes: Vec<u8>) -> StatusCode {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut request = stack.presigned(&text(&signed["method"]), &text(&signed["url"]));
    for (name, value) in signed["headers"].as_object().expect("headers") {
        // The HTTP client writes the length itself, and it must be the same.
        match name.as_str() {
            "content-length" => assert_eq!(text(value), bytes.len().to_string()),
            _ => request = request.header(name, text(value)),
        }
    }
    request.body(bytes).send().await.expect("the bucket answers").status()
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

        assert_eq!(send(stack, &upload["upload"], bytes).await, StatusCode::OK);
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
        assert_eq!(send(stack, &upload["upload"], bytes.clone()).await, StatusCode::OK);
        let file = upload["fileGuid"].as_str().expect("a guid");
        let job = stack.create("validate", file, json!({})).await;
        // Whoever finds the link cannot put other bytes in the place of the file, however long the link can be used.
        let others = vec![b'x'; bytes.len()];
        assert_eq!(send(stack, &upload["upload"], others).await, StatusCode::PRECONDITION_FAILED);
        assert_eq!(stack.ended(&job).await["itemsSucceeded"], 10);
        let again = stack.create("validate", file, json!({})).await;
        assert_eq!(stack.ended(&again).await["itemsSucceeded"], 10);
    });
}

#[test]
fn a_big_file_goes_in_parts() {
    on_the_stack(async |stack| {
        // Above 64 MiB, in rows of a mebibyte less a little, so that there are few of them.
        let mut bytes = b"id,text\n".to_vec();
        for row in 1..=70_u32 {
            bytes.extend_from_slice(format!("{row},{}\n", "x".repeat((1 << 20) - 100)).as_bytes());
        }
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
            assert_eq!(send(stack, part, head.to_vec()).await, StatusCode::OK);
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
