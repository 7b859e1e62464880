//! Failed items processed again, as they are and corrected.

use std::fmt::Write as _;

use acceptance::local_stack::{LocalStack, accepted, refused};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

const BAD_ROWS: [u64; 3] = [10, 600, 1400];

pub fn file_with_bad_rows() -> String {
    let mut csv = "id,amount\n".to_owned();
    for row in 1..=1500 {
        let _ = if BAD_ROWS.contains(&row) { writeln!(csv, "{row},bad") } else { writeln!(csv, "{row},{row}") };
    }
    csv
}

async fn redriven(stack: &LocalStack, job: &str, body: Option<Value>) -> Value {
    let request = stack.post(&format!("/api/jobs/{job}/redrive"));
    let request = body.iter().fold(request, |request, body| request.json(body));
    let shown = accepted(request).await;
    assert_eq!((&shown["status"], &shown["itemCount"]), (&json!("running"), &json!(1500)), "{shown}");
    stack.ended(job).await
}

async fn failed_rows(stack: &LocalStack, job: &str) -> Vec<u64> {
    stack.failed_items(job).await.iter().map(|item| item["row"].as_u64().expect("a row")).collect()
}

#[test]
fn failed_items_are_processed_again_as_they_are_and_corrected() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", file_with_bad_rows()).await;
        let schema = json!({ "type": "object", "properties": { "amount": { "type": "integer" } } });
        let job = stack.create("import", &file, json!({ "dataset": "redriven", "key": "id", "schema": schema })).await;
        assert_eq!(stack.ended(&job).await["itemsFailed"], 3);

        let ended = redriven(stack, &job, None).await;
        assert_eq!((&ended["attempt"], &ended["outcome"]), (&json!(2), &json!("partial")), "{ended}");
        assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(1497), &json!(3)), "{ended}");
        assert_eq!(failed_rows(stack, &job).await, BAD_ROWS);

        let corrected = stack.upload("text/csv", "id,amount,row\n1400,1400,1400\n10,10,10\n").await;
        let ended = redriven(stack, &job, Some(json!({ "fileGuid": corrected, "deadlineSeconds": 600 }))).await;
        assert_eq!((&ended["attempt"], &ended["itemsFailed"]), (&json!(3), &json!(1)), "{ended}");
        assert_eq!(failed_rows(stack, &job).await, [600], "a failed row that is left out keeps its failure");

        let corrected = stack.upload("text/csv", "id,amount,row,code,message,column\n600,600,600,,,\n").await;
        let ended = redriven(stack, &job, Some(json!({ "fileGuid": corrected }))).await;
        assert_eq!((&ended["outcome"], &ended["itemsSucceeded"]), (&json!("succeeded"), &json!(1500)), "{ended}");
        assert_eq!(stack.records("redriven").await.len(), 1500);
        assert_eq!(stack.job_rows(&job).await["job"].number("completions"), 4, "one an attempt");
        let again = stack.post(&format!("/api/jobs/{job}/redrive"));
        refused(again, StatusCode::CONFLICT, "nothing_to_redrive").await;
    });
}

#[test]
fn a_corrected_file_that_does_not_fit_is_refused_with_the_reason() {
    on_the_stack(async |stack| {
        let schema = json!({ "type": "object", "properties": { "amount": { "type": "integer" } } });
        let file = stack.upload("text/csv", file_with_bad_rows()).await;
        let (job, ended) = stack.run("validate", &file, json!({ "schema": schema })).await;
        let cases = [
            ("amount,id,row\n10,10,10\n", "invalid_corrected_file"),
            ("id,amount,row\n10,10,10\n10,10,10\n", "invalid_corrected_file"),
            ("id,amount,row\n", "invalid_corrected_file"),
            ("id,amount,row\n10,10,10\n11,11,11\n", "rows_not_failed"),
        ];
        for (text, code) in cases {
            let corrected = stack.upload("text/csv", text).await;
            let request = stack.post(&format!("/api/jobs/{job}/redrive")).json(&json!({ "fileGuid": corrected }));
            let (problem, _) = refused(request, StatusCode::UNPROCESSABLE_ENTITY, code).await;
            assert_eq!(problem["field"], "fileGuid", "{problem}");
        }
        let unknown = json!({ "fileGuid": "00000000-0000-4000-8000-000000000000" });
        let request = stack.post(&format!("/api/jobs/{job}/redrive")).json(&unknown);
        refused(request, StatusCode::UNPROCESSABLE_ENTITY, "unknown_upload").await;
        assert_eq!(stack.job(&job).await, ended, "a redrive that is refused leaves nothing behind");
    });
}

#[test]
fn a_corrected_file_that_was_replaced_after_its_upload_is_refused() {
    on_the_stack(async |stack| {
        let schema = json!({ "type": "object", "properties": { "amount": { "type": "integer" } } });
        let file = stack.upload("text/csv", "id,amount\n1,bad\n").await;
        let (job, ended) = stack.run("validate", &file, json!({ "schema": schema })).await;
        let corrected = stack.upload("text/csv", "id,amount,row\n1,1,1\n").await;
        stack.drop_file(&format!("uploads/{corrected}"), "id,amount,row\n1,2,1\n", &[]).await;
        let request = stack.post(&format!("/api/jobs/{job}/redrive")).json(&json!({ "fileGuid": corrected }));
        let (problem, _) = refused(request, StatusCode::UNPROCESSABLE_ENTITY, "upload_changed").await;
        assert_eq!(problem["field"], "fileGuid", "{problem}");
        assert_eq!(stack.job(&job).await, ended);
    });
}
