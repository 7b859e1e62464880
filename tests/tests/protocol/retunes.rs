//! Retuning: an active job gets other limits, each of which takes effect at the next look at it.

use std::sync::Arc;
use std::time::Duration;

use acceptance::world::{World, change};
use cancel_job::error::ChangeError;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job::{Job, Priority, Stop, StopCode, Tuning};
use rowmill_core::model::spec::Tolerance;
use rowmill_core::ports::{Clock, Jobs};
use rowmill_core::progress::update::update_job;
use rowmill_testing::in_memory::InMemoryJobStore;
use serde_json::{Value, json};

use crate::{chunks_of, split, split_with};

/// A hundred rows, every fifth of which fails.
const ROWS: u64 = 100;

/// A world with a job over [`ROWS`] rows, with this tolerance, that is split into chunks of one row.
async fn failing(tolerance: Value) -> (World, JobGuid) {
    let world = World::new(chunks_of(1));
    let mut csv = b"a,b\n".to_vec();
    (0..ROWS).for_each(|row| csv.extend_from_slice(if row % 5 == 4 { b"ragged\n".as_slice() } else { b"1,2\n" }));
    let file = world.store_csv(csv).await;
    let job = world.create_with(file, json!({ "tolerance": tolerance })).await.job_guid;
    world.split().await;
    (world, job)
}

fn code_of(job: &Job) -> Option<StopCode> {
    job.stopped_by().map(|stop| stop.code)
}

fn deadline(at: jiff::Timestamp) -> Tuning {
    Tuning { deadline_at: Some(at), ..Tuning::default() }
}

/// Retunes a job if it is active, whatever other processes do at that moment.
async fn retune_if_active(jobs: Arc<InMemoryJobStore>, job: JobGuid, tuning: Tuning) {
    let seen = jobs.job(job).await.expect("the job is there");
    update_job(&*jobs, &seen, |job| job.retune(&tuning, seen.moved_at)).await.expect("the store is there");
}

#[tokio::test]
async fn a_lower_tolerance_stops_a_job_at_its_next_failed_chunk() {
    let (world, job) = failing(Value::Null).await;
    let chunks = world.process_first(21).await;
    let retuned = world.retune(job, json!({ "tolerance": { "count": 3 } })).await.unwrap();
    assert_eq!(
        (retuned.status(), world.show(job).await.items_failed),
        (Status::Running, 4),
        "more have failed already"
    );
    for message in &chunks[21..24] {
        world.process(message, false).await;
    }
    assert_eq!(code_of(&world.jobs.job(job).await.unwrap()), None, "good chunks");
    world.process(&chunks[24], false).await;
    assert_eq!(code_of(&world.jobs.job(job).await.unwrap()), Some(StopCode::ToleranceExceeded));
    world.process_all(&chunks[25..]).await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_failed, shown.items_skipped), (Status::Failed, 5, 75));
}

#[tokio::test]
async fn a_lower_tolerance_is_found_at_the_end_if_no_chunk_fails_after_it() {
    let (world, job) = failing(Value::Null).await;
    let chunks = world.process_first(ROWS as usize).await;
    assert_eq!(chunks.len() as u64, ROWS);
    world.retune(job, json!({ "tolerance": { "percent": 19.5 } })).await.unwrap();
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_failed, shown.items_skipped), (Status::Failed, 20, 0));
}

#[tokio::test]
async fn a_tolerance_that_is_raised_at_any_call_of_a_run_stops_no_job() {
    for call in 0.. {
        let (world, job) = failing(json!({ "count": 0 })).await;
        let chunks = world.chunks.take();
        let tolerance = Some(Tolerance { percent: None, count: Some(99), minimum_items: None });
        let tuning = Tuning { tolerance, ..Tuning::default() };
        world.faults.freeze(call, retune_if_active(world.jobs.clone(), job, tuning));
        world.process(&chunks[4], false).await;
        let is_over = world.faults.thaw();
        let row = world.jobs.job(job).await.unwrap();
        assert_eq!(row.is_stopped(), row.tolerance != tolerance, "call {call}");
        if is_over {
            assert!(row.is_stopped(), "its tolerance was not raised");
            break;
        }
    }
}

