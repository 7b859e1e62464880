//! Files that are dropped into the bucket and become jobs by themselves.

use acceptance::files;
use acceptance::local_stack::{LocalStack, answer, until};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::stack::on_the_stack;

/// The note that asks for a job by which a test knows it again.
fn marked(mark: &str, params: Value) -> String {
    json!({ "params": params, "metadata": { "mark": mark } }).to_string()
}

/// The only job of this mark, when it has ended.
async fn ended(stack: &LocalStack, mark: &str) -> Value {
    let jobs = stack.jobs_marked(mark, 1).await;
    stack.ended(jobs[0]["jobGuid"].as_str().expect("a guid")).await
}

#[test]
fn a_dropped_file_becomes_a_job_that_completes() {
    on_the_stack(async |stack| {
        let request = marked("real", json!({ "dataset": "dropped", "key": "codepoint", "expiresInSeconds": 86_400 }));
        stack.drop_file("inbox/import/unicode.csv", files::unicode_csv(), &[("rowmill-request", &request)]).await;
        let job = ended(stack, "real").await;
        assert_eq!((&job["status"], &job["outcome"]), (&json!("completed"), &json!("succeeded")), "{job}");
        assert_eq!(job["itemsSucceeded"], 11_231);
        assert_eq!(stack.records("dropped").await.len(), 11_231);
        let path = format!("/api/uploads/{}", job["fileGuid"].as_str().expect("a guid"));
        let (_, upload) = answer(stack.get(&path)).await;
        assert_eq!((&upload["status"], &upload["fileName"]), (&json!("ready"), &json!("unicode.csv")), "{upload}");
        let deleted = stack.call(Method::DELETE, &path).send().await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        assert!(stack.keys_below("inbox/import/unicode.csv").await.is_empty(), "it is deleted as any upload");
    });
}

#[test]
fn a_sidecar_sets_the_job_of_a_file_with_any_name() {
    on_the_stack(async |stack| {
        let key = "inbox/validate/2025/größe a+b & 100%.csv";
        let sidecar = json!({ "params": { "delimiter": ";" }, "metadata": { "mark": "sidecar" }, "owner": "local" });
        stack.drop_file(&format!("{key}.job.json"), sidecar.to_string(), &[]).await;
        stack.drop_file(key, "a;b\n1;2\n3\n", &[]).await;
        let job = ended(stack, "sidecar").await;
        assert_eq!((&job["itemsSucceeded"], &job["itemsFailed"]), (&json!(1), &json!(1)), "{job}");
    });
}

#[test]
fn multipart_and_empty_drops_become_jobs_too() {
    on_the_stack(async |stack| {
        let bytes = files::plain_csv(1000);
        let (first, second) = bytes.split_at(5000);
        let parts = marked("parts", json!({}));
        stack.drop_parts("inbox/validate/parts.csv", &[first, second], &[("rowmill-request", &parts)]).await;
        let empty = marked("empty", json!({}));
        stack.drop_file("inbox/validate/empty.csv", "", &[("rowmill-request", &empty)]).await;
        assert_eq!(ended(stack, "parts").await["itemsSucceeded"], 1000);
        let job = ended(stack, "empty").await;
        assert_eq!((&job["status"], &job["itemCount"]), (&json!("completed"), &json!(0)), "{job}");
    });
}

#[test]
fn repeated_notifications_of_a_drop_make_one_job() {
    on_the_stack(async |stack| {
        let (key, request) = ("inbox/validate/again.csv", marked("again", json!({})));
        let etag = stack.drop_file(key, "a\n1\n", &[("rowmill-request", &request)]).await;
        stack.jobs_marked("again", 1).await;
        // As if the same bytes had been dropped once more: another event in the bucket's sequence.
        let object = json!({ "key": key, "size": 4, "eTag": etag.trim_matches('"'), "sequencer": "FFFF" });
        let s3 = json!({ "bucket": { "name": stack.output("Bucket") }, "object": object });
        let record = json!({ "eventTime": jiff::Timestamp::now(), "eventName": "ObjectCreated:Put", "s3": s3 });
        for _ in 0..5 {
            stack.send("InboxQueueUrl", &json!({ "Records": [record] })).await;
        }
        let jobs = stack.jobs_marked("again", 2).await;
        assert_ne!(jobs[0]["fileGuid"], jobs[1]["fileGuid"]);
        until("messages are left", async || stack.messages().await["InboxQueueUrl"] == 0).await;
        stack.jobs_marked("again", 2).await;
    });
}

#[test]
fn a_drop_that_cannot_become_a_job_gets_a_problem_report() {
    on_the_stack(async |stack| {
        for (key, bytes, request, code) in [
            ("inbox/unheard-of/a b.csv", "a\n", "{}", "unknown_job_type"),
            ("inbox/validate/head.csv", "a,\"b\n", "{}", "unreadable_file"),
            ("inbox/validate/params.csv", "a\n", r#"{"params":{"delimeter":"|"}}"#, "invalid_params"),
            ("inbox/validate/request.csv", "a\n", "{", "invalid_json"),
        ] {
            stack.drop_file(key, bytes, &[("rowmill-request", request)]).await;
            let told = key.replacen("inbox/", "inbox-problems/", 1) + ".json";
            let problem = stack.json_object(&told).await;
            assert_eq!((&problem["code"], &problem["file"]), (&json!(code), &json!(key)), "{problem}");
        }
        let key = "inbox/validate/priority.csv";
        let sidecar = json!({ "owner": "ann", "priority": "high" });
        stack.drop_file(&format!("{key}.job.json"), sidecar.to_string(), &[]).await;
        stack.drop_file(key, "a\n", &[]).await;
        let problem = stack.json_object("inbox-problems/validate/priority.csv.json").await;
        assert_eq!((&problem["code"], &problem["status"]), (&json!("priority_not_allowed"), &json!(403)), "{problem}");
    });
}
