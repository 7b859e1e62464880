//! The sweep resends lost messages, does not disturb jobs that make progress, and costs little.

use std::time::Duration;

use acceptance::files;
use acceptance::world::World;
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::tally::Counts;
use rowmill_core::ports::{Ceilings, Clock, Jobs, Queue, Tallies};
use serde_json::json;

use crate::{chunks_of, split, split_with};

#[tokio::test]
async fn a_job_whose_message_was_lost_is_recovered() {
    let world = World::new(chunks_of(2));
    let job = world.validate_csv(files::plain_csv(9)).await;
    assert_eq!(world.splits.take().len(), 1, "lost");
    assert_eq!(world.sweep().await.looked_at, 0, "the job is not due yet");
    world.clock.advance(world.limits.sweep.recovery.stale);
    let swept = world.sweep().await;
    assert_eq!((swept.looked_at, swept.recovered, swept.messages), (1, 1, 1));
    assert_eq!(world.run_and_show(job).await.status, Status::Completed);
    world.clock.advance(10 * world.limits.sweep.recovery.stale);
    assert_eq!(world.sweep().await.looked_at, 0, "an ended job is not looked at");
}

#[tokio::test]
async fn lost_chunks_folds_and_completions_are_recovered() {
    let (world, job) = split(1, 130).await;
    let chunks = world.chunks.take();
    for message in chunks.iter().filter(|message| message.address.index % 2 == 0) {
        world.process(message, false).await;
    }
    world.clock.advance(world.limits.sweep.recovery.stale);
    let swept = world.sweep().await;
    assert_eq!((swept.recovered, swept.messages), (1, 65), "only the missing chunks of the tallies");
    world.process_queued().await;
    assert_eq!(world.completions.take().len(), 1, "lost");
    world.clock.advance(4 * world.limits.sweep.recovery.stale);
    world.sweep().await;
    assert_eq!(world.completed(job).await, 130);
}

#[tokio::test]
async fn a_job_with_signs_of_life_is_never_recovered() {
    let (world, job) = split(1, 100).await;
    let mut heartbeat = world.show(job).await.heartbeat_at;
    for message in world.chunks.take() {
        // Slow work: almost the longest allowed time without a sign of life.
        world.clock.advance(world.limits.sweep.recovery.stale - Duration::from_secs(1));
        assert_eq!(world.sweep().await.recovered, 0);
        world.process(&message, false).await;
        if world.show(job).await.status == Status::Running {
            assert!(world.show(job).await.heartbeat_at > heartbeat, "every commit is a sign of life");
            heartbeat = world.show(job).await.heartbeat_at;
        }
        if world.clock.now() > world.jobs.job(job).await.unwrap().deadline_at - Duration::from_secs(1800) {
            break;
        }
    }
}

#[tokio::test]
async fn recoveries_without_effect_become_less_frequent() {
    let (world, job) = split_with(1, 3, json!({ "deadlineSeconds": 259_200 })).await;
    let mut recoveries = 0;
    for _minute in 0..24 * 60 {
        world.chunks.take();
        world.clock.advance(Duration::from_secs(60));
        recoveries += world.sweep().await.recovered;
    }
    assert!((6..=12).contains(&recoveries), "{recoveries} recoveries in a day");
    world.clock.advance(Duration::from_secs(86_400));
    world.sweep().await;
    assert_eq!(world.run_and_show(job).await.items_succeeded, 3);
}

#[tokio::test]
async fn a_job_whose_messages_may_still_be_queued_is_not_recovered() {
    let world = World::new(chunks_of(1));
    let job = world.validate_csv(files::plain_csv(3)).await;
    world.split().await;
    world.clock.advance(world.limits.sweep.recovery.stale);
    let swept = world.sweep().await;
    assert_eq!((swept.looked_at, swept.recovered), (1, 0), "its chunks wait in the queue");
    assert_eq!(world.chunks.backlog().await.unwrap(), 3);
    assert_eq!(world.run_and_show(job).await.status, Status::Completed);
}

