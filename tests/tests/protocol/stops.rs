//! Cancel, deadline and tolerance: finished items keep their outcome, the rest is skipped, and the job ends.

use std::time::Duration;

use acceptance::files;
use acceptance::world::{World, change};
use cancel_job::error::ChangeError;
use dead_letter::settle::{DeadLetterEnd, DeadMessage};
use rowmill_api::job::Stage;
use rowmill_core::items::run_output;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job_event::JobEvent;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::run_output::{FailedItem, RunOutput};
use rowmill_core::model::tally::Counts;
use rowmill_core::ports::{Checkpoints, Clock, Jobs, Tallies};
use rowmill_core::progress::update::stop_overdue;
use serde_json::json;
use split_job::plan::SplitEnd;

use crate::{chunks_of, split, split_with};

#[tokio::test]
async fn a_cancelled_job_keeps_its_processed_items_and_lists_the_rest_as_skipped() {
    let (world, job) = split(2, 9).await;
    let chunks = world.process_first(2).await;
    let cancelled = world.cancel(job).await;
    assert_eq!(cancelled.status(), Status::Cancelling);
    assert_eq!(world.canceller.cancel(&World::owner(), job, false).await.unwrap(), cancelled, "changes nothing");
    world.process_all(&chunks[2..]).await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.error, shown.unprocessed), (Status::Cancelled, None, None));
    assert_eq!((shown.items_succeeded, shown.items_failed, shown.items_skipped), (4, 0, 5));
    assert_eq!(world.all_skipped(job).await, [5, 6, 7, 8, 9]);
    assert_eq!(world.jobs.active("system"), 0);
    assert!(world.canceller.cancel(&World::owner(), job, false).await.is_ok(), "a repeated cancel succeeds");
}

/// A stopped job of one chunk, three of whose nine rows are done according to its checkpoint.
async fn stopped_in_part() -> (World, JobGuid, ChunkMessage) {
    let world = World::new(chunks_of(100));
    let job = world.validate_csv("a,b\n1,2\nragged\n".to_owned() + &"3,4\n".repeat(7)).await;
    world.split().await;
    let message = world.chunks.take().remove(0);
    let run = world.splitter.entropy.run_id();
    let failed = FailedItem {
        row: 2,
        file: None,
        offset: 8,
        length: 6,
        code: "ragged_row".into(),
        message: "1 cell where the header has 2".into(),
        column: None,
        rule: None,
        raw: Some("ragged".into()),
        raw_base64: None,
    };
    let output = RunOutput { failed: vec![failed], ..RunOutput::default() };
    run_output::put(&*world.objects, job, message.address, run, &output).await.unwrap();
    let blank = Checkpoint::blank(message.address, world.clock.now());
    let counts = Counts { succeeded: 2, failed: 1, skipped: 0 };
    let moved = Checkpoint { done: 3, counts, run_output: Some(run), ..blank.moved(run, world.clock.now()) };
    world.jobs.move_checkpoint(job, &moved).await.unwrap();
    world.cancel(job).await;
    (world, job, message)
}

#[tokio::test]
async fn what_a_checkpoint_says_is_done_keeps_its_outcome_in_a_stopped_job() {
    let recovered = |message: ChunkMessage| ChunkMessage { delivery_mode: DeliveryMode::Recovered, ..message };
    for sent_again in [false, true] {
        for died in [false, true] {
            let (world, job, message) = stopped_in_part().await;
            // A first delivery too: the splitter may have sent the chunk twice.
            let message = if sent_again { recovered(message) } else { message };
            match died {
                true => {
                    let end = world.dead_letters.settle("letter", &DeadMessage::Chunk(message)).await;
                    assert_eq!(end.unwrap(), DeadLetterEnd::GivenUp);
                }
                false => {
                    world.process(&message, false).await;
                }
            }
            world.run().await;
            let shown = world.show(job).await;
            let counts = (shown.items_succeeded, shown.items_failed, shown.items_skipped);
            assert_eq!((shown.status, counts), (Status::Cancelled, (2, 1, 6)), "{sent_again} {died}");
            assert_eq!(world.all_skipped(job).await, (4..=9).collect::<Vec<_>>());
            assert_eq!(world.failed_rows(job).await, [2]);
        }
    }
}

#[tokio::test]
async fn a_job_that_has_not_started_can_be_cancelled() {
    let world = World::new(chunks_of(2));
    let file = world.store_csv(files::plain_csv(9)).await;
    let job = world.create("validate", file, json!({})).await.unwrap().job_guid;
    let cancelled = world.cancel(job).await;
    assert_eq!((cancelled.status(), cancelled.started_at), (Status::Cancelled, None), "at once");
    assert_eq!(world.jobs.active("system"), 0);
    let shown = world.run_and_show(job).await;
    let finished_at = cancelled.end().map(|end| end.finished_at);
    assert_eq!((shown.status, shown.item_count, shown.finished_at), (Status::Cancelled, 0, finished_at));
    let unprocessed = shown.unprocessed.unwrap();
    assert_eq!((unprocessed.from_row, unprocessed.from_offset), (1, 15), "the whole file");
}

