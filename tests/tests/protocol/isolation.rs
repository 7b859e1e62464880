//! Items that end or stall the process that runs them, and handlers that take longer than an invocation.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acceptance::faults::Death;
use acceptance::world::{World, WorldLimits};
use async_trait::async_trait;
use dead_letter::settle::DeadMessage;
use process_items::process::ChunkEnd;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::spec::Spec;
use rowmill_core::model::states::Status;
use rowmill_core::ports::JobStore;
use rowmill_core::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use rowmill_core::text::Record;
use serde_json::json;

use crate::chunks_of;

/// Does what the cell `what` says: `hang`, `busy` (a transient error, always), `bad`, `once` (bad at first, good then);
/// anything else is good.
#[derive(Default)]
struct Told {
    seen: Arc<Mutex<BTreeSet<u64>>>,
}

impl JobType for Told {
    fn name(&self) -> &str {
        "told"
    }

    fn prepare(&self, _: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        Ok(Arc::new(Self { seen: Arc::clone(&self.seen) }))
    }
}

#[async_trait]
impl ItemProcessor for Told {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let Record::Cells(cells) = &item.record else { return Err(ItemError::permanent("no_cells", "not CSV")) };
        match cells.get("what") {
            Some("hang") => std::future::pending().await,
            Some("busy") => Err(ItemError::transient("busy", "not now")),
            Some("once") if self.seen.lock().unwrap().insert(item.row) => Err(ItemError::permanent("once", "as told")),
            Some("bad") => Err(ItemError::permanent("bad", "as told")),
            _ => Ok(ItemOutcome::Succeeded),
        }
    }
}

fn told(max_items: u32) -> World {
    World::new(WorldLimits { job_type: Some(|| Arc::new(Told::default())), ..chunks_of(max_items) })
}

async fn run(world: &World, rows: &str) -> JobGuid {
    let file = world.store("text/csv", format!("what\n{}\n", rows.replace(' ', "\n"))).await;
    let job = world.create("told", file, json!({})).await.unwrap().job_guid;
    world.run_with_dead_letters().await;
    job
}

async fn failed(world: &World, job: JobGuid) -> Vec<(u64, String)> {
    world.all_failed(job).await.into_iter().map(|item| (item.row, item.code)).collect()
}

#[tokio::test]
async fn a_poison_item_costs_itself_and_not_its_chunk() {
    let world = told(6);
    let job = run(&world, "good bad hang good bad good").await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 3, 3));
    let expected = [(2, "bad"), (3, "poison"), (5, "bad")].map(|(row, code)| (row, code.to_owned()));
    assert_eq!(failed(&world, job).await, expected);
    let letters = world.jobs.dead_letters(job, 10).await.unwrap();
    assert_eq!((letters.len(), letters[0].chunk.unwrap().items), (1, 6), "the chunk went to the isolate queue once");
}

#[tokio::test]
async fn too_many_poison_items_give_their_chunk_up() {
    let world = told(7);
    let job = run(&world, "good hang hang good hang good bad").await;
    let expected = [(2, "poison"), (3, "poison"), (5, "poison"), (6, "dead_letter"), (7, "dead_letter")];
    assert_eq!(failed(&world, job).await, expected.map(|(row, code)| (row, code.to_owned())));
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 2, 5));
}

#[tokio::test]
async fn a_chunk_that_fails_alone_too_is_given_up_from_where_it_is() {
    let world = told(4);
    let job = run(&world, "good bad busy good good").await;
    let expected = [(2, "bad"), (3, "dead_letter"), (4, "dead_letter")];
    assert_eq!(failed(&world, job).await, expected.map(|(row, code)| (row, code.to_owned())));
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 2, 3));
    let about: Vec<_> =
        world.jobs.dead_letters(job, 10).await.unwrap().iter().map(|letter| letter.about.clone()).collect();
    use rowmill_core::model::dead_letter::DeadLetterKind::{Isolated, Items};
    assert_eq!(about, [Items, Isolated]);
}

#[tokio::test]
async fn a_chunk_whose_file_is_gone_is_not_given_up_but_its_job_stopped() {
    let world = told(4);
    let file = world.store("text/csv", "what\nbusy\ngood\n").await;
    let job = world.create("told", file, json!({})).await.unwrap().job_guid;
    world.splitter.split(&world.splits.take()[0], world.deadline()).await.unwrap();
    let key = world.jobs.spec(job).await.unwrap().source.file().unwrap().key.clone();
    world.objects.delete(&key);
    world.run_with_dead_letters().await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_skipped), (Status::Failed, 2));
}