#[tokio::test]
async fn an_earlier_deadline_stops_a_job_at_the_next_sweep_or_run() {
    for by_sweep in [true, false] {
        let (world, job) = split(1, 9).await;
        let chunks = world.process_first(1).await;
        world.clock.advance(Duration::from_secs(30));
        let retuned = world.retune(job, json!({ "deadlineSeconds": 60 })).await.unwrap();
        assert_eq!(retuned.deadline_at, retuned.created_at + Duration::from_secs(60));
        world.clock.advance(Duration::from_secs(30));
        match by_sweep {
            true => assert_eq!(world.sweep().await.overdue, 1),
            false => drop(world.process(&chunks[1], false).await),
        }
        assert_eq!(code_of(&world.jobs.job(job).await.unwrap()), Some(StopCode::DeadlineExceeded), "{by_sweep}");
        world.process_all(&chunks[1..]).await;
        assert_eq!(world.run_and_show(job).await.items_skipped, 8);
    }
}

#[tokio::test]
async fn a_sweep_that_looks_meanwhile_looks_again_by_the_new_deadline() {
    for call in 0.. {
        let (world, job) = split(1, 9).await;
        world.process_first(1).await;
        world.clock.advance(world.limits.sweep.recovery.stale);
        // Later than the claim of a sweep, and before its next look.
        let at = world.clock.now() + world.limits.sweep.stop.grace + Duration::from_secs(1);
        world.faults.freeze(call, retune_if_active(world.jobs.clone(), job, deadline(at)));
        world.sweep().await;
        if world.faults.thaw() {
            break;
        }
        world.clock.advance(world.limits.sweep.stop.grace + Duration::from_secs(1));
        world.sweep().await;
        assert!(world.jobs.job(job).await.unwrap().is_stopped(), "call {call}");
    }
}

/// The processes that stop a job whose deadline has passed.
#[derive(Clone, Copy, Debug)]
enum Stopper {
    Sweep,
    SweepOfUntaken,
    Run,
    Splitter,
}

#[tokio::test]
async fn a_later_deadline_at_any_call_of_a_process_stops_no_job() {
    for stopper in [Stopper::Sweep, Stopper::SweepOfUntaken, Stopper::Run, Stopper::Splitter] {
        let mut stopped = 0;
        for call in 0.. {
            let world = World::new(chunks_of(1));
            let file = world.store_csv(acceptance::files::plain_csv(100)).await;
            let job = world.create_with(file, json!({ "deadlineSeconds": 60 })).await.job_guid;
            match stopper {
                Stopper::SweepOfUntaken => {}
                Stopper::Splitter => {
                    world.take_up(job, Duration::from_secs(1)).await;
                }
                Stopper::Sweep | Stopper::Run => drop(world.split().await),
            }
            world.clock.advance(Duration::from_secs(60));
            let later = world.clock.now() + Duration::from_secs(600);
            world.faults.freeze(call, retune_if_active(world.jobs.clone(), job, deadline(later)));
            match stopper {
                Stopper::Sweep | Stopper::SweepOfUntaken => drop(world.sweep().await),
                Stopper::Run => drop(world.process(&world.chunks.take()[0], false).await),
                Stopper::Splitter => drop(world.split().await),
            }
            if world.faults.thaw() {
                break;
            }
            let row = world.jobs.job(job).await.unwrap();
            assert!(row.deadline_at != later || !row.is_stopped(), "{stopper:?}, call {call}");
            stopped += u32::from(row.is_stopped());
            if !row.is_stopped() && !matches!(stopper, Stopper::Run) {
                world.run().await;
                world.clock.advance(world.limits.sweep.stop.grace);
                world.sweep_and_run().await;
                assert_eq!(world.completed(job).await, 100, "{stopper:?}, call {call}");
            }
        }
        assert!(stopped > 0, "{stopper:?} stops it before it is retuned");
    }
}

