//! Job types with lanes: every sender of chunks puts them there, and nothing runs beside them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use acceptance::faults::Death;
use acceptance::use_cases::Limits;
use acceptance::world::World;
use dead_letter::settle::{DeadLetterEnd, DeadMessage};
use process_items::end::ChunkEnd;
use process_items::invocation::Invocation;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::ports::Jobs;
use serde_json::json;

const TWO_LANES: &str = r#"{"validate": {"concurrency": 2}}"#;

/// A world whose chunks have one row.
fn world(job_types: &str) -> World {
    World::with_type_limits(Limits::default().but(|limits| limits.create.chunks.max_items = 1), job_types)
}

fn csv(rows: u32) -> String {
    (1..=rows).fold("id\n".to_owned(), |mut csv, row| {
        let _ = writeln!(csv, "{row}");
        csv
    })
}

fn lanes(messages: &[ChunkMessage]) -> Vec<Option<u32>> {
    messages.iter().map(|message| message.lane).collect()
}

#[tokio::test]
async fn the_chunks_of_a_type_with_lanes_go_on_them_and_those_of_others_do_not() {
    let world = world(TWO_LANES);
    let job = world.validate_csv(csv(4)).await;
    world.split().await;
    assert_eq!(world.chunks.take(), []);
    let sent = world.lanes.take();
    assert_eq!(lanes(&sent).into_iter().collect::<BTreeSet<_>>(), [Some(0), Some(1)].into());
    assert!(sent.windows(2).all(|pair| pair[0].lane != pair[1].lane), "they take turns");
    world.process_all(&sent).await;
    world.run().await;
    assert_eq!(world.jobs.job(job).await.unwrap().status(), Status::Completed);

    let file = world.store_csv(csv(1)).await;
    world.create("import", file, json!({ "dataset": "d", "key": "id" })).await.unwrap();
    world.split().await;
    assert_eq!((lanes(&world.chunks.take()), world.lanes.take()), (vec![None], vec![]));
}

#[tokio::test]
async fn a_window_a_continuation_a_recovery_and_isolation_stay_on_the_lanes() {
    let world = world(TWO_LANES);
    let file = world.store_csv(csv(3)).await;
    let job = world.create_with(file, json!({ "maxConcurrency": 1 })).await.job_guid;
    world.split().await;
    let first = world.lanes.take();
    assert_eq!(first.len(), 1, "the others wait for it");
    world.process_all(&first).await;
    let second = world.lanes.take().remove(0);
    assert_eq!(second.address.index, 1, "sent by the commit before");

    // Its message is lost.
    world.clock.advance(world.limits.sweep.recovery.stale * 2);
    world.sweep().await;
    let again = world.lanes.take().remove(0);
    assert_eq!((again.address, again.delivery_mode), (second.address, DeliveryMode::Recovered));

    let settled = world.dead_letters.settle("m", &DeadMessage::Chunk(again)).await;
    assert_eq!(settled.unwrap(), DeadLetterEnd::Isolated);
    let isolated = world.lanes.take();
    assert_eq!((isolated.len(), isolated[0].delivery_mode), (1, DeliveryMode::Isolated));
    assert_eq!((world.chunks.take(), world.isolated.take()), (vec![], vec![]));
    world.process_all(&isolated).await;
    world.run().await;
    assert_eq!(world.jobs.job(job).await.unwrap().end().unwrap().counts.succeeded, 3);
}

#[tokio::test]
async fn a_lane_is_held_until_the_invocation_has_ended_and_longer_if_it_fails() {
    let world = world(TWO_LANES);
    world.validate_csv(csv(2)).await;
    world.split().await;
    let deadline = world.deadline_in(Duration::from_secs(90));
    let invocation = |message| {
        Invocation::new(&world.processor.ports, &world.processor.committer, Duration::ZERO, [(message, false)])
    };
    let messages = world.lanes.take();
    let first = invocation(&messages[0]);
    let run = world.processor.process(&messages[0], false, deadline, &first);
    let end = world.processor.lane.during("r1", deadline, run).await;
    assert_eq!(end.unwrap(), ChunkEnd::Committed(one()));
    assert_eq!(world.lane_deliveries.take(), [("r1".to_owned(), Duration::from_secs(95))]);

    world.faults.plan_failure(0, Death::Before);
    let second = invocation(&messages[1]);
    let run = world.processor.process(&messages[1], false, deadline, &second);
    let end = world.processor.lane.during("r2", deadline, run).await;
    assert!(end.is_err(), "{end:?}");
    let held = [95, 540].map(|seconds| ("r2".to_owned(), Duration::from_secs(seconds)));
    assert_eq!(world.lane_deliveries.take(), held);
}

