//! Workers outside of the stack: the command and the Python example side by side, one that dies, and a pause.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use acceptance::local_stack::{LocalStack, answer, http_client, kill, refused, rowmill, until};
use reqwest::StatusCode;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::results::result;
use crate::stack::on_the_stack;

/// The job types, one a test: workers get all tasks of a type.
pub const BUSY: &str = "render";
pub const PAUSED: &str = "render-paused";
pub const FILES: &str = "render-files";
pub const NEWER: &str = "render-newer";

/// The configuration of both: five items a task.
pub fn config() -> Value {
    json!({ "workers": { "beatSeconds": 10, "items": 5 }, "outputs": true })
}

/// Prints an outcome for each item, after a while.
const WELL: &str = r#"
import json, sys, time
for line in sys.stdin:
    item = json.loads(line)
    time.sleep(0.02)
    name = item["record"].get("name")
    outcome = {"output": {"name": name, "by": "command"}} if name else {"code": "no_name", "column": "name"}
    print(json.dumps({"itemIdentifier": item["itemIdentifier"], **outcome}), flush=True)
"#;

/// Prints the outcomes of two items, and then works for hours: as long as the worker lives.
const HANGS: &str = r#"
import json, os, sys, time
worker = os.getppid()
for line in list(sys.stdin)[:2]:
    item = json.loads(line)
    output = {"name": item["record"]["name"], "by": "dead"}
    print(json.dumps({"itemIdentifier": item["itemIdentifier"], "output": output}), flush=True)
while os.getppid() == worker:
    time.sleep(0.1)
"#;

/// A worker that ends with this test.
pub fn worker(stack: &LocalStack, job_type: &str, more: &[&str], script: &str) -> Child {
    let mut command = rowmill();
    command.args(["work", "--type", job_type, "--url", stack.api_url()]).args(more);
    command.args(["--", "python3", "-c", script]).env_remove("ROWMILL_TOKEN");
    command.stderr(Stdio::piped()).kill_on_drop(true).spawn().expect("it runs")
}

fn example(stack: &LocalStack) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/examples/worker.py");
    Command::new("python3").arg(script).args([stack.api_url(), BUSY]).kill_on_drop(true).spawn().expect("it runs")
}

/// Interrupts a worker; its exit code and what it said.
pub async fn interrupted(worker: Child) -> (Option<i32>, String) {
    let pid = Pid::from_raw(worker.id().expect("it runs") as i32).expect("a process");
    kill_process(pid, Signal::INT).expect("it runs");
    let output = worker.wait_with_output().await.expect("it ends");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

/// The numbers of items that are done in chunks of a job that are not committed, as their checkpoints have them.
pub async fn done(stack: &LocalStack, job: &str) -> Vec<u64> {
    let rows = stack.job_rows(job).await;
    let checkpoints = rows.iter().filter(|(key, _)| key.starts_with("checkpoint#"));
    let checkpoint = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    checkpoints.map(|(_, row)| checkpoint(row.text("checkpoint"))["done"].as_u64().expect("a number")).collect()
}

/// Rows with names, those of these numbers without.
pub fn rows(count: u64, without: &[u64]) -> String {
    let row = |row| if without.contains(&row) { "{}\n".to_owned() } else { format!("{{\"name\": \"n{row}\"}}\n") };
    (1..=count).map(row).collect()
}

/// Writes a file for each item, and an output for the first one.
const WRITES: &str = r#"
import json, os, sys, tempfile
folder = tempfile.mkdtemp()
for line in sys.stdin:
    item = json.loads(line)
    path = os.path.join(folder, "%s.txt" % item["record"]["name"])
    with open(path, "w") as file:
        file.write("of " + item["record"]["name"])
    output = {"output": {"first": True}} if item["row"] == 1 else {}
    print(json.dumps({"itemIdentifier": item["itemIdentifier"], "files": [path], **output}))
"#;

#[test]
fn files_that_a_command_names_are_stored_and_the_outputs_list_them() {
    on_the_stack(async |stack| {
        let file = stack.upload("application/jsonl", rows(7, &[])).await;
        let job = stack.create(FILES, &file, json!({})).await;
        let _worker = worker(stack, FILES, &[], WRITES);
        let ended = stack.ended(&job).await;
        assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(7), &json!(0)), "{ended}");
        let outputs = result(stack, &job, "outputs.jsonl").await;
        let outputs: Vec<Value> = outputs.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((outputs.len(), &outputs[0]["first"]), (7, &json!(true)));
        for (row, output) in (1..).zip(&outputs) {
            let product = &output["products"][0];
            assert_eq!(product["name"], format!("n{row}.txt"), "{output}");
            let (status, link) = answer(stack.get(product["path"].as_str().expect("a path"))).await;
            assert_eq!((status, &link["method"]), (StatusCode::OK, &json!("GET")), "{link}");
            let stored = http_client().get(link["url"].as_str().expect("a link")).send().await.expect("it answers");
            let text = stored.text().await.expect("text");
            assert_eq!((text.as_str(), &product["bytes"]), (format!("of n{row}").as_str(), &json!(text.len())));
        }
        let path = outputs[0]["products"][0]["path"].as_str().expect("a path").replace("n1.txt", "n2.txt");
        refused(stack.get(&path), StatusCode::NOT_FOUND, "not_found").await;
    });
}

