//! How fast live messages are: `cargo test --test local_stack live_speed -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use acceptance::files;
use acceptance::local_stack::LocalStack;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

const TIMES: usize = 21;

/// The time of a job's last change, as its row has it, in milliseconds since 1970.
fn millis(job: &Value, field: &str) -> i64 {
    let at: jiff::Timestamp = job[field].as_str().expect("a time").parse().expect("a time");
    at.as_millisecond()
}

async fn busy_job(stack: &LocalStack, rows: u64, concurrency: u32) -> String {
    let file = stack.upload("text/csv", files::plain_csv(rows)).await;
    stack.create_from(&json!({ "jobType": "validate", "fileGuid": file, "maxConcurrency": concurrency })).await
}

#[test]
#[ignore = "it measures and checks nothing"]
fn live_speed_after_a_quiet_second_and_during_a_busy_job() {
    on_the_stack(async |stack| {
        let (mut quiet, mut ends) = (Vec::new(), Vec::new());
        let mut client = stack.live().await;
        client.send(json!({ "action": "subscribe", "jobs": "mine" })).await;
        client.message_of("subscribed").await;
        for _ in 0..TIMES {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            let job = busy_job(stack, 10, 1).await;
            let mut first = None;
            loop {
                let message = client.message().await;
                let now = jiff::Timestamp::now().as_millisecond();
                if message["job"]["jobGuid"] != *job {
                    continue;
                }
                first.get_or_insert_with(|| quiet.push(now - millis(&message["job"], "createdAt")));
                if message["type"] == "ended" {
                    ends.push(now - millis(&message["job"], "finishedAt"));
                    break;
                }
            }
        }
        for (what, mut times) in [("creation to message after a quiet second", quiet), ("end to message", ends)] {
            times.sort_unstable();
            println!("{what}: median {} ms, slowest {} ms of {TIMES}", times[times.len() / 2], times[times.len() - 1]);
        }
        let job = busy_job(stack, 100_000, 4).await;
        client.subscribe(&job).await;
        let (mut messages, mut begun) = (0_u32, None::<Instant>);
        loop {
            let message = client.message().await;
            if message["job"]["jobGuid"] != *job {
                continue;
            }
            match message["type"].as_str() {
                Some("progress") => {
                    begun.get_or_insert_with(Instant::now);
                    messages += 1;
                }
                Some("ended") => break,
                _ => {}
            }
        }
        let took = begun.expect("a message").elapsed();
        println!(
            "{messages} progress messages in {took:.1?}: {:.2} a second",
            f64::from(messages) / took.as_secs_f64()
        );
    });
}
