//! Jobs that import into a table of the application.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acceptance::world::World;
use async_trait::async_trait;
use rowmill_core::job_types::{NotUndoable, TableKey, TableType};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::records::Upserted;
use rowmill_core::ports::{ItemTable, PortError, PortResult, Queue, TableItem};
use rowmill_testing::in_memory::InMemoryItemTable;
use serde_json::{Value, json};

use crate::chunks_of;

/// A table whose every second answer is lost.
#[derive(Default)]
struct Table {
    items: InMemoryItemTable,
    puts: AtomicU64,
}

#[async_trait]
impl ItemTable for Table {
    async fn put(&self, items: &[TableItem]) -> Vec<PortResult<Upserted>> {
        let stored = self.items.put(items).await;
        if self.puts.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            return items
                .iter()
                .map(|_| Err(PortError::unavailable("putting an item", "the answer is lost")))
                .collect();
        }
        stored
    }
}

fn world() -> (World, Arc<Table>) {
    let table = Arc::new(Table::default());
    let key = TableKey { attributes: vec!["id".into(), "n".into()], prefix: String::new() };
    let orders = TableType { name: "orders".into(), key, table: Some(Arc::clone(&table) as _) };
    (World::with_job_type(chunks_of(3), |_| Some(Arc::new(orders))), table)
}

async fn create(world: &World, by: &str, keys: std::ops::RangeInclusive<u64>) -> JobGuid {
    world.clock.advance(Duration::from_secs(1));
    let rows: String = keys.map(|key| format!("k{key},{key},{by}\n")).collect();
    let file = world.store_csv(format!("id,n,by\n{rows}k7,none,{by}\n")).await;
    let schema = json!({ "properties": { "n": { "type": "integer" } } });
    world.create("orders", file, json!({ "schema": schema })).await.unwrap().job_guid
}

/// Who wrote each item.
fn writers(table: &Table) -> Vec<(u64, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut items: Vec<(u64, String)> =
        table.items.items().iter().map(|item| (item["n"].as_u64().unwrap(), text(&item["by"]))).collect();
    items.sort();
    items
}

#[tokio::test]
async fn the_later_job_wins_in_any_order_and_lost_answers_change_no_count() {
    let (world, table) = world();
    table.items.store(json!({ "id": "k5", "n": 5, "by": "application" }).as_object().cloned().unwrap());
    table.items.store(json!({ "id": "own", "n": 100, "by": "application" }).as_object().cloned().unwrap());
    let first = create(&world, "first", 1..=20).await;
    let messages = world.splits.take();
    let second = create(&world, "second", 11..=30).await;
    world.run().await;
    world.splits.send(&messages).await.unwrap();
    world.run().await;
    for job in [first, second] {
        let shown = world.show(job).await;
        assert_eq!((shown.items_succeeded, shown.items_failed, shown.item_count), (20, 1, 21), "{shown:?}");
        assert_eq!(shown.causes[0].name.code, "schema_violation");
    }
    let of = |by: &str, keys: std::ops::RangeInclusive<u64>| keys.map(|key| (key, by.to_owned())).collect::<Vec<_>>();
    assert_eq!(writers(&table), [of("first", 1..=10), of("second", 11..=30), of("application", 100..=100)].concat());
    assert!(table.puts.load(Ordering::SeqCst) > 20, "chunks were put again");

    let undone = world.creator.undo(&World::owner(), second).await;
    let Err(create_job::create::CreateJobError::NotUndoable(NotUndoable::WritesNone(name))) = undone else { panic!() };
    assert_eq!(name, "orders");
}
