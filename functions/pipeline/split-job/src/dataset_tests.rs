use std::collections::BTreeSet;
use std::sync::Arc;

use rowmill_core::model::chunk_index::RecordPosition;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::records::{Dataset, DatasetRecord, RecordItem, RecordVersion, Writer};
use rowmill_core::model::spec::KeysOf;
use rowmill_core::ports::RecordStore;
use rowmill_core::text::{ChunkLimits, Position};
use rowmill_testing::fixtures;
use rowmill_testing::in_memory::InMemoryRecordStore;

use crate::cut::CutError;
use crate::dataset::DatasetCut;
use crate::files_tests::{Ticking, second};

const PARTITIONS: u32 = 8;

/// 300 records of another job, and two of this one.
async fn filled(job: JobGuid) -> (Arc<InMemoryRecordStore>, Dataset) {
    let records = Arc::new(InMemoryRecordStore::default());
    let other: JobGuid = "01977420-dc00-7000-8000-000000000009".parse().unwrap();
    let writer = |job_guid| Writer { job_created_ms: 1, job_guid };
    let dataset = records.open(&Dataset::lasting("me/d", PARTITIONS), writer(other)).await.unwrap();
    let record = |(row, prefix, job): (u64, &str, JobGuid)| DatasetRecord {
        key: format!("{prefix}{row}"),
        version: RecordVersion { by: writer(job), row },
        fields: serde_json::Map::new(),
    };
    let all = (0..300).map(|row| (row, "other", other)).chain((0..2).map(|row| (row, "own", job)));
    let written = records.upsert(&dataset, &all.map(record).collect::<Vec<_>>()).await;
    assert!(written.iter().all(Result::is_ok));
    (records, dataset)
}

#[tokio::test]
async fn a_split_with_little_time_finds_the_records_of_a_job_among_many() {
    let job = fixtures::job().job_guid;
    let (records, dataset) = filled(job).await;
    let limits = ChunkLimits { max_items: 2, max_bytes: 1000, max_record_bytes: 1000 };
    // A look at the clock takes a second, and each page one.
    for seconds in [2, 500] {
        let (mut at, mut start) = (RecordPosition::default(), Position { offset: 0, row: 1 });
        let (mut found, mut others, mut invocations) = (BTreeSet::new(), 0, 0);
        loop {
            let reads = (dataset.clone(), Some(KeysOf::Job(job)));
            let clock = Arc::new(Ticking::default());
            let mut cut = DatasetCut::new(records.clone(), clock, reads, 100, limits, start, at.clone());
            let tally = cut.next_tally(second(seconds)).await.map_err(|error| match error {
                CutError::OutOfTime => "it gets no further".to_owned(),
                error => format!("{error:?}"),
            });
            let tally = tally.unwrap();
            invocations += 1;
            let Some(last) = tally.chunks.last() else { break };
            start = Position { offset: last.offset + last.length, row: last.first_row + u64::from(last.items) };
            at = tally.stored.unwrap().next.unwrap();
            for line in tally.inputs.iter().flat_map(|text| text.split(|byte| *byte == b'\n')) {
                let Ok(RecordItem { key, fields }) = serde_json::from_slice(line) else { continue };
                assert!(fields.is_empty(), "the undo reads the record itself");
                others += usize::from(key.starts_with("other"));
                assert!(found.insert(key), "twice");
            }
        }
        let own = found.iter().filter(|key| key.starts_with("own")).count();
        assert_eq!((own, found.len()), (2, 2 + others), "{seconds} s");
        assert!(others < invocations, "{others} others, {invocations} invocations with {seconds} s");
        assert_eq!(seconds > 2, others == 0, "{others} others with {seconds} s");
    }
}
