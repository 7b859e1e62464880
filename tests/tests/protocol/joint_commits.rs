//! The chunks of one invocation that are of the same tally commit in one write. Each counts once all the same.

use std::time::Duration;

use acceptance::faults::{Death, at_every_call};
use acceptance::files;
use acceptance::world::World;
use process_items::end::{ChunkEnd, RunError};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::ports::{Clock, Jobs, Tallies};
use serde_json::json;

use crate::{chunks_of, split_with};

/// A call that no test reaches: the plan only counts the calls.
const NEVER: u64 = u64::MAX;

/// A world with a job of this many chunks of one row, split, and their messages.
async fn split(rows: u64) -> (World, JobGuid, Vec<ChunkMessage>) {
    let (world, job) = crate::split(1, rows).await;
    let chunks = world.chunks.take();
    (world, job, chunks)
}

fn fresh(messages: &[ChunkMessage]) -> Vec<(ChunkMessage, bool)> {
    messages.iter().map(|message| (message.clone(), false)).collect()
}

const fn is_committed(end: &Result<ChunkEnd, RunError>) -> bool {
    matches!(end, Ok(ChunkEnd::Committed(_)))
}

/// Number of calls of an invocation with these chunks, after another one has read the job and begun it.
async fn calls(chunks: &[usize]) -> u64 {
    let (world, _, messages) = split(80).await;
    world.process(&messages[20], false).await;
    let received: Vec<ChunkMessage> = chunks.iter().map(|chunk| messages[*chunk].clone()).collect();
    world.faults.plan(NEVER, Death::Before);
    assert!(world.try_process_together(&fresh(&received)).await.iter().all(is_committed));
    world.faults.calls()
}

#[tokio::test]
async fn ten_chunks_of_a_tally_commit_in_one_write() {
    // Their bytes are one read.
    assert_eq!(calls(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]).await, calls(&[0]).await);
    // The second tally has a write of its own.
    assert_eq!(calls(&[0, 1, 2, 64, 65, 66]).await, calls(&[0]).await + 1);
}

#[tokio::test]
async fn a_chunk_that_is_committed_already_does_not_hold_up_the_others() {
    let (world, job, chunks) = split(20).await;
    world.process(&chunks[4], false).await;
    world.process(&chunks[7], false).await;
    // Redundant messages, as a sweep or a resume may send: they are delivered for the first time.
    let ends = world.try_process_together(&fresh(&chunks[..10])).await;
    for (number, end) in ends.iter().enumerate() {
        assert_eq!(is_committed(end), ![4, 7].contains(&number), "chunk {number}: {end:?}");
    }
    assert!(matches!(ends[4], Ok(ChunkEnd::Repeated)) && matches!(ends[7], Ok(ChunkEnd::Repeated)));
    assert_eq!(world.jobs.tally(job, 1, 0).await.unwrap().done, 10);
}

#[tokio::test]
async fn two_messages_of_a_chunk_in_one_invocation_count_it_once() {
    let (world, job, chunks) = split(20).await;
    let twice = [&chunks[..5], &chunks[2..7]].concat();
    let ends = world.try_process_together(&fresh(&twice)).await;
    assert_eq!(ends.iter().filter(|end| is_committed(end)).count(), 7);
    assert_eq!(ends.iter().filter(|end| matches!(end, Ok(ChunkEnd::Repeated))).count(), 3);
    let tally = world.jobs.tally(job, 1, 0).await.unwrap();
    assert_eq!((tally.done, tally.counts.succeeded), (7, 7));
}

#[tokio::test]
async fn a_chunk_that_leaves_without_a_commit_does_not_hold_up_the_others() {
    let (world, job, chunks) = split(20).await;
    world.process(&chunks[0], false).await;
    let mut messages = fresh(&chunks[..4]);
    // It finds its chunk committed, and ends.
    messages[0].1 = true;
    let ends = world.try_process_together(&messages).await;
    assert!(matches!(ends[0], Ok(ChunkEnd::Repeated)) && ends[1..].iter().all(is_committed), "{ends:?}");
    assert_eq!(world.jobs.tally(job, 1, 0).await.unwrap().done, 4);
}

