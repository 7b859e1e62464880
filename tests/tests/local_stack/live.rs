//! Live connections: what clients see of their jobs without asking.

use std::time::{Duration, Instant};

use acceptance::files;
use acceptance::local_stack::{LiveClient, LocalStack, PATIENCE};
use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

/// A job that takes a while: one chunk after the other.
pub async fn long_job(stack: &LocalStack, rows: u64) -> String {
    let file = stack.upload("text/csv", files::plain_csv(rows)).await;
    stack.create_from(&json!({ "jobType": "validate", "fileGuid": file, "maxConcurrency": 1 })).await
}

fn version(message: &Value) -> u64 {
    message["job"]["version"].as_u64().unwrap_or_else(|| panic!("a version in {message}"))
}

/// A client's view of a job.
#[derive(Default)]
struct Watch {
    shown: u64,
    last: Value,
}

impl Watch {
    /// Looks at a message about the job. Whether it shows the end of this attempt.
    fn look(&mut self, message: &Value, job: &str, attempt: u64) -> bool {
        assert_eq!(message["job"]["jobGuid"], job, "{message}");
        let is_end = message["job"]["finishedAt"].is_string();
        match message["type"].as_str() {
            Some("snapshot") => {}
            Some("progress") => assert!(!is_end, "{message}"),
            Some("ended") => assert!(is_end, "{message}"),
            _ => panic!("no state: {message}"),
        }
        // Messages may come in another order. The rule of a client: an older state is dropped.
        if version(message) >= self.shown {
            self.shown = version(message);
            self.last = message["job"].clone();
        }
        is_end && message["job"]["attempt"] == attempt
    }
}

/// Watches a job up to the end of this attempt, on this connection or on others if it is lost. Returns its last state
/// and whether `ended` said so.
async fn watched_to_the_end(stack: &LocalStack, client: LiveClient, job: &str, attempt: u64) -> (Value, bool) {
    let (mut client, mut watch) = (client, Watch::default());
    client.subscribe(job).await;
    loop {
        match client.next().await {
            None => {
                client = stack.live().await;
                client.subscribe(job).await;
            }
            Some(message) if message["type"].is_null() || message["type"] == "error" => client.subscribe(job).await,
            Some(message) if message["job"].is_null() => assert_eq!(message["jobGuid"], job, "{message}"),
            Some(message) => {
                if watch.look(&message, job, attempt) {
                    return (watch.last, message["type"] == "ended");
                }
            }
        }
    }
}

/// An ended job whose rows have all failed, so that it can be redriven.
async fn failed_rows(stack: &LocalStack, rows: u64) -> String {
    let file = stack.upload("text/csv", files::plain_csv(rows)).await;
    let schema = json!({ "properties": { "name": { "type": "integer" } } });
    let job = stack.create("validate", &file, json!({ "schema": schema })).await;
    assert_eq!(stack.ended(&job).await["itemsFailed"], rows);
    job
}

#[test]
fn five_hundred_connections_see_an_attempt_from_its_beginning_to_its_end() {
    on_the_stack(async |stack| {
        let job = &failed_rows(stack, 20_000).await;
        let mut clients = Vec::new();
        for _ in 0..20 {
            clients.extend(join_all((0..25).map(|_| subscribed(stack, job))).await);
        }
        let redriven = stack.post(&format!("/api/jobs/{job}/redrive")).json(&json!({})).send().await;
        assert_eq!(redriven.status, 202);
        let seen = join_all(clients.into_iter().map(|mut client| async move {
            let mut watch = Watch::default();
            loop {
                match client.next().await {
                    // The answer to a subscription that was sent again, because a function had failed.
                    Some(message) if message["type"] == "subscribed" => {}
                    Some(message) => {
                        if watch.look(&message, job, 2) {
                            return (watch.last, message["type"] == "ended");
                        }
                    }
                    // Given up, because the machine was busy.
                    None => return watched_to_the_end(stack, stack.live().await, job, 2).await,
                }
            }
        }))
        .await;
        let shown = stack.job(job).await;
        assert!(seen.iter().all(|(last, _)| *last == shown), "the view of the API: {shown}");
        assert!(seen.iter().filter(|(_, ended)| *ended).count() > 0, "`ended` came");
        no_watcher_is_left(stack, job).await;
    });
}

/// A connection that has its snapshot of an ended job.
async fn subscribed(stack: &LocalStack, job: &str) -> LiveClient {
    let mut client = stack.live().await;
    client.subscribe(job).await;
    loop {
        match client.next().await {
            None => client = stack.live().await,
            Some(message) if message["type"] == "snapshot" => {
                assert_eq!(message["job"]["attempt"], 1, "{message}");
                return client;
            }
            Some(message) if message["type"] == "subscribed" => continue,
            // A function has failed.
            Some(_) => {}
        }
        client.subscribe(job).await;
    }
}

