//! Jobs that are stopped: by their owner, by their deadline. What was done stays, the rest is listed.

use acceptance::files;
use acceptance::local_stack::{LocalStack, refused};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

const ROWS: u64 = 100_000;

/// A job that would take many seconds.
async fn long_job(stack: &LocalStack, dataset: &str, more: Value) -> String {
    let file = stack.upload("text/csv", files::plain_csv(ROWS)).await;
    let params = json!({ "dataset": dataset, "key": "id" });
    let mut body = json!({ "jobType": "import", "fileGuid": file, "params": params });
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    stack.create_from(&body).await
}

/// Every row is in one place: succeeded, failed, listed as skipped, or in the range that was never dispatched.
async fn check_stopped(stack: &LocalStack, job: &str, ended: &Value) {
    let number = |name: &str| ended[name].as_u64().expect("a count");
    assert_eq!(number("itemProgress"), number("itemCount"), "{ended}");
    assert!(number("itemsSkipped") > 0 || !ended["unprocessed"].is_null(), "nothing was left to skip: {ended}");
    let dispatched = match ended["unprocessed"]["fromRow"].as_u64() {
        Some(from) => from - 1,
        None => ROWS,
    };
    assert_eq!(number("itemCount"), dispatched, "{ended}");
    let skipped = stack.items(job, "skipped", 1000).await;
    let rows: Vec<_> = skipped.iter().map(|item| item["row"].as_u64().expect("a row")).collect();
    assert!(rows.is_sorted_by(|a, b| a < b) && rows.iter().all(|row| *row <= dispatched), "in order, each once");
    assert_eq!(rows.len() as u64, number("itemsSkipped"), "{ended}");
    assert_eq!(stack.items(job, "failed", 1000).await.len() as u64, number("itemsFailed"), "{ended}");
    assert_eq!(stack.job_rows(job).await["job"].number("completions"), 1);
}

#[test]
fn a_cancelled_job_ends_soon_and_keeps_its_finished_items() {
    on_the_stack(async |stack| {
        let job = long_job(stack, "cancelled", json!({})).await;
        stack.job_when(&job, |shown| shown["itemProgress"].as_u64() > Some(0)).await;
        refused(stack.post(&format!("/api/jobs/{job}/redrive")), StatusCode::CONFLICT, "job_active").await;
        refused(stack.get(&format!("/api/jobs/{job}/results")), StatusCode::CONFLICT, "job_active").await;
        for _ in 0..2 {
            let shown = stack.act(&job, "cancel").await;
            assert!(["cancelling", "cancelled"].iter().any(|status| shown["status"] == *status), "{shown}");
        }
        let ended = stack.ended_with_sweeps(&job).await;
        assert_eq!((&ended["status"], &ended["message"]), (&json!("cancelled"), &json!("Job cancelled")), "{ended}");
        check_stopped(stack, &job, &ended).await;
        // A run that was killed by another test beside this one may have written rows that were skipped then.
        assert!(stack.records("cancelled").await.len() as u64 >= ended["itemsSucceeded"].as_u64().expect("a count"));
        stack.act(&job, "cancel").await;
        assert!(stack.dead_letters(&job).await.is_empty());
    });
}

#[test]
fn a_job_past_its_deadline_fails() {
    on_the_stack(async |stack| {
        let job = long_job(stack, "overdue", json!({ "deadlineSeconds": 3, "maxConcurrency": 1 })).await;
        let ended = stack.ended_with_sweeps(&job).await;
        assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!("deadline_exceeded")));
        check_stopped(stack, &job, &ended).await;
    });
}
