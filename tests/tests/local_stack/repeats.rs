//! Jobs that are run again: the API gives the request, and the command sends it.

use acceptance::files;
use acceptance::local_stack::{LocalStack, answer, refused};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

async fn request_of(stack: &LocalStack, job: &str) -> Value {
    let (status, request) = answer(stack.get(&format!("/api/jobs/{job}/request"))).await;
    assert_eq!(status, StatusCode::OK, "{request}");
    request
}

async fn created(stack: &LocalStack, request: &Value) -> String {
    let (status, job) = answer(stack.post("/api/jobs").json(request)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{job}");
    job["jobGuid"].as_str().expect("a guid").to_owned()
}

#[test]
fn a_job_is_run_again_with_the_same_settings_and_input() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", "a,b\n1,2\n3\n4,5\n").await;
        let request = json!({
            "jobType": "transform", "fileGuid": file, "params": { "mapping": [{ "drop": "b" }], "outputFormat": "jsonl" },
            "tolerance": { "percent": 50.5 }, "maxConcurrency": 3, "priority": "low", "deadlineSeconds": 600,
            "metadata": { "fileName": "größe.csv" },
        });
        let first = created(stack, &request).await;
        assert_eq!(request_of(stack, &first).await, request, "also before it has ended");
        stack.ended(&first).await;

        let ran = stack.runs(&["again", &first, "--json"]).await;
        assert_eq!(ran.code, Some(3), "a row fails again: {ran:?}");
        let job: Value = serde_json::from_str(ran.out.lines().last().expect("a line")).expect("a job");
        let second = job["jobGuid"].as_str().expect("a guid");
        assert_ne!(second, first);
        for name in ["itemsSucceeded", "itemsFailed", "metadata", "priority", "maxConcurrency", "fileGuid", "jobType"] {
            assert_eq!(job[name], stack.job(&first).await[name], "{name}");
        }
        assert_eq!(request_of(stack, second).await, request);

        // Of a request with `after` and `dedupe` the rest is left.
        let waits = json!({ "jobType": "validate", "fileGuid": file, "after": first, "params": { "schema": { "required": ["a"] } } });
        let waits = created(stack, &waits).await;
        let bare = json!({ "jobType": "validate", "fileGuid": file, "params": { "schema": { "required": ["a"] } } });
        assert_eq!(request_of(stack, &waits).await, bare);

        // Items that came with the request, a result, and many files.
        let result = json!({ "jobType": "validate", "source": { "jobGuid": first, "file": "output" } });
        let files = json!({ "jobType": "validate", "source": { "files": [file] } });
        let items = json!({ "jobType": "validate", "items": [{ "a": 1, "größe": [1.50, null] }, { "a": "x\ny" }] });
        for request in [result, files, items] {
            let job = created(stack, &request).await;
            stack.ended(&job).await;
            assert_eq!(request_of(stack, &job).await, request);
            let again = created(stack, &request_of(stack, &job).await).await;
            let [ended, before] = [stack.ended(&again).await, stack.job(&job).await];
            assert_eq!(ended["itemsSucceeded"], before["itemsSucceeded"], "{request}");
        }
        // A job that waits for its files, with all settings: before and after they are found.
        let archive = files::zip(&[("a.csv", b"a,b\n1,2\n".to_vec())]);
        let file = stack.upload("application/zip", archive).await;
        let request = json!({
            "jobType": "validate", "fileGuid": file, "tolerance": { "count": 7 }, "priority": "low",
            "deadlineSeconds": 500, "startWithinSeconds": 400, "metadata": { "of": "archive" },
        });
        let job = created(stack, &request).await;
        stack.ended(&job).await;
        assert_eq!(request_of(stack, &job).await, request);

        // What a dry run has checked is done.
        let file = stack.upload("text/csv", "id,name\n1,Ada\n2,Alan\n").await;
        let params = json!({ "dataset": "for-real", "key": "id" });
        let real = json!({ "jobType": "import", "fileGuid": file, "params": params });
        let mut dry = real.clone();
        dry["params"]["dryRun"] = json!(true);
        let job = created(stack, &dry).await;
        stack.ended(&job).await;
        let (_, results) = answer(stack.get(&format!("/api/jobs/{job}/results"))).await;
        assert_eq!(results["changes"]["create"], 2, "{results}");
        assert_eq!(stack.records("for-real").await.len(), 0);
        assert_eq!(answer(stack.get(&format!("/api/jobs/{job}/request?dryRun=false"))).await.1, real);
        let ran = stack.runs(&["again", &job, "--for-real"]).await;
        assert_eq!((ran.code, stack.records("for-real").await.len()), (Some(0), 2), "{ran:?}");
        let ran = stack.runs(&["again", &job]).await;
        assert!(ran.out.contains("leave unchanged  2"), "{ran:?}");
        let wrong = stack.get(&format!("/api/jobs/{job}/request?dryRun=maybe"));
        refused(wrong, StatusCode::BAD_REQUEST, "invalid_query").await;

        let none = stack.get("/api/jobs/01a20467-9b8d-7a54-b7e0-a09dae80a33b/request");
        refused(none, StatusCode::NOT_FOUND, "not_found").await;
    });
}
