//! `maxConcurrency`: a limit on the distinct chunks of a job in flight. Tallies ahead: a limit on its tallies. Every
//! chunk is processed in the end.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use acceptance::copies::chunk_messages;
use acceptance::faults::at_every_call;
use acceptance::files;
use acceptance::use_cases::Limits;
use acceptance::world::{World, change};
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::job::states::Status;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::tally::{Committed, Counts, Mark, MarkKind};
use rowmill_core::ports::{Clock, Jobs, Tallies};
use serde_json::{Value, json};

use crate::{chunks_of, split_with};

#[tokio::test]
async fn no_more_chunks_are_in_flight_than_max_concurrency() {
    for width in [1, 3, 64, 70, 100] {
        let (world, job) = split_with(1, 150, json!({ "maxConcurrency": width })).await;
        let mut in_flight = world.chunks.take();
        let mut most = 0;
        while let Some(message) = in_flight.pop() {
            let distinct: BTreeSet<_> = in_flight.iter().chain([&message]).map(|message| message.address).collect();
            most = most.max(distinct.len());
            assert_eq!(world.show(job).await.chunks_in_flight, distinct.len() as u64);
            world.process(&message, false).await;
            in_flight.extend(world.chunks.take());
        }
        let shown = world.run_and_show(job).await;
        assert_eq!((shown.status, shown.items_succeeded), (Status::Completed, 150), "width {width}");
        assert_eq!(shown.chunks_in_flight, 0);
        assert_eq!(most, width, "exactly the limit");
    }
}

#[tokio::test]
async fn the_width_of_a_running_job_changes_without_a_lost_or_a_doubled_place() {
    for (before, after) in [(1, 5), (70, 3), (10, 1), (64, 70)] {
        let (world, job) = split_with(1, 150, json!({ "maxConcurrency": before })).await;
        let chunks = world.chunks.take();
        // Every other chunk of the window has ended: later ones than some that have not.
        world.process_all(chunks.iter().skip(1).step_by(2)).await;
        world.chunks.take();
        change(&*world.jobs, job, |job| job.with_width(after, world.clock.now())).await;
        for message in &chunks {
            world.process(message, false).await;
        }
        assert!(world.chunks.take().is_empty(), "messages of the old window are dropped");
        world.send_split(job).await;
        world.clock.advance(world.limits.split.stop.grace);
        world.split().await;
        let mut in_flight = world.chunks.take();
        let (mut most, mut sent) = (0, BTreeSet::new());
        while let Some(message) = in_flight.pop() {
            assert!(sent.insert(message.address), "{before} to {after}: {:?} is sent twice", message.address);
            most = most.max(in_flight.len() + 1);
            world.process(&message, false).await;
            in_flight.extend(world.chunks.take());
        }
        let shown = world.run_and_show(job).await;
        assert_eq!((shown.status, shown.items_succeeded), (Status::Completed, 150), "{before} to {after}");
        assert_eq!(most, after as usize, "{before} to {after}: exactly the limit");
    }
}

/// Runs a job of so many chunks again and again, with a crash before or after each call of the functions.
async fn survives_a_crash_at_any_call(limits: Limits, rows: u64, fields: Value) {
    at_every_call(async |call, death| {
        let world = World::new(limits);
        let file = world.store_csv(files::plain_csv(rows)).await;
        let job = world.create_with(file, fields.clone()).await.job_guid;
        world.faults.plan(call, death);
        world.run_through_crashes(Duration::from_secs(300)).await;
        assert_eq!(world.completed(job).await, rows);
        assert_eq!(world.jobs.job(job).await.unwrap().completions, 1);
        !world.faults.is_pending()
    })
    .await;
}

#[tokio::test]
async fn a_crash_at_any_call_does_not_stall_a_job_with_max_concurrency() {
    survives_a_crash_at_any_call(chunks_of(1), 70, json!({ "maxConcurrency": 2 })).await;
}

/// A world with a job of one row a chunk, of which so many tallies are sent ahead.
async fn ahead(tallies: u32, rows: u64) -> (World, JobGuid) {
    let world = World::new(chunks_of(1).but(|limits| limits.create.tallies_ahead_min = tallies));
    let job = world.validate_csv(files::plain_csv(rows)).await;
    world.split().await;
    (world, job)
}

#[tokio::test]
async fn no_more_tallies_are_sent_ahead_than_the_job_row_says() {
    for tallies in [1, 2, 3, 16] {
        let (world, job) = ahead(tallies, 5 * 64 + 10).await;
        let mut in_flight = VecDeque::from(world.chunks.take());
        let mut most = 0;
        while let Some(message) = in_flight.pop_front() {
            let distinct: BTreeSet<_> = in_flight.iter().chain([&message]).map(|message| message.address).collect();
            assert_eq!(distinct.len(), in_flight.len() + 1, "no message is sent twice");
            assert_eq!(world.show(job).await.chunks_in_flight, distinct.len() as u64);
            most = most.max(distinct.iter().map(|chunk| chunk.tally).collect::<BTreeSet<_>>().len());
            world.process(&message, false).await;
            for message in world.chunks.take() {
                let awaited = world.jobs.tally(job, 1, message.address.tally - tallies).await.unwrap();
                assert_eq!(awaited.done, 32);
                in_flight.push_back(message);
            }
        }
        assert_eq!(world.completed(job).await, 330, "{tallies} ahead");
        assert_eq!(most, 6.min(tallies as usize + 1), "one more while the first is half done");
    }
}

