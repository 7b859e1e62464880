//! Pause and resume: running chunks end, queued ones are dropped unread, and a resume sends exactly what is missing.

use std::time::Duration;

use acceptance::faults::{Death, at_every_call};
use acceptance::files;
use acceptance::world::{World, change};
use cancel_job::error::ChangeError;
use process_items::end::ChunkEnd;
use rowmill_api::job::Stage;
use rowmill_core::model::ids::{Owner, RunId};
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job::{Job, StopCode};
use rowmill_core::model::job_event::JobEvent;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::tally::{Counts, Mark, MarkKind};
use rowmill_core::ports::{Clock, Jobs, Tallies};
use serde_json::json;
use split_job::plan::SplitEnd;

use crate::{chunks_of, split, split_with};

#[tokio::test]
async fn a_paused_job_drops_its_chunks_and_a_resume_sends_those_that_are_missing() {
    let (world, job) = split(1, 150).await;
    let chunks = world.process_first(40).await;
    let paused = world.pause(job).await;
    assert_eq!((paused.status(), world.show(job).await.stage), (Status::Paused, Stage::Paused.into()));
    assert_eq!(world.pause(job).await, paused, "pausing it again changes nothing");
    for message in &chunks[40..] {
        assert_eq!(world.process(message, message.address.index % 2 == 0).await, ChunkEnd::Dropped);
    }
    let shown = world.show(job).await;
    assert_eq!((shown.items_succeeded, shown.item_progress), (40, 40), "nothing is counted");

    world.resume(job).await;
    world.split().await;
    let sent: Vec<u64> = world.chunks.take().iter().map(|message| message.address.number()).collect();
    assert_eq!(sent, (40..150).collect::<Vec<_>>(), "exactly what is missing");
    assert_eq!(world.jobs.job(job).await.unwrap().resend_from, None);
    world.resume(job).await;
    assert!(world.splits.take().is_empty(), "resuming it again changes nothing");
    world.clock.advance(2 * world.limits.sweep.recovery.stale);
    world.sweep().await;
    assert_eq!(world.completed(job).await, 150);
    assert_eq!(world.jobs.active("system"), 0);
}

/// Time for which runs from before a pause may be at work.
const RUNS: Duration = Duration::from_secs(100);

#[tokio::test]
async fn a_resume_sends_nothing_while_runs_from_before_the_pause_may_be_at_work() {
    let world = World::new(chunks_of(1).but(|limits| limits.split.stop.grace = RUNS));
    let job = world.validate_csv(files::plain_csv(150)).await;
    world.split().await;
    let chunks = world.chunks.take();
    world.pause(job).await;
    world.clock.advance(Duration::from_secs(30));
    world.resume(job).await;
    for seconds in [0, 69] {
        world.clock.advance(Duration::from_secs(seconds));
        assert_eq!(world.split().await, SplitEnd::Continued);
        assert!(world.chunks.take().is_empty(), "after {seconds} s");
        assert_eq!(world.process(&chunks[7], false).await, ChunkEnd::Dropped, "a message from before is dropped");
    }
    world.clock.advance(Duration::from_secs(1));
    world.split().await;
    assert_eq!(world.chunks.take().len(), 150);
    assert_eq!(world.process(&chunks[7], false).await, ChunkEnd::Dropped, "it has another message by now");

    world.pause(job).await;
    world.clock.advance(RUNS);
    world.resume(job).await;
    world.split().await;
    assert_eq!(world.chunks.take().len(), 150, "at once after a long pause");
}

#[tokio::test]
async fn a_pause_names_the_time_at_which_the_try_that_is_written_began() {
    for (call, limits) in [(2, None), (1, Some(json!({ "maxConcurrency": 1 })))] {
        let (world, job) = split(1, 3).await;
        let (jobs, clock) = (world.jobs.clone(), world.clock.clone());
        // The write is held up, and another one is first.
        world.faults.freeze(call, async move {
            clock.advance(RUNS);
            change(&*jobs, job, |job| Some(Job { recoveries: 1, ..job.clone() })).await;
        });
        let paused = match limits {
            None => world.pause(job).await,
            Some(limits) => world.retune(job, limits).await.unwrap(),
        };
        assert!(!world.faults.thaw());
        assert_eq!((paused.paused_at, paused.recoveries), (Some(world.clock.now()), u32::from(paused.is_paused())));
    }
}

