//! The records of a dataset expire, each a fixed time after the creation of the job that wrote it.

use std::collections::BTreeMap;
use std::time::Duration;

use acceptance::world::World;
use create_job::create::CreateJobError;
use rowmill_core::model::changes::Change;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::{Clock, Queue, RecordStore};
use serde_json::{Value, json};

use crate::chunks_of;
use crate::deletions::datasets::stored;
use crate::results::{export, result};
use crate::undos::{changes_of, keys, lagging, records, rows, undone};

const KEPT: Duration = Duration::from_secs(3600);

async fn create(world: &World, csv: Vec<u8>, more: Value) -> Result<JobGuid, CreateJobError> {
    world.clock.advance(Duration::from_secs(1));
    let file = world.store_csv(csv).await;
    let mut params = json!({ "dataset": "d", "key": "id" });
    params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    Ok(world.create("import", file, params).await?.job_guid)
}

/// Imports rows that are kept this long.
async fn import(world: &World, csv: Vec<u8>, kept: Duration) -> JobGuid {
    let job = create(world, csv, json!({ "expiresInSeconds": kept.as_secs() })).await.unwrap();
    world.run().await;
    job
}

/// Who wrote each record that readers see.
fn writers(world: &World) -> BTreeMap<u64, String> {
    let writer = |(key, fields): (String, serde_json::Map<String, Value>)| {
        (key.parse().unwrap(), fields["by"].as_str().unwrap().split(' ').next().unwrap().to_owned())
    };
    records(world).into_iter().map(writer).collect()
}

fn of(parts: &[(&str, std::ops::RangeInclusive<u64>)]) -> BTreeMap<u64, String> {
    let of_part = |(job, keys): &(&str, std::ops::RangeInclusive<u64>)| {
        let job = (*job).to_owned();
        keys.clone().map(move |key| (key, job.clone()))
    };
    parts.iter().flat_map(of_part).collect()
}

#[tokio::test]
async fn a_record_expires_with_its_job_whatever_is_written_late_or_undone() {
    let world = lagging(3);
    let begun = world.clock.now();
    import(&world, rows("first", 1..=20, &[]), KEPT).await;
    // Created now, and run when its records have almost expired.
    let slow = create(&world, rows("slow", 15..=30, &[]), json!({})).await.unwrap();
    let messages = world.splits.take();
    world.clock.advance(KEPT / 2);
    let second = import(&world, rows("second", 1..=10, &[]), KEPT).await;
    assert_eq!(writers(&world), of(&[("second", 1..=10), ("first", 11..=20)]));
    world.splits.send(&messages).await.unwrap();
    world.run().await;
    assert_eq!(writers(&world), of(&[("second", 1..=10), ("first", 11..=14), ("slow", 15..=30)]));

    let passed = world.clock.now().duration_since(begun).unsigned_abs();
    world.clock.advance(KEPT + Duration::from_secs(5) - passed);
    assert_eq!(writers(&world), of(&[("second", 1..=10)]), "the others are past their time: {slow}");
    let (_, changes) = undone(&world, second).await;
    assert_eq!(keys(&changes, Change::Reversed).len(), 10);
    assert_eq!(writers(&world), of(&[]), "what was there before has expired too");

    // New records take the place of those that are still in the table, and know nothing of them.
    world.clock.advance(KEPT);
    let third = import(&world, rows("third", 5..=25, &[]), KEPT).await;
    assert_eq!(writers(&world), of(&[("third", 5..=25)]));
    let (_, changes) = undone(&world, third).await;
    assert_eq!(keys(&changes, Change::Reversed).len(), 21);
    assert_eq!(writers(&world), of(&[]));
}

