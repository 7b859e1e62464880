//! A stack is lost with its tables and its bucket, and restored from a backup: a new stack attaches the restored tables and
//! bucket.

use std::path::Path;

use acceptance::files;
use acceptance::local_stack::{LocalStack, Ran, accepted, options, ran, rowmill};
use serde_json::{Value, json};

use crate::audits::damage;
use crate::redrives::file_with_bad_rows;
use crate::upgrade::{Expected, MANY_ROWS, ROWS, paused, running, schema};

/// The name of the bucket, and the beginning of the names of the tables.
const RESTORED: &str = "restored";

async fn audit_all(stack: &LocalStack) -> Ran {
    let mut command = rowmill();
    command.args(["audit", "--all", "--json", "--endpoint-url", stack.endpoint()]);
    ran(command).await
}

/// The verdicts of `rowmill audit --all`, by job.
async fn verdicts(stack: &LocalStack) -> Vec<(String, String)> {
    let ran = audit_all(stack).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = |proof: &Value, name: &str| proof[name].as_str().expect("a text").to_owned();
    let proofs = ran.out.lines().map(|line| serde_json::from_str(line).expect("a proof"));
    let mut verdicts: Vec<_> = proofs.map(|proof| (text(&proof, "jobGuid"), text(&proof, "verdict"))).collect();
    verdicts.sort();
    verdicts
}

#[tokio::test]
async fn a_lost_stack_is_restored_and_every_job_is_proved_and_active_ones_go_on() {
    let parameters = [
        ("ChunkMaxItems", "50"),
        ("FastChunkFactor", "1"),
        ("ProcessTimeoutSeconds", "10"),
        ("ItemTimeoutSeconds", "3"),
        ("StopGraceSeconds", "12"),
        ("StaleSeconds", "20"),
    ];
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("restore");
    let lost = LocalStack::up(&options(folder.clone(), &parameters)).await;
    let file = lost.upload("text/csv", file_with_bad_rows()).await;
    let many = lost.upload("text/csv", files::plain_csv(MANY_ROWS)).await;
    let (partial, _) = lost.run("validate", &file, json!({ "schema": schema() })).await;
    let (import, _) = lost.run("import", &file, json!({ "dataset": "stored", "key": "id" })).await;
    let (export, _) = lost.run_from(&json!({ "jobType": "export", "params": { "dataset": "stored" } })).await;
    let paused = paused(&lost, &many, "paused").await;
    let request = json!({ "jobType": "transform", "fileGuid": many, "maxConcurrency": 1, "params": { "mapping": [] } });
    let active = running(&lost, &request).await;
    // A table is restored to one moment. Here it is read row by row, so nothing may move.
    lost.deliver_to("ProcessItemsFunctionName", false).await;
    lost.deliver_to("SplitJobFunctionName", false).await;
    let backup = lost.back_up().await;
    assert!(lost.job(&active).await["finishedAt"].is_null(), "it ended before the backup");
    lost.lose().await;

    lost.restore(&backup, RESTORED).await;
    let attached = [("AttachedTables", RESTORED), ("AttachedBucket", RESTORED)];
    let stack = LocalStack::up(&options(folder, &[&parameters[..], &attached].concat())).await;
    assert_eq!((stack.output("JobsTable"), stack.output("Bucket")), ("restored-jobs", RESTORED));
    let of = |job: &String, verdict: &str| (job.clone(), verdict.to_owned());
    let mut expected = vec![of(&partial, "proved"), of(&import, "proved"), of(&export, "proved")];
    expected.extend([of(&paused, "active"), of(&active, "active")]);
    expected.sort();
    assert_eq!(verdicts(&stack).await, expected);

    stack.act(&paused, "resume").await;
    let corrected = stack.upload("text/csv", "id,amount,row\n1400,1400,1400\n10,10,10\n").await;
    accepted(stack.post(&format!("/api/jobs/{partial}/redrive")).json(&json!({ "fileGuid": corrected }))).await;
    Expected { attempt: 2, ..Expected::completed(partial, (ROWS - 1, 1)) }.ends(&stack).await;
    for job in [paused, active] {
        Expected::completed(job, (MANY_ROWS, 0)).ends(&stack).await;
    }
    assert_eq!(stack.records("paused").await.len() as u64, MANY_ROWS);
    stack.notify_inbox().await;
    stack
        .drop_file(
            "inbox/validate/file.csv",
            files::plain_csv(10),
            &[("rowmill-request", r#"{"metadata": {"mark": "dropped"}}"#)],
        )
        .await;
    let dropped = stack.jobs_marked("dropped", 1).await.remove(0);
    stack.ended_with_sweeps(dropped["jobGuid"].as_str().expect("a guid")).await;
    let verdicts = verdicts(&stack).await;
    assert!(verdicts.len() == 6 && verdicts.iter().all(|(_, verdict)| verdict == "proved"), "{verdicts:?}");
    damage(&stack, &import, "tally#1#00000000", "failed", 1).await;
    let ran = audit_all(&stack).await;
    assert!(ran.code == Some(1) && ran.err.contains("Audited jobs: 5 proved, 1 refuted"), "{ran:?}");
}
