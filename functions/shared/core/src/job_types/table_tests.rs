use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::test_spec::{job_guid, spec};
use super::{TableKey, TableType};
use crate::in_memory::InMemoryItemTable;
use crate::ports::processor::{Item, ItemOutcome, JobType};
use crate::text::{Format, Record};

fn orders(prefix: &str) -> (Arc<InMemoryItemTable>, TableType) {
    let table = Arc::new(InMemoryItemTable::default());
    let key = TableKey { attributes: vec!["id".into(), "n".into()], prefix: prefix.into() };
    (Arc::clone(&table), TableType { name: "orders".into(), key, table: Some(table) })
}

fn items(rows: &[Value]) -> Vec<Item> {
    let item = |(row, record): (u64, &Value)| Item { job_guid: job_guid(), row, record: Record::Json(record.clone()) };
    (1..).zip(rows).map(item).collect()
}

/// What becomes of these rows: `ok`, or the code and the column of the error.
async fn outcomes(job_type: &TableType, params: &Value, rows: &[Value]) -> Vec<String> {
    let processor = job_type.prepare(&spec("orders", Format::Jsonl, &[], params)).unwrap();
    let outcome = |result: Result<ItemOutcome, _>| match result {
        Ok(ItemOutcome::Succeeded) => "ok".to_owned(),
        Ok(other) => format!("{other:?}"),
        Err(crate::ports::processor::ItemError { code, column, .. }) => {
            column.map_or(code.clone(), |column| format!("{code} {column}"))
        }
    };
    processor.process_batch(&items(rows)).await.into_iter().map(outcome).collect()
}

#[tokio::test]
async fn each_row_with_a_key_becomes_an_item() {
    let (table, orders) = orders("");
    let rows = [
        json!({ "id": "a", "n": 1, "more": [true, null] }),
        json!({ "id": "", "n": 1 }),
        json!({ "id": "a", "n": null }),
        json!({ "n": 1 }),
        json!({ "id": "a", "n": [1] }),
        json!({ "id": "a", "n": "1" }),
        json!({ "id": "a", "n": 2, "rowmillVersion": "z" }),
        json!({ "id": "a", "n": "two" }),
        json!({ "id": "b", "n": 2 }),
    ];
    let found =
        outcomes(&orders, &json!({ "schema": { "properties": { "n": { "not": { "const": "two" } } } } }), &rows).await;
    let expected = [
        "ok",
        "missing_key id",
        "missing_key n",
        "missing_key id",
        "invalid_key n",
        "record_refused",
        "field_exists rowmillVersion",
        "schema_violation n",
        "ok",
    ];
    assert_eq!(found, expected);
    let stored: Vec<Value> = table.items().into_iter().map(Value::Object).collect();
    assert_eq!(stored, [rows[0].clone(), rows[8].clone()]);
}

#[tokio::test]
async fn a_caller_writes_only_keys_with_its_prefix() {
    let (table, orders) = orders("{owner}#");
    let owner = spec("orders", Format::Jsonl, &[], &json!({})).owner;
    let own = json!({ "id": format!("{owner}#1"), "n": 1 });
    let rows = [
        own.clone(),
        json!({ "id": "somebody#1", "n": 1 }),
        json!({ "id": owner.as_str(), "n": 1 }),
        json!({ "id": 7, "n": 1 }),
    ];
    let found = outcomes(&orders, &json!({}), &rows).await;
    assert_eq!(found, ["ok", "key_not_allowed id", "key_not_allowed id", "key_not_allowed id"]);
    assert_eq!(table.items().into_iter().map(Value::Object).collect::<Vec<_>>(), [own]);
}

#[tokio::test]
async fn a_dry_run_checks_the_rows_and_writes_nothing() {
    let (table, orders) = orders("");
    let processor = orders.prepare(&spec("orders", Format::Jsonl, &[], &json!({ "dryRun": true }))).unwrap();
    let rows = items(&[json!({ "id": "a", "n": 1 }), json!({ "id": "a" })]);
    assert_eq!(processor.dry_run(&rows[0]).await, Ok(ItemOutcome::Succeeded));
    assert_eq!(processor.dry_run(&rows[1]).await.unwrap_err().code, "missing_key");
    assert_eq!(table.items(), Vec::<Map<String, Value>>::new());
}

#[test]
fn a_file_that_has_no_columns_for_the_key_is_refused() {
    let (_, orders) = orders("");
    let refused = |columns: &[&str]| orders.prepare(&spec("orders", Format::Csv, columns, &json!({}))).err();
    assert!(
        refused(&["id", "name"]).unwrap().message.contains("does not have: `n`. The file has the columns `id`, `name`")
    );
    assert!(refused(&["id", "n", "rowmillVersion"]).unwrap().message.contains("Rename the column"));
    assert_eq!(refused(&["n", "id", "name"]), None);
    assert_eq!(refused(&[]), None, "an empty file");
}