#[tokio::test]
async fn no_job_reads_an_expired_record_and_a_deletion_removes_it() {
    let world = World::new(chunks_of(3));
    let first = import(&world, rows("first", 1..=20, &[]), KEPT).await;
    world.clock.advance(KEPT / 2);
    import(&world, rows("second", 15..=30, &[]), KEPT).await;
    world.clock.advance(KEPT / 2);

    let export = export(&world, json!({ "dataset": "d" })).await;
    world.run().await;
    assert_eq!(result(&world, export, "d.jsonl").await.lines().count(), 16);
    let what_if = create(&world, rows("third", 10..=20, &[]), json!({ "dryRun": true })).await.unwrap();
    world.run().await;
    let changes = changes_of(&world, what_if).await;
    assert_eq!(keys(&changes, Change::Create), (10..=14).collect::<Vec<_>>());
    assert_eq!(keys(&changes, Change::Update), (15..=20).collect::<Vec<_>>());
    let (_, changes) = undone(&world, first).await;
    let kept: Vec<u64> = (15..=20).collect();
    assert_eq!((changes.len(), keys(&changes, Change::Kept)), (6, kept), "of the others there is nothing");

    assert_eq!(stored(&world).await.lines().count(), 30);
    world.creator.delete_dataset(&World::owner(), "d").await.unwrap();
    world.run().await;
    assert_eq!(stored(&world).await, "");
}

#[tokio::test]
async fn the_first_import_decides_how_long_records_are_kept() {
    let world = lagging(3);
    // Neither is there when the other is created.
    let first = create(&world, rows("first", 1..=6, &[]), json!({ "expiresInSeconds": 3600 })).await.unwrap();
    let other = create(&world, rows("other", 1..=9, &[]), json!({ "expiresInSeconds": 7200 })).await.unwrap();
    let (of_first, of_other): (Vec<_>, Vec<_>) =
        world.splits.take().into_iter().partition(|message| message.job_guid == first);
    for messages in [of_first, of_other] {
        world.splits.send(&messages).await.unwrap();
        world.run().await;
    }
    let shown = world.show(other).await;
    assert_eq!((shown.items_failed, shown.items_succeeded), (9, 0));
    assert_eq!(shown.causes.iter().map(|cause| cause.name.code.as_str()).collect::<Vec<_>>(), ["other_expiry"]);
    assert_eq!(writers(&world), of(&[("first", 1..=6)]));
    let listed = world.records.datasets(&World::owner(), None, 9).await.unwrap().datasets;
    assert_eq!(listed[0].last_writer.job_guid, first, "the other has written nothing");

    for seconds in [3599, 7200] {
        let refused = create(&world, rows("x", 1..=1, &[]), json!({ "expiresInSeconds": seconds })).await;
        let Err(CreateJobError::Params(error)) = refused else { panic!("{seconds}") };
        assert_eq!(error.field, "params.expiresInSeconds");
        assert!(error.message.contains("keeps its records for 3600 seconds"), "{}", error.message);
    }
    for seconds in [json!(59), json!(315_360_001), json!(3600.5), json!("3600"), json!(-1)] {
        let refused = create(&world, rows("x", 1..=1, &[]), json!({ "expiresInSeconds": seconds })).await;
        assert!(matches!(refused, Err(CreateJobError::Params(_))), "{seconds}");
    }
    for said in [json!({}), json!({ "expiresInSeconds": null }), json!({ "expiresInSeconds": 3600 })] {
        create(&world, rows("same", 1..=1, &[]), said).await.unwrap();
    }
    let lasting = json!({ "dataset": "e", "key": "id" });
    let file = world.store_csv(rows("e", 1..=1, &[])).await;
    world.create("import", file, lasting.clone()).await.unwrap();
    world.run().await;
    let file = world.store_csv(rows("e", 1..=1, &[])).await;
    let mut short = lasting;
    short["expiresInSeconds"] = json!(60);
    let Err(CreateJobError::Params(error)) = world.create("import", file, short).await else { panic!("taken") };
    assert!(error.message.contains("for ever"), "{}", error.message);
}
