//! Items that kill or stall their process, and handlers that take longer than an invocation.

mod fast;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acceptance::faults::{Death, at_every_call};
use acceptance::use_cases::Limits;
use acceptance::world::{World, plain_type};
use async_trait::async_trait;
use dead_letter::settle::{DeadLetterEnd, DeadMessage};
use process_items::end::ChunkEnd;
use process_items::limits::RunLimits;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::ports::processor::{CostClass, Item, ItemError, ItemOutcome, ItemProcessor};
use rowmill_core::ports::{Checkpoints, DeadLetters, Jobs, PortError};
use rowmill_core::text::Record;
use rowmill_settings::{Deadlines, ProcessTime, VISIBILITY_TIMEOUTS};
use rowmill_testing::in_memory::ManualClock;
use serde_json::json;

use crate::chunks_of;

/// Deliveries of a chunk before it becomes a dead letter, as in the template.
const RECEIVES_MAX: u32 = 5;

/// The job type `scripted`. The cell `what` decides: `hang` never returns, `busy` is a transient error, `bad` a
/// permanent one, `once` fails the first time and succeeds from then on; anything else succeeds.
#[derive(Clone)]
struct Scripted {
    cost: CostClass,
    seen: Arc<Mutex<BTreeSet<u64>>>,
}

#[async_trait]
impl ItemProcessor for Scripted {
    fn cost(&self) -> CostClass {
        self.cost
    }

    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let Record::Cells(cells) = &item.record else { return Err(ItemError::permanent("no_cells", "not CSV")) };
        match cells.get("what") {
            Some("hang") => std::future::pending().await,
            Some("busy") => Err(ItemError::transient("busy", "not now")),
            Some("once") if self.seen.lock().unwrap().insert(item.row) => {
                Err(ItemError::permanent("once", "as scripted"))
            }
            Some("bad") => Err(ItemError::permanent("bad", "as scripted")),
            _ => Ok(ItemOutcome::Succeeded),
        }
    }
}

fn scripted(max_items: u32) -> World {
    scripted_of(CostClass::StoreBound, chunks_of(max_items))
}

fn scripted_of(cost: CostClass, limits: Limits) -> World {
    World::with_job_type(limits, move |_| Some(plain_type("scripted", Scripted { cost, seen: Arc::default() })))
}

/// A job of type `scripted` over these rows.
async fn create(world: &World, rows: &str) -> JobGuid {
    let file = world.store_csv(format!("what\n{}\n", rows.replace(' ', "\n"))).await;
    world.create("scripted", file, json!({})).await.unwrap().job_guid
}

async fn run(world: &World, rows: &str) -> JobGuid {
    let job = create(world, rows).await;
    world.run_with_dead_letters().await;
    job
}

async fn failed(world: &World, job: JobGuid) -> Vec<(u64, String)> {
    world.all_failed(job).await.into_iter().map(|item| (item.row, item.code)).collect()
}

#[tokio::test]
async fn a_poison_item_fails_alone_and_not_its_chunk() {
    let world = scripted(6);
    let job = run(&world, "good bad hang good bad good").await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 3, 3));
    let expected = [(2, "bad"), (3, "poison"), (5, "bad")].map(|(row, code)| (row, code.to_owned()));
    assert_eq!(failed(&world, job).await, expected);
    let letters = world.jobs.dead_letters(job, 10).await.unwrap();
    assert_eq!((letters.len(), letters[0].chunk.unwrap().items), (1, 6), "the chunk went to the isolate queue once");
}

#[tokio::test]
async fn a_chunk_with_too_many_poison_items_is_given_up() {
    let world = scripted(7);
    let job = run(&world, "good hang hang good hang good bad").await;
    let expected = [(2, "poison"), (3, "poison"), (5, "poison"), (6, "dead_letter"), (7, "dead_letter")];
    assert_eq!(failed(&world, job).await, expected.map(|(row, code)| (row, code.to_owned())));
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 2, 5));
}