#[tokio::test]
async fn redundant_messages_cause_no_others() {
    let (world, job) = ahead(1, 5 * 64).await;
    let mut sent = world.chunks.take();
    for tally in 0..5 {
        assert_eq!(sent.len(), 64, "tally {tally}");
        assert!(sent.iter().all(|message| message.address.tally == tally));
        let mut next = Vec::new();
        for message in &sent {
            // Three copies: of the first sending, and as a sweep or a resume sends it again.
            let again = ChunkMessage { delivery_mode: DeliveryMode::Recovered, ..message.clone() };
            for copy in [message, &again, message] {
                world.process(copy, false).await;
            }
            // The queue delivers it once more, after a run that died after its commit.
            world.process(message, true).await;
            next.extend(world.chunks.take());
        }
        sent = next;
    }
    assert!(sent.is_empty());
    assert_eq!(world.run_and_show(job).await.status, Status::Completed);
}

#[tokio::test]
async fn after_a_death_only_the_same_message_sends_the_next_tally_again() {
    let (world, job) = ahead(1, 2 * 64).await;
    let sent = world.chunks.take();
    world.process_all(&sent[..32]).await;
    assert_eq!(world.chunks.take().len(), 64);
    // As if the run that made the tally half done had died before it noted that the next one is sent.
    world.jobs.edit_tally(job, 1, 0, |tally| tally.next_sent = false);
    let copy = ChunkMessage { delivery_mode: DeliveryMode::Recovered, ..sent[31].clone() };
    world.process_all([&copy, &sent[31]]).await;
    assert!(world.chunks.take().is_empty(), "copies cause nothing");
    world.process(&sent[31], true).await;
    let again = world.chunks.take();
    assert_eq!(again.len(), 64);
    assert!(again.iter().all(|message| message.delivery_mode == DeliveryMode::Recovered));
    world.process(&sent[31], true).await;
    assert!(world.chunks.take().is_empty(), "it is noted now");
}

#[tokio::test]
async fn a_chunk_that_does_not_end_holds_up_no_tally() {
    let (world, job) = ahead(1, 6 * 64).await;
    let (mut stuck, mut in_flight) = (Vec::new(), VecDeque::from(world.chunks.take()));
    while let Some(message) = in_flight.pop_front() {
        match message.address.index {
            0..20 => stuck.push(message),
            _ => drop(world.process(&message, false).await),
        }
        in_flight.extend(world.chunks.take());
    }
    assert_eq!((stuck.len(), world.show(job).await.items_succeeded), (6 * 20, 6 * 44));
    world.process_all(&stuck).await;
    assert_eq!(world.run_and_show(job).await.items_succeeded, 6 * 64);
}

#[tokio::test]
async fn a_small_job_waits_for_a_few_tallies_of_a_big_one() {
    let world = World::new(chunks_of(1).but(|limits| limits.create.tallies_ahead_min = 2));
    let big = world.validate_csv(files::plain_csv(20 * 64)).await;
    world.split().await;
    let small = world.validate_csv(files::plain_csv(3)).await;
    world.split().await;
    let mut processed = 0;
    let mut in_flight = VecDeque::from(world.chunks.take());
    while world.show(small).await.items_succeeded < 3 {
        let message = in_flight.pop_front().expect("the small job is queued");
        world.process(&message, false).await;
        in_flight.extend(world.chunks.take());
        processed += 1;
    }
    assert_eq!(processed, 2 * 64 + 3, "of 1,280 chunks of the big job");
    assert_eq!(world.show(big).await.items_succeeded, 2 * 64);
}

#[tokio::test]
async fn a_crash_at_any_call_does_not_stall_a_job_with_tallies_ahead() {
    let one_ahead = chunks_of(1).but(|limits| limits.create.tallies_ahead_min = 1);
    survives_a_crash_at_any_call(one_ahead, 66, json!({})).await;
}

#[tokio::test]
async fn a_paused_job_sends_no_next_tally_and_a_resume_does() {
    let (world, job) = ahead(1, 70).await;
    let chunks = world.process_first(31).await;
    // The run that makes the tally half done has read the job row and is frozen while the job is paused.
    let (jobs, clock) = (world.jobs.clone(), world.clock.clone());
    world.faults.freeze(1, async move {
        change(&*jobs, job, |job| job.pause(clock.now())).await;
    });
    world.process(&chunks[31], false).await;
    assert!(!world.faults.thaw());
    assert!(world.chunks.take().is_empty(), "the tally was made half done in the pause");
    world.resume(job).await;
    assert_eq!(world.completed(job).await, 70);
}

