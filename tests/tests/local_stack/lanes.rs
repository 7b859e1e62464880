//! Job types with limits of their own: how many of their jobs are active, and how many of their chunks run at once.

use acceptance::files;
use acceptance::local_stack::{LocalStack, accepted, chain, options, refused, until};
use reqwest::StatusCode;
use rowmill::stack::Stack;
use serde_json::json;

use crate::service::SERVICE;
use crate::stack::on_the_stack;

/// The parameter of the stack.
pub const JOB_TYPES: &str = r#"{"one-lane": {"activeJobs": 3, "concurrency": 1}, "three-lanes": {"concurrency": 3}}"#;

/// The rows of a chunk.
const CHUNK: u64 = 500;

/// The chunks of each job, by its type.
const CHUNKS: (u64, u64) = (4, 8);

/// Three jobs of a type, each with so many chunks.
async fn three_jobs(stack: &LocalStack, job_type: &str, chunks: u64) -> Vec<String> {
    let file = stack.upload("text/csv", files::plain_csv(chunks * CHUNK)).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(stack.create(job_type, &file, json!({})).await);
    }
    jobs
}

#[test]
fn chunks_of_a_type_run_on_its_lanes_also_when_their_processes_are_killed() {
    on_the_stack(async |stack| {
        let service = SERVICE.get().expect("the service");
        let (one, three) = ("/one-at-a-time", "/three-at-a-time");
        let of_one = three_jobs(stack, "one-lane", CHUNKS.0).await;
        let of_three = three_jobs(stack, "three-lanes", CHUNKS.1).await;
        let fourth = json!({ "jobType": "one-lane", "fileGuid": stack.upload("text/csv", files::plain_csv(1)).await });
        refused(stack.post("/api/jobs").json(&fourth), StatusCode::SERVICE_UNAVAILABLE, "job_type_full").await;

        // All lanes are at work before a process is killed: a lane that was killed rests for a while, in which the
        // others may come to their ends. Both types are at work when the processes are killed, and again when their
        // chunks have come back.
        until("some lanes are idle", async || service.most_at_once(three) >= 3).await;
        let mut calls = (0, 0);
        for _ in 0..2 {
            let at_work = |path: &str, before: usize| service.answering(path) > 0 && service.calls(path) > before;
            until("nobody is at work", async || at_work(one, calls.0) && at_work(three, calls.1)).await;
            calls = (service.calls(one), service.calls(three));
            assert!(stack.kill_processes_of("process-items") > 0, "nobody was at work");
        }

        for (job, chunks) in of_one.iter().map(|job| (job, CHUNKS.0)).chain(of_three.iter().map(|job| (job, CHUNKS.1)))
        {
            let ended = stack.ended(job).await;
            let failed = chunks * CHUNK / 1000;
            assert_eq!((&ended["status"], &ended["itemsFailed"]), (&json!("completed"), &json!(failed)), "{ended}");
            assert_eq!(ended["itemsSucceeded"], json!(chunks * CHUNK - failed), "{ended}");
            assert_eq!(stack.job_row(job).await.number("completions"), 1);
            assert!(stack.dead_letters(job).await.is_empty());
        }
        assert_eq!((service.most_at_once(one), service.most_at_once(three)), (1, 3), "chunks that ran at once");
        let job = accepted(stack.post("/api/jobs").json(&fourth)).await;
        stack.ended(job["jobGuid"].as_str().expect("a guid")).await;
    });
}

#[tokio::test]
async fn limits_that_no_job_type_can_have_are_not_deployed() {
    let state_dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused-lanes");
    let options = options(state_dir, &[("JobTypes", r#"{"import": {"concurrency": 1000}}"#)]);
    let refused = Stack::up(&options).await.expect_err("no type has that many lanes");
    let text = chain(&refused);
    let expected = "the parameter JobTypes: `import` must have a `concurrency` that is a whole number from 1 to 100";
    assert!(text.contains(expected), "{text}");
    assert!(!options.state_dir.join("stack.json").exists(), "nothing is left running");
}
