use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{OUTPUTS_MAX_BYTES, TargetCalls, TargetType};
use crate::job_types::test_spec::{self, job_guid};
use crate::model::spec::Spec;
use crate::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor, JobType};
use crate::ports::{REQUEST_MAX_BYTES, Target, TargetError, TargetRequest};
use crate::text::{Chunk, ChunkMode, Dialect, Format, Record, read_items};

/// Makes the answer to a call from the rows of the call.
type Script = dyn Fn(&[u64]) -> Result<Value, TargetError> + Send + Sync;

/// A target that records its calls and answers by a script.
struct Scripted {
    script: Box<Script>,
    calls: Mutex<Vec<Value>>,
    /// If set: no call is answered before this number of calls are in flight.
    meet: Option<(usize, Notify)>,
}

impl Scripted {
    fn new(script: impl Fn(&[u64]) -> Result<Value, TargetError> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { script: Box::new(script), calls: Mutex::default(), meet: None })
    }

    /// The rows of every call, in the order of the calls.
    fn rows(&self) -> Vec<Vec<u64>> {
        self.calls.lock().unwrap().iter().map(rows_of).collect()
    }
}

fn rows_of(request: &Value) -> Vec<u64> {
    request["items"].as_array().unwrap().iter().map(|item| item["row"].as_u64().unwrap()).collect()
}

#[async_trait]
impl Target for Scripted {
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        let request = serde_json::to_value(request).unwrap();
        let arrived = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(request.clone());
            calls.len()
        };
        if let Some((wanted, met)) = &self.meet {
            if arrived == *wanted {
                met.notify_waiters();
            } else {
                met.notified().await;
            }
        }
        (self.script)(&rows_of(&request)).map(|answer| answer.to_string().into_bytes())
    }
}

/// An answer with which all items succeed.
fn all_succeed() -> Value {
    json!({ "batchItemFailures": [] })
}

fn items(rows: u64) -> Vec<Item> {
    let item = |row| Item { job_guid: job_guid(), row, record: Record::Json(json!({ "n": row })) };
    (1..=rows).map(item).collect()
}

fn spec() -> Spec {
    test_spec::spec("geocode", Format::Jsonl, &[], &json!({ "country": "DE" }))
}

fn processor(target: Arc<Scripted>, batch_items: usize, concurrency: usize) -> Arc<dyn ItemProcessor> {
    let calls = TargetCalls { batch_items, concurrency, outputs: true, cancel: false };
    TargetType::new("geocode", calls, Some(target)).prepare(&spec()).unwrap()
}

/// The results of this number of rows: `+` succeeded, `?` to be retried, `-` failed; and the error codes by row.
async fn ends(target: &Arc<Scripted>, batch_items: usize, rows: u64) -> (String, BTreeMap<u64, String>) {
    let results = processor(target.clone(), batch_items, 1).process_batch(&items(rows)).await;
    assert_eq!(results.len() as u64, rows);
    let sign = |result: &Result<ItemOutcome, ItemError>| match result {
        Ok(_) => '+',
        Err(error) if error.transient => '?',
        Err(_) => '-',
    };
    let codes = (1..).zip(&results).filter_map(|(row, result)| Some((row, result.as_ref().err()?.code.clone())));
    (results.iter().map(sign).collect(), codes.collect())
}

