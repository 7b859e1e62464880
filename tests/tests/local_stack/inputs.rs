//! Jobs that read no rows of a file: items in the request, and job types that take nothing or files as they are. And
//! where results go.

use acceptance::files::gzip;
use acceptance::local_stack::{LocalStack, accepted, answer, refused, until};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::many_files::BUCKET;
use crate::results::{result, results};
use crate::stack::on_the_stack;

/// The external bucket in which the stack may store results.
pub const REPORTS: &str = "rowmill-reports";

#[test]
fn a_thousand_items_of_a_request_are_a_job_with_results_and_a_redrive() {
    on_the_stack(async |stack| {
        // Of almost the longest text.
        let item = |id: u64| json!({ "id": if id.is_multiple_of(400) { json!("none") } else { json!(id) }, "note": "\"".repeat(500) });
        let items: Vec<Value> = (1..=1000).map(item).collect();
        let schema = json!({ "properties": { "id": { "type": "integer" } } });
        let params = json!({ "dataset": "inline", "key": "id", "schema": schema, "outputs": true });
        let body = json!({ "jobType": "import", "items": items, "params": params });
        let (job, ended) = stack.run_from(&body).await;
        assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(998), &json!(2)), "{ended}");
        assert_eq!(ended["fileGuid"], Value::Null);
        let rows: Vec<Value> = stack.failed_items(&job).await.iter().map(|item| item["row"].clone()).collect();
        assert_eq!(rows, [400, 800]);
        assert_eq!(stack.records("inline").await.len(), 998);
        let succeeded = stack.items(&job, "succeeded", 300).await;
        let expected = |rows: &mut dyn Iterator<Item = u64>| -> Vec<Value> {
            rows.map(|row| json!({ "row": row, "key": row.to_string() })).collect()
        };
        let output = |item: &Value| serde_json::from_str(item["output"].as_str().expect("an output")).expect("JSON");
        let rest = &mut (1..=1000).filter(|row| row % 400 != 0);
        assert_eq!(succeeded.iter().map(output).collect::<Vec<Value>>(), expected(rest));

        let corrected = "{\"row\": 400, \"record\": {\"id\": 400}}\n{\"row\": 800, \"record\": {\"id\": 800}}\n";
        let corrected = stack.upload("application/x-ndjson", corrected).await;
        let redrive = stack.post(&format!("/api/jobs/{job}/redrive")).json(&json!({ "fileGuid": corrected }));
        accepted(redrive).await;
        let ended = stack.ended(&job).await;
        assert_eq!((&ended["outcome"], &ended["itemsSucceeded"]), (&json!("succeeded"), &json!(1000)), "{ended}");
        let succeeded = stack.items(&job, "succeeded", 300).await;
        assert_eq!(succeeded.iter().map(output).collect::<Vec<Value>>(), expected(&mut (1..=1000)));
        let outputs = result(stack, &job, "outputs.jsonl").await;
        let outputs: Vec<Value> = outputs.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(outputs, expected(&mut (1..=1000)));
        let (_, audit) = answer(stack.get(&format!("/api/jobs/{job}/audit"))).await;
        assert_eq!(audit["verdict"], "proved", "{audit}");
    });
}

/// A function that is called once per job.
const REPORT: &str = "def handler(event, context):\n    outputs = [{'itemIdentifier': item['itemIdentifier'], 'output': \
                      {'row': item['row'], 'record': item['record'], 'params': event['params']}} for item in event['items']]\n    \
                      return {'batchItemFailures': [], 'outputs': outputs}\n";

#[test]
fn a_job_type_without_input_calls_its_target_once() {
    on_the_stack(async |stack| {
        stack.create_python_function("report", REPORT).await;
        let (job, ended) = stack.run_from(&json!({ "jobType": "report", "params": { "month": 7 } })).await;
        assert_eq!((&ended["outcome"], &ended["itemCount"]), (&json!("succeeded"), &json!(1)), "{ended}");
        let output: Value = serde_json::from_str(&result(stack, &job, "outputs.jsonl").await).expect("one line");
        assert_eq!(output, json!({ "row": 1, "record": {}, "params": { "month": 7 } }));

        let file = stack.upload("text/csv", "a\n1\n").await;
        let with_file = stack.post("/api/jobs").json(&json!({ "jobType": "report", "fileGuid": file }));
        let (problem, _) = refused(with_file, StatusCode::UNPROCESSABLE_ENTITY, "invalid_request").await;
        assert_eq!(problem["field"], "fileGuid");
        let (_, config) = answer(stack.get("/api/client-config")).await;
        assert_eq!(config["jobTypesWithoutFile"], json!(["export", "report"]));
    });
}

