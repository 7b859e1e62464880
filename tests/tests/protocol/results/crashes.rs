//! Crashes and failed calls while a job runs and while its results are composed.

use std::time::Duration;

use acceptance::faults::{Death, at_every_call};
use acceptance::files::gzip;
use acceptance::world::World;
use complete_job::complete::CompletionEnd;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::messages::CompletionMessage;
use rowmill_core::ports::{Jobs, Queue};
use serde_json::json;

use super::{
    TIMES, composition_state, described, export, import, partly_bad, result, results, same_results_after_crashes,
    transform,
};
use crate::chunks_of;

#[tokio::test]
async fn a_crash_at_any_call_changes_no_byte_of_the_results() {
    let (plain, packed) = (partly_bad(), gzip(&partly_bad()));
    for (content_type, file, times) in [("text/csv", plain, &TIMES[1..]), ("application/gzip", packed, &TIMES)] {
        let crashes =
            same_results_after_crashes(times, async |world| transform(world, content_type, file.clone()).await);
        let crashes = crashes.await;
        assert!(crashes > 400 * times.len() as u64, "only {crashes} crashes");
    }
}

/// A `transform` job with all items done, and the message that completes it.
async fn processed(world: &World) -> (JobGuid, CompletionMessage) {
    let job = transform(world, "text/csv", partly_bad()).await;
    (job, world.run_to_completion_message().await)
}

#[tokio::test]
async fn a_completion_survives_one_failed_call_to_a_store_without_another_delivery() {
    let mut undisturbed = None;
    let failures = at_every_call(async |call, death| {
        let world = World::new(chunks_of(1));
        let (job, message) = processed(&world).await;
        if undisturbed.is_some() {
            world.faults.plan_failure(call, death);
        }
        let end = world.completer.complete(&message, world.deadline()).await;
        end.unwrap_or_else(|error| panic!("{death:?} call {call}: {error}"));
        let row = world.jobs.job(job).await.unwrap();
        assert_eq!((row.status(), row.completions), (Status::Completed, 1));
        let (manifest, files) = results(&world, job).await;
        let end = (row.end().map(|end| end.counts), described(&manifest), files);
        assert_eq!(&end, undisturbed.get_or_insert_with(|| end.clone()));
        !world.faults.is_pending()
    })
    .await;
    assert!(failures > 100, "only {failures} failures");
}

#[tokio::test]
async fn a_handover_survives_a_failed_call_to_a_store_without_another_delivery() {
    // The last four calls store the state and its tail, update the job row, and send the message.
    for call_from_last in 1..=4 {
        for death in [Death::Before, Death::After] {
            let mut calls = 0;
            for is_disturbed in [false, true] {
                let world = World::new(chunks_of(1));
                let (job, message) = processed(&world).await;
                let call = if is_disturbed { calls - call_from_last } else { u64::MAX };
                world.faults.plan_failure(call, death);
                // No time to compose, and half the margin to hand over.
                let deadline = world.deadline_in(Duration::from_secs(15));
                let end = world.completer.complete(&message, deadline).await.unwrap();
                assert_eq!((end, world.faults.is_pending()), (CompletionEnd::Continued, !is_disturbed));
                calls = world.faults.calls();
                let next = world.take_completion();
                assert_eq!(next.composing, world.jobs.job(job).await.unwrap().composing);
                assert!(next.composing.is_some());
                let end = world.completer.complete(&next, world.deadline()).await.unwrap();
                assert_eq!(end, CompletionEnd::Ended(Status::Completed));
            }
        }
    }
}

/// If each try composed its files anew, a job that cannot end would be composed forever.
#[tokio::test]
async fn a_retry_continues_the_composition_after_a_try_that_finished_the_file() {
    let mut calls = 0;
    for is_disturbed in [false, true] {
        let world = World::new(chunks_of(1).but(|limits| limits.complete.part_bytes = 64));
        let (job, mut message) = processed(&world).await;
        let composed = loop {
            let too_soon = world.deadline_in(TIMES[1]);
            assert_eq!(world.completer.complete(&message, too_soon).await.unwrap(), CompletionEnd::Continued);
            message = world.take_completion();
            let composed = composition_state(&world, job).await;
            if composed["open"]["multipart"].is_object() {
                break composed;
            }
        };
        // All files are complete before the last call, which is the transaction that ends the job.
        world.faults.plan_failure(if is_disturbed { calls - 1 } else { u64::MAX }, Death::Before);
        let end = world.completer.complete(&message, world.deadline()).await.unwrap();
        assert_eq!((end, world.faults.is_pending()), (CompletionEnd::Ended(Status::Completed), !is_disturbed));
        calls = world.faults.calls();
        let manifest = world.manifest(&world.jobs.job(job).await.unwrap()).await;
        let open = &composed["open"];
        let file = manifest.files.iter().find(|stored| open["name"] == stored.file.name).expect("it is listed");
        assert_eq!(open["multipart"]["by"], file.by, "the composition began once");
        assert_eq!(result(&world, job, "failed-rows.csv").await.lines().count(), 4, "a header and three rows");
    }
}

#[tokio::test]
async fn a_crash_at_any_call_changes_no_byte_of_an_export() {
    let crashes = same_results_after_crashes(&TIMES, async |world| {
        import(world, "people", 100).await;
        export(world, json!({ "dataset": "people" })).await
    });
    let crashes = crashes.await;
    assert!(crashes > 1000, "only {crashes} crashes");
}

#[tokio::test]
async fn a_crash_at_any_call_changes_no_byte_of_the_unprocessed_rows() {
    let crashes = same_results_after_crashes(&TIMES[1..], async |world| {
        let job = world.validate_csv(partly_bad()).await;
        world.split_within(TIMES[1]).await;
        world.cancel(job).await;
        world.process_queued().await;
        job
    });
    let crashes = crashes.await;
    assert!(crashes > 100, "only {crashes} crashes");
}

/// A run continues a composition after another run finished the file and crashed before it recorded that.
#[tokio::test]
async fn a_finished_but_unrecorded_file_is_not_left_out() {
    at_every_call(async |call, death| {
        let world = World::new(chunks_of(1).but(|limits| limits.complete.part_bytes = 100));
        let job = world.validate_csv(partly_bad()).await;
        world.split().await;
        world.cancel(job).await;
        world.process_queued().await;
        // More than one part of the file is stored, and more than one is still missing.
        let mut message = world.take_completion();
        for _ in 0..45 {
            world.completer.complete(&message, world.deadline_in(TIMES[1])).await.unwrap();
            message = world.take_completion();
        }
        world.completions.send(&[message]).await.unwrap();
        world.faults.plan(call, death);
        world.run_through_crashes(TIMES[0]).await;
        let (manifest, files) = results(&world, job).await;
        assert_eq!(manifest.left_out, []);
        assert_eq!(files["unprocessed-rows.csv"], partly_bad());
        assert!(!world.faults.is_pending() || call > 19, "only {call} calls");
        !world.faults.is_pending()
    })
    .await;
}