#[tokio::test]
async fn a_job_with_max_concurrency_is_resumed_within_its_window() {
    for width in [1, 3, 64, 100] {
        let world = World::new(chunks_of(1));
        let file = world.store_csv(files::plain_csv(150)).await;
        let job = world.create_with(file, json!({ "maxConcurrency": width })).await.job_guid;
        world.split().await;
        let chunks = world.chunks.take();
        // The run of the first chunk outlives pause and resume. It does not send the next one.
        let (jobs, clock) = (world.jobs.clone(), world.clock.clone());
        world.faults.freeze(2, async move {
            change(&*jobs, job, |job| job.pause(clock.now())).await;
            change(&*jobs, job, |job| job.resume(clock.now())).await;
        });
        assert!(matches!(world.process(&chunks[0], false).await, ChunkEnd::Committed(_)));
        assert!(!world.faults.thaw());
        world.process_all(&chunks[1..]).await;
        assert!(world.chunks.take().is_empty(), "width {width}");
        world.send_split(job).await;
        world.split().await;
        let sent = world.chunks.take();
        let numbers: Vec<u64> = sent.iter().map(|message| message.address.number()).collect();
        assert_eq!(numbers, (1..=width).collect::<Vec<_>>(), "width {width}");
        world.process_all(&sent).await;
        world.run().await;
        let shown = world.show(job).await;
        assert_eq!((shown.status, shown.items_succeeded), (Status::Completed, 150), "width {width}");
    }
}

#[tokio::test]
async fn a_chunk_that_is_committed_at_any_call_of_a_resend_is_followed_by_the_next() {
    for width in [1, 64] {
        for call in 0.. {
            let world = World::new(chunks_of(1));
            let file = world.store_csv(files::plain_csv(150)).await;
            let job = world.create_with(file, json!({ "maxConcurrency": width })).await.job_guid;
            world.split().await;
            let resumed =
                change(&*world.jobs, job, |job| job.pause(world.clock.now())?.resume(world.clock.now())).await;
            let first = ChunkMessage { epoch: resumed.epoch, ..world.chunks.take().remove(0) };
            let committer = world.sweeper.steps.committer.clone();
            world.faults.freeze(call, async move {
                let mark = Mark { kind: MarkKind::Clean, run: RunId::from_bytes([9; RunId::BYTES]) };
                let one = Counts { succeeded: 1, ..Counts::default() };
                committer.commit(&first, mark, one).await.expect("in-memory ports do not fail");
            });
            world.send_split(job).await;
            world.split().await;
            if world.faults.thaw() {
                break;
            }
            let sent: Vec<u64> = world.chunks.take().iter().map(|message| message.address.number()).collect();
            assert!(sent.contains(&width), "width {width}, call {call}: {sent:?}");
        }
    }
}

#[tokio::test]
async fn a_pause_at_any_call_of_the_splitter_holds_it_at_its_next_tally() {
    let mut paused_splits = 0;
    for call in 0.. {
        let world = World::new(chunks_of(1));
        let job = world.validate_csv(files::plain_csv(200)).await;
        let (jobs, clock) = (world.jobs.clone(), world.clock.clone());
        world.faults.freeze(call, async move {
            change(&*jobs, job, |job| job.pause(clock.now())).await;
        });
        let end = world.split().await;
        if world.faults.thaw() {
            break;
        }
        let row = world.jobs.job(job).await.unwrap();
        assert_eq!((row.status(), row.lease), (Status::Paused, None), "call {call}: it gives its lease back");
        assert_eq!(row.split.dispatched, row.split.tallies, "call {call}");
        paused_splits += u32::from(end == SplitEnd::Paused);
        world.process_queued().await;
        assert_eq!(world.show(job).await.item_progress, 0);
        world.resume(job).await;
        if !row.split.done {
            // The split goes on with the time of a whole invocation, not with what the resend left of this one.
            assert_eq!(world.split().await, SplitEnd::Continued, "call {call}");
        }
        assert_eq!(world.completed(job).await, 200, "call {call}");
    }
    assert!(paused_splits > 10, "{paused_splits}");
}