#[tokio::test]
async fn an_item_that_always_fails_transiently_fails_alone_with_its_own_code() {
    for cost in [CostClass::StoreBound, CostClass::Fast] {
        let world = scripted_of(cost, chunks_of(5));
        let job = run(&world, "good bad busy good busy good").await;
        let expected = [(2, "bad"), (3, "busy"), (5, "busy")];
        assert_eq!(failed(&world, job).await, expected.map(|(row, code)| (row, code.to_owned())));
        let shown = world.show(job).await;
        assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 3, 3));
        let letters = world.jobs.dead_letters(job, 10).await.unwrap();
        assert_eq!(letters.len(), 1, "the chunk went to the isolate queue once");
    }
}

#[tokio::test]
async fn after_too_many_items_that_fail_transiently_the_rest_of_the_chunk_is_given_up() {
    let world = scripted(7);
    let job = run(&world, "good busy hang good busy good bad").await;
    let expected = [(2, "busy"), (3, "poison"), (5, "busy"), (6, "dead_letter"), (7, "dead_letter")];
    assert_eq!(failed(&world, job).await, expected.map(|(row, code)| (row, code.to_owned())));
    assert_eq!(world.show(job).await.items_succeeded, 2);
}

/// Each delivery that fails costs a visibility timeout. They must not take the time of the job's other rows.
#[tokio::test]
async fn a_chunk_whose_items_all_fail_transiently_ends_before_the_default_deadline() {
    let most = RunLimits::default().passed_over_max;
    let world = scripted_of(CostClass::StoreBound, chunks_of(12).but(|limits| limits.run.passed_over_max = most));
    let job = create(&world, &["busy"; 12].join(" ")).await;
    world.split().await;
    let message = world.chunks.take().remove(0);
    for delivery in 0..RECEIVES_MAX {
        assert!(world.try_process(&message, delivery > 0).await.is_err());
    }
    world.dead_letters.settle("letter", &DeadMessage::Chunk(message)).await.unwrap();
    let mut failed_deliveries = RECEIVES_MAX;
    while let Some(message) = world.isolated.take().pop() {
        while world.try_process(&message, true).await.is_err() {
            failed_deliveries += 1;
        }
    }
    assert_eq!(failed_deliveries, RECEIVES_MAX + 2 + most, "the first one has three, each further one two");
    let took = ProcessTime::default().limit * VISIBILITY_TIMEOUTS * failed_deliveries;
    assert!(took < Duration::from_secs(Deadlines::default().default_seconds), "{took:?}");
    world.run().await;
    assert_eq!(failed(&world, job).await[10..], [(11, "busy".to_owned()), (12, "dead_letter".to_owned())]);
}

/// A job of one chunk of these rows, after this many deliveries of its isolated message.
async fn delivered(rows: &str, deliveries: usize) -> (World, JobGuid, ChunkMessage) {
    let world = scripted(4);
    let job = create(&world, rows).await;
    world.split().await;
    let message = world.chunks.take().remove(0);
    world.dead_letters.settle("letter", &DeadMessage::Chunk(message)).await.unwrap();
    let isolated = world.isolated.take().remove(0);
    for _ in 0..deliveries {
        assert!(world.try_process(&isolated, true).await.is_err());
    }
    (world, job, isolated)
}

/// A job of one chunk whose first and third row always fail, long after this many deliveries.
async fn isolated_after(deliveries: usize) -> (World, JobGuid, ChunkMessage) {
    let (world, job, isolated) = delivered("busy good busy good", deliveries).await;
    world.clock.advance(world.limits.dead_letter.recovery.stale);
    (world, job, isolated)
}

#[tokio::test]
async fn a_chunk_that_a_run_may_still_be_at_is_not_given_up() {
    for rows in ["hang good", "busy good"] {
        let (world, _, isolated) = delivered(rows, 1).await;
        let letter = DeadMessage::Chunk(isolated);
        let early = world.dead_letters.settle("letter", &letter).await;
        assert!(matches!(early, Err(PortError::Unavailable { .. })), "{rows}: {early:?}");
        world.clock.advance(world.limits.dead_letter.recovery.stale);
        assert_eq!(world.dead_letters.settle("letter", &letter).await.unwrap(), DeadLetterEnd::GivenUp, "{rows}");
    }
}

