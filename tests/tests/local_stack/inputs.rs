//! Jobs without a file: items in the request, and a job type without input.

use acceptance::local_stack::{accepted, answer, refused};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::results::result;
use crate::stack::on_the_stack;

#[test]
fn a_thousand_items_of_a_request_are_a_job_with_results_and_a_redrive() {
    on_the_stack(async |stack| {
        // Of almost the longest text.
        let item = |id: u64| json!({ "id": if id.is_multiple_of(400) { json!("none") } else { json!(id) }, "note": "\"".repeat(500) });
        let items: Vec<Value> = (1..=1000).map(item).collect();
        let schema = json!({ "properties": { "id": { "type": "integer" } } });
        let params = json!({ "dataset": "inline", "key": "id", "schema": schema });
        let body = json!({ "jobType": "import", "items": items, "params": params });
        let (job, ended) = stack.run_from(&body).await;
        assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(998), &json!(2)), "{ended}");
        assert_eq!(ended["fileGuid"], Value::Null);
        let rows: Vec<Value> = stack.failed_items(&job).await.iter().map(|item| item["row"].clone()).collect();
        assert_eq!(rows, [400, 800]);
        assert_eq!(stack.records("inline").await.len(), 998);

        let corrected = "{\"row\": 400, \"record\": {\"id\": 400}}\n{\"row\": 800, \"record\": {\"id\": 800}}\n";
        let corrected = stack.upload("application/x-ndjson", corrected).await;
        let redrive = stack.post(&format!("/api/jobs/{job}/redrive")).json(&json!({ "fileGuid": corrected }));
        accepted(redrive).await;
        let ended = stack.ended(&job).await;
        assert_eq!((&ended["outcome"], &ended["itemsSucceeded"]), (&json!("succeeded"), &json!(1000)), "{ended}");
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
