//! A web service that is down for a while: the jobs of its type wait for it, and no row fails.

use acceptance::files;
use acceptance::local_stack::{LocalStack, until};
use serde_json::{Value, json};

use crate::service::SERVICE;
use crate::stack::on_the_stack;

const JOB_TYPE: &str = "at-times";
const ROWS: u64 = 900;

/// Of two chunks each: more than the failed runs that open a breaker.
const JOBS: usize = 3;

/// The breaker of the job type, as it is stored.
async fn breaker(stack: &LocalStack) -> Value {
    let row = stack.admission_row(&format!("breaker#{JOB_TYPE}")).await;
    row.map_or(Value::Null, |row| serde_json::from_str(row.text("breaker")).expect("JSON"))
}

#[test]
fn jobs_whose_service_is_down_are_paused_and_end_without_a_failed_row_once_it_is_back() {
    on_the_stack(async |stack| {
        let service = SERVICE.get().expect("the service");
        let file = stack.upload("text/csv", files::plain_csv(ROWS)).await;
        let mut jobs = Vec::new();
        for _ in 0..JOBS {
            jobs.push(stack.create(JOB_TYPE, &file, json!({})).await);
        }
        for job in &jobs {
            let shown = stack.job_when(job, |shown| shown["status"] == "paused").await;
            assert_eq!((&shown["pause"]["by"], &shown["itemsFailed"]), (&json!("breaker"), &json!(0)), "{shown}");
            assert_eq!(shown["pause"]["reason"]["code"], "target_down", "{shown}");
            assert!(shown["pause"]["reason"]["message"].as_str().is_some_and(|said| said.contains("503")), "{shown}");
            assert!(shown["pause"]["nextProbeAt"].is_string(), "{shown}");
        }
        let why = stack.runs(&["why", &jobs[0]]).await.out;
        assert!(why.starts_with("target_down: ") && why.contains("503") && why.contains("next look"), "{why}");
        let text = stack.runs(&["job", &jobs[0]]).await.out;
        assert!(text.contains("target_down: ") && text.contains("503"), "{text}");

        // Probes fail: the service is still down.
        until("nobody probes", async || {
            stack.sweep().await;
            breaker(stack).await["openings"].as_u64() >= Some(2)
        })
        .await;
        service.comes_back();
        for job in &jobs {
            let ended = stack.ended_with_sweeps(job).await;
            assert_eq!((&ended["status"], &ended["itemsSucceeded"]), (&json!("completed"), &json!(ROWS)), "{ended}");
            assert_eq!((&ended["itemsFailed"], &ended["pause"]), (&json!(0), &Value::Null), "{ended}");
            assert!(stack.dead_letters(job).await.is_empty());
            assert!(!stack.job_row(job).await.has("breakerPause"));
        }
        assert_eq!(breaker(stack).await["openings"], 0, "it is closed");
    });
}
