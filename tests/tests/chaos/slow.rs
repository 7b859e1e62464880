//! Work that takes longer than one invocation continues in the next. No message becomes a dead letter.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use acceptance::fault_proxy::Weather;
use acceptance::files;
use acceptance::local_stack::answer;
use serde_json::json;

use crate::stack::{alone_on_the_stack, on_the_stack};

#[test]
fn a_chunk_that_takes_longer_than_an_invocation_continues_in_the_next() {
    alone_on_the_stack(async |chaos| {
        let stack = &chaos.stack;
        let mut csv = "id,ms\n".to_owned();
        for row in 1..=100 {
            let _ = writeln!(csv, "{row},200");
        }
        let file = stack.upload("text/csv", csv).await;
        // Two chunks of ten seconds each; an invocation may take three seconds.
        let job = stack.create("slow", &file, json!({})).await;
        let heartbeats = RefCell::new(BTreeSet::new());
        let first_commit = stack.job_when(&job, |shown| {
            heartbeats.borrow_mut().insert(shown["heartbeatAt"].to_string());
            shown["itemProgress"] != 0
        });
        let (_, ended) = tokio::join!(first_commit, stack.ended_with_sweeps(&job));
        assert_eq!((&ended["outcome"], &ended["itemsSucceeded"]), (&json!("succeeded"), &json!(100)), "{ended}");
        let heartbeats = heartbeats.into_inner();
        assert!(heartbeats.len() >= 5, "heartbeats without a commit: {heartbeats:?}");
        let rows = stack.job_rows(&job).await;
        for chunk in ["checkpoint#1#00000000#00", "checkpoint#1#00000000#01"] {
            assert!(rows[chunk].number("rev") >= 4, "{chunk} moved only {} times", rows[chunk].number("rev"));
        }
        assert_eq!(rows["job"].recoveries(), 0, "the sweep does not recover a job with live workers");
        assert!(stack.dead_letters(&job).await.is_empty());
    });
}

#[test]
fn a_split_that_takes_longer_than_an_invocation_continues_in_the_next() {
    on_the_stack(async |chaos| {
        let stack = &chaos.stack;
        let rows = 40_000;
        let file = stack.upload("text/csv", files::plain_csv(rows)).await;
        let before = stack.invocations_of("split-job");
        // Each of the thirteen tallies takes several sequential calls.
        chaos.proxy.set(Weather { latency: Duration::from_millis(250), ..Weather::default() });
        let job = stack.create("validate", &file, json!({})).await;
        stack.job_when(&job, |shown| shown["itemCountFinal"] == true).await;
        chaos.proxy.set(Weather::default());
        let ended = stack.ended(&job).await;
        assert_eq!((&ended["outcome"], &ended["itemsSucceeded"]), (&json!("succeeded"), &json!(rows)), "{ended}");
        let invocations = stack.invocations_of("split-job") - before;
        assert!(invocations >= 3, "split in {invocations} invocations");
        assert!(stack.dead_letters(&job).await.is_empty());
    });
}

#[test]
fn results_that_take_longer_than_an_invocation_continue_in_the_next() {
    alone_on_the_stack(async |chaos| {
        let stack = &chaos.stack;
        let rows = 30_000;
        let csv = "id,ms\n".to_owned() + &"1\n".repeat(rows);
        let file = stack.upload("text/csv", csv).await;
        stack.deliver_to("CompleteJobFunctionName", false).await;
        let job = stack.create("validate", &file, json!({})).await;
        stack.job_when(&job, |shown| shown["itemsFailed"] == rows).await;
        // Each of the ten tallies of failed rows takes several sequential calls.
        chaos.proxy.set(Weather { latency: Duration::from_millis(250), ..Weather::default() });
        stack.deliver_to("CompleteJobFunctionName", true).await;
        let continued = || stack.has_logged("complete-job", &[&job, r#""end":"Continued""#]);
        while !continued() && stack.job(&job).await["finishedAt"].is_null() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        chaos.proxy.set(Weather::default());
        let ended = stack.ended_with_sweeps(&job).await;
        assert_eq!((&ended["status"], &ended["itemsFailed"]), (&json!("completed"), &json!(rows)), "{ended}");
        assert!(continued(), "one invocation was enough");
        let (_, results) = answer(stack.get(&format!("/api/jobs/{job}/results"))).await;
        assert_eq!(results["files"][0]["items"], rows, "{results}");
        assert!(stack.dead_letters(&job).await.is_empty());
    });
}