#[tokio::test]
async fn only_its_owner_cancels_a_job_and_only_before_its_end() {
    let world = World::new(chunks_of(2));
    let job = world.validate_csv(files::plain_csv(9)).await;
    let stranger = Owner("somebody else".into());
    assert!(matches!(world.canceller.cancel(&stranger, job, false).await, Err(ChangeError::Unknown(_))));
    world.run().await;
    let late = world.canceller.cancel(&World::owner(), job, false).await;
    assert!(matches!(late, Err(ChangeError::Ended(Status::Completed))));
}

#[tokio::test]
async fn a_run_that_is_cancelled_midway_lists_its_skipped_rows() {
    let (world, job) = split(100, 9).await;
    world.cancel(job).await;
    world.run().await;
    assert_eq!(world.all_skipped(job).await, (1..=9).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_job_past_its_deadline_is_stopped_by_the_sweep() {
    let (world, job) = split_with(1, 200, json!({ "deadlineSeconds": 60 })).await;
    let chunks = world.chunks.take();
    world.process(&chunks[0], false).await;
    world.process(&chunks[150], false).await;
    assert_eq!(world.sweep().await.overdue, 0, "before the deadline");
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(world.sweep().await.overdue, 1);
    // The backlog is never delivered: the job does not wait for it.
    assert_eq!(world.sweep().await.tallies_closed, 0, "runs may still be processing");
    world.clock.advance(Duration::from_secs(300));
    assert_eq!(world.sweep().await.tallies_closed, 4);
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.error.unwrap().code), (Status::Failed, StopCode::DeadlineExceeded.into()));
    assert_eq!((shown.items_succeeded, shown.items_failed, shown.items_skipped), (2, 0, 198));
    let skipped = world.all_skipped(job).await;
    assert_eq!((skipped.len(), skipped[0], skipped.contains(&151)), (198, 2, false));
    // The queued messages arrive late and change no count.
    for message in &chunks {
        world.process(message, true).await;
    }
    assert_eq!(world.run_and_show(job).await.items_succeeded, 2);
    assert_eq!((world.jobs.job(job).await.unwrap().completions, world.jobs.active("system")), (1, 0));
}

#[tokio::test]
async fn a_worker_notices_that_the_deadline_has_passed() {
    let (world, job) = split_with(3, 9, json!({ "deadlineSeconds": 60 })).await;
    world.clock.advance(Duration::from_secs(61));
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.error.unwrap().code, shown.items_skipped), (StopCode::CapacityExceeded.into(), 9));
}

#[tokio::test]
async fn more_failures_than_a_job_tolerates_stop_it() {
    let world = World::new(chunks_of(1));
    let mut csv = b"a,b\n".to_vec();
    (0..50).for_each(|row| csv.extend_from_slice(if row % 5 == 4 { b"ragged\n".as_slice() } else { b"1,2\n" }));
    let file = world.store_csv(csv).await;
    for (tolerance, failed) in [
        (json!({ "count": 3 }), 4),
        (json!({ "percent": 20.0 }), 10),
        (json!({ "percent": 19.9, "minimumItems": 30 }), 6),
    ] {
        let job = world.create_with(file, json!({ "tolerance": tolerance })).await.job_guid;
        let shown = world.run_and_show(job).await;
        let code = shown.error.map(|error| error.code);
        if failed == 10 {
            assert_eq!((shown.status, code), (Status::Completed, None), "exactly at the tolerance");
        } else {
            assert_eq!((shown.status, code), (Status::Failed, Some(StopCode::ToleranceExceeded.into())), "{tolerance}");
        }
        assert_eq!(shown.items_failed, failed, "{tolerance}");
        assert_eq!(shown.item_progress, shown.item_count);
    }
}

#[tokio::test]
async fn tolerance_is_checked_once_more_at_the_end() {
    let world = World::new(chunks_of(10));
    let file = world.store_csv("a,b\n1,2\nragged\n").await;
    let job = world.create_with(file, json!({ "tolerance": { "count": 0 } })).await.job_guid;
    world.split().await;
    // The run that commits the failure dies before it checks the tolerance: it crashes at each call in turn, until the
    // tally is closed.
    let message = world.chunks.take().remove(0);
    for call in 0.. {
        world.faults.plan(call, acceptance::faults::Death::Before);
        let died = world.try_process(&message, call > 0).await.is_err();
        world.faults.revive();
        world.clock.advance(Duration::from_secs(600));
        if !died || world.jobs.tally(job, 1, 0).await.unwrap().is_closed() {
            break;
        }
    }
    world.faults.plan(u64::MAX, acceptance::faults::Death::Before);
    world.process(&message, true).await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Failed, 1, 1));
    assert!(world.clock.now() > shown.created_at);
}

