//! An import is undone: each record is as it was, as an export of the dataset shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use acceptance::local_stack::{LocalStack, answer, refused};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::results::result;
use crate::stack::on_the_stack;

/// The records of a dataset, as an export has them.
async fn exported(stack: &LocalStack) -> BTreeMap<String, Value> {
    let params = json!({ "dataset": "undone", "keyColumn": "key" });
    let (job, _) = stack.run_from(&json!({ "jobType": "export", "params": params })).await;
    let lines = result(stack, &job, "undone.jsonl").await;
    let record = |line: &str| {
        let record: Value = serde_json::from_str(line).expect("JSON");
        (record["key"].as_str().expect("a key").to_owned(), record)
    };
    lines.lines().map(record).collect()
}

async fn import(stack: &LocalStack, rows: impl Iterator<Item = u64>, text: &str) -> String {
    let mut csv = String::from("id,name,n\n");
    for row in rows {
        let _ = writeln!(csv, "{row},{text} {row},{}", row * 7);
    }
    let schema = json!({ "properties": { "n": { "type": "number" } } });
    let file = stack.upload("text/csv", csv).await;
    let params = json!({ "dataset": "undone", "key": "id", "schema": schema });
    let (job, ended) = stack.run("import", &file, params).await;
    assert_eq!(ended["outcome"], "succeeded", "{ended}");
    job
}

/// With `ROWMILL_ROWS=100000` over as many rows.
#[test]
fn after_an_undo_an_export_is_as_before_the_import() {
    let rows: u64 = std::env::var("ROWMILL_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(3_000);
    on_the_stack(async |stack| {
        import(stack, 1..=rows, "first").await;
        let before = exported(stack).await;
        let job = import(stack, rows / 2 + 1..=rows * 3 / 2, "wrong").await;
        let wrong = exported(stack).await;
        assert_eq!((before.len() as u64, wrong.len() as u64), (rows, rows * 3 / 2));

        // The import has the second half of the file: a prune after it removes the first half, and its undo brings it back.
        let counted = stack.runs(&["prune", &job]).await;
        assert!(counted.code == Some(0) && counted.out.contains("  remove"), "{counted:?}");
        assert!(exported(stack).await == wrong, "it is only counted");
        let pruned = stack.runs(&["prune", &job, "--yes", "--json"]).await;
        let prune: Value = serde_json::from_str(pruned.out.lines().last().expect("a line")).expect("a job");
        let of_file = wrong.iter().filter(|(key, _)| key.parse::<u64>().expect("a number") > rows / 2);
        assert!(exported(stack).await.iter().eq(of_file), "{pruned:?}");
        let prune = prune["jobGuid"].as_str().expect("a guid");
        let audit = stack.runs(&["audit", prune]).await;
        assert!(audit.code == Some(0) && audit.out.starts_with("Audit of attempt 1: proved\n"), "{audit:?}");
        let ran = stack.runs(&["undo", prune]).await;
        assert!(ran.code == Some(0) && exported(stack).await == wrong, "{ran:?}");

        let ran = stack.runs(&["undo", &job, "--json"]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let undo: Value = serde_json::from_str(ran.out.lines().last().expect("a line")).expect("a job");
        let undo = undo["jobGuid"].as_str().expect("a guid");
        assert!(exported(stack).await == before, "field by field");
        let (_, results) = answer(stack.get(&format!("/api/jobs/{undo}/results"))).await;
        assert_eq!((&results["changes"]["reversed"], &results["changes"]["kept"]), (&json!(rows), &Value::Null));
        let audit = stack.runs(&["audit", undo]).await;
        assert!(audit.code == Some(0) && audit.out.starts_with("Audit of attempt 1: proved\n"), "{audit:?}");
        let gone = format!("/api/datasets/undone/records?key={}", rows * 3 / 2);
        assert_eq!(answer(stack.get(&gone)).await.1["records"], json!([]));

        // The same request again, and what does not fit an undone job.
        let (status, same) = answer(stack.post(&format!("/api/jobs/{job}/undo"))).await;
        assert_eq!((status, &same["jobGuid"]), (StatusCode::OK, &json!(undo)));
        assert_eq!(stack.job(&job).await["undoneBy"], json!(undo));
        refused(stack.post(&format!("/api/jobs/{job}/redrive")), StatusCode::CONFLICT, "job_undone").await;

        let ran = stack.runs(&["undo", undo]).await;
        assert!(ran.code == Some(0) && ran.out.contains("reversed  "), "{ran:?}");
        assert!(exported(stack).await == wrong, "all is back");

        let file = stack.upload("text/csv", "a\n1\n").await;
        let (checked, _) = stack.run("validate", &file, json!({})).await;
        refused(stack.post(&format!("/api/jobs/{checked}/undo")), StatusCode::CONFLICT, "not_undoable").await;
        refused(stack.post(&format!("/api/jobs/{checked}/prune")), StatusCode::CONFLICT, "not_prunable").await;
        let unknown = stack.post("/api/jobs/01a20467-9b8d-7a54-b7e0-a09dae80a33b/undo");
        refused(unknown, StatusCode::NOT_FOUND, "not_found").await;
        let by_type = stack.post("/api/jobs").json(&json!({ "jobType": "undo", "params": { "jobGuid": job } }));
        refused(by_type, StatusCode::UNPROCESSABLE_ENTITY, "invalid_params").await;
    });
}
