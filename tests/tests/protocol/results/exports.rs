//! Exports hold every record of the owner exactly once, even if the dataset changes meanwhile.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;

use acceptance::faults::Death;
use acceptance::files::gzip_by;
use acceptance::use_cases::Limits;
use acceptance::world::World;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::states::JobOutcome;
use rowmill_core::model::records::{Dataset, DatasetRecord, RecordVersion, Upserted, Writer};
use rowmill_core::ports::{KeyRange, Reading, RecordStore, Tallies};
use rowmill_core::text::ChunkLimits;
use serde_json::{Value, json};

use super::{TIMES, export, import, result, results};
use crate::chunks_of;

#[tokio::test]
async fn an_export_has_every_record_once_and_filtered_records_count_as_succeeded() {
    let world = World::new(chunks_of(7));
    import(&world, "people", 300).await;
    let params = json!({ "dataset": "people", "filter": { "amount": "7" } });
    let misspelled = serde_json::from_value(json!({ "jobType": "export", "params": params })).unwrap();
    let refused = world.creator.create(&World::owner(), &misspelled, None).await.unwrap_err();
    assert!(refused.to_string().contains("`amount`"), "{refused}");
    let params = json!({
        "dataset": "people", "format": "csv", "columns": ["amount", "id"], "compress": "gzip", "filter": { "properties": { "amount": { "const": "7" } } },
    });
    let job = export(&world, params).await;
    world.run_through_crashes(TIMES[1]).await;
    let shown = world.show(job).await;
    assert_eq!((shown.item_count, shown.items_succeeded, shown.outcome), (300, 300, Some(JobOutcome::Succeeded)));
    let (manifest, files) = results(&world, job).await;
    let mut text = String::new();
    MultiGzDecoder::new(&*files["people.csv.gz"]).read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), manifest.files[0].file.items), ("amount,id\n7,1\n", Some(1)));

    let job = export(&world, json!({ "dataset": "people" })).await;
    world.run_through_crashes(TIMES[1]).await;
    let text = result(&world, job, "people.jsonl").await;
    let mut ids: Vec<u64> = text.lines().map(|line| id(&serde_json::from_str(line).unwrap())).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=300).collect::<Vec<_>>());
}

/// A splitter that continues after a crash finds new records before, between and after the records that the first
/// splitter found.
#[tokio::test]
async fn records_added_while_an_export_is_split_displace_no_others() {
    for (time, death) in TIMES.iter().flat_map(|time| [(*time, Death::Before), (*time, Death::After)]) {
        for call in 0.. {
            let world = World::new(chunks_of(1));
            import(&world, "people", 100).await;
            let job = export(&world, json!({ "dataset": "people" })).await;
            let message = world.splits.take().remove(0);
            world.faults.plan(call, death);
            let has_died = world.splitter.split(&message, world.deadline_in(time)).await.is_err();
            if has_died {
                world.faults.revive();
                world.clock.advance(Duration::from_secs(600));
                add_records(&world, "local/people", 101..=150, "").await;
                world.splitter.split(&message, world.deadline_in(time)).await.unwrap();
            }
            world.run_through_crashes(time).await;
            let text = result(&world, job, "people.jsonl").await;
            let ids: Vec<u64> = text.lines().map(|line| id(&serde_json::from_str(line).unwrap())).collect();
            let each: BTreeSet<u64> = ids.iter().copied().collect();
            let when = format!("{death:?} call {call} with {time:?}");
            assert_eq!(each.len(), ids.len(), "no record is exported twice: {when}");
            assert_eq!(each.range(..=100).count(), 100, "no record that existed from the start is missing: {when}");
            let shown = world.show(job).await;
            assert_eq!((shown.item_count, shown.items_succeeded), (each.len() as u64, each.len() as u64), "{when}");
            if !has_died {
                break;
            }
        }
    }
}

