//! A running stack is updated under load, from an older version to this one and back again. No job is lost, and every count
//! is exact.
//!
//! The older version is in the folder that `ROWMILL_UPGRADE_FROM` names: its `template.yaml`, and the executables of its
//! functions in `functions`. Without it, the older version is this one in other packages: the update replaces all functions too.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acceptance::files;
use acceptance::local_stack::{ApiRequest, LocalStack, accepted, options};
use futures::future::join_all;
use rowmill::package;
use rowmill::stack::StackOptions;
use rowmill::template::Template;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::audits::audit;
use crate::redrives::file_with_bad_rows;
use crate::service::Service;
use crate::targets::webhook_secret;

/// The rows of the jobs of the load, three of which fail a schema.
pub const ROWS: u64 = 1500;

/// The rows of jobs that must not end before they are paused or cancelled.
pub const MANY_ROWS: u64 = 6000;

/// The queue whose jobs wait while the stack is updated.
const HELD_BACK: [&str; 1] = ["JobsHighQueueUrl"];

/// Known to the limits of every version: other routes may not be.
const ROUTE_LIMITS: &str = r#"{"auditJob": {"minute": 100000, "hour": 1000000}}"#;

#[tokio::test]
async fn a_stack_is_updated_under_load_and_back_and_every_job_is_proved() {
    let service = Service::start().await;
    let target = json!({ "webhook": service.url("/one-at-a-time"), "allowPrivate": true, "batchItems": 50 });
    let targets = json!({ "notify": target }).to_string();
    let parameters = [
        ("ChunkMaxItems", "50"),
        ("FastChunkFactor", "1"),
        ("SplitTimeoutSeconds", "10"),
        ("SplitMarginSeconds", "1"),
        ("ProcessTimeoutSeconds", "10"),
        ("ItemTimeoutSeconds", "3"),
        ("CompleteTimeoutSeconds", "10"),
        ("StopGraceSeconds", "12"),
        ("StaleSeconds", "20"),
        ("OwnerJobCeiling", "50"),
        ("JobTargets", &targets),
        ("JobTypes", r#"{"notify": {"concurrency": 2}}"#),
        ("RouteLimits", ROUTE_LIMITS),
    ];
    let (older, present) = versions(&parameters).await;
    let before = LocalStack::up(&older).await;
    service.trust(webhook_secret(&before).await.current.0);
    let chunks = ["ItemsQueueUrl", "ItemsHighQueueUrl", "ItemsLowQueueUrl", "IsolateQueueUrl", "LanesQueueUrl"];
    let others = ["JobsQueueUrl", "JobsHighQueueUrl", "CompletionsQueueUrl"];
    before.hide_messages_for(&[&chunks[..], &others[..]].concat(), Duration::from_secs(12)).await;

    let many = before.upload("text/csv", files::plain_csv(MANY_ROWS)).await;
    let kept = paused(&before, &many, "kept").await;
    let updated = update(&before, &present).await;
    let back = update(&updated, &older).await;
    assert!(back.has_logged("process-items", &["MessagesRedelivered"]), "no invocation was killed at work");
    back.act(&kept, "resume").await;
    Expected { job: kept, status: "completed", attempt: 1, succeeded: MANY_ROWS, failed: 0 }.ends(&back).await;
    assert_eq!(back.records("kept").await.len() as u64, MANY_ROWS);
}

/// The options of the stack at the older version, and at this one.
async fn versions(parameters: &[(&str, &str)]) -> (StackOptions, StackOptions) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("upgrade");
    let mut present = options(folder.clone(), parameters);
    let names = functions(&present.template);
    let built = package::build_for_this_machine(&present.workspace, &names, false).await;
    let built = built.expect("the functions compile").into_iter();
    present.binaries = built.map(|binary| (binary.package, binary.path)).collect();
    let older = match std::env::var_os("ROWMILL_UPGRADE_FROM").map(PathBuf::from) {
        Some(version) => {
            let template = version.join("template.yaml");
            let path = |name: String| (name.clone(), version.join("functions").join(name));
            let binaries = functions(&template).into_iter().map(path).collect();
            StackOptions { template, binaries, ..present.clone() }
        }
        None => StackOptions { binaries: copies(&present.binaries, &folder.join("functions")), ..present.clone() },
    };
    (older, present)
}

/// The functions of a template.
fn functions(template: &Path) -> Vec<String> {
    let functions = Template::load(template).expect("a template").functions().expect("functions");
    functions.into_iter().map(|function| function.package).collect()
}