/// An item that has what others left of an invocation's time is not blamed for it, and what was done is not done again.
#[tokio::test]
async fn what_was_done_before_an_item_that_cannot_be_done_now_is_kept() {
    let world = told(6);
    let file = world.store("text/csv", "what\ngood\nonce\nbusy\ngood\n").await;
    let job = world.create("told", file, json!({})).await.unwrap().job_guid;
    world.splitter.split(&world.splits.take()[0], world.deadline()).await.unwrap();
    let message = world.chunks.take().remove(0);
    assert_eq!(world.process(&message, false).await, ChunkEnd::Continued);
    let checkpoint = world.jobs.checkpoint(job, message.address).await.unwrap().unwrap();
    assert_eq!((checkpoint.done, checkpoint.counts.succeeded, checkpoint.counts.failed), (2, 1, 1));
    let next = world.chunks.take().remove(0);
    assert!(world.try_process(&next, false).await.is_err(), "it gets no further, so this counts as a try");
    world.clock.advance(Duration::from_secs(600));
    assert!(world.chunks.take().is_empty());
}

/// Takes ten seconds of the test's time for each item.
struct Slow;

static SLOW_CLOCK: std::sync::OnceLock<Arc<rowmill_core::in_memory::ManualClock>> = std::sync::OnceLock::new();

impl JobType for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn prepare(&self, _: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        Ok(Arc::new(Self))
    }
}

#[async_trait]
impl ItemProcessor for Slow {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        SLOW_CLOCK.get().expect("set by the test").advance(Duration::from_secs(10));
        match item.row % 7 {
            0 => Err(ItemError::permanent("seventh", "as told")),
            _ => Ok(ItemOutcome::Succeeded),
        }
    }
}

#[tokio::test]
async fn a_chunk_that_takes_longer_than_an_invocation_goes_on_in_the_next_one() {
    let world = World::new(WorldLimits { job_type: Some(|| Arc::new(Slow)), ..chunks_of(100) });
    SLOW_CLOCK.set(world.clock.clone()).expect("one test sets it");
    let rows: String = (1..=50).map(|row| format!("{row}\n")).collect();
    let file = world.store("text/csv", format!("n\n{rows}")).await;
    let job = world.create("slow", file, json!({})).await.unwrap().job_guid;
    world.splitter.split(&world.splits.take()[0], world.deadline()).await.unwrap();
    let (mut invocations, mut heartbeat) = (0, world.show(job).await.heartbeat_at);
    while let Some(message) = world.chunks.take().pop() {
        // 298 seconds an invocation: 30 items.
        world.process(&message, false).await;
        invocations += 1;
        let shown = world.show(job).await;
        assert!(shown.heartbeat_at > heartbeat, "a continuation is a sign of life");
        heartbeat = shown.heartbeat_at;
    }
    assert_eq!(invocations, 2);
    world.run().await;
    let shown = world.show(job).await;
    assert_eq!((shown.items_succeeded, shown.items_failed), (43, 7));
    let rows: Vec<u64> = world.all_failed(job).await.iter().map(|item| item.row).collect();
    assert_eq!(rows, [7, 14, 21, 28, 35, 42, 49], "of both invocations, each once");
}

#[tokio::test]
async fn a_crash_at_any_call_of_an_isolated_run_lists_what_it_counts() {
    for death in [Death::Before, Death::After] {
        for call in 0.. {
            let world = told(6);
            let file = world.store("text/csv", "what\nbad\nonce\ngood\nonce\nonce\nbad\n").await;
            let job = world.create("told", file, json!({})).await.unwrap().job_guid;
            world.splitter.split(&world.splits.take()[0], world.deadline()).await.unwrap();
            let letter = DeadMessage::Chunk(world.chunks.take().remove(0));
            world.dead_letters.settle("letter", &letter).await.unwrap();
            world.faults.plan(call, death);
            world.run_through_crashes(Duration::from_secs(300)).await;
            let shown = world.show(job).await;
            let listed = failed(&world, job).await;
            assert_eq!((shown.status, shown.item_progress), (Status::Completed, 6), "{death:?} call {call}");
            assert_eq!(listed.len() as u64, shown.items_failed, "{death:?} call {call}: {listed:?}");
            assert!(listed.iter().all(|(_, code)| code == "bad" || code == "once"), "{listed:?}");
            if world.faults.is_pending() {
                break;
            }
        }
    }
}
