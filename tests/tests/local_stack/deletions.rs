//! Jobs, uploads and datasets are deleted, and nothing of them is left.

use acceptance::local_stack::{LocalStack, answer, refused, until};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::redrives::file_with_bad_rows;
use crate::stack::on_the_stack;

async fn delete(stack: &LocalStack, path: &str) {
    let deleted = stack.call(Method::DELETE, path).send().await;
    assert_eq!((deleted.status, deleted.body.len()), (StatusCode::NO_CONTENT, 0), "{path}");
}

#[test]
fn a_deleted_job_is_gone_at_once_and_erased_later() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", file_with_bad_rows()).await;
        let (job, _) = stack.run("validate", &file, json!({})).await;
        let (by_command, _) = stack.run("validate", &file, json!({})).await;
        let (other, _) = stack.run("validate", &file, json!({})).await;
        let request = json!({ "jobType": "validate", "fileGuid": file, "keepSeconds": 60 });
        let (kept, ended) = stack.run_from(&request).await;
        let time = |name: &str| ended[name].as_str().expect("a time").parse::<jiff::Timestamp>().expect("a time");
        assert_eq!(time("expiresAt").duration_since(time("finishedAt")).as_secs(), 60);
        let objects = async |job: &String| stack.keys_below(&format!("results/{job}/")).await;
        assert!(!objects(&job).await.is_empty() && stack.job_rows(&job).await.len() > 3);
        let before = (objects(&other).await, stack.job_rows(&other).await.len());

        let path = format!("/api/jobs/{job}");
        delete(stack, &path).await;
        let ran = stack.runs(&["delete", "job", &by_command]).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);
        for request in [
            stack.get(&path),
            stack.get(&format!("{path}/results")),
            stack.get(&format!("{path}/request")),
            stack.post(&format!("{path}/redrive")),
            stack.call(Method::DELETE, &path),
        ] {
            refused(request, StatusCode::NOT_FOUND, "not_found").await;
        }
        let (_, listed) = answer(stack.get("/api/jobs?limit=100")).await;
        assert!(!listed.to_string().contains(&job), "it is not listed");
        for job in [job, by_command, kept] {
            until("rows or objects are left", async || {
                stack.job_rows(&job).await.is_empty() && objects(&job).await.is_empty()
            })
            .await;
        }
        assert_eq!((objects(&other).await, stack.job_rows(&other).await.len()), before);
        assert_eq!(stack.job(&other).await["status"], "completed");
    });
}

#[test]
fn an_active_job_is_not_deleted_and_one_without_its_file_ends() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", acceptance::files::plain_csv(10_000)).await;
        let params = json!({ "dataset": "without-its-file", "key": "id" });
        let job = json!({ "jobType": "import", "fileGuid": file, "params": params, "maxConcurrency": 1 });
        let job = stack.create_from(&job).await;
        stack.act(&job, "pause").await;
        refused(stack.call(Method::DELETE, &format!("/api/jobs/{job}")), StatusCode::CONFLICT, "job_active").await;
        delete(stack, &format!("/api/uploads/{file}")).await;
        refused(stack.get(&format!("/api/uploads/{file}")), StatusCode::NOT_FOUND, "not_found").await;
        assert!(stack.keys_below(&format!("uploads/{file}")).await.is_empty());
        stack.act(&job, "resume").await;
        let ended = stack.ended_with_sweeps(&job).await;
        assert!(ended["status"] == "completed" || ended["error"]["code"] == "source_changed", "{ended}");
        let again = stack.post("/api/jobs").json(&json!({ "jobType": "validate", "fileGuid": file }));
        refused(again, StatusCode::UNPROCESSABLE_ENTITY, "unknown_upload").await;
    });
}

#[test]
fn a_dataset_is_deleted_by_a_job_that_counts_its_records() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", acceptance::files::plain_csv(3_000)).await;
        let params = json!({ "dataset": "deleted", "key": "id" });
        let (import, _) = stack.run("import", &file, params.clone()).await;
        stack.run("import", &file, params).await;
        assert_eq!(stack.records("deleted").await.len(), 3_000);
        let ran = stack.runs(&["delete", "dataset", "deleted", "--yes", "--json"]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let job: Value = serde_json::from_str(ran.out.lines().last().expect("a line")).expect("a job");
        assert_eq!((&job["jobType"], &job["itemsSucceeded"]), (&json!("delete"), &json!(3_000)), "{job}");
        let guid = job["jobGuid"].as_str().expect("a guid");
        let audit = stack.runs(&["audit", guid]).await;
        assert!(audit.code == Some(0) && audit.out.starts_with("Audit of attempt 1: proved\n"), "{audit:?}");
        assert!(stack.records("deleted").await.is_empty());
        let (_, listed) = answer(stack.get("/api/datasets?limit=1000")).await;
        assert!(!listed.to_string().contains("\"deleted\""), "{listed}");
        // There is nothing left to undo, and nothing to bring back.
        let (_, undo) = answer(stack.post(&format!("/api/jobs/{import}/undo"))).await;
        let undo = undo["jobGuid"].as_str().expect("a guid").to_owned();
        assert_eq!(stack.ended(&undo).await["itemCount"], 0);
        assert!(stack.records("deleted").await.is_empty());
        refused(stack.post(&format!("/api/jobs/{guid}/undo")), StatusCode::CONFLICT, "not_undoable").await;
        refused(stack.call(Method::DELETE, "/api/datasets/never-written"), StatusCode::NOT_FOUND, "not_found").await;
        let by_type = stack.post("/api/jobs").json(&json!({ "jobType": "delete", "params": { "dataset": "deleted" } }));
        refused(by_type, StatusCode::UNPROCESSABLE_ENTITY, "invalid_params").await;
    });
}