#[tokio::test]
async fn a_deadline_counts_from_the_creation_or_from_the_redrive() {
    let (world, job) = failing(Value::Null).await;
    world.run().await;
    world.clock.advance(Duration::from_secs(100_000));
    world.redrive(job, None).await.unwrap();
    let begun = world.clock.now();
    world.clock.advance(Duration::from_millis(10_500));
    for seconds in [1, 10] {
        let refused = world.retune(job, json!({ "deadlineSeconds": seconds })).await;
        assert!(matches!(refused, Err(ChangeError::DeadlinePassed(11))), "{refused:?}");
    }
    let retuned = world.retune(job, json!({ "deadlineSeconds": 11 })).await.unwrap();
    assert_eq!(retuned.deadline_at, begun + Duration::from_secs(11));
    world.clock.advance(Duration::from_secs(5));
    let again = world.retune(job, json!({ "deadlineSeconds": 11 })).await.unwrap();
    assert_eq!(again, retuned, "it has this deadline, although it has passed");
}

#[tokio::test]
async fn messages_that_are_sent_later_have_the_new_priority() {
    let (world, job) = split_with(1, 9, json!({ "maxConcurrency": 1 })).await;
    let first = world.chunks.take().remove(0);
    assert_eq!(first.priority, Priority::Normal);
    world.retune(job, json!({ "priority": "high" })).await.unwrap();
    world.process(&first, false).await;
    assert_eq!(world.chunks.take().remove(0).priority, Priority::High);
    world.pause(job).await;
    world.resume(job).await;
    assert_eq!(world.splits.take().remove(0).priority, Priority::High);
}

#[tokio::test]
async fn another_width_sends_what_is_missing_again_in_its_window() {
    for is_lost in [false, true] {
        for (before, after) in [(None, 2), (Some(1), 3), (Some(4), 1)] {
            let (world, job) = split_with(1, 150, json!({ "maxConcurrency": before })).await;
            world.process(&world.chunks.take()[0], false).await;
            world.chunks.take();
            if is_lost {
                world.jobs.lose_next_reply(|_| ());
            }
            let retuned = world.retune(job, json!({ "maxConcurrency": after, "priority": "low" })).await.unwrap();
            assert_eq!((retuned.max_concurrency, retuned.tallies_ahead), (Some(after), None));
            assert_eq!(world.retune(job, json!({ "maxConcurrency": after })).await.unwrap(), retuned, "the same again");
            world.retune(job, json!({ "priority": "normal" })).await.unwrap();
            let messages = world.splits.take();
            assert_eq!(messages.len(), 1, "one for the restart, none for other limits");
            world.splitter.split(&messages[0], world.deadline()).await.unwrap();
            let sent = world.chunks.take();
            assert_eq!(sent.len() as u32, after, "from {before:?} to {after}");
            world.process_all(&sent).await;
            world.run().await;
            assert_eq!(world.completed(job).await, 150, "from {before:?} to {after}");
        }
    }
}

#[tokio::test]
async fn the_sweep_sends_no_message_beside_one_that_is_held_back_for_the_grace() {
    let (world, job) = split(1, 9).await;
    world.retune(job, json!({ "maxConcurrency": 3 })).await.unwrap();
    assert_eq!(world.splits.take().len(), 1, "it is held back, and then it is lost");
    world.sweep().await;
    for expected in [0, 1] {
        world.clock.advance(world.limits.sweep.stop.grace);
        assert_eq!(world.sweep().await.messages, expected);
    }
}

#[tokio::test]
async fn the_same_limits_again_write_nothing() {
    let (world, job) = split(1, 9).await;
    let limits = json!({ "tolerance": { "count": 3 }, "deadlineSeconds": 7200, "priority": "low" });
    let retuned = world.retune(job, limits.clone()).await.unwrap();
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(world.retune(job, limits).await.unwrap(), retuned);
    assert_eq!(world.retune(job, json!({ "priority": "low" })).await.unwrap(), retuned);
    assert_eq!(world.jobs.job(job).await.unwrap(), retuned);
    let shown = world.show(job).await;
    assert_eq!((shown.priority, shown.deadline_at), (Priority::Low.into(), retuned.deadline_at));
    assert_eq!(shown.tolerance.and_then(|tolerance| tolerance.count), Some(3));
}

