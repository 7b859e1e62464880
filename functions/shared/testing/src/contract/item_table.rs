//! The contract of [`ItemTable`].

use futures::future::join_all;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::run_checks;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::records::{RecordVersion, Upserted, Writer};
use rowmill_core::ports::{ItemTable, PortError, TableItem};

/// An application that uses the table itself.
#[allow(async_fn_in_trait, reason = "only tests implement it")]
pub trait Application {
    /// Stores an item, as the application writes it.
    async fn store(&self, attributes: Map<String, Value>);

    /// The items without their versions, in the order of their keys.
    async fn items(&self) -> Vec<Map<String, Value>>;
}

/// Checks an [`ItemTable`] with the key `id`, a text, and the sort key `n`, a number.
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn item_table<S: ItemTable + Application>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        an_item_reads_back_with_the_types_of_its_attributes,
        the_later_version_replaces_the_whole_item_in_any_order,
        concurrent_puts_leave_the_latest_version,
        what_the_application_has_written_is_replaced,
        a_refused_item_does_not_fail_the_others,
    );
}

fn item(job: u8, row: u64, attributes: &Value) -> TableItem {
    let by =
        Writer { job_created_ms: 1_750_000_000_000 + i64::from(job), job_guid: JobGuid(Uuid::from_u128(job.into())) };
    TableItem { version: RecordVersion { by, row }, attributes: fields(attributes) }
}

fn fields(attributes: &Value) -> Map<String, Value> {
    attributes.as_object().cloned().expect("an object")
}

async fn put(table: &impl ItemTable, items: &[TableItem]) -> Vec<Upserted> {
    table.put(items).await.into_iter().map(|result| result.expect("settled")).collect()
}

async fn an_item_reads_back_with_the_types_of_its_attributes(table: &(impl ItemTable + Application)) {
    let number = serde_json::from_str::<Value>("-0.1234567890123456789012345678901234567").expect("a number");
    let attributes = json!({ "id": "a", "n": 1, "exact": number, "list": [1, "ä", null], "map": {"b": true}, "none": null, "empty": "" });
    assert_eq!(put(table, &[item(1, 1, &attributes)]).await, [Upserted::Written]);
    assert_eq!(table.items().await, [fields(&attributes)]);
}

async fn the_later_version_replaces_the_whole_item_in_any_order(table: &(impl ItemTable + Application)) {
    let of = |job: u8, row: u64, n: u64| item(job, row, &json!({ "id": "a", "n": n, format!("of{job}"): row }));
    assert_eq!(put(table, &[of(1, 7, 1), of(2, 1, 2)]).await, [Upserted::Written; 2]);
    assert_eq!(put(table, &[of(2, 1, 1), of(1, 9, 2)]).await, [Upserted::Written, Upserted::Superseded]);
    assert_eq!(put(table, &[of(2, 1, 1), of(2, 2, 2)]).await, [Upserted::Superseded, Upserted::Written]);
    assert_eq!(table.items().await, [of(2, 1, 1).attributes, of(2, 2, 2).attributes], "none of job 1 is left");
}

async fn concurrent_puts_leave_the_latest_version(table: &(impl ItemTable + Application)) {
    let items: Vec<TableItem> = (0..20).map(|row| item(1, row, &json!({ "id": "a", "n": 1, "row": row }))).collect();
    join_all(items.iter().rev().map(|item| put(table, std::slice::from_ref(item)))).await;
    assert_eq!(table.items().await, [items[19].attributes.clone()]);
    put(table, &items).await;
    assert_eq!(table.items().await, [items[19].attributes.clone()]);
}

async fn what_the_application_has_written_is_replaced(table: &(impl ItemTable + Application)) {
    table.store(fields(&json!({ "id": "a", "n": 1, "own": true }))).await;
    table.store(fields(&json!({ "id": "b", "n": 1, "own": true }))).await;
    let new = json!({ "id": "a", "n": 1, "new": true });
    assert_eq!(put(table, &[item(1, 1, &new)]).await, [Upserted::Written]);
    assert_eq!(table.items().await, [fields(&new), fields(&json!({ "id": "b", "n": 1, "own": true }))]);
}

async fn a_refused_item_does_not_fail_the_others(table: &(impl ItemTable + Application)) {
    let good = json!({ "id": "a", "n": 1 });
    let rows = [json!({ "id": "x", "n": "1" }), good.clone(), json!({ "id": 7, "n": 1 }), json!({ "id": "x" })];
    let rows: Vec<TableItem> = rows.iter().map(|row| item(1, 1, row)).collect();
    let results = table.put(&rows).await;
    assert!(matches!(results[1], Ok(Upserted::Written)), "{results:?}");
    for place in [0, 2, 3] {
        assert!(matches!(results[place], Err(PortError::Invalid { .. })), "{results:?}");
    }
    assert_eq!(table.items().await, [fields(&good)]);
    assert!(table.put(&[]).await.is_empty());
}