#[test]
fn an_outdated_worker_is_told_so_and_ends() {
    on_the_stack(async |stack| {
        for (client, code, says) in [
            ("farm/98.9.9", 1, "need a client of version 99.0.0 or later, and this one is `farm/98.9.9`"),
            ("farm/99.0.0", 0, "0 items done"),
        ] {
            let worker = worker(stack, NEWER, &["--until-empty", "--client", client], WELL);
            let ended = worker.wait_with_output().await.expect("it ends");
            let said = String::from_utf8(ended.stderr).expect("text");
            assert!(ended.status.code() == Some(code) && said.contains(says), "{said}");
        }
    });
}

#[test]
fn workers_side_by_side_count_every_item_once_and_that_of_a_dead_one_is_replaced() {
    on_the_stack(async |stack| {
        let without = [7, 133, 300];
        let file = stack.upload("application/jsonl", rows(300, &without)).await;
        let job = stack.create(BUSY, &file, json!({})).await;
        let mut dead = worker(stack, BUSY, &["--worker", "dead"], HANGS);
        until("nothing is reported by a beat", async || done(stack, &job).await.contains(&2)).await;
        tells_who_works(stack, &job).await;
        assert!(kill(&dead.id().expect("it runs").to_string()));
        dead.wait().await.expect("it ends");

        let (command, python) = (worker(stack, BUSY, &["--worker", "three", "--parallel", "3"], WELL), example(stack));
        no_worker_has_more_tasks_than_it_asked_for(stack, &job).await;
        let ended = stack.ended(&job).await;
        let counts = [&ended["itemCount"], &ended["itemsSucceeded"], &ended["itemsFailed"], &ended["itemsSkipped"]];
        assert_eq!(counts, [300, 297, 3, 0].map(|count| json!(count)).each_ref(), "{ended}");
        assert_eq!((&ended["status"], &ended["outcome"]), (&json!("completed"), &json!("partial")), "{ended}");
        let (code, said) = interrupted(command).await;
        assert_eq!(code, Some(130), "{said}");
        assert!(!said.contains("failed:"), "{said}");
        drop(python);

        let failed = stack.failed_items(&job).await;
        let failed: Vec<u64> = failed.iter().filter_map(|item| item["row"].as_u64()).collect();
        assert_eq!(failed, without);
        let outputs = result(stack, &job, "outputs.jsonl").await;
        let outputs: Vec<Value> = outputs.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let names: Vec<String> =
            outputs.iter().filter_map(|output| output["name"].as_str().map(str::to_owned)).collect();
        let expected: Vec<String> =
            (1..=300).filter(|row| !without.contains(row)).map(|row| format!("n{row}")).collect();
        assert_eq!(names, expected, "in row order, each once");
        let by: Vec<&str> = outputs.iter().map(|output| output["by"].as_str().unwrap_or("example")).collect();
        assert_eq!(by.iter().collect::<BTreeSet<_>>().len(), 3, "each did something: {by:?}");
        // More, if a beat was so late that it lost its task and had another one.
        assert!(by.iter().filter(|by| **by == "dead").count() >= 2, "what it had reported stays done");
        let audit = stack.runs(&["audit", &job]).await;
        assert!(audit.code == Some(0) && audit.out.starts_with("Audit of attempt 1: proved\n"), "{audit:?}");
    });
}

