//! Redrive: the next attempt runs over exactly the failed items, from their own bytes or from a corrected file.

use std::sync::Arc;
use std::time::Duration;

use acceptance::faults::at_every_call;
use acceptance::use_cases::Limits;
use acceptance::world::World;
use dead_letter::settle::DeadMessage;
use redrive_job::redrive::{RedriveJobError, RedriveRequest};
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::details_until;
use rowmill_core::model::job::states::{JobOutcome, Phase, Status};
use rowmill_core::model::keys;
use rowmill_core::ports::{Admission, Ceilings, Clock, Jobs, Objects, Queue, Tallies};
use serde_json::json;

use crate::chunks_of;

/// Rows 2, 4 and 5 of 6 are ragged.
const FILE: &str = "a,b\n1,1\n2\n3,3\n4,4,4\n5\n6,\"x\ny\"\n";

/// A world with this many items per chunk, and a job over that file that has ended.
async fn partly_failed(max_items: u32) -> (World, JobGuid) {
    partly_failed_under(chunks_of(max_items)).await
}

async fn partly_failed_under(limits: Limits) -> (World, JobGuid) {
    let world = World::new(limits);
    let file = world.store_csv(FILE).await;
    let job = world.create("import", file, json!({ "dataset": "d", "key": "a" })).await.unwrap().job_guid;
    assert_eq!(world.run_and_show(job).await.items_failed, 3);
    (world, job)
}

#[tokio::test]
async fn an_item_that_fails_in_every_attempt_is_counted_once() {
    for chunk in [1, 2, 5] {
        let (world, job) = partly_failed(chunk).await;
        for attempt in 2..5 {
            let redriven = world.redrive(job, None).await.unwrap();
            assert_eq!((redriven.attempt, redriven.status()), (attempt, Status::Running));
            let shown = world.show(job).await;
            assert_eq!((shown.item_count, shown.item_progress, shown.items_failed), (6, 6, 3), "the sum never changes");
            assert_eq!(world.failed_rows(job).await, [2, 4, 5], "failed items stay failed until they succeed");
            let shown = world.run_and_show(job).await;
            assert_eq!((shown.status, shown.outcome), (Status::Completed, Some(JobOutcome::Partial)));
            assert_eq!((shown.items_succeeded, shown.items_failed, shown.item_count), (3, 3, 6));
            assert_eq!(world.failed_rows(job).await, [2, 4, 5]);
            let row = world.jobs.job(job).await.unwrap();
            assert_eq!((row.completions, world.jobs.active("system")), (attempt, 0));
        }
    }
}

#[tokio::test]
async fn a_job_whose_rows_could_expire_is_not_redriven() {
    let (world, job) = partly_failed(1).await;
    let created = world.clock.now();
    let until = loop {
        world.clock.advance(Duration::from_secs(29 * 24 * 60 * 60));
        match world.redrive(job, None).await {
            Ok(_) => world.run().await,
            Err(RedriveJobError::TooOld(until)) => break until,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(until, details_until(job));
    let days = world.clock.now().duration_since(created).as_hours() / 24;
    assert_eq!(days, 13 * 29, "the deadline and the retention of 30 days must fit in");
    assert_eq!(world.show(job).await.items_failed, 3, "it is as before");
}

#[tokio::test]
async fn corrected_rows_replace_failed_ones_and_the_others_stay_failed() {
    let (world, job) = partly_failed(1).await;
    world.correct(job, "a,b,row,code\n5,five,5,\n\"t,wo\",2,2,ragged_row\n").await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.items_succeeded, shown.items_failed, shown.item_count), (5, 1, 6));
    assert_eq!(world.failed_rows(job).await, [4]);
    let mut keys: Vec<_> = world.records.dataset("local/d").iter().map(|record| record.key.clone()).collect();
    keys.sort();
    assert_eq!(keys, ["1", "3", "5", "6", "t,wo"]);
    // A second redrive corrects the last failed row.
    world.correct(job, "a,b,row\n4,4,4\n").await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.outcome, shown.items_succeeded), (Some(JobOutcome::Succeeded), 6));
    assert!(world.failed_rows(job).await.is_empty());
    assert!(matches!(world.redrive(job, None).await, Err(RedriveJobError::NothingFailed)));
}

#[tokio::test]
async fn a_corrected_file_that_is_replaced_at_any_call_is_taken_as_it_was_or_refused() {
    let (mut taken, mut refused) = (0, 0);
    for call in 0.. {
        let (world, job) = partly_failed(1).await;
        let corrected = world.store_csv("a,b,row\n5,five,5\n").await;
        let objects = Arc::clone(&world.objects);
        world.faults.freeze(call, async move {
            objects.put(&keys::upload(corrected), "text/csv", "a,b,row\n6,six,5\n".into(), None).await.unwrap();
        });
        match world.redrive(job, Some(corrected)).await {
            Ok(_) => {
                taken += 1;
                world.run().await;
                let records = world.records.dataset("local/d");
                assert!(records.iter().any(|record| record.key == "5"), "call {call}");
                assert_eq!(world.failed_rows(job).await, [2, 4], "call {call}");
            }
            Err(RedriveJobError::UploadChanged(file)) => {
                refused += 1;
                assert_eq!((file, world.jobs.job(job).await.unwrap().attempt), (corrected, 1), "call {call}");
            }
            Err(error) => panic!("call {call}: {error}"),
        }
        if world.faults.thaw() {
            break;
        }
    }
    // Before the file is looked at, and between that and reading it.
    assert!(taken > 2 && refused > 1, "{taken} taken, {refused} refused");
}

