//! An operator's view: the trace of a job in every log, metrics in the log, and `rowmill top`.

use std::collections::BTreeSet;

use acceptance::files;
use acceptance::local_stack::{LocalStack, accepted, answer, rowmill, until};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::live::long_job;
use crate::stack::on_the_stack;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A job that ended, created by a request with this header.
async fn ended_job(stack: &LocalStack, header: (&str, &str)) -> String {
    let file = stack.upload("text/csv", files::plain_csv(2_000)).await;
    let request = stack.post("/api/jobs").header(header.0, header.1);
    let job = accepted(request.json(&json!({ "jobType": "validate", "fileGuid": file }))).await;
    let job = job["jobGuid"].as_str().expect("a guid").to_owned();
    stack.ended(&job).await;
    job
}

/// The lines of a function about a job, when there are any: a function logs after it has written.
async fn lines_about(stack: &LocalStack, function: &str, job: &str) -> Vec<Value> {
    let lines = || stack.log_lines(function).into_iter().filter(|line| line["job.id"] == job).collect::<Vec<_>>();
    until(format!("{function} logs nothing about {job}"), async || !lines().is_empty()).await;
    lines()
}

/// Waits until this holds of a function's log.
async fn logged(stack: &LocalStack, function: &str, holds: impl Fn(&Value) -> bool) {
    let has_line = async || stack.log_lines(function).iter().any(&holds);
    until(format!("no such line of {function}"), has_line).await;
}

#[test]
fn one_trace_id_is_in_the_logs_of_every_function_that_works_on_a_job() {
    on_the_stack(async |stack| {
        let w3c = format!("00-{TRACE}-00f067aa0ba902b7-01");
        // Without one of the client, the gateway's own: it does not pass on an X-Amzn-Trace-Id of the client's making.
        for header in [("traceparent", w3c.as_str()), ("traceparent", "00-nonsense-01")] {
            let job = ended_job(stack, header).await;
            let trace = stack.job_row(&job).await.text("traceId").to_owned();
            assert_eq!(trace == TRACE, header.1 == w3c, "{trace}");
            assert!(trace.len() == 32 && trace != job.replace('-', ""), "{trace}: that of the gateway or of Lambda");
            for function in ["create-job", "split-job", "complete-job", "announce-job"] {
                for line in lines_about(stack, function, &job).await {
                    assert_eq!(line["trace.id"], json!(trace), "{function}: {line}");
                }
            }
            // A chunk leaves no line of its own: the line at the end of the invocation names the traces of its jobs.
            for function in ["create-job", "split-job", "process-items", "complete-job"] {
                logged(stack, function, |line| {
                    line["message"] == "invocation finished"
                        && line["trace.ids"].as_array().is_some_and(|ids| ids.contains(&json!(trace)))
                })
                .await;
            }
        }
    });
}

#[test]
fn metrics_are_lines_of_the_log_at_most_one_for_an_invocation() {
    on_the_stack(async |stack| {
        ended_job(stack, ("x-test", "metrics")).await;
        stack.sweep().await;
        let expected: [(&str, &[&str]); 5] = [
            ("create-job", &["JobsCreated"]),
            ("split-job", &["JobsStarted"]),
            ("process-items", &["ChunksCommitted", "ItemsSucceeded", "ChunkDuration", "DispatchDelay"]),
            ("complete-job", &["JobsEnded", "JobsSucceeded"]),
            ("sweep", &["TasksOffered", "TasksHeld", "TasksDead", "OldestTaskAge", "JobsLookedAt"]),
        ];
        for (function, names) in expected {
            for name in names {
                logged(stack, function, |line| {
                    let metrics = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array();
                    metrics.is_some_and(|metrics| metrics.iter().any(|metric| metric["Name"] == *name))
                })
                .await;
            }
            let lines = stack.log_lines(function);
            let metrics: Vec<&Value> = lines.iter().filter(|line| line["_aws"].is_object()).collect();
            let finished = lines.iter().filter(|line| line["message"] == "invocation finished").count();
            assert!(metrics.len() <= finished + 1, "{function}: {} lines in {finished} invocations", metrics.len());
            for line in metrics {
                assert_eq!((&line["stack"], &line["function"]), (&json!("rowmill"), &json!(function)), "{line}");
                assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["stack"]]), "{line}");
            }
        }
        let (status, _) = answer(stack.post("/api/jobs").json(&json!({ "jobType": "nonsense" }))).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        logged(stack, "create-job", |line| {
            line["JobsRefused"].as_u64() > Some(0) && line["refusals"]["unknown_job_type"].as_u64() > Some(0)
        })
        .await;
    });
}

#[test]
fn top_prints_the_queues_and_the_active_jobs_of_a_stack() {
    on_the_stack(async |stack| {
        let job = long_job(stack, 20_000).await;
        stack.job_when(&job, |shown| shown["itemProgress"].as_u64() > Some(0)).await;
        let (status, paused) = answer(stack.post(&format!("/api/jobs/{job}/pause"))).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{paused}");
        let arguments = ["top", "--once", "--stack-name", "rowmill", "--endpoint-url", stack.endpoint()];
        let output = rowmill().args(arguments).output().await.expect("it runs");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let line = text.lines().find(|line| line.starts_with(&job)).unwrap_or_else(|| panic!("no {job} in\n{text}"));
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells[1..5], ["local", "validate", "normal", "paused"], "{text}");
        let percent: u8 = cells[5].trim_end_matches('%').parse().expect("a percentage");
        assert!((1..100).contains(&percent), "{text}");
        let queues: BTreeSet<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
        for queue in ["Jobs", "Items", "Isolate", "Completions", "Inbox", "ItemsDeadLetter"] {
            assert!(queues.contains(queue), "{text}");
        }
        assert!(text.contains("refused: –\n") && text.contains("active jobs: "), "{text}");
        stack.act(&job, "resume").await;
        stack.ended(&job).await;
    });
}
