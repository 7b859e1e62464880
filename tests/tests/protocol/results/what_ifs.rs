//! A dry run of an import tells exactly what the import does.

use std::collections::BTreeMap;

use acceptance::world::World;
use rowmill_core::model::changes::{Change, ChangedField, Changes, RowChange};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::records::DatasetRecord;
use serde_json::json;

use super::{TIMES, import, result, results, same_results_after_crashes};
use crate::chunks_of;

/// 60 rows as they were imported, 30 with another amount, 20 with another name and another amount, 15 new ones, three
/// that fail, and one key twice.
fn changed_file() -> Vec<u8> {
    let mut csv = String::from("id,name,amount\n");
    for id in 1..=125 {
        let (name, amount) = match id {
            61..=90 => (format!("name {id}"), id * 7 + 1),
            91..=110 => ("another".to_owned(), 0),
            _ => (format!("name {id}"), id * 7),
        };
        let id = if id > 110 { id + 1000 } else { id };
        csv += &format!("{id},{name},{amount}\n");
    }
    csv += "7\n7,\n8,,,\n9\n";
    csv += "1125,once more,1\n";
    csv.into_bytes()
}

async fn run(world: &World, dry_run: bool) -> JobGuid {
    let file = world.store("text/csv", changed_file()).await;
    let params = json!({ "dataset": "people", "key": "id", "dryRun": dry_run });
    world.create("import", file, params).await.unwrap().job_guid
}

fn by_key(records: Vec<DatasetRecord>) -> BTreeMap<String, DatasetRecord> {
    records.into_iter().map(|record| (record.key.clone(), record)).collect()
}

#[tokio::test]
async fn the_changes_of_a_dry_run_are_those_of_the_import() {
    let world = World::new(chunks_of(7));
    let base = (1..=200).map(|id| format!("{id},name {id},{}\n", id * 7)).collect::<String>();
    let file = world.store("text/csv", format!("id,name,amount\n{base}").into_bytes()).await;
    world.create("import", file, json!({ "dataset": "people", "key": "id" })).await.unwrap();
    world.run().await;
    let before = by_key(world.records.dataset("local/people"));

    let what_if = run(&world, true).await;
    world.run().await;
    assert_eq!(by_key(world.records.dataset("local/people")), before, "nothing is written");
    let (manifest, files) = results(&world, what_if).await;
    let changes = manifest.changes.expect("changes");
    assert_eq!(files.keys().map(String::as_str).collect::<Vec<_>>(), ["changes.jsonl", "failed-rows.csv"]);
    let lines: Vec<RowChange> = result(&world, what_if, "changes.jsonl")
        .await
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();

    let import = run(&world, false).await;
    world.run().await;
    assert_eq!(results(&world, import).await.0.changes, None);
    let after = by_key(world.records.dataset("local/people"));

    // Another count, of the two states of the dataset.
    let (mut create, mut update, mut unchanged, mut names) = (0, 0, 0, BTreeMap::<String, u64>::new());
    let written = after.values().filter(|record| record.version.by.job_guid == import);
    for record in written {
        match before.get(&record.key) {
            None => create += 1,
            Some(old) if old.fields == record.fields => unchanged += 1,
            Some(old) => {
                update += 1;
                for (name, value) in &record.fields {
                    *names.entry(name.clone()).or_default() += u64::from(old.fields.get(name) != Some(value));
                }
            }
        }
    }
    names.retain(|_, items| *items > 0);
    // Each row counts by itself, also the second one of a key.
    assert_eq!(changes.create, create + 1);
    assert_eq!((changes.update, changes.unchanged), (update, unchanged));
    let counted: BTreeMap<String, u64> = changes.fields.iter().map(|field| (field.name.clone(), field.items)).collect();
    assert_eq!((counted, changes.other_fields), (names, 0));
    assert_eq!((changes.update, changes.unchanged), (50, 60), "{changes:?}");
    assert_eq!(changes.fields[0], ChangedField { name: "amount".to_owned(), items: 50 });
    let shown = world.show(what_if).await;
    assert_eq!(lines.len() as u64, shown.items_succeeded);
    assert!(lines.is_sorted_by_key(|line| line.row));
    let seventieth = RowChange {
        row: 70,
        key: "70".to_owned(),
        change: Change::Update,
        fields: vec!["amount".to_owned()],
        other_fields: 0,
        by: None,
    };
    assert_eq!(lines[69], seventieth);

    // The same file again changes nothing.
    let again = run(&world, true).await;
    world.run().await;
    let changes = results(&world, again).await.0.changes.expect("changes");
    assert_eq!((changes.create, changes.unchanged + changes.update), (0, shown.items_succeeded));
    assert_eq!(changes.update, 1, "the first of two rows with one key is not the one that stayed");
}

#[tokio::test]
async fn into_a_dataset_that_is_not_there_every_row_is_new() {
    let world = World::new(chunks_of(7));
    let what_if = run(&world, true).await;
    world.run().await;
    let shown = world.show(what_if).await;
    let changes = results(&world, what_if).await.0.changes.expect("changes");
    assert_eq!(changes, Changes { create: shown.items_succeeded, ..Changes::default() });
    assert!(world.records.dataset("local/people").is_empty());
    let datasets = rowmill_core::ports::RecordStore::datasets(&*world.records, &World::owner(), None, 9).await.unwrap();
    assert_eq!(datasets.datasets, [], "and the dataset is not listed");
}

#[tokio::test]
async fn changes_are_counted_once_after_any_crash() {
    let crashes = same_results_after_crashes(&TIMES, async |world| {
        import(world, "people", 20).await;
        let file = world.store("text/csv", b"id,name,amount\n1,x,1\n2,x,2\n300,x,2\n4\n".to_vec()).await;
        let params = json!({ "dataset": "people", "key": "id", "dryRun": true });
        world.create("import", file, params).await.unwrap().job_guid
    })
    .await;
    assert!(crashes > 20, "{crashes} crashes");
}