#[tokio::test]
async fn a_chunk_is_not_given_up_before_a_run_has_begun() {
    // Its deliveries were used up by invocations that came too late for their lane.
    let (world, job, isolated) = isolated_after(0).await;
    for letter in ["late", "late again"] {
        let end = world.dead_letters.settle(letter, &DeadMessage::Chunk(isolated.clone())).await.unwrap();
        assert_eq!((end, world.isolated.take()), (DeadLetterEnd::Isolated, vec![isolated.clone()]));
    }
    assert_eq!(world.show(job).await.items_failed, 0);

    let (world, job, isolated) = isolated_after(1).await;
    let end = world.dead_letters.settle("failed", &DeadMessage::Chunk(isolated)).await.unwrap();
    assert_eq!((end, world.isolated.take()), (DeadLetterEnd::GivenUp, vec![]));
    world.run().await;
    assert_eq!(world.show(job).await.items_failed, 4);
}

#[tokio::test]
async fn a_fresh_message_of_an_isolated_chunk_is_given_up_only_after_a_run_has_begun() {
    let (world, job, isolated) = isolated_after(2).await;
    assert_eq!(world.process(&isolated, true).await, ChunkEnd::Continued, "the first item fails alone");
    let late = DeadMessage::Chunk(world.isolated.take().remove(0));
    assert_eq!(world.dead_letters.settle("late", &late).await.unwrap(), DeadLetterEnd::Isolated);
    assert_eq!(world.process(&world.isolated.take()[0], false).await, ChunkEnd::Continued, "the second one is done");
    let fresh = world.isolated.take().remove(0);
    assert!(world.try_process(&fresh, false).await.is_err());
    world.clock.advance(world.limits.dead_letter.recovery.stale);
    assert_eq!(world.dead_letters.settle("failed", &DeadMessage::Chunk(fresh)).await.unwrap(), DeadLetterEnd::GivenUp);
    world.run().await;
    let expected = [(1, "busy"), (3, "dead_letter"), (4, "dead_letter")];
    assert_eq!(failed(&world, job).await, expected.map(|(row, code)| (row, code.to_owned())));
    assert_eq!(world.show(job).await.items_succeeded, 1, "what is done keeps its outcome");
}

#[tokio::test]
async fn a_run_from_before_a_pause_does_not_count_as_one_of_the_message_after_it() {
    let (world, job, _) = isolated_after(1).await;
    world.pause(job).await;
    world.resume(job).await;
    world.clock.advance(world.limits.split.stop.grace);
    world.split().await;
    let isolated = world.isolated.take().remove(0);
    let letter = DeadMessage::Chunk(isolated.clone());
    world.clock.advance(world.limits.dead_letter.recovery.stale);
    assert_eq!(world.dead_letters.settle("late", &letter).await.unwrap(), DeadLetterEnd::Isolated);
    assert_eq!(world.isolated.take(), vec![isolated.clone()]);
    assert!(world.try_process(&isolated, false).await.is_err());
    world.clock.advance(world.limits.dead_letter.recovery.stale);
    assert_eq!(world.dead_letters.settle("failed", &letter).await.unwrap(), DeadLetterEnd::GivenUp);
    world.run().await;
    assert_eq!(world.show(job).await.items_failed, 4);
}

#[tokio::test]
async fn a_missing_file_stops_the_job_instead_of_giving_up_the_chunk() {
    let world = scripted(4);
    let job = create(&world, "busy good").await;
    world.split().await;
    let key = world.jobs.spec(job).await.unwrap().source.file().unwrap().key.clone();
    world.objects.delete(&key);
    world.run_with_dead_letters().await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_skipped), (Status::Failed, 2));
}