#[tokio::test]
async fn a_retune_whose_reply_was_lost_is_not_repeated_over_that_of_another_client() {
    let (world, job) = split(1, 9).await;
    let count = |job: &Job| job.tolerance.and_then(|tolerance| tolerance.count);
    world.jobs.lose_next_reply(|_| ());
    let before = world.jobs.job(job).await.unwrap();
    let retuned = world.retune(job, json!({ "tolerance": { "count": 3 } })).await.unwrap();
    let written = before.revision + 2;
    assert_eq!((count(&retuned), retuned.revision), (Some(3), written), "once by us, once by another process");
    world.jobs.lose_next_reply(|row| {
        row.tolerance = Some(Tolerance { percent: None, count: Some(9), minimum_items: None });
    });
    let retuned = world.retune(job, json!({ "tolerance": { "count": 5 } })).await.unwrap();
    assert_eq!((count(&retuned), count(&world.jobs.job(job).await.unwrap())), (Some(9), Some(9)));
}

#[tokio::test]
async fn what_cannot_be_retuned_is_refused() {
    let (world, job) = split(1, 9).await;
    let before = world.jobs.job(job).await.unwrap();
    assert!(matches!(world.retune(job, json!({})).await, Err(ChangeError::NoLimit)));
    assert!(matches!(world.retune(job, json!({ "tolerance": null })).await, Err(ChangeError::NoLimit)));
    for (limits, wrong) in [
        (json!({ "maxConcurrency": 0 }), "maxConcurrency"),
        (json!({ "maxConcurrency": 10_001 }), "maxConcurrency"),
        (json!({ "deadlineSeconds": 0 }), "deadlineSeconds"),
        (json!({ "deadlineSeconds": 1_209_601 }), "deadlineSeconds"),
        (json!({ "tolerance": { "percent": 101 }, "priority": "low" }), "tolerance.percent"),
        (json!({ "tolerance": {} }), "tolerance"),
    ] {
        let refused = world.retune(job, limits).await;
        assert!(matches!(refused, Err(ChangeError::Field { field, .. }) if field == wrong), "{refused:?}");
    }
    let limits = serde_json::from_value(json!({ "priority": "high" })).unwrap();
    let stranger = Owner("stranger".into());
    let refused = world.changer.retune(&stranger, job, &limits).await;
    assert!(matches!(refused, Err(ChangeError::Priority(_))), "{refused:?}");
    let limits = serde_json::from_value(json!({ "priority": "low" })).unwrap();
    assert!(matches!(world.changer.retune(&stranger, job, &limits).await, Err(ChangeError::Unknown(_))));
    assert_eq!(world.jobs.job(job).await.unwrap(), before);

    let lower = json!({ "priority": "low" });
    world.pause(job).await;
    assert_eq!(world.retune(job, lower.clone()).await.unwrap().status(), Status::Paused, "a paused job is active");
    world.resume(job).await;
    let stop = Stop::because(StopCode::AuditFailed, "the counts differ", world.clock.now());
    change(&*world.jobs, job, |job| job.stop(&stop)).await;
    let stopping = world.retune(job, lower.clone()).await;
    assert!(matches!(stopping, Err(ChangeError::Stopping(Status::Running))), "{stopping:?}");
    world.clock.advance(world.limits.sweep.stop.grace);
    world.sweep_and_run().await;
    let ended = world.retune(job, lower).await;
    assert!(matches!(ended, Err(ChangeError::Ended(Status::Failed))), "{ended:?}");
}

#[tokio::test]
async fn a_crash_at_any_call_of_a_retune_leaves_it_done_or_not_begun() {
    for death in [acceptance::faults::Death::Before, acceptance::faults::Death::After] {
        for call in 0.. {
            let (world, job) = split(1, 9).await;
            world.faults.plan(call, death);
            let died = world.retune(job, json!({ "priority": "low" })).await.is_err();
            world.faults.revive();
            if !died {
                break;
            }
            let row = world.retune(job, json!({ "priority": "low" })).await.unwrap();
            assert_eq!((row.priority, row.revision), (Priority::Low, world.jobs.job(job).await.unwrap().revision));
            assert_eq!(world.run_and_show(job).await.items_succeeded, 9);
        }
    }
}
