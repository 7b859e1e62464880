//! Simulated workers at the API of a local stack: `cargo run --bin workers -- --workers 1000`.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use acceptance::local_stack::{ApiRequest, LocalStack, options};
use futures::future::join_all;
use reqwest::StatusCode;
use rowmill::stack::StackOptions;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

const USAGE: &str = "workers [--workers COUNT] [--seconds SECONDS]

COUNT (1000) workers ask for tasks of one item within ten seconds, as after an outage. Each beats every 30 seconds, and reports
its item after SECONDS (90). Meanwhile others show a job and create jobs. Prints how long each route took, and fails if it refused a
request, or if a count is wrong.";

/// The time within which all workers ask for a task, and in the end report.
const RUSH: Duration = Duration::from_secs(10);

/// Half of `beatSeconds`, which is the default.
const BEAT: Duration = Duration::from_secs(30);

const TARGETS: &str = r#"{"render": {"workers": {}}}"#;

/// The requests of a route: how long each took, and the answers that are no success.
#[derive(Default)]
struct Route {
    took: Vec<Duration>,
    refused: BTreeMap<u16, usize>,
}

#[derive(Default)]
struct Routes(Mutex<BTreeMap<&'static str, Route>>);

impl Routes {
    /// Sends a request and notes how long it took; its answer.
    async fn send(&self, route: &'static str, request: ApiRequest) -> (StatusCode, Value) {
        let began = Instant::now();
        let answer = request.send_undocumented().await;
        let took = began.elapsed();
        let mut routes = self.0.lock().expect("no panic");
        let of_route = routes.entry(route).or_default();
        of_route.took.push(took);
        if !answer.status.is_success() {
            *of_route.refused.entry(answer.status.as_u16()).or_default() += 1;
        }
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    fn are_all_answered(&self) -> bool {
        self.0.lock().expect("no panic").values().all(|route| route.refused.is_empty())
    }
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| route | requests | p50 | p99 | longest | refused |\n|---|---:|---:|---:|---:|---|")?;
        for (name, route) in self.0.lock().expect("no panic").iter_mut() {
            route.took.sort_unstable();
            let count = route.took.len();
            let [half, most, all] = [count / 2, count * 99 / 100, count - 1].map(|place| route.took[place].as_millis());
            let refused = if route.refused.is_empty() { "none".to_owned() } else { format!("{:?}", route.refused) };
            writeln!(f, "| {name} | {count} | {half} ms | {most} ms | {all} ms | {refused} |")?;
        }
        Ok(())
    }
}

/// A time within the next ten seconds.
fn within_the_rush() -> Duration {
    RUSH.mul_f64(fastrand::f64())
}

/// Leases a task, beats, and reports its item. Another try follows an answer that is no success.
async fn work(stack: &LocalStack, routes: &Routes, number: usize, end: Instant) {
    sleep(within_the_rush()).await;
    let lease = json!({ "jobTypes": ["render"], "worker": format!("w{number}") });
    let task = loop {
        match routes.send("lease", stack.post("/api/tasks/lease").json(&lease)).await {
            (StatusCode::OK, task) => break task,
            _ => sleep(Duration::from_secs(1)).await,
        }
    };
    let path = |action: &str| format!("/api/tasks/{}/{action}", task["taskId"].as_str().expect("an id"));
    let body = json!({ "token": task["token"] });
    let send = async |route| {
        while routes.send(route, stack.post(&path(route)).json(&body)).await.0 != StatusCode::OK {
            sleep(Duration::from_secs(1)).await;
        }
    };
    let mut next = Instant::now();
    while next < end {
        sleep_until(next).await;
        send("beat").await;
        next += BEAT;
    }
    sleep_until(end + within_the_rush()).await;
    send("finish").await;
}

/// Shows a job five times a second, and creates one every second.
async fn use_jobs(stack: &LocalStack, routes: &Routes, job: &str) {
    let path = format!("/api/jobs/{job}");
    for turn in 0_u64.. {
        routes.send("show a job", stack.get(&path)).await;
        if turn.is_multiple_of(5) {
            let body = json!({ "jobType": "validate", "items": [{ "a": turn }] });
            routes.send("create a job", stack.post("/api/jobs").json(&body)).await;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// A job with an item for each worker.
async fn create(stack: &LocalStack, workers: usize) -> String {
    let rows: String = (0..workers).map(|row| format!("{{\"row\": {row}}}\n")).collect();
    let file = stack.upload("application/jsonl", rows).await;
    let job = stack.create("render", &file, json!({})).await;
    stack.job_when(&job, |job| job["itemCount"] == json!(workers) && job["status"] == "running").await;
    job
}

#[tokio::main]
async fn main() -> ExitCode {
    let (mut workers, mut seconds) = (1000, 90);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (argument.as_str(), value) {
            ("--workers", Some(value)) => workers = value,
            ("--seconds", Some(value)) => seconds = value as u64,
            _ => {
                println!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let folder = match StackOptions::for_current_workspace() {
        Ok(options) => options.state_dir.join("workers"),
        Err(error) => {
            println!("{error}");
            return ExitCode::from(2);
        }
    };
    // The jobs that are created meanwhile are one owner's.
    let stack = LocalStack::up(&options(folder, &[("JobTargets", TARGETS), ("OwnerJobCeiling", "1000")])).await;
    let job = create(&stack, workers).await;
    let routes = Routes::default();
    let end = Instant::now() + RUSH + Duration::from_secs(seconds);
    tokio::select! {
        _ = join_all((0..workers).map(|number| work(&stack, &routes, number, end))) => {}
        () = use_jobs(&stack, &routes, &job) => {}
    }
    let ended = stack.ended(&job).await;
    println!("{workers} workers, tasks of {seconds} s\n\n{routes}");
    let is_exact = ended["itemsSucceeded"] == json!(workers);
    let audit = stack.runs(&["audit", &job]).await;
    println!("{} of {workers} items succeeded\n{}", ended["itemsSucceeded"], audit.out);
    let is_right = is_exact && audit.code == Some(0) && routes.are_all_answered();
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
