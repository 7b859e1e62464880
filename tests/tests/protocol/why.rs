//! What holds a job up, as the rows of each step tell.

use std::time::Duration;

use acceptance::files;
use acceptance::use_cases::Limits;
use acceptance::world::World;
use rowmill_core::model::checkpoint::{Checkpoint, InFlight};
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::tally::ChunkAddress;
use rowmill_core::model::why::{Reason, ReasonCode};
use rowmill_core::ports::{Checkpoints, Clock, Jobs};
use serde_json::json;

use crate::{chunks_of, split_with};

async fn codes(world: &World, job: JobGuid) -> Vec<ReasonCode> {
    let known = |reason: &Reason| ReasonCode::ALL.into_iter().find(|code| reason.code == *code);
    world.why(job).await.iter().filter_map(known).collect()
}

#[tokio::test]
async fn each_step_of_a_life_has_its_reason() {
    use ReasonCode::*;
    let world = World::new(chunks_of(3));
    let other = world.validate_csv(files::plain_csv(3)).await;
    world.split().await;
    let job = world.validate_csv(files::plain_csv(9)).await;
    let [reason] = world.why(job).await.try_into().expect("one reason");
    assert_eq!((&reason.code, reason.since), (&NotTakenUp.into(), Some(world.clock.now())));
    assert_eq!((reason.jobs, reason.numbers["jobsOfSystem"]), (vec![other], 1));

    world.split().await;
    assert_eq!(codes(&world, job).await, [ChunksQueued]);
    let messages = world.chunks.take();
    let of_job: Vec<_> = messages.into_iter().filter(|message| message.job_guid == job).collect();
    world.clock.advance(Duration::from_secs(10));
    world.process_all(&of_job[..1]).await;
    assert_eq!(codes(&world, job).await, [Running]);
    world.clock.advance(Duration::from_secs(10));
    world.process_all(&of_job[1..2]).await;
    let [reason] = world.why(job).await.try_into().expect("one reason");
    assert_eq!((reason.numbers["itemsDone"], reason.numbers["itemsPerHour"]), (6, 2160), "{reason:?}");
    assert!(reason.expected_end_at.is_some_and(|end| end > world.clock.now()), "{reason:?}");

    world.clock.advance(Duration::from_secs(60));
    let wake_at = world.jobs.job(job).await.unwrap().wake_at;
    let silent = world.why(job).await.remove(0);
    assert_eq!((&silent.code, silent.next_look_at), (&Silent.into(), wake_at), "its third message is lost");

    world.pause(job).await;
    assert_eq!(codes(&world, job).await, [Paused]);
    world.resume(job).await;
    assert_eq!(codes(&world, job).await, [Resuming, Running]);
    world.completed(job).await;
    assert_eq!(codes(&world, job).await, [Ended]);
}

#[tokio::test]
async fn limits_of_the_type_and_of_the_job_are_reasons() {
    let limits = Limits::default().but(|limits| limits.create.chunks.max_items = 1);
    let world = World::with_type_limits(limits, r#"{"validate": {"concurrency": 2}}"#);
    let file = world.store_csv(files::plain_csv(5)).await;
    let job = world.create_with(file, json!({ "maxConcurrency": 1 })).await.job_guid;
    world.split().await;
    let first = world.lanes.take();
    world.process_all(&first).await;
    let all = world.why(job).await;
    let [of_type, of_job, running] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&of_type.code, of_type.numbers["limit"]), (&ReasonCode::TypeConcurrency.into(), 2));
    let figures = ["limit", "chunksInFlight", "chunksWaiting"].map(|name| of_job.numbers[name]);
    assert_eq!((&of_job.code, figures), (&ReasonCode::MaxConcurrency.into(), [1, 1, 3]));
    assert_eq!(running.code, ReasonCode::Running);
}

#[tokio::test]
async fn an_item_that_runs_alone_is_a_reason_with_its_time() {
    let (world, job) = split_with(3, 9, json!({})).await;
    let now = world.clock.now();
    let chunk = ChunkAddress { attempt: 1, tally: 0, index: 1 };
    let note = InFlight::of_run(now + Duration::from_secs(60), 1, 1);
    let blank = Checkpoint { isolated: true, done: 2, in_flight: Some(note), ..Checkpoint::blank(chunk, now) };
    world.jobs.move_checkpoint(job, &blank.moved(RunId::from_bytes([1; 7]), now)).await.unwrap();
    let all = world.why(job).await;
    let reason = all.iter().find(|reason| reason.code == ReasonCode::OneByOne).expect("an isolated chunk");
    let figures = ["chunks", "itemsDone", "itemsInFlight"].map(|name| reason.numbers[name]);
    assert_eq!((reason.since, figures), (Some(now), [1, 2, 1]));
}