#[tokio::test]
async fn a_pause_and_a_resume_at_any_call_of_the_splitter_lose_nothing() {
    for call in 0.. {
        let world = World::new(chunks_of(1));
        let job = world.validate_csv(files::plain_csv(200)).await;
        let (jobs, clock, chunks) = (world.jobs.clone(), world.clock.clone(), world.chunks.clone());
        world.faults.freeze(call, async move {
            change(&*jobs, job, |job| job.pause(clock.now())).await;
            // Dropped, as by `process-items`.
            chunks.take();
            change(&*jobs, job, |job| job.resume(clock.now())).await;
        });
        world.split().await;
        if world.faults.thaw() {
            break;
        }
        // The message of the resume.
        world.send_split(job).await;
        assert_eq!(world.completed(job).await, 200, "call {call}");
    }
}

#[tokio::test]
async fn a_resume_that_dies_anywhere_is_completed_by_the_sweep_or_the_next_request() {
    at_every_call(async |call, death| {
        let (world, job) = split(2, 9).await;
        world.pause(job).await;
        world.process_queued().await;
        world.faults.plan(call, death);
        let died = world.changer.resume(&World::owner(), job).await.is_err() || !world.faults.is_pending();
        if !died {
            return false;
        }
        world.faults.revive();
        if world.jobs.job(job).await.unwrap().is_paused() {
            world.resume(job).await;
        }
        world.splits.take();
        world.clock.advance(Duration::from_secs(1));
        world.sweep().await;
        world.clock.advance(2 * world.limits.sweep.stop.grace);
        assert_eq!(world.sweep().await.messages, 1, "the sweep has the missing chunks sent");
        assert_eq!(world.completed(job).await, 9);
        true
    })
    .await;
}

#[tokio::test]
async fn a_job_whose_last_chunks_ran_when_it_was_paused_completes() {
    let (world, job) = split(100, 9).await;
    let (jobs, clock) = (world.jobs.clone(), world.clock.clone());
    // The run has read the job row and noted that a chunk begins, and is frozen while the job is paused.
    world.faults.freeze(2, async move {
        change(&*jobs, job, |job| job.pause(clock.now())).await;
    });
    let chunks = world.chunks.take();
    assert!(matches!(world.process(&chunks[0], false).await, ChunkEnd::Committed(_)));
    assert!(!world.faults.thaw());
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.stage), (Status::Paused, Stage::Composing.into()));
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, world.jobs.active("system")), (Status::Completed, 9, 0));
}

#[tokio::test]
async fn the_sweep_lets_a_paused_job_rest_and_completes_one_whose_last_run_died() {
    let (world, job) = split(2, 9).await;
    let chunks = world.chunks.take();
    world.pause(job).await;
    for _ in 0..5 {
        world.clock.advance(world.limits.sweep.recovery.stale);
        let swept = world.sweep().await;
        assert_eq!((swept.recovered, swept.messages), (0, 0), "nothing is sent, nothing is reported");
    }
    assert_eq!(world.jobs.totals(job, 1).await.unwrap().closed.len(), 0);
    world.resume(job).await;
    world.process_all(&chunks).await;
    assert_eq!(world.show(job).await.item_progress, 0, "messages from before the pause are dropped");
    world.split().await;
    let chunks = world.chunks.take();
    world.process_all(&chunks[..4]).await;
    // The run of the last chunk dies behind its commit, and its message comes again in a pause.
    for call in 0.. {
        world.faults.plan(call, Death::After);
        assert!(world.try_process(&chunks[4], true).await.is_err());
        world.faults.revive();
        if world.jobs.tally(job, 1, 0).await.unwrap().is_closed() {
            break;
        }
    }
    world.pause(job).await;
    assert_eq!(world.process(&chunks[4], true).await, ChunkEnd::Dropped);
    world.clock.advance(4 * world.limits.sweep.recovery.stale);
    world.sweep().await;
    assert_eq!(world.completed(job).await, 9);
}

