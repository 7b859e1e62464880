use std::sync::Arc;

use serde_json::{Value, json};

use super::test_spec::{self, job_guid};
use super::{Export, Transform};
use crate::model::spec::Spec;
use crate::ports::processor::{Item, ItemOutcome, ItemProcessor, JobType, ParamsError};
use crate::text::{Chunk, ChunkMode, Format, Record, read_items};

fn spec(format: Format, columns: &[&str], params: Value) -> Spec {
    test_spec::spec("transform", format, columns, &params)
}

fn refused(job_type: &dyn JobType, spec: &Spec) -> ParamsError {
    job_type.prepare(spec).err().expect("refused")
}

async fn outputs(processor: &Arc<dyn ItemProcessor>, records: Vec<Record>) -> Vec<String> {
    let job_guid = job_guid();
    let items: Vec<Item> = (1..).zip(records).map(|(row, record)| Item { job_guid, row, record }).collect();
    let outcomes = processor.process_batch(&items).await;
    let output = |outcome| match outcome {
        Ok(ItemOutcome::Output(output)) => output,
        other => format!("{other:?}"),
    };
    outcomes.into_iter().map(output).collect()
}

fn records(spec: &Spec, text: &str) -> Vec<Record> {
    let chunk = Chunk { offset: 0, length: text.len() as u64, first_row: 1, items: 1, mode: ChunkMode::Items };
    let columns = spec.head.columns.clone().into();
    read_items(&chunk, text.as_bytes(), &spec.head.dialect, &columns).map(|item| item.record.unwrap()).collect()
}

#[tokio::test]
async fn steps_run_in_the_order_of_the_mapping() {
    let mapping = json!([
        { "rename": "first", "to": "given" },
        { "set": "name", "template": "{given} {{{last}}}" },
        { "drop": "last" },
        { "set": "source", "value": "crm, \"old\"" },
        { "set": "given", "value": 7 },
    ]);
    let spec = spec(Format::Csv, &["first", "last", "age"], json!({ "mapping": mapping }));
    let processor = Transform.prepare(&spec).unwrap();
    let file = processor.output().unwrap();
    assert_eq!((file.name.as_str(), file.header.as_deref()), ("transformed.csv", Some("given,age,name,source")));
    let rows = outputs(&processor, records(&spec, "Ada,Lovelace,36\n\"B,\",\"\",\n")).await;
    let source = r#""crm, ""old""""#;
    assert_eq!(rows, [format!("7,36,Ada {{Lovelace}},{source}"), format!("7,,\"B, {{}}\",{source}")]);
}

