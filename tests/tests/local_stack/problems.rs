//! Requests that cannot be served: each a problem that says what, where and what to do.

use acceptance::local_stack::{ApiRequest, accepted, refused};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

async fn problem(request: ApiRequest, status: StatusCode, code: &str) -> Value {
    refused(request, status, code).await.0
}

#[test]
fn a_job_that_cannot_be_created_is_refused_with_the_reason() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", "a,b\n1,2\n").await;
        let create = |body: Value| stack.post("/api/jobs").json(&body);
        let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;
        let refused =
            problem(create(json!({ "jobType": "explode", "fileGuid": file })), unprocessable, "unknown_job_type");
        assert!(refused.await["detail"].as_str().expect("a detail").contains("import"));
        problem(create(json!({ "jobType": "validate", "fileGuid": UNKNOWN })), unprocessable, "unknown_upload").await;
        let no_dataset = create(json!({ "jobType": "import", "fileGuid": file }));
        assert_eq!(problem(no_dataset, unprocessable, "invalid_params").await["field"], "params.dataset");
        let no_column = json!({ "jobType": "import", "fileGuid": file, "params": { "dataset": "d", "key": "c" } });
        assert_eq!(problem(create(no_column), unprocessable, "invalid_params").await["field"], "params.key");
        let slip = json!({ "jobType": "validate", "fileGuid": file, "params": { "scema": {} } });
        assert_eq!(problem(create(slip), unprocessable, "invalid_params").await["field"], "params.scema");
        let late = json!({ "jobType": "validate", "fileGuid": file, "deadlineSeconds": 9_999_999 });
        assert_eq!(problem(create(late), unprocessable, "invalid_request").await["field"], "deadlineSeconds");
        for width in [0, 10_001] {
            let wide = json!({ "jobType": "validate", "fileGuid": file, "maxConcurrency": width });
            assert_eq!(problem(create(wide), unprocessable, "invalid_request").await["field"], "maxConcurrency");
        }
        let open_quote = stack.upload("text/csv", "a,\"b\n1,2\n").await;
        problem(create(json!({ "jobType": "validate", "fileGuid": open_quote })), unprocessable, "unreadable_file")
            .await;
    });
}

