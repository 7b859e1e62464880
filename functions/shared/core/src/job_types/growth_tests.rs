//! Short params that ask for much memory.

use serde_json::{Value, json};

use super::growing_row::ROW_TOO_LARGE;
use super::test_spec::{job_guid, spec};
use super::{Export, Import, Transform};
use crate::ports::processor::{Item, ItemOutcome, JobType};
use crate::ports::{BatchCall, ItemBatch, OUTPUT_TOO_LARGE};
use crate::text::{Format, Record};

fn item(row: u64, record: Value) -> Item {
    Item { job_guid: job_guid(), row, record: Record::Json(record) }
}

fn transform(mapping: &Value) -> crate::model::spec::Spec {
    let mut spec = spec("transform", Format::Jsonl, &[], &json!({ "mapping": mapping }));
    spec.limits.max_record_bytes = 1_000;
    spec
}

#[tokio::test]
async fn a_row_that_a_mapping_doubles_again_and_again_fails_before_it_is_made() {
    let doubled = json!({ "set": "a", "template": "{a}{a}" });
    // 2^60 bytes, if they were made.
    let processor = Transform.prepare(&transform(&vec![doubled; 60].into())).unwrap();
    let error = processor.process(&item(1, json!({ "a": "x" }))).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.transient), (ROW_TOO_LARGE, false));
    assert!(error.message.contains("4000 bytes"), "{}", error.message);
}

#[tokio::test]
async fn a_row_that_many_fields_share_is_bounded_as_a_whole() {
    let fields = |count: usize| (0..count).map(|n| json!({ "set": format!("f{n}"), "template": "{a}" }));
    let with = async |count| {
        let processor = Transform.prepare(&transform(&fields(count).collect::<Vec<_>>().into())).unwrap();
        processor.process(&item(1, json!({ "a": "x".repeat(500) }))).await
    };
    assert!(matches!(with(6).await, Ok(ItemOutcome::Output(_))));
    assert_eq!(with(7).await.unwrap_err().code, ROW_TOO_LARGE, "500 bytes, eight times, and the names");
}

#[tokio::test]
async fn a_field_that_is_replaced_or_renamed_or_dropped_counts_once() {
    let long = "x".repeat(900);
    let steps = (0..20).flat_map(|n| {
        let (name, next) = (format!("a{n}"), format!("a{}", n + 1));
        [json!({ "rename": name, "to": next }), json!({ "set": "b", "value": long }), json!({ "drop": "b" })]
    });
    let processor = Transform.prepare(&transform(&steps.collect::<Vec<_>>().into())).unwrap();
    let output = processor.process(&item(1, json!({ "a0": "1" }))).await.unwrap();
    assert_eq!(output, ItemOutcome::Output(r#"{"a20":"1"}"#.into()));
}

#[tokio::test]
async fn a_text_counts_the_same_when_it_is_set_and_when_it_is_replaced() {
    // As JSON, each of these characters takes two bytes.
    let steps = vec![json!({ "set": "a", "value": "\n".repeat(900) }); 20];
    let processor = Transform.prepare(&transform(&steps.into())).unwrap();
    assert!(matches!(processor.process(&item(1, json!({ "a": "1" }))).await, Ok(ItemOutcome::Output(_))));
}

#[test]
fn a_mapping_has_a_limited_number_of_steps() {
    let steps = vec![json!({ "set": "a", "value": 1 }); 1_001];
    let error = Transform.prepare(&transform(&steps.into())).err().unwrap();
    assert_eq!((error.field.as_str(), error.message.contains("1000 steps")), ("params.mapping", true));
}

#[tokio::test]
async fn the_outputs_of_a_batch_are_not_held_beyond_the_limit_of_the_chunk() {
    let processor = Transform.prepare(&transform(&json!([]))).unwrap();
    let items = (1..=4).map(|row| item(row, json!({ "a": "x".repeat(92) }))).collect();
    let batch = ItemBatch { processor, items, call: BatchCall::Together, output_max_bytes: 250 };
    let results = batch.results().await;
    assert!(results[..2].iter().all(Result::is_ok), "two outputs of 100 bytes fit");
    assert!(results[2..].iter().all(|result| result.as_ref().is_err_and(|error| error.code == OUTPUT_TOO_LARGE)));
}

#[tokio::test]
async fn a_key_of_many_long_cells_is_refused_without_a_copy_of_each() {
    let params = |key: Vec<&str>| json!({ "dataset": "d", "key": key });
    let long = item(1, json!({ "a": "x".repeat(2_000) }));
    let import = |key| Import::new(None).prepare(&spec("import", Format::Jsonl, &[], &params(key)));
    let error = import(vec!["a"; 100]).unwrap().dry_run(&long).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.message.contains("2000 bytes")), ("key_too_long", true));
    assert_eq!(import(vec!["a"; 101]).err().unwrap().field, "params.key");
}

#[test]
fn a_processor_tells_what_its_schema_takes() {
    let held = |schema: Value| {
        let params = json!({ "dataset": "d", "filter": schema });
        Export.prepare(&spec("export", Format::Jsonl, &[], &params)).unwrap().held_bytes()
    };
    let with = |pattern: &str| held(json!({ "properties": { "a": { "pattern": pattern } } }));
    assert!(with(r"^\p{L}{50}$") > with("^a$") + 1_000_000, "a class of thousands of letters, fifty times");
}