#[tokio::test]
async fn rows_can_be_converted_between_csv_and_json_lines() {
    let to_json = spec(Format::Csv, &["a", "b"], json!({ "outputFormat": "jsonl", "columns": ["b"] }));
    let processor = Transform.prepare(&to_json).unwrap();
    assert_eq!(processor.output().unwrap().header, None);
    assert_eq!(outputs(&processor, records(&to_json, "1,x\n")).await, [r#"{"b":"x"}"#]);
    let params = json!({ "outputFormat": "csv", "columns": ["b", "a", "c"], "escapeFormulas": true });
    let to_csv = spec(Format::Jsonl, &[], params);
    let processor = Transform.prepare(&to_csv).unwrap();
    let rows = outputs(&processor, records(&to_csv, "{\"a\":[1],\"b\":\"=1+1\"}\n{\"c\":-1.5}\n")).await;
    assert_eq!(rows, ["'=1+1,[1],", ",,-1.5"]);
}

#[test]
fn the_error_for_an_invalid_mapping_names_the_step() {
    let refused = |params| refused(&Transform, &spec(Format::Csv, &["a", "b"], params));
    let of_step = |step| refused(json!({ "mapping": [{ "drop": "a" }, step] }));
    for step in [
        json!({ "drop": "a" }),
        json!({ "rename": "b" }),
        json!({ "rename": "x", "to": "y" }),
        json!({ "set": "c", "template": "{a}" }),
        json!({ "set": "c", "template": "{b" }),
        json!({ "set": "c", "template": "b}" }),
        json!({ "set": "c", "value": 1, "template": "x" }),
        json!("drop"),
    ] {
        assert_eq!(of_step(step.clone()).field, "params.mapping[1]", "{step}");
    }
    let renamed = refused(json!({ "mapping": [{ "rename": "a", "to": "b" }] }));
    assert!(renamed.message.contains("already"), "{renamed}");
    assert_eq!(refused(json!({ "mapping": {} })).field, "params.mapping");
    assert_eq!(refused(json!({ "outputFormat": "xml" })).field, "params.outputFormat");
    assert!(refused(json!({ "columns": ["a", "z"] })).message.contains('z'));
    let no_columns = Transform.prepare(&spec(Format::Jsonl, &[], json!({ "outputFormat": "csv" })));
    assert_eq!(no_columns.err().unwrap().field, "params.columns");
}

#[tokio::test]
async fn an_export_writes_the_selected_fields_of_the_records_that_pass_the_filter() {
    let records = || {
        let record = |key: &str, fields: Value| Record::Json(json!({ "key": key, "fields": fields }));
        vec![
            record("k1", json!({ "a": 1, "b": "x\"y", "nested": { "c": null } })),
            record("k2", json!({ "a": 20, "b": null })),
        ]
    };
    let all = Export.prepare(&spec(Format::Jsonl, &[], json!({ "dataset": "d", "compress": "gzip" }))).unwrap();
    let file = all.output().unwrap();
    assert_eq!((file.name.as_str(), file.gzip, file.header), ("d.jsonl.gz", true, None));
    let named_like_ours = Export.prepare(&spec(Format::Jsonl, &[], json!({ "dataset": "failed-rows" }))).unwrap();
    assert_eq!(named_like_ours.output().unwrap().name, "dataset-failed-rows.jsonl");
    let lines = outputs(&all, records()).await;
    let parsed: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(parsed, [json!({ "a": 1, "b": "x\"y", "nested": { "c": null } }), json!({ "a": 20, "b": null })]);
    let params = json!({
        "dataset": "d", "format": "csv", "columns": ["id", "b", "nested", "gone"], "keyColumn": "id",
        "filter": { "properties": { "a": { "maximum": 10 } } },
    });
    let chosen = Export.prepare(&spec(Format::Jsonl, &[], params)).unwrap();
    assert_eq!(chosen.output().unwrap().header.as_deref(), Some("id,b,nested,gone"));
    let rows = outputs(&chosen, records()).await;
    assert_eq!(rows, ["k1,\"x\"\"y\",\"{\"\"c\"\":null}\",", "Ok(Succeeded)"], "a filtered record has no row");
}

#[test]
fn an_export_with_invalid_params_is_refused() {
    let field = |params| refused(&Export, &spec(Format::Jsonl, &[], params)).field;
    assert_eq!(field(json!({})), "params.dataset");
    assert_eq!(field(json!({ "dataset": "d", "format": "csv" })), "params.columns");
    assert_eq!(field(json!({ "dataset": "d", "columns": [] })), "params.columns");
    assert_eq!(field(json!({ "dataset": "d", "columns": ["a", "a"] })), "params.columns");
    assert_eq!(field(json!({ "dataset": "d", "compress": "zip" })), "params.compress");
    assert_eq!(field(json!({ "dataset": "d", "filter": { "type": 7 } })), "params.filter");
    assert_eq!(field(json!({ "dataset": "d", "filter": { "city": "Rome" } })), "params.filter");
    assert_eq!(field(json!({ "dataset": "d", "keyColumn": 1 })), "params.keyColumn");
}

#[tokio::test]
async fn no_field_overwrites_another_field() {
    let mapping = json!({ "mapping": [{ "rename": "a", "to": "b" }] });
    let renamed = Transform.prepare(&spec(Format::Jsonl, &[], mapping)).unwrap();
    let found = outputs(&renamed, vec![Record::Json(json!({ "a": 1 })), Record::Json(json!({ "a": 1, "b": 2 }))]).await;
    assert_eq!(found[0], r#"{"b":1}"#);
    assert!(found[1].contains("field_exists"), "{found:?}");
    let keyed = Export.prepare(&spec(Format::Jsonl, &[], json!({ "dataset": "d", "keyColumn": "id" }))).unwrap();
    let record = |id: &str| Record::Json(json!({ "key": "k", "fields": { "id": id } }));
    let found = outputs(&keyed, vec![record("k"), record("other")]).await;
    assert_eq!(found[0], r#"{"id":"k"}"#);
    assert!(found[1].contains("field_exists"), "{found:?}");
    let refuse = |mapping| refused(&Transform, &spec(Format::Csv, &["a"], json!({ "mapping": mapping }))).field;
    assert_eq!(refuse(json!([{ "rename": "a", "to": "" }])), "params.mapping[0]");
    assert_eq!(refuse(json!([{ "drop": "a" }])), "params.mapping");
}