/// Waits until every closed connection has left the table, but for those of tests beside this one. On a busy machine
/// the emulator loses events of closed connections, as API Gateway may. The next message to such a connection removes
/// it.
async fn no_watcher_is_left(stack: &LocalStack, job: &str) {
    let (started, mut pushed) = (Instant::now(), false);
    loop {
        let table = stack.output("ConnectionsTable");
        let query = stack.dynamodb.query().table_name(table).key_condition_expression("#scope = :scope");
        let query = query.expression_attribute_names("#scope", "scope");
        let query = query.expression_attribute_values(":scope", AttributeValue::S("watch#local".to_owned()));
        let left = query.send().await.expect("the table answers").count;
        if left < 100 {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{left} connections are left");
        if !pushed && started.elapsed() > Duration::from_secs(20) {
            let redriven = stack.post(&format!("/api/jobs/{job}/redrive")).json(&json!({})).send().await;
            assert_eq!(redriven.status, 202);
            pushed = true;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[test]
fn connections_that_break_at_random_end_with_the_right_state() {
    on_the_stack(async |stack| {
        let job = &long_job(stack, 60_000).await;
        let watch = async |number: u64| {
            let mut random = fastrand::Rng::with_seed(number);
            for _ in 0..random.u32(1..5) {
                let client = stack.live().await;
                let life = Duration::from_millis(random.u64(50..3000));
                // Dropped without a goodbye.
                let _ = tokio::time::timeout(life, watched_to_the_end(stack, client, job, 1)).await;
            }
            watched_to_the_end(stack, stack.live().await, job, 1).await.0
        };
        let seen = join_all((0..20).map(watch)).await;
        let shown = stack.job(job).await;
        assert!(seen.iter().all(|last| *last == shown), "{shown}");
    });
}

#[test]
fn a_subscription_to_all_jobs_shows_those_that_are_created_later() {
    on_the_stack(async |stack| {
        let old = long_job(stack, 10).await;
        stack.ended(&old).await;
        let mut client = stack.live().await;
        client.send(json!({ "action": "subscribe", "jobs": "mine" })).await;
        assert_eq!(client.message_of("subscribed").await, json!({ "type": "subscribed", "jobs": "mine" }));
        client.message_of("snapshot").await;
        let new = long_job(stack, 5000).await;
        let first = loop {
            let message = client.message().await;
            if message["job"]["jobGuid"] == *new {
                break message;
            }
        };
        // A job that is fast enough has ended at the first look.
        let mut last = first;
        while last["type"] != "ended" || last["job"]["jobGuid"] != *new {
            last = client.message().await;
        }
        assert_eq!(last["job"], stack.job(&new).await);
        client.send(json!({ "action": "unsubscribe", "jobs": "mine" })).await;
        assert_eq!(client.message_of("unsubscribed").await, json!({ "type": "unsubscribed", "jobs": "mine" }));
    });
}

#[test]
fn an_unsubscribed_job_and_an_ended_one_that_is_redriven() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", "id,n\n1,1\n2,x\n").await;
        let schema = json!({ "properties": { "n": { "type": "integer" } } });
        let job = stack.create("validate", &file, json!({ "schema": schema })).await;
        let first = stack.ended(&job).await;
        let (mut client, mut other) = (subscribed(stack, &job).await, subscribed(stack, &job).await);
        other.send(json!({ "action": "unsubscribe", "jobGuid": job })).await;
        let unsubscribed = other.message_of("unsubscribed").await;
        assert_eq!(unsubscribed, json!({ "type": "unsubscribed", "jobGuid": job }));
        let redriven = stack.post(&format!("/api/jobs/{job}/redrive")).json(&json!({})).send().await;
        assert_eq!(redriven.status, 202);
        let again = loop {
            let message = client.message_of("ended").await;
            if message["job"]["attempt"] == 2 {
                break message;
            }
        };
        assert!(version(&again) > first["version"].as_u64().expect("a version"), "{again}");
        // Nothing of the second attempt comes before the answer to the ping. What was on its way of the first one may.
        other.send(json!({ "action": "ping" })).await;
        let pong = loop {
            let message = other.message().await;
            if message["job"]["attempt"] != 1 {
                break message;
            }
        };
        assert_eq!(pong, json!({ "type": "pong" }));
    });
}

/// The example of `docs/live.md` in Node.js, if that is installed and has WebSocket.
#[test]
fn the_example_of_the_document_shows_a_job_to_its_end() {
    on_the_stack(async |stack| {
        let document = include_str!("../../../docs/live.md");
        let (_, rest) = document.split_once("```js\n").expect("an example");
        let (example, _) = rest.split_once("```").expect("its end");
        assert!(example.lines().count() <= 25, "about twenty lines");
        let job = long_job(stack, 5000).await;
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("example.mjs");
        let main = format!(
            "{example}\nconst stop = watchJob('{}', '{job}', (job) => {{\n  console.log(JSON.stringify(job));\n  \
             if (job.finishedAt) stop();\n}});\n",
            stack.api_url()
        );
        std::fs::write(&script, main).expect("it is stored");
        // Node.js 20 has it behind a flag, which later versions accept.
        let node = || {
            let mut node = tokio::process::Command::new("node");
            node.arg("--experimental-websocket").kill_on_drop(true);
            node
        };
        let has_socket = node().args(["-e", "process.exit(globalThis.WebSocket ? 0 : 1)"]).output().await;
        if !has_socket.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: there is no Node.js with WebSocket");
            return;
        }
        let output =
            tokio::time::timeout(PATIENCE, node().arg(&script).output()).await.expect("it ends").expect("it runs");
        let lines: Vec<Value> =
            output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(lines.last(), Some(&printed_by_javascript(stack.job(&job).await)), "{errors}");
        assert!(lines.is_sorted_by_key(|job| job["version"].as_u64()), "{lines:?}");
    });
}

/// JavaScript prints numbers without a fraction as whole ones.
fn printed_by_javascript(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, printed_by_javascript(value))).collect(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 => json!(float as i64),
            _ => Value::Number(number),
        },
        other => other,
    }
}

/// The command by its own way, so that what it prints is what a person sees.
#[test]
fn the_command_follows_a_job_by_messages() {
    on_the_stack(async |stack| {
        let job = long_job(stack, 20_000).await;
        let ran = stack.runs(&["job", &job, "--watch", "--json"]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let last = ran.out.lines().rfind(|line| !line.is_empty()).expect("a line");
        assert_eq!(serde_json::from_str::<Value>(last).expect("JSON")["itemsSucceeded"], 20_000);
        let tickets = stack.log_lines("live-subscription");
        assert!(!tickets.is_empty(), "it has subscribed");
    });
}