/// Reads each file by its link, and says whether its entity tag is the one of its bytes.
const MERGE: &str = "import hashlib, urllib.request\n\ndef same(file):\n    with urllib.request.urlopen(file['url']) as answer:\n        \
                     return file['etag'].strip('\"') == hashlib.md5(answer.read()).hexdigest()\n\ndef handler(event, context):\n    \
                     (item,) = event['items']\n    files = [[file['name'], same(file)] for file in item['record']['files']]\n    \
                     return {'batchItemFailures': [], 'outputs': [{'itemIdentifier': item['itemIdentifier'], 'output': {'files': files}}]}\n";

#[test]
fn a_job_type_that_takes_files_gets_links_to_all_of_them_at_once() {
    on_the_stack(async |stack| {
        stack.create_python_function("merge", MERGE).await;
        let merged = async |source: Value| {
            let (job, ended) = stack.run_from(&json!({ "jobType": "merge", "source": source })).await;
            assert_eq!((&ended["outcome"], &ended["itemCount"]), (&json!("succeeded"), &json!(1)), "{ended}");
            serde_json::from_str::<Value>(&result(stack, &job, "outputs.jsonl").await).expect("one line")
        };
        let uploads = [stack.upload("image/png", b"\x89PNG".to_vec()).await, stack.upload("text/csv", "a\n1\n").await];
        assert_eq!(
            merged(json!({ "files": uploads })).await,
            json!({ "files": uploads.map(|guid| json!([guid, true])) })
        );

        for name in ["b c+d.bin", "a.bin"] {
            stack.lay_down(BUCKET, &format!("local/merge/{name}"), name).await;
        }
        let objects = json!({ "s3": { "bucket": BUCKET, "prefix": "local/merge/" } });
        let listed = json!([["local/merge/a.bin", true], ["local/merge/b c+d.bin", true]]);
        assert_eq!(merged(objects).await, json!({ "files": listed }));

        let request = json!({ "metadata": { "mark": "merge" } }).to_string();
        stack.drop_file("inbox/merge/dropped.bin", "dropped", &[("rowmill-request", &request)]).await;
        let dropped = stack.jobs_marked("merge", 1).await[0]["jobGuid"].as_str().expect("a guid").to_owned();
        assert_eq!(stack.ended(&dropped).await["outcome"], "succeeded");
        let output: Value = serde_json::from_str(&result(stack, &dropped, "outputs.jsonl").await).expect("one line");
        assert_eq!(output, json!({ "files": [["dropped.bin", true]] }));
    });
}

/// The state of the copy of a job's results.
async fn copy_of(stack: &LocalStack, job: &str) -> Value {
    answer(stack.get(&format!("/api/jobs/{job}/results"))).await.1["copy"].clone()
}

#[test]
fn results_are_copied_into_a_bucket_of_others() {
    on_the_stack(async |stack| {
        stack.make_bucket(REPORTS).await;
        // The failed rows take two parts.
        let row = "x".repeat(300);
        let rows = format!("a,b\n{}", format!("{row}\n").repeat(35_000));
        let file = stack.upload("application/octet-stream", gzip(rows.as_bytes())).await;
        let to = json!({ "bucket": REPORTS, "prefix": "local/all/" });
        let request =
            json!({ "jobType": "validate", "fileGuid": file, "params": { "format": "csv" }, "resultsTo": to });
        let (job, ended) = stack.run_from(&request).await;
        assert_eq!(ended["itemsFailed"], 35_000, "{ended}");
        until("the results are not copied", async || copy_of(stack, &job).await["state"] == "stored").await;
        let place = format!("local/all/validate-{job}/1/");
        assert_eq!(copy_of(stack, &job).await["to"], format!("s3://{REPORTS}/{place}"));
        let (shown, files) = results(stack, &job).await;
        for (name, bytes) in files {
            assert!(bytes.len() > 8 * 1024 * 1024, "{name} has {} bytes", bytes.len());
            assert!(stack.object_in(REPORTS, &format!("{place}{name}")).await == bytes, "{name}");
        }
        let manifest = stack.object_in(REPORTS, &format!("{place}manifest.json")).await;
        assert_eq!(json!(manifest.len()), shown["manifest"]["bytes"]);

        for (to, field) in [
            (json!({ "bucket": "rowmill-inputs", "prefix": "local/" }), "resultsTo.bucket"),
            (json!({ "bucket": REPORTS, "prefix": "another/" }), "resultsTo.prefix"),
        ] {
            let request = json!({ "jobType": "validate", "fileGuid": file, "resultsTo": to });
            let (problem, _) =
                refused(stack.post("/api/jobs").json(&request), StatusCode::UNPROCESSABLE_ENTITY, "invalid_request")
                    .await;
            assert_eq!(problem["field"], field, "{problem}");
        }
    });
}
