//! Many workers at one job, of which every second one dies, and an item that kills whoever takes it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use acceptance::local_stack::{kill, until};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::results::result;
use crate::stack::on_the_stack;
use crate::workers::{interrupted, rows, worker};

/// The job types, one a test: workers get all tasks of a type.
pub const FLEET: &str = "render-fleet";
pub const POISON: &str = "render-poison";

/// Tasks of so many items.
pub fn config(items: u32) -> Value {
    json!({ "workers": { "beatSeconds": 10, "items": items }, "outputs": true })
}

const ROWS: u64 = 2000;
const WORKERS: usize = 20;

/// Notes the rows of its task in this file, and prints an outcome for each after a while.
fn noting(file: &Path) -> String {
    format!(
        r#"
import json, sys, time
items = [json.loads(line) for line in sys.stdin]
with open({file:?}, "a") as lent:
    lent.writelines(f"{{item['row']}}\n" for item in items)
for item in items:
    time.sleep(0.1)
    name = item["record"].get("name")
    outcome = {{"output": {{"name": name, "by": {by:?}}}}} if name else {{"code": "no_name", "column": "name"}}
    print(json.dumps({{"itemIdentifier": item["itemIdentifier"], **outcome}}), flush=True)
"#,
        by = file.file_name().expect("a name")
    )
}

/// The rows that a worker has been lent.
fn lent(file: &Path) -> BTreeSet<u64> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|row| row.parse().ok()).collect()
}

#[test]
fn a_fleet_of_which_every_second_worker_is_killed_counts_every_item_once() {
    on_the_stack(async |stack| {
        let seed = std::env::var("ROWMILL_FLEET_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| fastrand::u64(..));
        println!("ROWMILL_FLEET_SEED={seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let folder = tempfile::tempdir().expect("a folder");
        let without: BTreeSet<u64> = (0..5).map(|_| random.u64(1..=ROWS)).collect();
        let without: Vec<u64> = without.into_iter().collect();
        let file = stack.upload("application/jsonl", rows(ROWS, &without)).await;
        let job = stack.create(FLEET, &file, json!({})).await;

        let names: Vec<String> = (0..WORKERS).map(|number| format!("w{number}")).collect();
        let note = |name: &str| folder.path().join(name);
        let mut fleet: Vec<_> =
            names.iter().map(|name| worker(stack, FLEET, &["--worker", name], &noting(&note(name)))).collect();
        let survivors = fleet.split_off(WORKERS / 2);
        let (dead, _) = names.split_at(WORKERS / 2);
        let kills = fleet.iter_mut().zip(dead).map(|(worker, name)| {
            let wait = Duration::from_millis(random.u64(0..6000));
            async move {
                until("it has no task", async || !lent(&note(name)).is_empty()).await;
                tokio::time::sleep(wait).await;
                assert!(kill(&worker.id().expect("it runs").to_string()));
                worker.wait().await.expect("it ends");
            }
        });
        join_all(kills).await;

        let ended = stack.ended(&job).await;
        let counts = [&ended["itemCount"], &ended["itemsSucceeded"], &ended["itemsFailed"], &ended["itemsSkipped"]];
        let failed = without.len() as u64;
        assert_eq!(counts, [ROWS, ROWS - failed, failed, 0].map(|count| json!(count)).each_ref(), "{ended}");
        for (code, said) in join_all(survivors.into_iter().map(interrupted)).await {
            assert!(code == Some(130) && !said.contains("failed:"), "{code:?}: {said}");
        }
        let rows_failed = stack.failed_items(&job).await;
        let rows_failed: Vec<u64> = rows_failed.iter().filter_map(|item| item["row"].as_u64()).collect();
        assert_eq!(rows_failed, without);

        let outputs = result(stack, &job, "outputs.jsonl").await;
        let outputs: Vec<Value> = outputs.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let text = |output: &Value, field: &str| output[field].as_str().expect("text").to_owned();
        let done: Vec<String> = outputs.iter().map(|output| text(output, "name")).collect();
        let expected: Vec<u64> = (1..=ROWS).filter(|row| !without.contains(row)).collect();
        assert_eq!(done, expected.iter().map(|row| format!("n{row}")).collect::<Vec<_>>(), "in row order, each once");
        let replaced = dead.iter().filter(|name| {
            let rows = lent(&note(name));
            let by_others = |(row, output): (&u64, &Value)| rows.contains(row) && output["by"] != name.as_str();
            expected.iter().zip(&outputs).any(by_others)
        });
        assert!(replaced.count() > 0, "nobody has died at a task");
        let audit = stack.runs(&["audit", &job]).await;
        assert!(audit.code == Some(0) && audit.out.starts_with("Audit of attempt 1: proved\n"), "{audit:?}");
    });
}

/// Kills this process at the item without a name.
fn dies_at_poison(process: &str) -> String {
    format!(
        r#"
import json, os, signal, sys, time
worker = os.getppid()
for line in sys.stdin:
    item = json.loads(line)
    if "name" not in item["record"]:
        os.kill(os.{process}(), signal.SIGKILL)
        while os.getppid() == worker:
            time.sleep(0.01)
        sys.exit(1)
    print(json.dumps({{"itemIdentifier": item["itemIdentifier"]}}), flush=True)
"#
    )
}

#[test]
fn an_item_that_kills_whoever_takes_it_costs_itself_alone() {
    on_the_stack(async |stack| {
        let file = stack.upload("application/jsonl", rows(12, &[3])).await;
        let job = stack.create(POISON, &file, json!({})).await;
        // Two workers die with their commands, and of the third one the command alone.
        for _ in 0..2 {
            let mut victim = worker(stack, POISON, &[], &dies_at_poison("getppid"));
            victim.wait().await.expect("it dies");
        }
        let survivor = worker(stack, POISON, &[], &dies_at_poison("getpid"));
        let ended = stack.ended(&job).await;
        let counts = [&ended["itemsSucceeded"], &ended["itemsFailed"], &ended["itemsSkipped"]];
        assert_eq!(counts, [11, 1, 0].map(|count| json!(count)).each_ref(), "{ended}");
        let failed = stack.failed_items(&job).await;
        assert_eq!((&failed[0]["row"], &failed[0]["code"]), (&json!(3), &json!("poison")), "{failed:?}");
        let (code, said) = interrupted(survivor).await;
        assert!(code == Some(130) && said.contains("failed:"), "{said}");
        let audit = stack.runs(&["audit", &job]).await;
        assert!(audit.code == Some(0) && audit.out.starts_with("Audit of attempt 1: proved\n"), "{audit:?}");
    });
}