#[tokio::test]
async fn the_deadline_of_a_paused_job_goes_on() {
    let (world, job) = split_with(2, 9, json!({ "deadlineSeconds": 60 })).await;
    let chunks = world.chunks.take();
    world.process(&chunks[0], false).await;
    world.pause(job).await;
    world.process_all(&chunks[1..]).await;
    world.clock.advance(Duration::from_secs(1000));
    assert_eq!(world.sweep().await.overdue, 1);
    world.clock.advance(world.limits.sweep.stop.grace);
    world.sweep_and_run().await;
    let row = world.jobs.job(job).await.unwrap();
    assert_eq!(
        (row.status(), row.stopped_by().map(|stop| stop.code)),
        (Status::Failed, Some(StopCode::DeadlineExceeded))
    );
    assert_eq!((world.show(job).await.items_skipped, world.jobs.active("system")), (7, 0));
}

#[tokio::test]
async fn a_paused_job_can_be_cancelled() {
    let (world, job) = split(2, 9).await;
    let chunks = world.process_first(2).await;
    world.pause(job).await;
    world.process_all(&chunks[2..]).await;
    assert_eq!(world.cancel(job).await.status(), Status::Cancelling);
    world.clock.advance(world.limits.sweep.stop.grace);
    world.sweep().await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_skipped), (Status::Cancelled, 4, 5));
}

#[tokio::test]
async fn a_job_that_was_paused_before_it_ran_waits_again_and_starts_once() {
    let world = World::new(chunks_of(2));
    let job = world.validate_csv(files::plain_csv(9)).await;
    let waiting = world.jobs.job(job).await.unwrap();
    let paused = world.pause(job).await;
    assert_eq!(world.split().await, SplitEnd::Paused);
    let resumed = world.resume(job).await;
    assert_eq!((resumed.status(), resumed.started_at), (Status::Waiting, None));
    assert_eq!(JobEvent::between(Some(&waiting), &paused), None);
    assert_eq!(JobEvent::between(Some(&paused), &resumed), None);
    assert_eq!(world.run_and_show(job).await.items_succeeded, 9);
}

#[tokio::test]
async fn a_redrive_can_be_paused() {
    let world = World::new(chunks_of(1));
    let job = world.validate_csv("a,b\n1,1\n2\n3,3\n4,4,4\n5\n").await;
    world.run().await;
    let failed = world.show(job).await.items_failed;
    assert_eq!(failed, 3);
    world.redrive(job, None).await.unwrap();
    world.split().await;
    world.pause(job).await;
    world.process_queued().await;
    world.resume(job).await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.attempt, shown.items_failed), (Status::Completed, 2, failed));
}

#[tokio::test]
async fn only_its_owner_pauses_a_job_and_only_while_it_has_work_left() {
    let world = World::new(chunks_of(2));
    let job = world.validate_csv(files::plain_csv(9)).await;
    let stranger = Owner("somebody else".into());
    assert!(matches!(world.changer.pause(&stranger, job).await, Err(ChangeError::Unknown(_))));
    assert!(matches!(world.changer.resume(&stranger, job).await, Err(ChangeError::Unknown(_))));
    let completion = world.run_to_completion_message().await;
    let late = world.changer.pause(&World::owner(), job).await;
    assert!(matches!(late, Err(ChangeError::Completing(Status::Running))), "{late:?}");
    world.completer.complete(&completion, world.deadline()).await.unwrap();
    assert!(matches!(world.changer.pause(&World::owner(), job).await, Err(ChangeError::Ended(Status::Completed))));
    assert!(matches!(world.changer.resume(&World::owner(), job).await, Err(ChangeError::Ended(Status::Completed))));

    let stopped = world.validate_csv(files::plain_csv(9)).await;
    world.take_up(stopped, Duration::from_secs(100)).await;
    world.cancel(stopped).await;
    assert!(matches!(world.changer.pause(&World::owner(), stopped).await, Err(ChangeError::Stopping(_))));
    assert!(matches!(world.changer.resume(&World::owner(), stopped).await, Err(ChangeError::Stopping(_))));
}