#[test]
fn json_that_cannot_be_read_is_refused_with_the_place() {
    on_the_stack(async |stack| {
        let post = |body: &'static str| stack.post("/api/jobs").header("content-type", "application/json").body(body);
        let broken = problem(post("{\"jobType\": "), StatusCode::BAD_REQUEST, "invalid_json").await;
        assert!(broken["detail"].as_str().expect("a detail").contains("line 1"), "{broken}");
        problem(post("{\"jobType\": 5}"), StatusCode::BAD_REQUEST, "invalid_body").await;
        problem(post("{\"jobType\":\"validate\",\"fileGuid\":\"no guid\"}"), StatusCode::BAD_REQUEST, "invalid_body")
            .await;
        for priority in ["\"High\"", "\"\"", "1", "true", "[]", "[\"high\"]", "{\"high\": null}"] {
            let body = format!("{{\"jobType\": \"export\", \"priority\": {priority}}}");
            let request = stack.post("/api/jobs").header("content-type", "application/json").body(body);
            let wrong = problem(request, StatusCode::BAD_REQUEST, "invalid_body").await;
            assert_eq!(wrong["field"], "priority", "{wrong}");
            assert!(wrong["detail"].as_str().expect("a detail").contains("`high`, `normal` or `low`"), "{wrong}");
        }
        problem(post("[]"), StatusCode::BAD_REQUEST, "invalid_body").await;
        let no_item = post("{\"jobType\":\"validate\",\"items\":[{},\"secret\"]}");
        let wrong = problem(no_item, StatusCode::BAD_REQUEST, "invalid_body").await;
        assert!(wrong["field"] == "items" && !wrong.to_string().contains("secret"), "{wrong}");
        problem(post("{\"jobTipe\":\"validate\"}"), StatusCode::BAD_REQUEST, "invalid_body").await;
        let text = stack.post("/api/jobs").header("content-type", "text/plain").body("{}");
        problem(text, StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type").await;
        // The body is read before the job is looked for.
        let redrive = |content_type: &str, body: String| {
            let request = stack.post(&format!("/api/jobs/{UNKNOWN}/redrive"));
            request.header("content-type", content_type).body(body)
        };
        problem(redrive("application/json", "{".into()), StatusCode::BAD_REQUEST, "invalid_json").await;
        problem(redrive("text/plain", "{}".into()), StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type").await;
        let announcement = stack.post("/api/uploads").header("content-type", "application/json").body("{}");
        problem(announcement, StatusCode::BAD_REQUEST, "invalid_body").await;
        let long = format!("{{\"jobType\": \"{}\"}}", "x".repeat(1_400_000));
        let create = stack.post("/api/jobs").header("content-type", "application/json").body(long.clone());
        for request in [create, redrive("application/json", long)] {
            problem(request, StatusCode::PAYLOAD_TOO_LARGE, "body_too_large").await;
        }
    });
}

#[test]
fn a_file_that_is_too_large_is_refused_with_the_limit() {
    on_the_stack(async |stack| {
        let body = vec![b'x'; 5_000_001];
        let direct = stack.post("/api/uploads").header("content-type", "text/csv").body(body);
        let refused = problem(direct, StatusCode::PAYLOAD_TOO_LARGE, "body_too_large").await;
        assert_eq!(refused["limitBytes"], 5_000_000);
        let huge = json!({ "fileName": "h.csv", "contentType": "text/csv", "size": 1_u64 << 50 });
        problem(stack.post("/api/uploads").json(&huge), StatusCode::PAYLOAD_TOO_LARGE, "body_too_large").await;
    });
}

#[test]
fn an_invalid_query_is_refused() {
    on_the_stack(async |stack| {
        for query in [
            "status=done",
            "outcome=done",
            "status=failed&outcome=empty&limit=x",
            "limit=0",
            "limit=x",
            "limit=1000000",
            "after=x",
        ] {
            problem(stack.get(&format!("/api/jobs?{query}")), StatusCode::BAD_REQUEST, "invalid_query").await;
        }
        for query in ["", "outcome=done", "outcome=failed&limit=1001", "outcome=skipped&after=-1"] {
            let items = stack.get(&format!("/api/jobs/{UNKNOWN}/items?{query}"));
            problem(items, StatusCode::BAD_REQUEST, "invalid_query").await;
        }
    });
}

#[test]
fn a_repeated_idempotency_key_finds_the_same_job_and_no_other_payload() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", "a\n1\n").await;
        let create = |metadata: &str| {
            let body = json!({ "jobType": "validate", "fileGuid": file, "metadata": { "order": metadata } });
            stack.post("/api/jobs").header("idempotency-key", format!("once-{file}")).json(&body)
        };
        let first = accepted(create("7")).await;
        let job = first["jobGuid"].as_str().expect("a guid").to_owned();
        stack.ended(&job).await;
        let again = accepted(create("7")).await;
        assert_eq!(again["jobGuid"], first["jobGuid"]);
        assert_eq!(again["status"], "completed", "the job in its current state");
        problem(create("8"), StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused").await;
    });
}

#[test]
fn the_document_is_served_and_not_sent_again() {
    on_the_stack(async |stack| {
        let answer = stack.get("/api/openapi.json").send().await;
        assert_eq!((answer.status, answer.json::<Value>()), (StatusCode::OK, rowmill_api::openapi::document()));
        let etag = answer.header("etag").expect("an ETag");
        let again = stack.get("/api/openapi.json").header("if-none-match", etag).send().await;
        assert_eq!((again.status, again.header("etag")), (StatusCode::NOT_MODIFIED, Some(etag)));
        assert_eq!(again.header("cache-control"), answer.header("cache-control"));
    });
}

#[test]
fn a_job_that_has_not_changed_is_not_sent_again() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", "a\n1\n").await;
        let job = stack.create("validate", &file, json!({})).await;
        stack.ended(&job).await;
        let path = format!("/api/jobs/{job}");
        let answer = stack.get(&path).send().await;
        assert!(answer.header("retry-after").is_none(), "it has ended");
        let etag = answer.header("etag").expect("an ETag");
        let answer = stack.get(&path).header("if-none-match", etag).send().await;
        assert_eq!(answer.status, StatusCode::NOT_MODIFIED);
        assert!(answer.body.is_empty());
    });
}