#[tokio::test]
async fn a_request_has_the_job_its_params_and_the_records_as_objects() {
    let target = Scripted::new(|_| Ok(all_succeed()));
    let file = b"1,\"Allee 1\nB\"\n";
    let chunk = Chunk { offset: 0, length: file.len() as u64, first_row: 7, items: 1, mode: ChunkMode::Items };
    let columns: Arc<[String]> = ["no", "street"].map(String::from).to_vec().into();
    let dialect = Dialect { format: Format::Csv, delimiter: b',' };
    let record = read_items(&chunk, file, &dialect, &columns).next().unwrap().record.unwrap();
    let item = Item { job_guid: job_guid(), row: 7, record };
    assert_eq!(processor(target.clone(), 100, 1).process(&item).await, Ok(ItemOutcome::Succeeded));
    let expected = json!({
        "jobGuid": job_guid(), "jobType": "geocode", "params": {"country": "DE"},
        "items": [{"itemIdentifier": format!("{}/7", job_guid()), "row": 7, "record": {"no": "1", "street": "Allee 1\nB"}}],
    });
    assert_eq!(*target.calls.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn each_item_gets_the_result_that_the_answer_to_its_call_gives_it() {
    let target = Scripted::new(|rows| {
        let id = |row: u64| format!("{}/{row}", job_guid());
        let failed: Vec<_> =
            rows.iter().filter(|row| *row % 3 == 0).map(|row| json!({ "itemIdentifier": id(*row) })).collect();
        let even: Vec<_> = rows.iter().filter(|row| *row % 3 == 1).collect();
        let outputs: Vec<_> =
            even.iter().map(|row| json!({ "itemIdentifier": id(**row), "output": {"row": row} })).collect();
        Ok(json!({ "batchItemFailures": failed, "outputs": outputs }))
    });
    let results = processor(target.clone(), 2, 3).process_batch(&items(6)).await;
    assert_eq!(target.rows(), [[1, 2], [3, 4], [5, 6]]);
    assert_eq!(results[0], Ok(ItemOutcome::Output(r#"{"row":1}"#.into())));
    assert_eq!(results[1], Ok(ItemOutcome::Succeeded));
    assert_eq!(results[2].as_ref().unwrap_err().code, "failed");
    assert_eq!(results[3], Ok(ItemOutcome::Output(r#"{"row":4}"#.into())));
    assert_eq!((&results[4], results[5].is_err()), (&Ok(ItemOutcome::Succeeded), true));
}

#[tokio::test]
async fn as_many_calls_run_concurrently_as_the_type_allows() {
    let mut target = Scripted::new(|_| Ok(all_succeed()));
    // No call is answered before the third one arrives, so with less concurrency the test would hang.
    Arc::get_mut(&mut target).unwrap().meet = Some((3, Notify::new()));
    let processor = processor(target.clone(), 1, 3);
    assert_eq!((processor.batch_items(), processor.concurrency()), (3, 3));
    assert_eq!(processor.process_batch(&items(3)).await.len(), 3);
    assert_eq!(target.rows().len(), 3);
}

#[tokio::test]
async fn outputs_beyond_the_limit_of_a_chunk_are_not_held() {
    let long = "x".repeat(4_000_000);
    let target = Scripted::new(move |rows| {
        let identifier = format!("{}/{}", job_guid(), rows[0]);
        Ok(json!({
            "batchItemFailures": [], "outputs": [{ "itemIdentifier": identifier, "output": { "long": long } }],
        }))
    });
    let results = processor(target, 1, 4).process_batch(&items(12)).await;
    let output_bytes = |result: &Result<ItemOutcome, ItemError>| match result {
        Ok(ItemOutcome::Output(output)) => output.len(),
        _ => 0,
    };
    let held: usize = results.iter().map(output_bytes).sum();
    assert!((OUTPUTS_MAX_BYTES - 4_100_000..=OUTPUTS_MAX_BYTES).contains(&held), "{held}");
    let refused: Vec<&ItemError> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(refused.len(), 10, "two of them fit");
    assert!(refused.iter().all(|error| error.code == "output_too_large" && !error.transient));
}

#[tokio::test]
async fn calls_are_limited_in_bytes_and_an_item_that_is_too_large_fails_alone() {
    let target = Scripted::new(|_| Ok(all_succeed()));
    let mut items = items(5);
    for (item, bytes) in items.iter_mut().zip([REQUEST_MAX_BYTES / 2, REQUEST_MAX_BYTES / 2, 1, REQUEST_MAX_BYTES, 1]) {
        item.record = Record::Json(json!({ "a": "x".repeat(bytes) }));
    }
    let results = processor(target.clone(), 100, 1).process_batch(&items).await;
    assert_eq!(target.rows(), [vec![1], vec![2, 3], vec![5]]);
    let largest = target.calls.lock().unwrap().iter().map(|call| call.to_string().len()).max();
    assert!(largest.is_some_and(|bytes| bytes <= REQUEST_MAX_BYTES));
    assert_eq!(results[3].as_ref().unwrap_err().code, "item_too_large");
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 4);
}

#[tokio::test]
async fn a_call_with_a_bad_answer_is_repeated_once_and_then_its_items_fail() {
    let target = Scripted::new(|rows| Ok(if rows.contains(&3) { json!({ "ok": true }) } else { all_succeed() }));
    let (ends, codes) = ends(&target, 2, 5).await;
    assert_eq!((ends.as_str(), &codes[&3], &codes[&4]), ("++--+", &"bad_answer".to_owned(), &"bad_answer".to_owned()));
    assert_eq!(target.rows(), [vec![1, 2], vec![3, 4], vec![3, 4], vec![5]]);

    let once = Mutex::new(true);
    let target = Scripted::new(move |_| {
        let first = std::mem::replace(&mut *once.lock().unwrap(), false);
        if first { Err(TargetError::bad_answer("too long")) } else { Ok(all_succeed()) }
    });
    assert_eq!(super::tests::ends(&target, 2, 2).await.0, "++");
}

#[tokio::test]
async fn a_refusal_is_permanent_and_an_outage_is_transient() {
    let target = Scripted::new(|rows| match rows[0] {
        1 => Err(TargetError::refused("status 404")),
        3 => Err(TargetError::busy("status 503", None)),
        _ => Ok(all_succeed()),
    });
    let (ends, codes) = ends(&target, 2, 6).await;
    assert_eq!(ends, "--??++");
    assert_eq!((codes[&1].as_str(), codes[&3].as_str()), ("target_refused", "target_unavailable"));
    assert_eq!(target.rows().len(), 3, "neither call is repeated");
}

/// Fails every call that has one of these rows.
fn fails_on(bad: &'static [u64]) -> Arc<Scripted> {
    Scripted::new(|rows| match rows.iter().any(|row| bad.contains(row)) {
        true => Err(TargetError::failed("KeyError")),
        false => Ok(all_succeed()),
    })
}

#[tokio::test]
async fn only_the_items_that_make_the_target_fail_are_failed() {
    for bad in [&[1][..], &[50], &[100], &[1, 2, 3, 4], &[99, 100], &[17, 18, 60]] {
        let target = fails_on(bad);
        let (_, codes) = ends(&target, 100, 100).await;
        let expected: BTreeSet<u64> = bad.iter().copied().collect();
        assert_eq!(codes.keys().copied().collect::<BTreeSet<_>>(), expected);
        assert!(codes.values().all(|code| code == "target_failed"));
        let calls = target.rows().len();
        assert!(calls <= 5 + 14 * bad.len(), "{calls} calls for {bad:?}");
    }
}

#[tokio::test]
async fn a_bad_item_is_found_if_each_call_has_one_item() {
    let target = fails_on(&[2]);
    let processor = processor(target, 1, 1);
    assert_eq!(processor.batch_items(), 2, "the other item shows that the target works");
    let results = processor.process_batch(&items(2)).await;
    assert!(results[0].is_ok() && results[1].as_ref().is_err_and(|error| !error.transient));
}

#[tokio::test]
async fn a_target_that_fails_on_everything_fails_no_item() {
    let target = Scripted::new(|_| Err(TargetError::failed("out of order")));
    let (ends, _) = ends(&target, 100, 100).await;
    assert_eq!(ends, "?".repeat(100));
    assert_eq!(target.rows(), [(1..=100).collect(), vec![1], vec![100], vec![51]], "no more calls after three probes");
}

#[tokio::test]
async fn after_an_outage_during_the_search_undecided_items_are_retried_later() {
    let target = Scripted::new(|rows| match rows {
        [1] => Ok(all_succeed()),
        rows if rows.len() > 40 => Err(TargetError::failed("KeyError")),
        _ => Err(TargetError::no_answer("gone")),
    });
    let (ends, _) = ends(&target, 100, 100).await;
    assert_eq!(ends, format!("+{}", "?".repeat(99)));
    assert_eq!(target.rows().iter().map(Vec::len).collect::<Vec<_>>(), [100, 1, 99, 49, 24]);
}

#[tokio::test]
async fn without_a_connected_target_the_items_are_retried() {
    let calls = TargetCalls { batch_items: 10, concurrency: 1, outputs: false, cancel: false };
    let job_type = TargetType::new("geocode", calls, None);
    assert!(job_type.takes_any_params());
    let processor = job_type.prepare(&spec()).unwrap();
    assert_eq!(processor.output(), None);
    assert!(processor.process(&items(1)[0]).await.unwrap_err().transient);
    assert_eq!(processor.dry_run(&items(1)[0]).await, Ok(ItemOutcome::Succeeded));
}

#[test]
fn outputs_are_collected_in_a_json_lines_file() {
    let target = Scripted::new(|_| Ok(all_succeed()));
    let file = processor(target, 1, 1).output().unwrap();
    assert_eq!((file.name.as_str(), file.content_type.as_str()), ("outputs.jsonl", "application/x-ndjson"));
}

#[tokio::test]
async fn an_item_processed_alone_fails_if_the_target_fails_on_it_but_not_in_an_outage() {
    let target = Scripted::new(|_| Err(TargetError::Failed { detail: "boom".into() }));
    let error = processor(Arc::clone(&target), 10, 1).process_alone(&items(1)[0]).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.transient, target.rows().len()), ("target_failed", false, 3));
    let unreachable = Scripted::new(|_| Err(TargetError::no_answer("no answer")));
    let error = processor(Arc::clone(&unreachable), 10, 1).process_alone(&items(1)[0]).await.unwrap_err();
    assert_eq!((error.transient, unreachable.rows().len()), (true, 1));
}
