//! The contract of [`RecordStore`].

use std::sync::Arc;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::run_checks;
use crate::in_memory::ManualClock;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::records::{
    Dataset, DatasetRecord, Expired, ListedDataset, RecordVersion, Upserted, Writer, dataset_of,
};
use rowmill_core::model::stored_record::{Before, History, StoredRecord, Undoing};
use rowmill_core::ports::{KeyRange, PortResult, Reading, RecordStore, Replacement};

/// Checks a [`RecordStore`] with the [`records_clock`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn record_store<S: RecordStore>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        a_record_reads_back_as_it_was_written,
        numbers_read_back_with_every_digit,
        the_later_version_wins_regardless_of_the_order_of_writes,
        a_version_written_again_changes_nothing,
        the_later_job_wins_regardless_of_the_row,
        new_and_known_records_can_be_mixed_in_one_call,
        calls_may_change_between_new_and_known_records,
        datasets_and_keys_are_separate,
        results_are_in_the_order_of_the_upserts,
        concurrent_writes_leave_the_latest_version,
        writing_no_records_does_nothing,
        every_record_is_on_one_page_of_its_partition,
        the_first_that_opens_a_dataset_decides_how_many_partitions_it_has,
        all_that_open_a_dataset_at_once_get_the_same_partitions,
        the_datasets_of_an_owner_are_listed_with_their_latest_writers,
        no_record_is_found_where_none_was_written,
        records_are_found_by_many_keys,
        a_record_reads_back_with_its_history,
        a_replacement_takes_the_place_of_what_was_seen_and_of_nothing_else,
        a_record_without_history_is_replaced_by_one_without,
        a_record_that_is_undone_is_stored_and_not_seen,
        of_concurrent_replacements_one_is_stored,
        what_was_seen_is_removed_and_nothing_else,
        an_expired_record_is_read_with_the_mark_of_it,
        a_row_takes_the_place_of_an_expired_record,
        the_first_that_opens_a_dataset_decides_when_its_records_expire,
        a_dataset_is_taken_off_the_list_unless_a_later_job_has_opened_it,
    );
}

/// The clock of a store to check.
pub fn records_clock() -> Arc<ManualClock> {
    let now = SignedDuration::from_millis(writer(5).job_created_ms) + SignedDuration::from_secs(EXPIRES_IN.into());
    Arc::new(ManualClock::at(Timestamp::from_duration(now).expect("a time")))
}

/// See [`expiring`].
const EXPIRES_IN: u32 = 3600;

/// Number of partitions of the datasets that no store has opened.
const PARTITIONS: u32 = 16;

/// A dataset that is opened in no store.
fn dataset(name: &str) -> Dataset {
    Dataset::lasting(name, PARTITIONS)
}

fn version(job: u8, row: u64) -> RecordVersion {
    let job_guid = JobGuid(Uuid::from_u128(u128::from(job)));
    let by = Writer { job_created_ms: 1_750_000_000_000 + i64::from(job), job_guid };
    RecordVersion { by, row }
}

fn writer(job: u8) -> Writer {
    version(job, 1).by
}

fn fields(row: u64) -> Map<String, Value> {
    json!({"row": row, "name": format!("row {row}")}).as_object().cloned().unwrap_or_default()
}

fn upsert(key: impl Into<String>, job: u8, row: u64) -> DatasetRecord {
    DatasetRecord { key: key.into(), version: version(job, row), fields: fields(row) }
}

async fn write(store: &impl RecordStore, key: &str, job: u8, row: u64) -> Upserted {
    let results = store.upsert(&dataset("d"), &[upsert(key, job, row)]).await;
    let [Ok(result)] = results[..] else { panic!("{results:?}") };
    result
}

async fn written(store: &impl RecordStore, upserts: &[DatasetRecord]) -> Vec<Upserted> {
    settled(store.upsert(&dataset("d"), upserts).await)
}

fn settled<T>(results: Vec<PortResult<T>>) -> Vec<T> {
    results.into_iter().map(|result| result.expect("settled")).collect()
}

