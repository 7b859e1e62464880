//! Jobs made to take all the time or all the memory of the functions that they share with others.

use acceptance::files;
use acceptance::local_stack::{refused, until};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};

use crate::stack::on_the_stack;

/// A row of this many nested objects.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({ "a": inner }))
}

#[test]
fn a_row_that_holds_its_process_stops_its_own_job_and_the_jobs_beside_it_complete() {
    on_the_stack(async |stack| {
        // Each level of the row is checked twice for each time that the level above it is checked.
        let schema = json!({ "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
        let rows = [json!({ "a": 1 }), json!({ "b": 2 }), nested(60), json!({ "a": 3 })];
        let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let bomb = stack.upload("application/x-ndjson", rows).await;
        let file = stack.upload("text/csv", files::plain_csv(10_000)).await;
        let (held, neighbour) = tokio::join!(
            stack.create("validate", &bomb, json!({ "schema": schema })),
            stack.create("import", &file, json!({ "dataset": "beside-a-bomb", "key": "id" })),
        );
        let (held_end, neighbour_end) = tokio::join!(stack.ended(&held), stack.ended(&neighbour));
        assert_eq!((&held_end["status"], &held_end["error"]["code"]), (&json!("failed"), &json!("item_timeout")));
        assert_eq!(held_end["error"]["row"], 3, "{held_end}");
        assert_eq!((&held_end["itemProgress"], &held_end["itemCount"]), (&json!(4), &json!(4)), "{held_end}");
        let message = held_end["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("row 3") && message.contains("3 s"), "{message}");
        assert_eq!(
            (&neighbour_end["outcome"], &neighbour_end["itemsSucceeded"]),
            (&json!("succeeded"), &json!(10_000))
        );
        assert_eq!(stack.records("beside-a-bomb").await.len(), 10_000);
        assert!(stack.dead_letters(&held).await.is_empty() && stack.dead_letters(&neighbour).await.is_empty());
        // The thread cannot be ended, so its process has ended, after its answer.
        let ends = [held.as_str(), "the process ends"];
        until("the process goes on", async || stack.has_logged("process-items", &ends)).await;
    });
}

#[test]
fn a_mapping_that_doubles_a_field_again_and_again_fails_its_rows_within_the_memory_of_the_function() {
    on_the_stack(async |stack| {
        let doubled = vec![json!({ "set": "a", "template": "{a}{a}" }); 31];
        let file = stack.upload("text/csv", "a\nx\n\"\"\n").await;
        let (job, ended) = stack.run("transform", &file, json!({ "mapping": doubled })).await;
        assert_eq!(
            (&ended["status"], &ended["itemsSucceeded"], &ended["itemsFailed"]),
            (&json!("completed"), &json!(1), &json!(1))
        );
        let failed = stack.failed_items(&job).await;
        assert_eq!((&failed[0]["row"], &failed[0]["code"]), (&json!(1), &json!("row_too_large")), "{failed:?}");
        let processes = stack.processes_of("process-items");
        let limits = processes.iter().filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/limits")).ok());
        let lines: Vec<String> = limits
            .flat_map(|limits| {
                limits.lines().filter(|line| line.starts_with("Max data size")).map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        let bytes = ((1024 + 64) << 20).to_string();
        assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(&bytes)), "{lines:?}");
    });
}

#[test]
fn a_schema_that_takes_much_time_or_memory_is_refused_when_the_job_is_created() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", "a\n1\n").await;
        let patterns: Map<String, Value> =
            (0..100).map(|n| (format!("c{n}"), json!({ "pattern": format!(r"\p{{L}}{{100}}{n}") }))).collect();
        let level = |n: usize| json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", n + 1) }, { "$ref": format!("#/$defs/d{}", n + 1) }] });
        let mut defs: Map<String, Value> = (0..15).map(|n| (format!("d{n}"), level(n))).collect();
        defs.insert("d15".into(), json!({}));
        for (schema, what) in [
            (json!({ "properties": patterns }), "compiled patterns"),
            (json!({ "$ref": "#/$defs/d0", "$defs": defs }), "subschemas once each reference"),
        ] {
            let body = json!({ "jobType": "validate", "fileGuid": file, "params": { "schema": schema } });
            let (problem, _) =
                refused(stack.post("/api/jobs").json(&body), StatusCode::UNPROCESSABLE_ENTITY, "invalid_params").await;
            assert_eq!(problem["field"], "params.schema");
            assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(what)), "{problem}");
        }
    });
}
