//! Same file, same job.

use acceptance::local_stack::{LocalStack, answer};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::stack::on_the_stack;

/// The answer to a request for a job over this file: its status, and the job.
async fn accepted(stack: &LocalStack, file: &str) -> (StatusCode, String) {
    let body = json!({ "jobType": "validate", "fileGuid": file, "dedupe": "file", "maxConcurrency": 1 });
    let (status, job) = answer(stack.post("/api/jobs").json(&body)).await;
    (status, job["jobGuid"].as_str().unwrap_or_else(|| panic!("{status}: {job}")).to_owned())
}

#[test]
fn a_cancelled_job_is_replaced_by_a_new_one() {
    on_the_stack(async |stack| {
        // It takes seconds: its 40 chunks run one after the other.
        let rows: String = (0..20_000).map(|row| format!("{row},1\n")).collect();
        let file = stack.upload("text/csv", format!("a,{}\n{rows}", Uuid::new_v4())).await;
        let (_, first) = accepted(stack, &file).await;
        stack.act(&first, "cancel").await;
        let (status, second) = accepted(stack, &file).await;
        assert!(status == StatusCode::ACCEPTED && second != first, "{status}");
        assert_eq!(stack.ended(&second).await["itemsSucceeded"], Value::from(20_000));
        assert_eq!(accepted(stack, &file).await, (StatusCode::OK, second));
    });
}