/// The same executables with a byte behind them, which makes other packages of them.
fn copies(binaries: &BTreeMap<String, PathBuf>, folder: &Path) -> BTreeMap<String, PathBuf> {
    std::fs::create_dir_all(folder).expect("a folder");
    let copy_of = |path: &PathBuf| folder.join(path.file_name().expect("a file"));
    for path in binaries.values().collect::<BTreeSet<_>>() {
        std::fs::copy(path, copy_of(path)).expect("room for a copy");
        let copy = std::fs::OpenOptions::new().append(true).open(copy_of(path));
        copy.and_then(|mut copy| copy.write_all(&[0])).expect("room for a byte");
    }
    binaries.iter().map(|(name, path)| (name.clone(), copy_of(path))).collect()
}

/// A job, and its end.
pub struct Expected {
    pub job: String,
    pub status: &'static str,
    pub attempt: u64,
    pub succeeded: u64,
    pub failed: u64,
}

impl Expected {
    pub fn completed(job: String, (succeeded, failed): (u64, u64)) -> Self {
        Self { job, status: "completed", attempt: 1, succeeded, failed }
    }

    /// Waits for the end.
    pub async fn ends(self, stack: &LocalStack) {
        let ended = stack.ended_with_sweeps(&self.job).await;
        assert_eq!((&ended["status"], &ended["attempt"]), (&json!(self.status), &json!(self.attempt)), "{ended}");
        assert_eq!(ended["itemProgress"], ended["itemCount"], "{ended}");
        if self.status == "completed" {
            let counts = (&ended["itemsSucceeded"], &ended["itemsFailed"]);
            assert_eq!(counts, (&json!(self.succeeded), &json!(self.failed)), "{ended}");
        }
        let proof = audit(stack, &self.job).await;
        assert_eq!((&proof["verdict"], &proof["chunksOpen"]), (&json!("proved"), &json!(0)), "{proof} of {ended}");
        assert_eq!(stack.job_row(&self.job).await.number("completions"), self.attempt, "{ended}");
        assert!(stack.dead_letters(&self.job).await.is_empty(), "{ended}");
    }
}

/// Jobs of the load: their request, and how many of their rows succeed and fail.
struct Kind {
    request: Value,
    counts: (u64, u64),
}

/// A kind for each kind of work: the rows of a file checked, rewritten, stored, sent to a service, and those of a dataset
/// written.
fn kinds(file: &str) -> [Kind; 5] {
    let kind = |request: Value, failed| Kind { request, counts: (ROWS - failed, failed) };
    let mapping = json!([{ "set": "twice", "template": "{amount} {amount}" }]);
    [
        kind(
            json!({ "jobType": "validate", "fileGuid": file, "maxConcurrency": 2, "params": { "schema": schema() } }),
            3,
        ),
        kind(json!({ "jobType": "transform", "fileGuid": file, "params": { "format": "csv", "mapping": mapping } }), 0),
        kind(json!({ "jobType": "import", "fileGuid": file, "params": { "dataset": "load", "key": "id" } }), 0),
        kind(json!({ "jobType": "notify", "fileGuid": file }), 0),
        kind(json!({ "jobType": "export", "params": { "dataset": "stored" } }), 0),
    ]
}

pub fn schema() -> Value {
    json!({ "type": "object", "properties": { "amount": { "type": "integer" } } })
}

/// A job that is paused while its chunks are processed.
pub async fn paused(stack: &LocalStack, file: &str, dataset: &str) -> String {
    let params = json!({ "dataset": dataset, "key": "id" });
    let job =
        running(stack, &json!({ "jobType": "import", "fileGuid": file, "params": params, "maxConcurrency": 1 })).await;
    assert_eq!(stack.act(&job, "pause").await["status"], "paused");
    job
}

/// A job some of whose items are processed.
pub async fn running(stack: &LocalStack, request: &Value) -> String {
    let job = stack.create_from(request).await;
    stack.job_when(&job, |shown| shown["itemProgress"].as_u64() > Some(0)).await;
    job
}