/// After the grace, a sweep closes what is open of a stopped job.
async fn sweep_after_grace(world: &World) -> u64 {
    world.clock.advance(world.limits.sweep.stop.grace);
    let closed = world.sweep().await.tallies_closed;
    world.run().await;
    closed
}

#[tokio::test]
async fn tallies_of_a_cancelled_job_that_wait_cost_no_messages() {
    let (world, job) = ahead(1, 20 * 64).await;
    let sent = world.chunks.take();
    world.cancel(job).await;
    world.process_all(&sent).await;
    assert!(world.chunks.take().is_empty(), "a chunk was sent to be skipped");
    assert_eq!(world.show(job).await.items_skipped, 64);
    assert_eq!(world.sweep().await.tallies_closed, 0, "others may have sent some of them, and their runs go on");
    assert_eq!(sweep_after_grace(&world).await, 19);
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_skipped), (Status::Cancelled, 20 * 64));
    assert_eq!(world.jobs.job(job).await.unwrap().completions, 1);
}

#[tokio::test]
async fn a_cancelled_job_whose_last_chunks_were_never_sent_ends() {
    let world = World::new(chunks_of(1));
    let file = world.store_csv(files::plain_csv(150)).await;
    let job = world.create_with(file, json!({ "maxConcurrency": 2 })).await.job_guid;
    world.split().await;
    let sent = world.chunks.take();
    world.cancel(job).await;
    world.process_all(&sent).await;
    let next = world.chunks.take();
    assert_eq!(next.len(), 2);
    world.process_all(&sent).await;
    world.process(&sent[0], true).await;
    assert!(world.chunks.take().is_empty(), "a run of the next one may be at work: it is not sent again");
    world.process_all(&next).await;
    world.run().await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_skipped, shown.item_progress), (Status::Cancelled, 150, 150));
}

/// A run that is not in this world commits this chunk of one item.
async fn commit_elsewhere(world: &World, chunk: &ChunkMessage) {
    let mark = Mark { kind: MarkKind::Clean, run: RunId::from_bytes([9; RunId::BYTES]) };
    let one = Counts { succeeded: 1, ..Counts::default() };
    world.sweeper.steps.committer.commit(chunk, mark, one).await.unwrap();
}

#[tokio::test]
async fn a_run_of_a_waiting_tally_counts_although_the_job_is_stopped() {
    let (world, job) = ahead(1, 70).await;
    let sent = world.chunks.take();
    world.process_all(&sent[..31]).await;
    // The splitter, a resume or the sweep has sent a chunk of the next tally, and its run is at work when the job is
    // stopped.
    let at_work = chunk_messages(job, &files::plain_csv(70), 1).remove(64);
    world.cancel(job).await;
    world.process(&sent[31], false).await;
    commit_elsewhere(&world, &at_work).await;
    sweep_after_grace(&world).await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_skipped), (Status::Cancelled, 32, 38));
}

#[tokio::test]
async fn a_run_from_before_a_pause_sends_nothing_after_it() {
    let (world, job) = split_with(1, 9, json!({ "maxConcurrency": 3 })).await;
    let before = world.chunks.take();
    world.pause(job).await;
    world.resume(job).await;
    world.split().await;
    let again = world.chunks.take();
    assert_eq!(again.len(), 3);
    commit_elsewhere(&world, &before[0]).await;
    assert!(world.chunks.take().is_empty(), "the resend has sent this chunk too");
    world.process(&again[0], false).await;
    assert_eq!(world.chunks.take().len(), 1, "its message is followed by the next one");
}

#[tokio::test]
async fn a_commit_whose_reply_was_lost_sends_what_waits_for_it() {
    for (fields, next) in [(json!({}), 64..70), (json!({ "maxConcurrency": 32 }), 63..64)] {
        let world = World::new(chunks_of(1).but(|limits| limits.create.tallies_ahead_min = 1));
        let file = world.store_csv(files::plain_csv(70)).await;
        let job = world.create_with(file, fields).await.job_guid;
        world.split().await;
        let sent = world.chunks.take();
        world.process_all(&sent[..31]).await;
        world.chunks.take();
        let committer = &world.sweeper.steps.committer;
        let mark = Mark { kind: MarkKind::Clean, run: RunId::from_bytes([9; RunId::BYTES]) };
        let one = Counts { succeeded: 1, ..Counts::default() };
        world.jobs.commit(job, &[committer.commit_of(&sent[31], mark, one)]).await.unwrap();
        let committed = committer.commit(&sent[31], mark, one).await.unwrap();
        assert!(matches!(committed, Committed::WonBefore(_)), "{committed:?}");
        let numbers: Vec<u64> = world.chunks.take().iter().map(|message| message.address.number()).collect();
        assert_eq!(numbers, next.collect::<Vec<_>>());
    }
}