async fn add_records(world: &World, dataset: &str, ids: impl Iterator<Item = u64>, text: &str) {
    let version = RecordVersion { by: Writer { job_created_ms: 0, job_guid: JobGuid(uuid::Uuid::nil()) }, row: 1 };
    let fields = |id: u64| json!({ "id": id.to_string(), "text": text }).as_object().unwrap().clone();
    let upserts: Vec<_> = ids.map(|id| DatasetRecord { key: id.to_string(), version, fields: fields(id) }).collect();
    let dataset = world.records.open(&Dataset::lasting(dataset, 16), version.by).await.unwrap();
    for upserted in world.records.upsert(&dataset, &upserts).await {
        assert_eq!(upserted.unwrap(), Upserted::Written);
    }
}

#[tokio::test]
async fn a_new_dataset_has_the_partitions_that_its_first_job_was_created_with() {
    let world = World::new(chunks_of(7));
    import(&world, "people", 300).await;
    let spread = world.records.opened("local/people").await.unwrap().unwrap();
    assert_eq!(spread.partitions, 256);
    let mut used = 0;
    for partition in 0..spread.partitions {
        used += usize::from(
            !world
                .records
                .page(&spread, partition, KeyRange::default(), 1, Reading::Recent)
                .await
                .unwrap()
                .records
                .is_empty(),
        );
    }
    assert!(used > 100, "300 records are in {used} partitions");
}

fn id(record: &Value) -> u64 {
    record["id"].as_str().expect("an id").parse().unwrap()
}

#[tokio::test]
async fn a_tally_of_stored_chunks_ends_before_it_exceeds_the_memory() {
    let chunks = ChunkLimits { max_items: 16, max_bytes: 16 << 20, max_record_bytes: 1 << 20 };
    let world = World::new(Limits::default().but(|limits| limits.create.chunks = chunks));
    // 18 chunks of 16 records of 256 KiB: more than the 64 MiB that a tally may hold, but far fewer than 64 chunks.
    let text = "x".repeat(1 << 18);
    add_records(&world, "local/big", 1..=288, &text).await;
    let export = export(&world, json!({ "dataset": "big" })).await;
    let lines = (1..=288).map(|id| json!({ "id": id.to_string(), "text": text }).to_string() + "\n");
    // Without compression, because this text would compress like a zip bomb.
    let file = gzip_by(lines.collect::<String>().as_bytes(), Compression::none());
    let file = world.store("application/gzip", file).await;
    let packed = world.create("validate", file, json!({ "format": "jsonl" })).await.unwrap().job_guid;
    for message in world.splits.take() {
        world.splitter.split(&message, world.deadline()).await.unwrap();
    }
    for job in [export, packed] {
        assert_eq!(world.show(job).await.item_count, 288);
        let tallies = world.jobs.tallies(job, 1, 0..2).await.unwrap();
        let chunks: Vec<_> = tallies.iter().map(|tally| tally.expected).collect();
        assert_eq!(chunks, [16, 2]);
    }
}

#[tokio::test]
async fn a_dataset_belongs_to_its_owner() {
    let world = World::new(chunks_of(7));
    import(&world, "people", 9).await;
    let request = serde_json::from_value(json!({ "jobType": "export", "params": { "dataset": "people" } })).unwrap();
    let stranger = Owner("somebody else".to_owned());
    let refused = world.creator.create(&stranger, &request, None).await.unwrap_err();
    assert!(refused.to_string().contains("`people`"), "the stranger has none of this name: {refused}");
    let import = json!({ "jobType": "import", "params": { "dataset": "people" }, "items": [{ "id": "1" }] });
    world.creator.create(&stranger, &serde_json::from_value(import).unwrap(), None).await.unwrap();
    world.run().await;
    let theirs = world.creator.create(&stranger, &request, None).await.unwrap().job_guid;
    let mine = world.creator.create(&World::owner(), &request, None).await.unwrap().job_guid;
    world.run().await;
    assert_eq!((world.show(theirs).await.item_count, world.show(mine).await.item_count), (1, 9));
}