async fn row_of(store: &impl RecordStore, key: &str) -> Option<u64> {
    let record = store.record(&dataset("d"), key).await.expect("readable")?;
    record.fields.get("row").and_then(Value::as_u64)
}

async fn a_record_reads_back_as_it_was_written(store: &impl RecordStore) {
    let fields = json!({
        "text": "größe \u{1F600}", "empty": "", "whole": 18_446_744_073_709_551_615_u64, "negative": -9_007_199_254_740_993_i64,
        "fraction": 0.1, "zero": 0, "yes": true, "no": false, "none": null, "list": [1, "a", null, []], "map": {"a": {"b": 1.5}, "c": {}},
    });
    let Value::Object(fields) = fields else { unreachable!() };
    let upsert = DatasetRecord { key: "U+0041 '\"".into(), version: version(1, 1), fields: fields.clone() };
    assert_eq!(written(store, std::slice::from_ref(&upsert)).await, [Upserted::Written]);
    assert_eq!(store.record(&dataset("d"), &upsert.key).await.unwrap(), Some(upsert));
}

/// As many digits as DynamoDB keeps.
async fn numbers_read_back_with_every_digit(store: &impl RecordStore) {
    let numbers =
        ["12345678901234567890123456789012345678", "-0.1234567890123456789012345678901234567", "18446744073709551617"];
    let list: Vec<Value> = numbers.iter().map(|number| serde_json::from_str(number).expect("a number")).collect();
    let fields = json!({ "numbers": list }).as_object().cloned().unwrap_or_default();
    let upsert = DatasetRecord { key: "k".into(), version: version(1, 1), fields: fields.clone() };
    assert_eq!(written(store, std::slice::from_ref(&upsert)).await, [Upserted::Written]);
    assert_eq!(records_of(store, &dataset("d")).await, [upsert]);
}

async fn the_later_version_wins_regardless_of_the_order_of_writes(store: &impl RecordStore) {
    let orders = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]];
    for (key, order) in orders.iter().enumerate() {
        let key = key.to_string();
        let mut latest = 0;
        for row in *order {
            let expected = if row > latest { Upserted::Written } else { Upserted::Superseded };
            assert_eq!(write(store, &key, 1, row).await, expected, "{row} of {order:?}");
            latest = latest.max(row);
        }
        assert_eq!(row_of(store, &key).await, Some(3));
    }
}

async fn a_version_written_again_changes_nothing(store: &impl RecordStore) {
    assert_eq!(write(store, "k", 1, 5).await, Upserted::Written);
    let again = DatasetRecord { fields: fields(99), ..upsert("k", 1, 5) };
    assert_eq!(written(store, &[again]).await, [Upserted::Superseded]);
    assert_eq!(row_of(store, "k").await, Some(5));
}

async fn the_later_job_wins_regardless_of_the_row(store: &impl RecordStore) {
    assert_eq!(write(store, "k", 2, 1).await, Upserted::Written);
    assert_eq!(write(store, "k", 1, 1_000_000).await, Upserted::Superseded);
    assert_eq!(row_of(store, "k").await, Some(1));
    assert_eq!(write(store, "k", 3, 1).await, Upserted::Written);
}

async fn new_and_known_records_can_be_mixed_in_one_call(store: &impl RecordStore) {
    let first: Vec<_> = (0..60).filter(|n| n % 3 == 0).map(|n| upsert(n.to_string(), 1, 10)).collect();
    assert!(written(store, &first).await.iter().all(|result| *result == Upserted::Written));
    // For one key in three a later record is stored, the other keys are new. Then all keys again, with a later version.
    let older: Vec<_> = (0..60).map(|n| upsert(n.to_string(), 1, 9)).collect();
    let results = written(store, &older).await;
    for (n, result) in results.iter().enumerate() {
        assert_eq!(*result, if n % 3 == 0 { Upserted::Superseded } else { Upserted::Written }, "{n}");
    }
    let later: Vec<_> = (0..60).map(|n| upsert(n.to_string(), 1, 11)).collect();
    assert!(written(store, &later).await.iter().all(|result| *result == Upserted::Written));
    for n in 0..60 {
        assert_eq!(row_of(store, &n.to_string()).await, Some(11));
    }
}

