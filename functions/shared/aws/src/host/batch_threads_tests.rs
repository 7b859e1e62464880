use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor};
use rowmill_core::ports::{BatchCall, BatchEnd, BatchRunner, ItemBatch};
use rowmill_core::text::Record;
use serde_json::Value;
use tokio::sync::Notify;
use uuid::Uuid;

use super::{ABANDONED, AtItem, BatchThreads, STUCK_AFTER, Verdict, Watch};

const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(600);

/// Holds its thread at a row until it is freed, awaits at another one until it is told to go on, panics at a third one.
#[derive(Default)]
struct Scripted {
    holds_at: Option<u64>,
    freed: AtomicBool,
    awaits_at: Option<u64>,
    goes_on: Notify,
    panics_at: Option<u64>,
    begun: AtomicU64,
}

#[async_trait]
impl ItemProcessor for Scripted {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        assert_ne!(self.panics_at, Some(item.row), "as scripted");
        while self.holds_at == Some(item.row) && !self.freed.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.awaits_at == Some(item.row) {
            self.goes_on.notified().await;
        }
        Ok(ItemOutcome::Succeeded)
    }
}

/// The job of a test, so that the tests tell their batches apart.
fn job(number: u128) -> JobGuid {
    JobGuid(Uuid::from_u128(number))
}

fn batch(job_guid: JobGuid, processor: &Arc<Scripted>) -> ItemBatch {
    let item = |row| Item { job_guid, row, record: Record::Json(Value::Null) };
    let (processor, items) = (Arc::clone(processor) as _, (1..=5).map(item).collect());
    ItemBatch { processor, items, call: BatchCall::Together, output_max_bytes: 100 }
}

/// True if an abandoned batch of this job still has a thread.
fn has_thread(job_guid: JobGuid) -> bool {
    ABANDONED.lock().iter().any(|watch| watch.job_guid == job_guid && !watch.has_ended())
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_holds_its_thread_is_reported_with_its_row_until_it_gives_the_thread_back() {
    let processor = Arc::new(Scripted { holds_at: Some(3), ..Scripted::default() });
    let end = BatchThreads::new(SHORT).run(batch(job(1), &processor)).await;
    assert!(matches!(end, BatchEnd::Held { row: 3 }), "{end:?}");
    assert!(has_thread(job(1)));
    processor.freed.store(true, Ordering::Relaxed);
    until(|| !has_thread(job(1))).await;
    assert_eq!(processor.begun.load(Ordering::Relaxed), 3, "nobody waits for the further items, so they do not begin");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_awaits_something_is_never_held() {
    let processor = Arc::new(Scripted { awaits_at: Some(2), ..Scripted::default() });
    let (threads, runs) = (BatchThreads::new(Duration::from_millis(20)), batch(job(2), &processor));
    let run = tokio::spawn(async move { threads.run(runs).await });
    tokio::time::sleep(SHORT).await;
    processor.goes_on.notify_one();
    match run.await.unwrap() {
        BatchEnd::Answered { items, results } => assert_eq!((items.len(), results.len()), (5, 5)),
        held @ BatchEnd::Held { .. } => panic!("{held:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_nobody_waits_for_ends_at_its_next_await() {
    let processor = Arc::new(Scripted { awaits_at: Some(2), ..Scripted::default() });
    let runner = BatchThreads::new(LONG);
    let mut run = runner.run(batch(job(3), &processor));
    assert!((&mut run).now_or_never().is_none());
    until(|| processor.begun.load(Ordering::Relaxed) == 2).await;
    drop(run);
    until(|| !has_thread(job(3))).await;
}

#[test]
fn a_thread_that_was_held_for_long_is_not_waited_for() {
    let watch = Watch { began: Instant::now() - 2 * STUCK_AFTER, ..Watch::new(job(4), 2) };
    assert!(!watch.is_stuck(), "it awaits something");
    watch.since_ms.store(1, Ordering::Relaxed);
    assert!(watch.is_stuck());
    watch.begin();
    assert!(!watch.is_stuck(), "it has just begun an item");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_an_item_begins_with_the_item_and_not_with_its_batch() {
    /// Each item takes half of the timeout, and the batch more than twice the timeout.
    struct Slow;
    #[async_trait]
    impl ItemProcessor for Slow {
        async fn process(&self, _: &Item) -> Result<ItemOutcome, ItemError> {
            std::thread::sleep(Duration::from_millis(500));
            Ok(ItemOutcome::Succeeded)
        }
    }
    let batch = ItemBatch { processor: Arc::new(Slow), ..batch(job(4), &Arc::default()) };
    let end = BatchThreads::new(Duration::from_secs(1)).run(batch).await;
    assert!(matches!(end, BatchEnd::Answered { .. }), "{end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_processor_reaches_the_caller() {
    let processor = Arc::new(Scripted { panics_at: Some(1), ..Scripted::default() });
    let run = std::panic::AssertUnwindSafe(BatchThreads::new(LONG).run(batch(job(5), &processor))).catch_unwind().await;
    assert!(run.is_err());
    assert!(!has_thread(job(5)));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_stays_at_an_item_gets_the_lowest_priority_and_the_next_batch_has_its_own() {
    fn niceness() -> i32 {
        rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap()
    }
    /// Holds its thread at the first item until the thread has the lowest priority.
    #[derive(Default)]
    struct Holds {
        began_with: std::sync::Mutex<Vec<i32>>,
    }
    #[async_trait]
    impl ItemProcessor for Holds {
        async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
            if item.row == 1 {
                self.began_with.lock().unwrap().push(niceness());
                while niceness() != 19 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Ok(ItemOutcome::Succeeded)
        }
    }
    let processor = Arc::new(Holds::default());
    for number in [6, 7] {
        let batch = ItemBatch { processor: Arc::clone(&processor) as _, ..batch(job(number), &Arc::default()) };
        let end = BatchThreads::new(LONG).run(batch).await;
        assert!(matches!(end, BatchEnd::Answered { .. }), "{end:?}");
    }
    assert_eq!(*processor.began_with.lock().unwrap(), [niceness(); 2]);
}

#[test]
fn an_item_whose_thread_got_no_processor_is_neither_slow_nor_held() {
    let verdict = |held_for, waited| {
        let [held_for, waited, timeout] = [held_for, waited, 20_000].map(Duration::from_millis);
        AtItem { held_for, waited }.judge(timeout)
    };
    assert_eq!([verdict(99, 0), verdict(100, 0)], [Verdict::Fine, Verdict::Slow], "it computes, or blocks its thread");
    assert_eq!([verdict(900, 801), verdict(900, 800)], [Verdict::Fine, Verdict::Slow], "others had the processors");
    assert_eq!([verdict(19_999, 0), verdict(20_000, 0)], [Verdict::Slow, Verdict::Held]);
    assert_eq!(
        [verdict(20_000, 18_001), verdict(20_000, 18_000)],
        [Verdict::Slow, Verdict::Held],
        "a tenth is its own"
    );
    assert_eq!([verdict(80_000, 78_001), verdict(80_000, 78_000)], [Verdict::Slow, Verdict::Held]);
}