/// A worker that is called `dead` has the one task that is held, with two items done.
async fn tells_who_works(stack: &LocalStack, job: &str) {
    let get = async |path: &str| {
        let (status, answer) = answer(stack.get(path)).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        answer
    };
    let (mut after, mut tasks) = (String::new(), Vec::new());
    loop {
        let page = get(&format!("/api/jobs/{job}/tasks?limit=50{after}")).await;
        tasks.extend(page["tasks"].as_array().expect("tasks").clone());
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert!(tasks.len() > 1, "{tasks:?}");
    let held: Vec<&Value> = tasks.iter().filter(|task| task["state"] == "held").collect();
    let [held] = held.try_into().unwrap_or_else(|_| panic!("{tasks:?}"));
    assert_eq!([&held["worker"], &held["items"], &held["done"]], [&json!("dead"), &json!(5), &json!(2)], "{held}");
    assert!(held["lastBeatAt"].as_str() >= held["since"].as_str() && held["until"].is_string(), "{held}");
    let foreign =
        format!("/api/jobs/{job}/tasks?after={}", held["taskId"].as_str().expect("a name").replacen(job, OTHER, 1));
    refused(stack.get(&foreign), StatusCode::BAD_REQUEST, "invalid_query").await;
    let all = get("/api/workers").await;
    assert_eq!(all["complete"], true, "{all}");
    let workers = all["workers"].as_array().expect("workers");
    let of_type = |worker: &&Value| worker["jobType"] == BUSY;
    let [worker] = workers.iter().filter(of_type).collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{all}"));
    assert_eq!([&worker["worker"], &worker["tasksHeld"], &worker["itemsDone"]], [&json!("dead"), &json!(1), &json!(2)]);
    let shown = stack.runs(&["workers"]).await;
    assert!(shown.code == Some(0) && shown.out.contains("dead") && shown.out.contains("2 of 5"), "{shown:?}");
    let why = get(&format!("/api/jobs/{job}/why")).await;
    let codes: Vec<&str> =
        why["reasons"].as_array().expect("reasons").iter().filter_map(|one| one["code"].as_str()).collect();
    assert!(codes.contains(&"tasks_held"), "{why}");
}

/// Looks until the job has ended.
async fn no_worker_has_more_tasks_than_it_asked_for(stack: &LocalStack, job: &str) {
    let mut most = 0;
    until("the job does not end", async || {
        let (_, all) = answer(stack.get("/api/workers")).await;
        let workers = all["workers"].as_array().unwrap_or_else(|| panic!("{all}")).iter();
        for worker in workers.filter(|worker| worker["jobType"] == BUSY) {
            let (held, slots) = (worker["tasksHeld"].as_u64(), if worker["worker"] == "three" { 3 } else { 1 });
            assert!(held.is_some_and(|held| held <= slots), "{worker}");
            most = most.max(held.unwrap_or_default());
        }
        stack.job(job).await["finishedAt"].is_string()
    })
    .await;
    assert!(most > 1, "no task was ever seen in the hands of the worker with three slots");
}

/// A job that there is not.
const OTHER: &str = "00000000-0000-7000-8000-000000000000";

/// Prints the outcome of one item and hangs, as long as there is no file of the name that follows.
fn hangs_until(file: &Path) -> String {
    let file = file.to_str().expect("UTF-8");
    WELL.replacen("for line", &format!("import os\nfirst = not os.path.exists({file:?})\nfor line"), 1)
        + &format!("    if first:\n        open({file:?}, 'w').close()\n        time.sleep(3600)\n")
}

#[test]
fn a_pause_reaches_a_worker_by_its_beat_and_a_resume_another_one() {
    on_the_stack(async |stack| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = stack.upload("application/jsonl", rows(5, &[])).await;
        let job = stack.create(PAUSED, &file, json!({})).await;
        let worker = worker(stack, PAUSED, &[], &hangs_until(&folder.path().join("begun")));
        until("nothing is reported by a beat", async || done(stack, &job).await.contains(&1)).await;
        let paused = stack.act(&job, "pause").await;
        assert_eq!(paused["status"], "paused", "{paused}");
        let is_free = async || {
            let rows = stack.job_rows(&job).await;
            let mut rows = rows.iter().filter(|(key, _)| key.starts_with("checkpoint#"));
            rows.all(|(_, row)| !row.text("checkpoint").contains("inFlight\":{"))
        };
        until("the worker gives nothing back", is_free).await;
        assert_eq!(done(stack, &job).await, [1]);
        stack.act(&job, "resume").await;
        let ended = stack.ended_with_sweeps(&job).await;
        assert_eq!((&ended["status"], &ended["itemsSucceeded"]), (&json!("completed"), &json!(5)), "{ended}");
        let (code, said) = interrupted(worker).await;
        assert!(code == Some(130) && said.contains("1 of 5 items done, the rest given back: paused"), "{said}");
        assert!(said.contains("4 of 4 items done\n"), "{said}");
    });
}
