//! Small jobs of items that wait for a service.

use acceptance::files;
use acceptance::use_cases::Limits;
use acceptance::world::{World, plain_type};
use async_trait::async_trait;
use rowmill_core::model::job::states::Status;
use rowmill_core::ports::processor::{CostClass, Item, ItemError, ItemOutcome, ItemProcessor};
use serde_json::json;

/// Processes items one after the other.
#[derive(Clone)]
struct Slow;

#[async_trait]
impl ItemProcessor for Slow {
    async fn process(&self, _: &Item) -> Result<ItemOutcome, ItemError> {
        Ok(ItemOutcome::Succeeded)
    }

    fn cost(&self) -> CostClass {
        CostClass::Remote
    }
}

#[tokio::test]
async fn a_small_job_of_slow_items_shows_progress_before_its_end() {
    let world = World::with_job_type(Limits::default(), |_| Some(plain_type("slow", Slow)));
    let file = world.store_csv(files::plain_csv(50)).await;
    let job = world.create("slow", file, json!({})).await.expect("a job").job_guid;
    world.split().await;
    let messages = world.chunks.take();
    assert!(messages.iter().all(|message| message.chunk.items == 1), "one batch a chunk");
    let (first, rest) = messages.split_at(10);
    world.process_all(first).await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.item_progress, shown.chunks_in_flight), (Status::Running, 10, 40));
    assert!((10..30).contains(&shown.percent), "{shown:?}");
    world.process_all(rest).await;
    assert_eq!(world.completed(job).await, 50);
}
