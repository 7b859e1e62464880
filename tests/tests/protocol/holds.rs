//! Items that hold their thread, on real threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use acceptance::world::{World, plain_type};
use async_trait::async_trait;
use jiff::Timestamp;
use process_items::end::ChunkEnd;
use rowmill_aws::host::batch_threads::BatchThreads;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::ports::Clock;
use rowmill_core::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor};
use rowmill_core::text::Record;
use rowmill_testing::in_memory::ManualClock;
use serde_json::json;

use crate::chunks_of;

/// The job type `holding`: the cell `hold` holds its thread until the test ends.
#[derive(Clone, Default)]
struct Holding {
    ended: Arc<AtomicBool>,
    begun: Arc<AtomicU64>,
}

#[async_trait]
impl ItemProcessor for Holding {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let Record::Cells(cells) = &item.record else { return Err(ItemError::permanent("no_cells", "not CSV")) };
        while cells.get("what") == Some("hold") && !self.ended.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(ItemOutcome::Succeeded)
    }

    fn batch_items(&self) -> usize {
        2
    }
}

/// Ends the held threads with the test, because the test's runtime waits for them.
impl Drop for Test {
    fn drop(&mut self) {
        self.holding.ended.store(true, Ordering::Relaxed);
    }
}

/// The world's time; who sleeps waits really, so that threads can go on meanwhile.
struct RealSleep(Arc<ManualClock>);

#[async_trait]
impl Clock for RealSleep {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

struct Test {
    world: World,
    holding: Holding,
}

impl Test {
    fn new() -> Self {
        let holding = Holding::default();
        let mut world = World::with_job_type(chunks_of(5), |_| Some(plain_type("holding", holding.clone())));
        world.processor.runs.batches = Arc::new(BatchThreads::new(Duration::from_millis(200)));
        world.processor.ports.clock = Arc::new(RealSleep(Arc::clone(&world.clock)));
        Self { world, holding }
    }

    /// A job over these rows, and the messages of its chunks.
    async fn split(&self, rows: &str) -> (JobGuid, Vec<ChunkMessage>) {
        let file = self.world.store_csv(format!("what\n{}\n", rows.replace(' ', "\n"))).await;
        let job = self.world.create("holding", file, json!({})).await.unwrap().job_guid;
        self.world.split().await;
        (job, self.world.chunks.take())
    }

    async fn complete(&self) {
        for message in self.world.completions.take() {
            self.world.completer.complete(&message, self.world.deadline()).await.unwrap();
        }
    }

    /// The job has ended with `item_timeout` at this row, with these numbers of items succeeded and skipped.
    async fn is_stopped(&self, job: JobGuid, row: u64, succeeded: u64, skipped: u64) {
        let shown = self.world.show(job).await;
        assert_eq!((shown.status, shown.items_succeeded, shown.items_skipped), (Status::Failed, succeeded, skipped));
        let error = shown.error.unwrap();
        assert_eq!((error.code, error.row), (StopCode::ItemTimeout.into(), Some(row)));
        assert!(error.message.contains("row 4") && error.message.contains("20 s"), "{}", error.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_holds_its_thread_stops_its_own_job_and_no_other() {
    let test = Test::new();
    let (held, chunks) = test.split("good good good hold good good good").await;
    let (neighbour, others) = test.split("good good good").await;
    let world = &test.world;
    // Both in one process, polled by one task: the neighbour's chunk could not end if the item held that task.
    let (end, other) = tokio::join!(world.process(&chunks[0], false), world.process(&others[0], false));
    assert!(matches!((end, other), (ChunkEnd::Committed(_), ChunkEnd::Committed(_))));
    let begun = test.holding.begun.load(Ordering::Relaxed);
    world.process(&chunks[1], false).await;
    assert_eq!(test.holding.begun.load(Ordering::Relaxed), begun, "the job's other chunk is not tried");
    test.complete().await;
    test.is_stopped(held, 4, 2, 5).await;
    assert_eq!(world.completed(neighbour).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_of_an_isolated_chunk_that_holds_its_thread_stops_its_job_and_is_no_poison() {
    let test = Test::new();
    let (job, chunks) = test.split("good good good hold good").await;
    let isolated = ChunkMessage { delivery_mode: DeliveryMode::Isolated, ..chunks[0].clone() };
    assert!(matches!(test.world.process(&isolated, true).await, ChunkEnd::Committed(_)));
    test.complete().await;
    test.is_stopped(job, 4, 3, 2).await;
}