#[tokio::test]
async fn an_unusable_corrected_file_starts_no_attempt() {
    let (world, job) = partly_failed(2).await;
    let stranger = world.store_csv("a,b,row\n9,9,3\n9,9,2\n9,9,77\n").await;
    let Err(RedriveJobError::NotFailed(rows)) = world.redrive(job, Some(stranger)).await else { panic!("taken") };
    assert_eq!(rows, [3, 77]);
    let twice = world.store_csv("a,b,row\n9,9,2\n9,9,2\n").await;
    assert!(matches!(world.redrive(job, Some(twice)).await, Err(RedriveJobError::Corrected(_))));
    let unknown = "00000000-0000-4000-8000-0000000000ff".parse().unwrap();
    assert!(matches!(world.redrive(job, Some(unknown)).await, Err(RedriveJobError::UnknownUpload(_))));
    let row = world.jobs.job(job).await.unwrap();
    assert_eq!((row.status(), row.attempt, world.jobs.active("system")), (Status::Completed, 1, 0));
}

#[tokio::test]
async fn only_an_ended_job_of_the_owner_is_redriven_and_only_below_the_ceilings() {
    let mut limits = chunks_of(2);
    limits.create.ceilings = Ceilings { owner: 1, job_type: 9, system: 9 };
    limits.redrive.ceilings = limits.create.ceilings;
    let (world, job) = partly_failed_under(limits).await;
    let request = RedriveRequest::default();
    let stranger = world.redriver.redrive(&Owner("somebody else".into()), job, &request).await;
    assert!(matches!(stranger, Err(RedriveJobError::UnknownJob(_))));
    let file = world.store_csv(FILE).await;
    let other = world.create("validate", file, json!({})).await.unwrap().job_guid;
    let Err(RedriveJobError::Full(full)) = world.redrive(job, None).await else { panic!("no room") };
    assert_eq!((full.admission, full.recent_ends.len()), (Admission::OwnerFull, 1));
    assert!(matches!(world.redrive(other, None).await, Err(RedriveJobError::Active)));
    world.run().await;
    world.redrive(job, None).await.unwrap();
    assert!(matches!(world.redrive(job, None).await, Err(RedriveJobError::Active)));
    world.run().await;
    assert_eq!(world.jobs.active("system"), 0);
}

#[tokio::test]
async fn items_that_a_cancelled_redrive_did_not_process_stay_failed() {
    let (world, job) = partly_failed(1).await;
    world.correct(job, "a,b,row\n2,2,2\n4,4,4\n5,5,5\n").await;
    world.split().await;
    let chunks = world.chunks.take();
    assert_eq!(chunks.len(), 3);
    world.process(&chunks[1], false).await;
    world.cancel(job).await;
    world.process(&chunks[0], false).await;
    world.process(&chunks[2], false).await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Cancelled, 4, 2));
    assert_eq!((shown.items_skipped, shown.item_count), (0, 6));
    assert_eq!(world.failed_rows(job).await, [2, 5]);
    // Cancelled before the split: the failed items stay failed.
    world.redrive(job, None).await.unwrap();
    world.cancel(job).await;
    world.run().await;
    assert_eq!(world.failed_rows(job).await, [2, 5]);
    assert_eq!(world.show(job).await.items_failed, 2);
}

#[tokio::test]
async fn a_crash_at_any_call_of_a_redrive_changes_no_count() {
    at_every_call(async |call, death| {
        let (world, job) = partly_failed(1).await;
        let corrected = world.store_csv("a,b,row\n2,2,2\n5,5,5\n").await;
        world.faults.plan(call, death);
        while world.redrive(job, Some(corrected)).await.is_err_and(|error| !matches!(error, RedriveJobError::Active)) {
            assert!(world.faults.revive());
        }
        world.faults.revive();
        world.run_through_crashes(Duration::from_secs(300)).await;
        // If the split message itself is lost, a sweep sends it. Several sweeps are needed, because a sweep that
        // crashes has claimed the job for a while.
        for _ in 0..3 {
            world.clock.advance(world.limits.sweep.recovery.stale);
            world.sweeper.sweep().await.ok();
            world.faults.revive();
            world.run_through_crashes(Duration::from_secs(300)).await;
        }
        let shown = world.show(job).await;
        assert_eq!((shown.status, shown.attempt), (Status::Completed, 2));
        assert_eq!((shown.items_succeeded, shown.items_failed), (5, 1));
        assert_eq!(world.failed_rows(job).await, [4]);
        !world.faults.is_pending()
    })
    .await;
}