#[tokio::test]
async fn a_job_that_nobody_takes_up_before_its_deadline_fails_without_having_run() {
    let world = World::new(chunks_of(1));
    let file = world.store_csv(files::plain_csv(9)).await;
    let job = world.create_with(file, json!({ "deadlineSeconds": 60 })).await.job_guid;
    let waiting = world.jobs.job(job).await.unwrap();
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(world.split().await, SplitEnd::Overdue);
    assert_eq!(world.jobs.job(job).await.unwrap(), waiting, "it is left to the sweep");
    assert_eq!(world.sweep().await.overdue, 1);
    let row = world.jobs.job(job).await.unwrap();
    assert_eq!((row.status(), row.started_at, world.jobs.active("system")), (Status::Failed, None, 0));
    let event = JobEvent::between(Some(&waiting), &row).unwrap();
    assert_eq!((event.detail_type(), event.status), ("Rowmill Job Ended", Status::Failed), "it never started");
    assert_eq!(world.show(job).await.error.unwrap().code, StopCode::CapacityExceeded);
    world.run().await;
    assert_eq!(world.jobs.job(job).await.unwrap(), row);
}

#[tokio::test]
async fn a_job_none_of_whose_chunks_began_before_its_deadline_lacked_capacity() {
    for begun in [false, true] {
        let (world, job) = split_with(1, 9, json!({ "deadlineSeconds": 60 })).await;
        let shown = world.show(job).await;
        assert_eq!((shown.stage, shown.first_chunk_at), (Stage::Queued.into(), None));
        let chunks = world.chunks.take();
        if begun {
            world.process(&chunks[0], false).await;
            let shown = world.show(job).await;
            assert_eq!((shown.stage, shown.first_chunk_at), (Stage::Processing.into(), Some(world.clock.now())));
        }
        world.clock.advance(Duration::from_secs(60));
        world.process_all(&chunks[1..]).await;
        if !begun {
            world.process(&chunks[0], false).await;
        }
        let shown = world.run_and_show(job).await;
        let code = if begun { StopCode::DeadlineExceeded } else { StopCode::CapacityExceeded };
        assert_eq!((shown.status, shown.error.unwrap().code), (Status::Failed, code.into()));
        assert_eq!(shown.items_skipped, if begun { 8 } else { 9 });
    }
}

#[tokio::test]
async fn a_job_that_has_waited_for_as_long_as_it_may_lacked_capacity() {
    // Before it is taken up, before its chunks begin, and not at all once one has begun.
    for (is_split, begun) in [(false, false), (true, false), (true, true)] {
        let limits = json!({ "startWithinSeconds": 60, "deadlineSeconds": 6000 });
        let (world, job) = match is_split {
            true => split_with(1, 9, limits).await,
            false => {
                let world = World::new(chunks_of(1));
                let file = world.store_csv(files::plain_csv(9)).await;
                let job = world.create_with(file, limits).await.job_guid;
                (world, job)
            }
        };
        assert_eq!(world.show(job).await.start_by, Some(world.clock.now() + Duration::from_secs(60)));
        let chunks = world.chunks.take();
        if begun {
            world.process(&chunks[0], false).await;
        }
        world.clock.advance(Duration::from_secs(59));
        assert_eq!(world.sweep().await.overdue, 0, "it may still wait");
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(world.sweep().await.overdue, u64::from(!begun), "the sweep looks in time");
        if begun {
            world.process_all(&chunks[1..]).await;
        }
        let shown = world.run_and_show(job).await;
        let code = shown.error.map(|error| error.code);
        assert_eq!(
            (code, shown.items_succeeded),
            match begun {
                true => (None, 9),
                false => (Some(StopCode::CapacityExceeded.into()), 0),
            }
        );
    }
}

#[tokio::test]
async fn a_chunk_that_begins_while_the_job_is_stopped_for_lack_of_capacity_decides_how() {
    let (world, job) = split(1, 9).await;
    let seen = world.jobs.job(job).await.unwrap();
    change(&*world.jobs, job, |job| job.begin(world.clock.now())).await;
    let stopped = stop_overdue(&*world.jobs, &seen, seen.deadline_at).await.unwrap();
    assert_eq!(stopped.done().unwrap().stopped_by().unwrap().code, StopCode::DeadlineExceeded);
}