#[tokio::test]
async fn a_sweep_stops_at_its_limit_of_jobs_and_the_next_one_continues() {
    let mut limits = chunks_of(1);
    limits.create.ceilings = Ceilings { owner: 300, job_type: 300, system: 300 };
    let world = World::new(limits);
    let file = world.store_csv(files::plain_csv(1)).await;
    for _ in 0..150 {
        world.create("validate", file, json!({})).await.unwrap();
    }
    world.splits.take();
    world.clock.advance(world.limits.sweep.recovery.stale);
    let first = world.sweep().await;
    assert_eq!((first.looked_at, first.capped), (100, true));
    let second = world.sweep().await;
    assert_eq!((second.looked_at, second.capped), (50, false));
    assert_eq!(world.splits.take().len(), 150, "each job once");
}

#[tokio::test]
async fn a_job_with_an_unreadable_tally_ends_after_its_deadline() {
    let world = World::new(chunks_of(1));
    let file = world.store_csv(files::plain_csv(200)).await;
    let job = world.create_with(file, json!({ "deadlineSeconds": 3600 })).await.job_guid;
    world.split().await;
    let chunks = world.chunks.take();
    world.process_all(chunks.iter().filter(|message| message.address.tally != 1).take(100)).await;
    world.jobs.spoil_tally(job, 1, 1);
    world.clock.advance(world.limits.sweep.recovery.stale);
    assert_eq!(world.sweep().await.failed, 1, "the row may be repaired");
    world.clock.advance(Duration::from_secs(3600));
    assert_eq!(world.sweep().await.overdue, 1);
    assert_eq!(world.jobs.job(job).await.unwrap().stopped_by().unwrap().code, StopCode::AuditFailed);
    assert_eq!(world.sweep().await.tallies_closed, 0, "chunks may be running");
    world.clock.advance(world.limits.sweep.stop.grace);
    sweep_while_it_may_be_repaired(&world).await;
    assert_eq!(world.sweep().await.tallies_closed, 2, "of the four one is closed, and one cannot be");
    let row = world.jobs.job(job).await.unwrap();
    let ended = row.end().unwrap();
    let counts = Counts { succeeded: 100, failed: 0, skipped: 36 };
    assert_eq!((ended.status(), ended.counts, &ended.results), (Status::Failed, counts, &None));
    assert_eq!(world.jobs.active("system"), 0);
    world.clock.advance(10 * world.limits.sweep.backoff_max);
    assert_eq!(world.sweep().await.looked_at, 0);
}

/// The looks at a stopped job whose row cannot be read, before the one that ends it without results.
async fn sweep_while_it_may_be_repaired(world: &World) {
    for _ in 0..3 {
        let swept = world.sweep().await;
        assert_eq!((swept.looked_at, swept.failed, swept.tallies_closed), (1, 1, 0));
        world.clock.advance(world.limits.sweep.backoff_max);
    }
}

#[tokio::test]
async fn a_stopped_job_whose_row_is_unreadable_for_a_while_ends_with_results() {
    for are_totals in [false, true] {
        let (world, job) = split(1, 200).await;
        world.process_first(100).await;
        match are_totals {
            false => world.jobs.spoil_tally(job, 1, 1),
            true => world.jobs.spoil_totals(job, 1),
        }
        world.cancel(job).await;
        world.clock.advance(world.limits.sweep.stop.grace);
        sweep_while_it_may_be_repaired(&world).await;
        world.jobs.repair(job);
        assert_eq!(world.sweep().await.tallies_closed, 3);
        let shown = world.run_and_show(job).await;
        assert_eq!((shown.status, shown.items_succeeded, shown.items_skipped), (Status::Cancelled, 100, 100));
        assert!(world.jobs.job(job).await.unwrap().end().unwrap().results.is_some());
    }
}

#[tokio::test]
async fn a_stopped_job_with_unreadable_totals_ends_without_a_look_at_its_tallies() {
    let (world, job) = split(1, 200).await;
    world.process_first(100).await;
    world.jobs.spoil_totals(job, 1);
    world.cancel(job).await;
    world.clock.advance(world.limits.sweep.stop.grace);
    sweep_while_it_may_be_repaired(&world).await;
    assert_eq!(world.sweep().await.tallies_closed, 0);
    let row = world.jobs.job(job).await.unwrap();
    assert_eq!((row.status(), row.end().unwrap().counts), (Status::Cancelled, Counts::default()));
    assert_eq!(world.jobs.active("system"), 0);
    assert!(!world.jobs.tally(job, 1, 3).await.unwrap().is_closed());
}
