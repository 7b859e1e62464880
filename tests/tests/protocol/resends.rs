//! The resend after a resume: it can die, be overtaken and meet others of its kind, and sends each missing chunk once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use acceptance::faults::at_every_call;
use acceptance::files;
use acceptance::world::World;
use rowmill_core::model::job::Resent;
use rowmill_core::ports::Jobs;
use rowmill_core::progress::update::{Updated, update_job};
use serde_json::json;
use split_job::plan::SplitEnd;

use crate::{chunks_of, split, split_with};

#[tokio::test]
async fn a_run_that_sends_the_missing_chunks_can_die_at_every_call() {
    at_every_call(async |call, death| {
        let (world, job) = split(1, 130).await;
        let chunks = world.process_first(70).await;
        world.pause(job).await;
        world.process_all(&chunks[70..]).await;
        world.resume(job).await;
        world.faults.plan(call, death);
        world.run_through_crashes(world.limits.split.lease()).await;
        assert_eq!(world.completed(job).await, 130);
        !world.faults.is_pending() && call <= 60
    })
    .await;
}

#[tokio::test]
async fn the_chunks_of_a_long_job_are_sent_by_several_invocations() {
    let (world, job) = split(1, 300).await;
    world.pause(job).await;
    world.process_queued().await;
    world.resume(job).await;
    let mut invocations = 0;
    while world.jobs.job(job).await.unwrap().resend_from.is_some() {
        invocations += 1;
        world.split_within(Duration::ZERO).await;
    }
    assert_eq!(invocations, 5, "one for each tally");
    assert_eq!(world.chunks.take().len(), 300);
}

#[tokio::test]
async fn a_run_that_sends_the_missing_chunks_ends_where_another_has_gone_further() {
    let others = Arc::new(AtomicU32::new(0));
    for call in 0.. {
        let (world, job) = split(1, 150).await;
        world.pause(job).await;
        world.process_queued().await;
        world.resume(job).await;
        world.split_within(Duration::ZERO).await;
        world.chunks.take();
        let row = world.jobs.job(job).await.unwrap();
        assert_eq!(row.resend_from, Some(1));
        let (jobs, noted) = (world.jobs.clone(), others.clone());
        let before = others.load(Ordering::SeqCst);
        world.faults.freeze(call, async move {
            let other = Resent { epoch: row.epoch, from: Some(1), next: Some(2) };
            let note = update_job(&*jobs, &row, |job| job.note_resent(other, row.moved_at)).await;
            let is_first = matches!(note, Ok(Updated::Now(_)));
            noted.fetch_add(u32::from(is_first), Ordering::SeqCst);
        });
        world.split().await;
        if world.faults.thaw() {
            break;
        }
        let sent: BTreeSet<u32> = world.chunks.take().iter().map(|message| message.address.tally).collect();
        assert!(others.load(Ordering::SeqCst) == before || sent.len() < 2, "call {call}: {sent:?}");
    }
    assert!(others.load(Ordering::SeqCst) > 2, "the other run was the first at several calls");
}

#[tokio::test]
async fn the_message_of_an_earlier_resume_sends_nothing_beside_that_of_the_last_one() {
    let (world, job) = split_with(1, 150, json!({ "maxConcurrency": 3 })).await;
    world.chunks.take();
    for _ in 0..2 {
        world.pause(job).await;
        world.resume(job).await;
    }
    let messages = world.splits.take();
    assert_eq!(messages.len(), 2);
    // The last one has begun, and sends the first tally.
    world.splitter.split(&messages[1], world.deadline_in(Duration::ZERO)).await.unwrap();
    assert_eq!(world.jobs.job(job).await.unwrap().resend_from, Some(1));
    assert_eq!(world.chunks.take().len(), 3);
    assert_eq!(world.splitter.split(&messages[0], world.deadline()).await.unwrap(), SplitEnd::NotOurs);
    assert_eq!(world.jobs.job(job).await.unwrap().resend_from, Some(1));
}

#[tokio::test]
async fn a_repeated_resume_does_not_join_the_resend() {
    let (world, job) = split(1, 150).await;
    world.chunks.take();
    world.pause(job).await;
    world.resume(job).await;
    // The resend has sent the first tally.
    world.split_within(Duration::ZERO).await;
    assert_eq!(world.jobs.job(job).await.unwrap().resend_from, Some(1));
    assert_eq!(world.splits.take().len(), 1, "its message to continue");
    world.resume(job).await;
    assert!(world.splits.take().is_empty(), "another message would send the second tally beside it");
}

#[tokio::test]
async fn a_pause_overtakes_a_resume_whose_chunks_are_being_sent() {
    let (world, job) = split(1, 130).await;
    world.pause(job).await;
    world.process_queued().await;
    world.resume(job).await;
    world.split_within(Duration::ZERO).await;
    assert_eq!(world.jobs.job(job).await.unwrap().resend_from, Some(1));
    world.pause(job).await;
    world.process_queued().await;
    assert_eq!(world.split().await, SplitEnd::Paused);
    world.resume(job).await;
    assert_eq!(world.jobs.job(job).await.unwrap().resend_from, Some(0), "from the first tally again");
    assert_eq!(world.run_and_show(job).await.items_succeeded, 130);
}

#[tokio::test]
async fn a_commit_sends_nothing_that_the_resend_has_not_come_to() {
    // Chunk 130 waits for chunk 60, and the third tally for half of the first one.
    for fields in [json!({ "maxConcurrency": 70 }), json!({})] {
        let world = World::new(chunks_of(1).but(|limits| limits.create.tallies_ahead_min = 2));
        let file = world.store_csv(files::plain_csv(150)).await;
        let job = world.create_with(file, fields).await.job_guid;
        world.split().await;
        world.pause(job).await;
        world.process_queued().await;
        world.resume(job).await;
        world.split_within(Duration::ZERO).await;
        let sent = world.chunks.take();
        assert_eq!(sent.len(), 64, "the first tally is sent again");
        world.process_all(&sent).await;
        let next = world.chunks.take();
        assert!(next.iter().all(|message| message.address.tally < 2), "{next:?}");
        world.process_all(&next).await;
        assert_eq!(world.completed(job).await, 150);
    }
}