async fn calls_may_change_between_new_and_known_records(store: &impl RecordStore) {
    for (row, prefix) in [(1, "a"), (2, "a"), (3, "a"), (4, "b"), (5, "b"), (6, "c")] {
        let upserts: Vec<_> = (0..30).map(|n| upsert(format!("{prefix}{n}"), 1, row)).collect();
        assert!(written(store, &upserts).await.iter().all(|result| *result == Upserted::Written), "row {row}");
    }
    let latest = [row_of(store, "a7").await, row_of(store, "b7").await, row_of(store, "c7").await];
    assert_eq!(latest, [Some(3), Some(5), Some(6)]);
}

async fn datasets_and_keys_are_separate(store: &impl RecordStore) {
    store.upsert(&dataset("one"), &[upsert("k", 1, 1)]).await;
    store.upsert(&dataset("two"), &[upsert("k", 1, 2), upsert("K", 1, 3)]).await;
    let version = async |name, key| store.record(&dataset(name), key).await.unwrap().map(|record| record.version);
    assert_eq!(version("one", "k").await, Some(self::version(1, 1)));
    assert_eq!(version("two", "k").await, Some(self::version(1, 2)));
    assert_eq!(version("two", "K").await, Some(self::version(1, 3)));
    assert_eq!(version("one", "K").await, None);
}

async fn results_are_in_the_order_of_the_upserts(store: &impl RecordStore) {
    let even: Vec<_> = (0..300).filter(|n| n % 2 == 0).map(|n| upsert(n.to_string(), 2, 1)).collect();
    written(store, &even).await;
    let all: Vec<_> = (0..300).map(|n| upsert(n.to_string(), 1, 1)).collect();
    for (n, result) in written(store, &all).await.into_iter().enumerate() {
        assert_eq!(result, if n % 2 == 0 { Upserted::Superseded } else { Upserted::Written }, "{n}");
    }
}

async fn concurrent_writes_leave_the_latest_version(store: &impl RecordStore) {
    let batches: Vec<Vec<DatasetRecord>> =
        (1..=12).map(|row| (0..30).map(|n| upsert(n.to_string(), 1, row)).collect()).collect();
    let dataset = dataset("d");
    let results = join_all(batches.iter().map(|batch| store.upsert(&dataset, batch))).await;
    assert!(results.iter().flatten().all(Result::is_ok));
    assert!(results[11].iter().all(|result| matches!(result, Ok(Upserted::Written))), "the latest is never superseded");
    for n in 0..30 {
        assert_eq!(row_of(store, &n.to_string()).await, Some(12));
    }
}

async fn writing_no_records_does_nothing(store: &impl RecordStore) {
    assert!(store.upsert(&dataset("d"), &[]).await.is_empty());
}

async fn every_record_is_on_one_page_of_its_partition(store: &impl RecordStore) {
    for (dataset, partitions) in
        [(dataset("d"), PARTITIONS), (store.open(&Dataset::lasting("e", 256), writer(1)).await.unwrap(), 256)]
    {
        assert_eq!(dataset.partitions, partitions);
        let upserts: Vec<DatasetRecord> = (0..100).map(|row| upsert(format!("key {row}"), 1, row)).collect();
        store.upsert(&dataset, &upserts).await.into_iter().for_each(|written| assert!(written.is_ok()));
        store.upsert(&Dataset { name: "other".into(), ..dataset.clone() }, &[upsert("x", 1, 1)]).await;
        let mut found = records_of(store, &dataset).await;
        found.sort_by_key(|record| record.fields["row"].as_u64());
        assert_eq!(found, upserts);
        let begin_alike = records_from(store, &dataset, "key 1").await;
        assert_eq!(begin_alike.len(), 11, "1, and 10 to 19: {begin_alike:?}");
        assert!(begin_alike.iter().all(|record| record.key.starts_with("key 1")), "{begin_alike:?}");
        assert!(records_from(store, &dataset, "key 100").await.is_empty());
    }
}