/// Updates the stack to a version, with jobs in every state. All of them end as they must.
async fn update(from: &LocalStack, to: &StackOptions) -> LocalStack {
    let file = from.upload("text/csv", file_with_bad_rows()).await;
    let many = from.upload("text/csv", files::plain_csv(MANY_ROWS)).await;
    from.run("import", &file, json!({ "dataset": "stored", "key": "id" })).await;
    let of_many = |job_type: &str| json!({ "jobType": job_type, "fileGuid": many, "maxConcurrency": 1 });

    let (redriven, ended) = from.run("validate", &file, json!({ "schema": schema() })).await;
    assert_eq!(ended["itemsFailed"], 3, "{ended}");
    from.deliver_from(&HELD_BACK, false).await;
    let waiting = json!({ "jobType": "validate", "fileGuid": many, "priority": "high" });
    let waiting = from.create_from(&waiting).await;
    assert_eq!(from.job(&waiting).await["status"], "waiting");
    let dataset = Uuid::new_v4().simple().to_string();
    let resumed = paused(from, &many, &dataset).await;
    let cancelled = running(from, &of_many("transform")).await;
    assert_eq!(from.act(&cancelled, "cancel").await["status"], "cancelling");
    let behind = from.create_from(&of_many("validate")).await;

    let kinds = kinds(&file);
    let (stack, loads) = updated_under_load(from, to, &kinds).await;
    stack.deliver_from(&HELD_BACK, true).await;
    stack.act(&resumed, "resume").await;
    let corrected = stack.upload("text/csv", "id,amount,row\n1400,1400,1400\n10,10,10\n").await;
    accepted(stack.post(&format!("/api/jobs/{redriven}/redrive")).json(&json!({ "fileGuid": corrected }))).await;

    let completed = |job| Expected::completed(job, (MANY_ROWS, 0));
    let redriven = Expected { attempt: 2, ..Expected::completed(redriven, (ROWS - 1, 1)) };
    let cancelled = Expected { status: "cancelled", ..completed(cancelled) };
    let mut expected = vec![completed(waiting), completed(resumed), completed(behind), redriven, cancelled];
    for (kind, jobs) in kinds.iter().zip(loads) {
        println!("{} jobs: {}", jobs.len(), kind.request);
        expected.extend(jobs.into_iter().map(|job| Expected::completed(job, kind.counts)));
    }
    for expected in expected {
        expected.ends(&stack).await;
    }
    assert_eq!(stack.records(&dataset).await.len() as u64, MANY_ROWS);
    assert_eq!(stack.records("load").await.len() as u64, ROWS);
    stack
}

/// Updates the stack to a version while jobs of each kind run. The jobs, by their kinds.
async fn updated_under_load(from: &LocalStack, to: &StackOptions, kinds: &[Kind]) -> (LocalStack, Vec<Vec<String>>) {
    let (packages, processes) = (from.packages().await, from.processes_of("process-items"));
    assert!(!processes.is_empty(), "nothing is at work");
    let is_updated = AtomicBool::new(false);
    let update = async {
        let stack = LocalStack::up(to).await;
        is_updated.store(true, Ordering::SeqCst);
        stack
    };
    let load = join_all(kinds.iter().map(|kind| load(from, &kind.request, &is_updated)));
    let (stack, jobs) = tokio::join!(update, load);
    let replaced = stack.packages().await;
    for function in ["process-items", "split-job", "complete-job", "create-job"].map(|name| format!("rowmill-{name}")) {
        assert_ne!(packages[&function], replaced[&function], "{function} runs other code");
    }
    let left = stack.processes_of("process-items").into_iter().filter(|process| processes.contains(process));
    assert_eq!(left.count(), 0, "processes of the version before");
    (stack, jobs)
}

/// Runs jobs one after the other until the stack is updated.
async fn load(stack: &LocalStack, request: &Value, is_updated: &AtomicBool) -> Vec<String> {
    let mut jobs = Vec::new();
    while !is_updated.load(Ordering::SeqCst) {
        let key = Uuid::new_v4().to_string();
        let job = insisted(|| stack.post("/api/jobs").header("idempotency-key", &key).json(request)).await;
        let job = job["jobGuid"].as_str().expect("a jobGuid").to_owned();
        while !is_updated.load(Ordering::SeqCst) {
            let shown = insisted(|| stack.get(&format!("/api/jobs/{job}"))).await;
            if shown["finishedAt"].is_string() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        jobs.push(job);
    }
    jobs
}

/// The answer to a request that is sent again while its function is replaced: the emulator kills it, and answers 5xx itself.
async fn insisted(request: impl Fn() -> ApiRequest) -> Value {
    loop {
        let answer = request().send_undocumented().await;
        if !answer.status.is_server_error() {
            assert!(answer.status.is_success(), "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
            return answer.json();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