#[tokio::test]
async fn the_commit_that_makes_a_tally_half_done_sends_the_next_one_once() {
    let limits = chunks_of(1).but(|limits| limits.create.tallies_ahead_min = 1);
    let world = World::new(limits);
    let job = world.validate_csv(files::plain_csv(200)).await;
    world.split().await;
    let chunks = world.process_first(25).await;
    assert!(world.chunks.take().is_empty());
    let ends = world.try_process_together(&fresh(&chunks[25..35])).await;
    assert!(ends.iter().all(is_committed));
    let sent = world.chunks.take();
    assert_eq!(sent.len(), 64);
    assert!(sent.iter().all(|message| message.address.tally == 1));
    world.process_all(&chunks[35..]).await;
    assert!(world.chunks.take().is_empty(), "it is sent once");
    world.process_all(&sent).await;
    assert_eq!(world.run_and_show(job).await.items_succeeded, 200);
}

#[tokio::test]
async fn the_chunks_of_a_stopped_job_are_skipped_in_one_write() {
    let (world, job, chunks) = split(30).await;
    world.process(&chunks[29], false).await;
    world.cancel(job).await;
    world.faults.plan(NEVER, Death::Before);
    let ends = world.try_process_together(&fresh(&chunks[..10])).await;
    assert!(ends.iter().all(is_committed));
    assert_eq!(world.faults.calls(), 12, "one read of the job, one of each checkpoint, and one write");
    assert_eq!(world.jobs.tally(job, 1, 0).await.unwrap().counts.skipped, 10);
}

#[tokio::test]
async fn chunks_of_a_window_do_not_wait_for_one_another() {
    let (world, job) = split_with(1, 30, json!({ "maxConcurrency": 3 })).await;
    let chunks = world.chunks.take();
    let began = world.clock.now();
    assert!(world.try_process_together(&fresh(&chunks)).await.iter().all(is_committed));
    assert_eq!(world.clock.now(), began, "none has slept");
    assert_eq!(world.chunks.take().len(), 3, "each sends the next one of its window");
    assert_eq!(world.jobs.tally(job, 1, 0).await.unwrap().done, 3);
}

#[tokio::test]
async fn a_crash_at_any_call_of_an_invocation_with_many_chunks_loses_nothing() {
    at_every_call(async |call, death| {
        let (world, job, chunks) = split(12).await;
        world.faults.plan(call, death);
        let ends = world.try_process_together(&fresh(&chunks)).await;
        world.faults.revive();
        let was_last = world.faults.is_pending();
        world.faults.plan(NEVER, Death::Before);
        // The queue delivers those again that were not acknowledged.
        let failed = chunks.iter().zip(&ends).filter(|(_, end)| end.is_err());
        let again: Vec<(ChunkMessage, bool)> = failed.map(|(message, _)| (message.clone(), true)).collect();
        let ends = world.try_process_together(&again).await;
        assert!(ends.iter().all(Result::is_ok), "{death:?} call {call}: {ends:?}");
        assert_eq!(world.completed(job).await, 12);
        assert_eq!(world.jobs.job(job).await.unwrap().completions, 1);
        !was_last
    })
    .await;
}

#[tokio::test]
async fn a_chunk_that_takes_long_is_not_waited_for() {
    let (world, job, chunks) = split(5).await;
    world.process(&chunks[4], false).await;
    let jobs = world.jobs.clone();
    // The calls are: the read of the job, of the first chunk's bytes, and of the tally, because the second chunk was
    // delivered before. There it stands still until the first one is committed.
    world.faults.freeze(2, async move {
        while jobs.tally(job, 1, 0).await.unwrap().done == 1 {
            tokio::task::yield_now().await;
        }
    });
    let messages = [(chunks[0].clone(), false), (chunks[1].clone(), true)];
    let ends = tokio::time::timeout(Duration::from_secs(60), world.try_process_together(&messages)).await;
    assert!(ends.expect("the first chunk waits for the second").iter().all(is_committed));
    assert!(!world.faults.thaw(), "nothing stood still");
}