async fn records_of(store: &impl RecordStore, dataset: &Dataset) -> Vec<DatasetRecord> {
    records_from(store, dataset, "").await
}

/// The records of all pages whose keys have this prefix.
async fn records_from(store: &impl RecordStore, dataset: &Dataset, prefix: &str) -> Vec<DatasetRecord> {
    let mut found: Vec<DatasetRecord> = Vec::new();
    for partition in 0..dataset.partitions {
        let (mut after, mut keys): (Option<String>, Vec<String>) = (None, Vec::new());
        loop {
            let range = KeyRange { prefix, after: after.as_deref() };
            let page = store.page(dataset, partition, range, 3, Reading::Latest).await.unwrap();
            assert!(page.records.len() <= 3);
            keys.extend(page.records.iter().map(|record| record.latest.key.clone()));
            found.extend(page.records.into_iter().filter_map(StoredRecord::visible));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert!(keys.is_sorted(), "{keys:?}");
    }
    found
}

async fn the_first_that_opens_a_dataset_decides_how_many_partitions_it_has(store: &impl RecordStore) {
    let opened = Dataset::lasting("d", 256);
    assert_eq!(store.opened("d").await.unwrap(), None, "nobody has opened it to write to it");
    assert_eq!(store.opened("d").await.unwrap(), None, "nor has who has looked");
    assert_eq!(store.open(&Dataset::lasting("d", 256), writer(1)).await.unwrap(), opened);
    assert_eq!(store.open(&Dataset::lasting("d", 8), writer(1)).await.unwrap(), opened);
    assert_eq!(store.opened("d").await.unwrap(), Some(opened.clone()));
    assert_eq!(
        store.open(&Dataset::lasting("e", 8), writer(1)).await.unwrap().partitions,
        8,
        "each dataset has its own number"
    );
    assert!(records_of(store, &opened).await.is_empty(), "an opened dataset has no records yet");
}

async fn all_that_open_a_dataset_at_once_get_the_same_partitions(store: &impl RecordStore) {
    let if_new: Vec<Dataset> = (1..=12).map(|partitions| Dataset::lasting("d", partitions)).collect();
    let opened = join_all(if_new.iter().map(|if_new| store.open(if_new, writer(1)))).await;
    let opened: Vec<Dataset> = opened.into_iter().map(|dataset| dataset.expect("opened")).collect();
    assert!(opened.iter().all(|dataset| *dataset == opened[0]), "{opened:?}");
    assert_eq!(store.opened("d").await.unwrap().as_ref(), opened.first());
}

async fn the_datasets_of_an_owner_are_listed_with_their_latest_writers(store: &impl RecordStore) {
    let [one, other] = ["one", "one/more"].map(|name| Owner(name.to_owned()));
    for (owner, name, job) in
        [(&one, "b", 1), (&one, "c", 2), (&one, "a", 2), (&one, "b", 3), (&one, "c", 1), (&other, "d", 4)]
    {
        store.open(&Dataset::lasting(dataset_of(owner, name), 4), writer(job)).await.unwrap();
    }
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store.datasets(&one, after.as_deref(), 2).await.unwrap();
        assert!(page.datasets.len() <= 2);
        found.extend(page.datasets);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let listed =
        |(name, job): (&str, u8)| ListedDataset { name: name.to_owned(), last_writer: writer(job), expires_in: None };
    assert_eq!(found, [("a", 2), ("b", 3), ("c", 2)].map(listed));
    assert_eq!(store.datasets(&other, None, 9).await.unwrap().datasets, [listed(("d", 4))]);
    assert_eq!(store.datasets(&Owner("nobody".to_owned()), None, 9).await.unwrap().datasets, []);
    assert!(records_of(store, &dataset("one/a")).await.is_empty(), "the list is no record");
}

async fn no_record_is_found_where_none_was_written(store: &impl RecordStore) {
    assert_eq!(store.record(&dataset("d"), "k").await.unwrap(), None);
}

async fn records_are_found_by_many_keys(store: &impl RecordStore) {
    let upserts: Vec<DatasetRecord> = (0..250).filter(|n| n % 2 == 0).map(|n| upsert(n.to_string(), 1, n)).collect();
    written(store, &upserts).await;
    let keys: Vec<String> = (0..250).map(|n| n.to_string()).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for reading in [Reading::Recent, Reading::Latest] {
        let mut found = store.records(&dataset("d"), &keys, reading).await.expect("readable");
        found.sort_by_key(|record| record.latest.version.row);
        let plain = |latest: &DatasetRecord| bare(latest.clone(), None);
        assert_eq!(found, upserts.iter().map(plain).collect::<Vec<_>>());
        assert_eq!(store.records(&dataset("d"), &[], reading).await.expect("readable"), []);
    }
}

fn bare(latest: DatasetRecord, history: Option<History>) -> StoredRecord {
    StoredRecord { latest, revision: 0, history, expired: Expired::default() }
}

async fn stored(store: &impl RecordStore, key: &str) -> Option<StoredRecord> {
    store.records(&dataset("d"), &[key], Reading::Latest).await.expect("readable").pop()
}

async fn replace(store: &impl RecordStore, record: &StoredRecord, seen: Option<&StoredRecord>) -> bool {
    let replacement =
        Replacement { key: record.latest.key.clone(), record: Some(record.clone()), seen: seen.map(StoredRecord::at) };
    let results = store.replace(&dataset("d"), &[replacement]).await;
    let [Ok(stored)] = results[..] else { panic!("{results:?}") };
    stored
}

/// What jobs 1 and 2 have left, and the undo of job 2.
fn versions_of_a_record() -> [StoredRecord; 4] {
    let first = StoredRecord::first(upsert("k", 1, 5));
    let second = first.with(&upsert("k", 2, 1)).expect("a later job");
    let below = second.with(&upsert("k", 1, 6)).expect("a later row of the job before");
    let Undoing::Reverse(undone) = below.undo(writer(2).job_guid, writer(3).job_guid) else { unreachable!() };
    [first, second, below, *undone]
}

async fn a_record_reads_back_with_its_history(store: &impl RecordStore) {
    let number = serde_json::from_str::<Value>("-0.1234567890123456789012345678901234567").expect("a number");
    let fields = json!({ "n": number, "none": null, "list": [1, {"a": "größe"}] }).as_object().cloned();
    let first = StoredRecord::first(DatasetRecord { fields: fields.clone().unwrap_or_default(), ..upsert("k", 1, 5) });
    let second = first.with(&upsert("k", 2, 1)).expect("a later job");
    assert!(replace(store, &first, None).await && replace(store, &second, Some(&first)).await);
    assert_eq!(stored(store, "k").await, Some(second.clone()));
    let Undoing::Reverse(undone) = second.undo(writer(2).job_guid, writer(3).job_guid) else { unreachable!() };
    assert!(replace(store, &undone, Some(&second)).await);
    assert_eq!(stored(store, "k").await, Some(*undone));
    assert_eq!(store.record(&dataset("d"), "k").await.unwrap().map(|record| record.fields), fields);
}

async fn a_replacement_takes_the_place_of_what_was_seen_and_of_nothing_else(store: &impl RecordStore) {
    let versions = versions_of_a_record();
    let mut there: Option<&StoredRecord> = None;
    for next in &versions {
        for seen in versions
            .iter()
            .map(Some)
            .chain([None])
            .filter(|seen| seen.map(StoredRecord::at) != there.map(StoredRecord::at))
        {
            assert!(!replace(store, next, seen).await, "{seen:?} is not there, but {there:?}");
        }
        assert!(replace(store, next, there).await);
        assert_eq!(stored(store, "k").await.as_ref(), Some(next));
        there = Some(next);
    }
    // A job that keeps no history leaves that of the job before, without the fields.
    assert_eq!(written(store, &[upsert("k", 2, 1)]).await, [Upserted::Superseded]);
    assert_eq!(written(store, &[upsert("k", 4, 1)]).await, [Upserted::Written]);
    let [.., last] = &versions;
    let mut history = last.history.clone();
    if let Some(History { before: Before::Record { fields, .. }, .. }) = &mut history {
        fields.clear();
    }
    let expected = bare(upsert("k", 4, 1), history);
    assert_eq!(stored(store, "k").await, Some(expected));
    assert!(!replace(store, last, Some(last)).await);
}

/// A job goes on that an older version has begun.
async fn a_record_without_history_is_replaced_by_one_without(store: &impl RecordStore) {
    assert_eq!(written(store, &[upsert("k", 1, 1)]).await, [Upserted::Written]);
    let plain = stored(store, "k").await.expect("a record");
    let next = plain.with(&upsert("k", 1, 2)).expect("a later row");
    assert_eq!(next.history, None);
    assert!(replace(store, &next, Some(&plain)).await);
    assert_eq!(stored(store, "k").await, Some(next));
}

async fn a_record_that_is_undone_is_stored_and_not_seen(store: &impl RecordStore) {
    let first = StoredRecord::first(upsert("k", 1, 5));
    let Undoing::Reverse(undone) = first.undo(writer(1).job_guid, writer(3).job_guid) else { unreachable!() };
    assert!(replace(store, &first, None).await && replace(store, &undone, Some(&first)).await);
    assert_eq!(store.record(&dataset("d"), "k").await.unwrap(), None);
    assert_eq!(records_of(store, &dataset("d")).await, []);
    assert_eq!(stored(store, "k").await, Some(*undone));
}

async fn of_concurrent_replacements_one_is_stored(store: &impl RecordStore) {
    let first = StoredRecord::first(upsert("k", 1, 1));
    let rows: Vec<StoredRecord> = (2..10).map(|row| first.with(&upsert("k", 1, row)).expect("later")).collect();
    assert!(replace(store, &first, None).await);
    let stored = join_all(rows.iter().map(|row| replace(store, row, Some(&first)))).await;
    assert_eq!(stored.into_iter().filter(|stored| *stored).count(), 1);
    let new: Vec<StoredRecord> = (1..10).map(|row| StoredRecord::first(upsert("new", 1, row))).collect();
    let stored = join_all(new.iter().map(|row| replace(store, row, None))).await;
    assert_eq!(stored.into_iter().filter(|stored| *stored).count(), 1);
}

async fn what_was_seen_is_removed_and_nothing_else(store: &impl RecordStore) {
    for key in ["a", "b"] {
        assert_eq!(write(store, key, 1, 1).await, Upserted::Written);
    }
    let there = async |key| store.records(&dataset("d"), &[key], Reading::Latest).await.unwrap().pop();
    let seen = there("a").await.unwrap().at();
    let remove = async || {
        let removal = Replacement { key: "a".into(), record: None, seen: Some(seen) };
        let [Ok(done)] = store.replace(&dataset("d"), &[removal]).await[..] else { panic!("settled") };
        done
    };
    assert_eq!(write(store, "a", 1, 2).await, Upserted::Written);
    assert!(!remove().await, "it was written since");
    let [Ok(done)] = store
        .replace(
            &dataset("d"),
            &[Replacement { key: "a".into(), record: None, seen: there("a").await.map(|at| at.at()) }],
        )
        .await[..]
    else {
        panic!("settled")
    };
    assert!(done && there("a").await.is_none() && there("b").await.is_some());
    // A new record of the key has another revision.
    assert_eq!(write(store, "a", 2, 1).await, Upserted::Written);
    assert!(!remove().await && there("a").await.is_some());
}

async fn a_dataset_is_taken_off_the_list_unless_a_later_job_has_opened_it(store: &impl RecordStore) {
    let (owner, name) = (Owner("me".into()), dataset_of(&Owner("me".into()), "d"));
    let listed = async || store.datasets(&owner, None, 10).await.unwrap().datasets.len();
    store.unlist(&name, writer(9)).await.unwrap();
    store.open(&Dataset::lasting(&name, PARTITIONS), writer(5)).await.unwrap();
    store.unlist(&name, writer(4)).await.unwrap();
    assert_eq!(listed().await, 1, "a later job has opened it");
    for _ in 0..2 {
        store.unlist(&name, writer(6)).await.unwrap();
        assert_eq!(listed().await, 0);
    }
    assert!(store.opened(&name).await.unwrap().is_some(), "its records can be read");
    store.open(&Dataset::lasting(&name, PARTITIONS + 1), writer(7)).await.unwrap();
    assert_eq!(listed().await, 1);
    assert_eq!(store.opened(&name).await.unwrap().map(|opened| opened.partitions), Some(PARTITIONS));
}

/// A dataset whose records of jobs 1 to 5 have expired by the [`records_clock`].
fn expiring() -> Dataset {
    Dataset { expires_in: Some(EXPIRES_IN), ..dataset("d") }
}

async fn an_expired_record_is_read_with_the_mark_of_it(store: &impl RecordStore) {
    let dataset = expiring();
    let written = store.upsert(&dataset, &[upsert("a", 5, 1), upsert("b", 6, 1)]).await;
    assert_eq!(settled(written), [Upserted::Written; 2]);
    let undone = StoredRecord::first(upsert("c", 5, 1)).with(&upsert("c", 6, 1)).expect("a later job");
    let Undoing::Reverse(undone) = undone.undo(writer(6).job_guid, writer(7).job_guid) else { unreachable!() };
    let undone = Replacement { key: "c".into(), record: Some(*undone), seen: None };
    assert_eq!(settled(store.replace(&dataset, &[undone]).await), [true]);
    let mut found = store.records(&dataset, &["a", "b", "c"], Reading::Latest).await.expect("readable");
    found.sort_by(|a, b| a.latest.key.cmp(&b.latest.key));
    assert_eq!(found.iter().map(StoredRecord::is_expired).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(records_of(store, &dataset).await, [upsert("b", 6, 1)], "what an undo shows again has expired too");
    for (key, is_there) in [("a", false), ("b", true), ("c", false)] {
        assert_eq!(store.record(&dataset, key).await.unwrap().is_some(), is_there, "{key}");
    }
}

async fn a_row_takes_the_place_of_an_expired_record(store: &impl RecordStore) {
    let dataset = expiring();
    let old = [upsert("a", 5, 1), upsert("b", 5, 1)];
    assert_eq!(settled(store.upsert(&dataset, &old).await), [Upserted::Written; 2]);
    assert_eq!(settled(store.upsert(&dataset, &[upsert("a", 6, 1)]).await), [Upserted::Written]);
    let [there] = &store.records(&dataset, &["b"], Reading::Latest).await.expect("readable")[..] else { panic!() };
    let next = there.with(&upsert("b", 6, 1)).expect("a later job");
    assert_eq!(next, StoredRecord::first(upsert("b", 6, 1)), "nothing is kept of it");
    let next = Replacement { key: "b".into(), record: Some(next), seen: Some(there.at()) };
    assert_eq!(settled(store.replace(&dataset, &[next]).await), [true]);
    let mut found = records_of(store, &dataset).await;
    found.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(found, [upsert("a", 6, 1), upsert("b", 6, 1)]);
}

async fn the_first_that_opens_a_dataset_decides_when_its_records_expire(store: &impl RecordStore) {
    let owner = Owner("me".to_owned());
    let [short, long] = [60, 3600].map(|seconds| Dataset { expires_in: Some(seconds), ..Dataset::lasting("me/d", 4) });
    assert_eq!(store.open(&short, writer(1)).await.unwrap(), short);
    assert_eq!(store.open(&long, writer(2)).await.unwrap(), short);
    assert_eq!(store.open(&Dataset::lasting("me/d", 4), writer(3)).await.unwrap(), short);
    assert_eq!(store.open(&Dataset::lasting("me/e", 4), writer(3)).await.unwrap().expires_in, None);
    let listed = store.datasets(&owner, None, 9).await.unwrap().datasets;
    assert_eq!(listed.iter().map(|listed| listed.expires_in).collect::<Vec<_>>(), [Some(60), None]);
}