#[tokio::test]
async fn failed_items_can_be_read_after_the_objects_of_earlier_attempts_expired() {
    let (world, job) = partly_failed(1).await;
    for attempt in 2..4 {
        world.redrive(job, None).await.unwrap();
        world.run().await;
        world.objects.expire(&format!("results/{job}/{}/", attempt - 1));
        assert_eq!(world.failed_rows(job).await, [2, 4, 5], "attempt {attempt}");
    }
    world.correct(job, "a,b,row\n2,2,2\n4,4,4\n5,5,5\n").await;
    assert_eq!(world.run_and_show(job).await.outcome, Some(JobOutcome::Succeeded));
}

#[tokio::test]
async fn a_file_that_was_not_read_to_its_end_never_counts_as_succeeded() {
    let world = World::new(chunks_of(1));
    let job = world.validate_csv(format!("a,b\n1,1\n2\n{}", "3,3\n".repeat(70))).await;
    // The splitter has time for one tally. That tally is processed, then the job is cancelled.
    let deadline = world.deadline_in(Duration::from_secs(10));
    world.splitter.split(&world.splits.take()[0], deadline).await.unwrap();
    world.process_queued().await;
    world.cancel(job).await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.unprocessed.map(|part| part.from_row)), (Status::Cancelled, Some(65)));
    world.correct(job, "a,b,row\n2,2,2\n").await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.items_succeeded, shown.items_failed), (64, 0));
    assert_eq!((shown.outcome, shown.unprocessed.map(|part| part.from_row)), (Some(JobOutcome::Partial), Some(65)));
}

#[tokio::test]
async fn sparse_failures_are_split_in_the_same_way_wherever_the_split_resumes() {
    // One failed item in each of 2,100 chunks: more chunks than the items of one tally may come from.
    let rows: String = (0..2100).map(|_| "ragged\n").collect();
    let file = format!("a,b\n{rows}");
    let mut borders = Vec::new();
    for split_time in [300, 10] {
        let world = World::new(chunks_of(1));
        let job = world.validate_csv(file.clone()).await;
        world.run().await;
        let spec = world.jobs.spec(job).await.unwrap();
        assert_eq!(spec.limits.max_items, 1);
        world.redrive(job, None).await.unwrap();
        world.run_through_crashes(Duration::from_secs(split_time)).await;
        let tallies = world.jobs.tallies(job, 2, 0..100).await.unwrap();
        borders.push(tallies.iter().map(|tally| (tally.start, tally.items)).collect::<Vec<_>>());
        assert_eq!(world.show(job).await.items_failed, 2100);
    }
    assert_eq!(borders[0], borders[1]);
}

/// A completer or dead-letter function is frozen at one of its calls. Meanwhile another run ends the attempt, and the
/// next attempt is half done. When the frozen run continues, it must not touch the next attempt.
#[tokio::test]
async fn a_late_run_of_an_attempt_does_not_touch_the_next_one() {
    for is_dead_letter in [false, true] {
        for call in 0.. {
            let world = Arc::new(World::new(chunks_of(1)));
            let file = world.store_csv(FILE).await;
            let job = world.create_with(file, json!({ "tolerance": { "count": 2 } })).await.job_guid;
            let completion = world.run_to_completion_message().await;
            world.clock.advance(world.limits.dead_letter.completion_patience());
            world.faults.freeze(call, {
                let (world, completion) = (Arc::clone(&world), completion.clone());
                async move {
                    world.clock.advance(Duration::from_secs(3600));
                    world.completer.complete(&completion, world.deadline()).await.unwrap();
                    world.correct(job, "a,b,row\n2,2,2\n5,5,5\n").await;
                    world.split().await;
                    for message in world.chunks.take().iter().skip(1) {
                        world.process(message, false).await;
                        world.chunks.send(std::slice::from_ref(message)).await.unwrap();
                    }
                }
            });
            if is_dead_letter {
                world.dead_letters.settle("letter", &DeadMessage::Completion(completion)).await.ok();
            } else {
                world.completer.complete(&completion, world.deadline()).await.ok();
            }
            if world.faults.thaw() {
                break;
            }
            let row = world.jobs.job(job).await.unwrap();
            assert_eq!((row.attempt, row.phase), (2, Phase::Runnable), "dead letter: {is_dead_letter}, call {call}");
            world.clock.advance(world.limits.sweep.recovery.stale);
            world.run().await;
            world.sweep().await;
            let shown = world.run_and_show(job).await;
            // The last row was skipped when the third failure stopped the first attempt.
            let counts = (shown.items_succeeded, shown.items_failed, shown.items_skipped);
            assert_eq!((shown.status, counts), (Status::Completed, (4, 1, 1)));
        }
    }
}
