//! Simulated workers at the API of a local stack: `cargo run --bin workers -- --workers 1000`.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use acceptance::local_stack::{ApiRequest, LocalStack, answer, options};
use futures::future::join_all;
use reqwest::StatusCode;
use rowmill::stack::StackOptions;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

const USAGE: &str = "workers [--workers COUNT] [--seconds SECONDS] [--rush SECONDS] [--reconnect SECONDS]

COUNT (1000) workers ask for tasks of one item within a rush (90 seconds). Each beats every 30 seconds. Then none is heard
of for 30 seconds, as if the network were down, and all beat again within the seconds of `--reconnect` (10), and every 30
seconds after that. Each reports its item after SECONDS (90). Meanwhile others show a job and create jobs. Prints how long each route took, and fails if it refused a
request, or if a count is wrong.";

/// Half of `beatSeconds`, which is the default.
const BEAT: Duration = Duration::from_secs(30);

/// Time after which a worker without a task asks again, as `rowmill work` does.
const ASK_AGAIN: Duration = Duration::from_secs(5);

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

/// When a worker beats and ends.
struct Times {
    /// The network is down from then on.
    down_from: Instant,
    /// When the worker reconnects.
    back_at: Instant,
    /// The last time for a beat.
    end: Instant,
    finish_at: Instant,
}

impl Times {
    /// The time of the beat that follows one at this time.
    fn beat_after(&self, last: Instant) -> Instant {
        let next = last + BEAT;
        if last < self.back_at && next >= self.down_from { self.back_at } else { next }
    }
}

/// Leases a task and in the end reports its item, and beats meanwhile. Another try follows an answer that is no success.
async fn work(stack: &LocalStack, routes: &Routes, number: usize, times: &Times) {
    // A task whose lease was over is another worker's.
    while hold(stack, routes, number, times).await == StatusCode::GONE {}
}

/// Leases a task, beats until the end and then reports its item; the last answer.
async fn hold(stack: &LocalStack, routes: &Routes, number: usize, times: &Times) -> StatusCode {
    let lease = json!({ "jobTypes": ["render"], "worker": format!("w{number}") });
    let task = loop {
        match routes.send("lease", stack.post("/api/tasks/lease").json(&lease)).await {
            (StatusCode::OK, task) => break task,
            _ => sleep(ASK_AGAIN).await,
        }
    };
    let path = |action: &str| format!("/api/tasks/{}/{action}", task["taskId"].as_str().expect("an id"));
    let body = json!({ "token": task["token"] });
    let send = async |route| loop {
        match routes.send(route, stack.post(&path(route)).json(&body)).await.0 {
            end @ (StatusCode::OK | StatusCode::GONE) => break end,
            _ => sleep(Duration::from_secs(1)).await,
        }
    };
    let mut next = Instant::now();
    loop {
        sleep_until(next).await;
        if send("beat").await == StatusCode::GONE {
            return StatusCode::GONE;
        }
        next = times.beat_after(next);
        if next >= times.end {
            break;
        }
    }
    sleep_until(times.finish_at).await;
    send("finish").await
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

/// The job once it has ended. An overloaded stack may not answer.
async fn ended(stack: &LocalStack, routes: &Routes, job: &str) -> Value {
    loop {
        let (_, job) = routes.send("wait for the job", stack.get(&format!("/api/jobs/{job}"))).await;
        if job["outcome"].is_string() {
            return job;
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// A job with an item for each worker, all of which are offered at once.
async fn create(stack: &LocalStack, workers: usize) -> String {
    let rows: String = (0..workers).map(|row| format!("{{\"row\": {row}}}\n")).collect();
    let file = stack.upload("application/jsonl", rows).await;
    let body = json!({ "jobType": "render", "fileGuid": file, "maxConcurrency": workers });
    let job = stack.create_from(&body).await;
    // Its tasks are offered as its chunks are delivered.
    let mut tasks = 0;
    while tasks < workers {
        sleep(Duration::from_secs(1)).await;
        let (mut after, mut found) = (String::new(), 0);
        loop {
            let (_, page) = answer(stack.get(&format!("/api/jobs/{job}/tasks?{after}"))).await;
            found += page["tasks"].as_array().map_or(0, Vec::len);
            let Some(next) = page["next"].as_str() else { break };
            after = format!("after={next}");
        }
        tasks = found;
    }
    job
}

#[tokio::main]
async fn main() -> ExitCode {
    let (mut workers, mut seconds, mut rush, mut reconnect) = (1000, 90, 90, 10);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (argument.as_str(), value) {
            ("--workers", Some(value)) => workers = value,
            ("--seconds", Some(value)) => seconds = value as u64,
            ("--rush", Some(value)) => rush = value as u64,
            ("--reconnect", Some(value)) => reconnect = value as u64,
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
    let [rush, reconnect] = [rush, reconnect].map(Duration::from_secs);
    let (began, end) = (Instant::now(), Instant::now() + rush + Duration::from_secs(seconds));
    let within = |time: Duration| time.mul_f64(fastrand::f64());
    let working = (0..workers).map(async |number| {
        let down_from = began + rush;
        let back_at = down_from + BEAT + within(reconnect);
        sleep(within(rush)).await;
        work(&stack, &routes, number, &Times { down_from, back_at, end, finish_at: end + within(rush) }).await;
    });
    let has_ended = async {
        sleep_until(end).await;
        ended(&stack, &routes, &job).await
    };
    let ended = tokio::select! {
        ended = has_ended => ended,
        _ = join_all(working) => ended(&stack, &routes, &job).await,
        () = use_jobs(&stack, &routes, &job) => unreachable!("it goes on for ever"),
    };
    let (rush, reconnect) = (rush.as_secs(), reconnect.as_secs());
    println!("{workers} workers within {rush} s, and again within {reconnect} s, tasks of {seconds} s\n\n{routes}");
    let is_exact = ended["itemsSucceeded"] == json!(workers);
    let audit = stack.runs(&["audit", &job]).await;
    println!("{} of {workers} items succeeded\n{}", ended["itemsSucceeded"], audit.out);
    let is_right = is_exact && audit.code == Some(0) && routes.are_all_answered();
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
