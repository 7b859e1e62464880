//! A job that is paused and resumed: it rests in between, and every row counts once.

use std::time::{Duration, UNIX_EPOCH};

use acceptance::files;
use acceptance::local_stack::{answer, refused};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::stack::on_the_stack;

const ROWS: u64 = 10_000;

/// The rows of a chunk.
const CHUNK: u64 = 500;

#[test]
fn a_paused_job_rests_and_a_resumed_one_counts_every_row_once() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", files::plain_csv(ROWS)).await;
        let params = json!({ "dataset": "paused", "key": "id" });
        let job =
            json!({ "jobType": "import", "fileGuid": file, "params": params, "maxConcurrency": 1, "metadata": {} });
        let job = stack.create_from(&job).await;
        let path = |action: &str| format!("/api/jobs/{job}/{action}");
        let mut client = stack.live().await;
        client.subscribe(&job).await;
        stack.job_when(&job, |shown| shown["itemProgress"].as_u64() >= Some(CHUNK)).await;

        let paused = stack.act(&job, "pause").await;
        assert_eq!(paused["status"], "paused", "{paused}");
        let told = loop {
            let message = client.message_of("progress").await;
            if message["job"]["status"] == "paused" {
                break message;
            }
        };
        assert!(told["job"]["version"].as_u64() >= paused["version"].as_u64(), "{told}");
        let progress = |shown: &serde_json::Value| shown["itemProgress"].as_u64().expect("a number");
        // One chunk may have been in progress. Nothing else moves.
        let mut seen = Vec::new();
        while seen.len() < 10 || seen[seen.len() - 10..].iter().any(|before| before != seen.last().unwrap()) {
            stack.sweep().await;
            let shown = stack.job(&job).await;
            assert_eq!((&shown["status"], &shown["stage"]), (&json!("paused"), &json!("paused")), "{shown}");
            assert!(progress(&shown) <= progress(&paused) + CHUNK, "{shown} after {paused}");
            seen.push(progress(&shown));
        }
        let again = stack.act(&job, "pause").await;
        assert_eq!(again["status"], "paused", "{again}");
        assert!(again["version"].as_u64() >= paused["version"].as_u64());
        assert_eq!(stack.job_row(&job).await.number("pauses"), 1, "it changes nothing");

        let limits = ["--tolerance-count", "9", "--deadline", "8h", "--priority", "low", "--max-concurrency", "2"];
        let ran = stack.runs(&[&["retune", &job, "--json"][..], &limits[..]].concat()).await;
        let retuned: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
        assert_eq!((&retuned["priority"], &retuned["maxConcurrency"]), (&json!("low"), &json!(2)), "{retuned}");
        assert_eq!(retuned["tolerance"]["count"], 9, "{retuned}");
        let row = stack.job_row(&job).await;
        assert_eq!(row.number("deadlineAt"), row.number("createdAt") + 8 * 3_600_000);
        let patch = |body| stack.call(Method::PATCH, &format!("/api/jobs/{job}")).json(&body);
        let (status, same) = answer(patch(json!({ "priority": "low", "deadlineSeconds": 28_800 }))).await;
        assert_eq!((status, &same["status"]), (StatusCode::OK, &json!("paused")), "{same}");
        assert_eq!(stack.job_row(&job).await.number("revision"), row.number("revision"), "it changes nothing");
        for empty in [json!({}), json!({ "tolerance": null }), json!({ "metadata": {} })] {
            refused(patch(empty), StatusCode::BAD_REQUEST, "invalid_body").await;
        }
        // A fast machine comes here within the first second of the job.
        let second = UNIX_EPOCH + Duration::from_millis(row.number("createdAt") + 1_000);
        while second.elapsed().is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (problem, _) =
            refused(patch(json!({ "deadlineSeconds": 1 })), StatusCode::BAD_REQUEST, "invalid_request").await;
        assert_eq!(problem["field"], "deadlineSeconds");
        let ran = stack.runs(&["resume", &job, "--json"]).await;
        let resumed: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
        assert_eq!(resumed["status"], "running", "{resumed}");
        assert!(resumed["version"].as_u64() > again["version"].as_u64(), "{resumed} after {again}");
        let ended = stack.ended(&job).await;
        assert_eq!(
            (&ended["status"], &ended["itemsSucceeded"], &ended["attempt"]),
            (&json!("completed"), &json!(ROWS), &json!(1)),
            "{ended}"
        );
        assert_eq!(stack.records("paused").await.len() as u64, ROWS);
        let row = stack.job_row(&job).await;
        assert_eq!((row.number("completions"), row.has("resendFrom"), row.has("pausedFrom")), (1, false, false));
        assert!(stack.dead_letters(&job).await.is_empty());
        for action in ["pause", "resume", "cancel"] {
            let (problem, _) = refused(stack.post(&path(action)), StatusCode::CONFLICT, "job_ended").await;
            assert_eq!(problem["jobStatus"], "completed");
        }
        refused(patch(json!({ "priority": "high" })), StatusCode::CONFLICT, "job_ended").await;
    });
}

#[test]
fn a_stopped_job_is_neither_paused_nor_resumed() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", files::plain_csv(40_000)).await;
        let job = json!({ "jobType": "validate", "fileGuid": file, "maxConcurrency": 1, "params": {} });
        let job = stack.create_from(&job).await;
        stack.job_when(&job, |shown| shown["itemProgress"].as_u64() > Some(0)).await;
        let paused = stack.act(&job, "pause").await;
        assert_eq!(paused["status"], "paused", "{paused}");
        let cancelling = stack.act(&job, "cancel").await;
        assert_eq!(cancelling["status"], "cancelling", "{cancelling}");
        for action in ["pause", "resume"] {
            refused(stack.post(&format!("/api/jobs/{job}/{action}")), StatusCode::CONFLICT, "job_ending").await;
        }
        let ended = stack.ended_with_sweeps(&job).await;
        assert_eq!(ended["status"], "cancelled", "{ended}");
        assert_eq!(ended["itemProgress"], ended["itemCount"], "{ended}");
    });
}