/// A transient failure after finished items costs no delivery, and the finished items are not repeated.
#[tokio::test]
async fn items_that_finished_before_a_transient_failure_are_kept() {
    let world = scripted(6);
    let job = create(&world, "good once busy good").await;
    world.split().await;
    let message = world.chunks.take().remove(0);
    assert_eq!(world.process(&message, false).await, ChunkEnd::Continued);
    let checkpoint = world.jobs.checkpoint(job, message.address).await.unwrap().unwrap();
    assert_eq!((checkpoint.done, checkpoint.counts.succeeded, checkpoint.counts.failed), (2, 1, 1));
    let next = world.chunks.take().remove(0);
    assert!(world.try_process(&next, false).await.is_err(), "no progress, so this counts as a delivery");
    world.clock.advance(Duration::from_secs(600));
    assert!(world.chunks.take().is_empty());
}

/// The job type `slow`: each item takes ten seconds of the world's clock.
#[derive(Clone)]
struct Slow(Arc<ManualClock>);

#[async_trait]
impl ItemProcessor for Slow {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.0.advance(Duration::from_secs(10));
        match item.row % 7 {
            0 => Err(ItemError::permanent("seventh", "as scripted")),
            _ => Ok(ItemOutcome::Succeeded),
        }
    }
}

#[tokio::test]
async fn an_isolated_chunk_that_takes_longer_than_an_invocation_continues_in_the_next() {
    let world = World::with_job_type(chunks_of(100), |clock| Some(plain_type("slow", Slow(clock.clone()))));
    let rows: String = (1..=50).map(|row| format!("{row}\n")).collect();
    let file = world.store_csv(format!("n\n{rows}")).await;
    let job = world.create("slow", file, json!({})).await.unwrap().job_guid;
    world.split().await;
    let (mut invocations, mut heartbeat) = (0, world.show(job).await.heartbeat_at);
    while let Some(message) = world.chunks.take().pop() {
        // 27 seconds per invocation: 3 items.
        world.process(&message, false).await;
        invocations += 1;
        let shown = world.show(job).await;
        assert!(shown.heartbeat_at > heartbeat, "a continuation is a sign of life");
        heartbeat = shown.heartbeat_at;
    }
    assert_eq!(invocations, 17);
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.items_succeeded, shown.items_failed), (43, 7));
    assert_eq!(
        world.failed_rows(job).await,
        [7, 14, 21, 28, 35, 42, 49],
        "the failures of both invocations, each once"
    );
}

/// A job whose only chunk became a dead letter. An item that runs again succeeds.
async fn isolated_with_items_that_fail_once() -> (World, JobGuid) {
    let world = scripted(6);
    let job = create(&world, "bad once good once once bad").await;
    world.split().await;
    let letter = DeadMessage::Chunk(world.chunks.take().remove(0));
    world.dead_letters.settle("letter", &letter).await.unwrap();
    (world, job)
}

#[tokio::test]
async fn an_isolated_run_lists_the_failures_it_counts_after_a_crash_at_any_call() {
    at_every_call(async |call, death| {
        let (world, job) = isolated_with_items_that_fail_once().await;
        world.faults.plan(call, death);
        world.run_through_crashes(Duration::from_secs(300)).await;
        let shown = world.show(job).await;
        let listed = failed(&world, job).await;
        assert_eq!((shown.status, shown.item_progress), (Status::Completed, 6));
        assert_eq!(listed.len() as u64, shown.items_failed, "{death:?} call {call}: {listed:?}");
        assert!(listed.iter().all(|(_, code)| code == "bad" || code == "once"), "{listed:?}");
        !world.faults.is_pending()
    })
    .await;
}

#[tokio::test]
async fn an_isolated_run_keeps_what_is_done_if_a_store_fails_at_any_call() {
    at_every_call(async |call, death| {
        let (world, job) = isolated_with_items_that_fail_once().await;
        world.faults.plan_failure(call, death);
        world.run_with_dead_letters().await;
        let expected = [(1, "bad"), (2, "once"), (4, "once"), (5, "once"), (6, "bad")];
        assert_eq!(failed(&world, job).await, expected.map(|(row, code)| (row, code.to_owned())));
        !world.faults.is_pending()
    })
    .await;
}