#[tokio::test]
async fn chunks_that_wait_on_a_lane_are_not_lost() {
    let world = world(TWO_LANES);
    world.validate_csv(csv(2)).await;
    world.split().await;
    world.clock.advance(world.limits.sweep.recovery.stale * 2);
    let swept = world.sweep().await;
    assert_eq!((swept.looked_at, swept.recovered), (1, 0), "they are queued");
    world.lanes.take();
    world.clock.advance(world.limits.sweep.recovery.stale * 4);
    assert_eq!(world.sweep().await.recovered, 1);
}

#[tokio::test]
async fn a_chunk_that_was_sent_before_its_type_had_lanes_does_not_run_beside_them() {
    let mut world = world("");
    let job = world.validate_csv(csv(2)).await;
    world.split().await;
    let before = world.chunks.take();
    assert_eq!(lanes(&before), [None, None]);

    // The functions start anew with the setting.
    let with_lanes = self::world(TWO_LANES);
    world.processor.runs.type_limits = JobTypeLimits::parse(TWO_LANES).unwrap().into();
    world.processor.ports.chunks = std::sync::Arc::new(rowmill_core::sending::lane_router::LaneRouter {
        limits: JobTypeLimits::clone(&world.processor.runs.type_limits),
        queue: world.chunks.clone(),
        lanes: with_lanes.lanes.clone(),
    });
    for message in &before {
        assert_eq!(world.process(message, false).await, ChunkEnd::Rerouted);
    }
    // Also if it is of a version that did not say the type.
    let older = ChunkMessage { job_type: None, ..before[0].clone() };
    assert_eq!(world.process(&older, false).await, ChunkEnd::Rerouted);
    let sent = with_lanes.lanes.take();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|message| message.lane.is_some() && message.delivery_mode == DeliveryMode::Recovered));
    assert_eq!(world.jobs.job(job).await.unwrap().first_chunk_at, None, "none has begun");
    world.process_all(&sent).await;
    world.run().await;
    assert_eq!(world.jobs.job(job).await.unwrap().end().unwrap().counts.succeeded, 2);
}

#[tokio::test]
async fn a_lane_that_a_type_no_longer_has_is_left() {
    let mut world = world(TWO_LANES);
    world.validate_csv(csv(2)).await;
    world.split().await;
    let sent = world.lanes.take();
    world.processor.runs.type_limits = JobTypeLimits::parse(r#"{"validate": {"concurrency": 1}}"#).unwrap().into();
    for message in sent {
        let expected = if message.lane == Some(1) { ChunkEnd::Rerouted } else { ChunkEnd::Committed(one()) };
        assert_eq!(world.process(&message, false).await, expected, "{message:?}");
    }
}

const fn one() -> rowmill_core::model::tally::Counts {
    rowmill_core::model::tally::Counts { succeeded: 1, failed: 0, skipped: 0 }
}

#[tokio::test]
async fn active_jobs_of_a_type_replace_the_ceiling_of_all_types() {
    let mut limits = Limits::default();
    limits.create.ceilings.job_type = 1;
    limits.redrive.ceilings.job_type = 1;
    let world = World::with_type_limits(limits, r#"{"validate": {"activeJobs": 2}}"#);
    let file = world.store_csv(csv(1)).await;
    let validate = || world.create("validate", file, json!({}));
    let import = || world.create("import", file, json!({ "dataset": "d", "key": "id" }));
    assert!(validate().await.is_ok());
    assert!(validate().await.is_ok());
    assert!(validate().await.is_err(), "two of its own");
    assert!(import().await.is_ok());
    assert!(import().await.is_err(), "one as for all others");
}
