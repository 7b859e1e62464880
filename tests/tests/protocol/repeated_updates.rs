//! Writes whose reply was lost, and that are recognised after others have written.

use std::time::Duration;

use acceptance::files;
use acceptance::world::{World, change};
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::states::Phase;
use rowmill_core::model::job::{Job, Lease, Stop, StopCode};
use rowmill_core::model::tally::{Committed, Counts, Mark, MarkKind};
use rowmill_core::ports::{Clock, Jobs, Tallies};
use rowmill_core::progress::update::{take_lease, update_job};
use serde_json::json;

use crate::{chunks_of, split};

const LATE: RunId = RunId::from_bytes([1; RunId::BYTES]);
const OTHER: RunId = RunId::from_bytes([2; RunId::BYTES]);
const LEASE: Duration = Duration::from_secs(60);

/// A world with a job of three tallies that are sent.
async fn running() -> (World, Job) {
    let (world, job) = split(1, 150).await;
    let job = world.jobs.job(job).await.unwrap();
    (world, job)
}

#[tokio::test]
async fn a_stop_is_refused_if_the_attempt_has_ended_and_the_next_has_begun() {
    let (world, job) = running().await;
    let stop = Stop::because(StopCode::AuditFailed, "the counts differ", world.clock.now());
    let stopped = async |job: &Job| update_job(&*world.jobs, job, |job| job.stop(&stop)).await.unwrap().done();
    world.jobs.lose_next_reply(|_| ());
    assert!(stopped(&job).await.is_ok());
    let next = change(&*world.jobs, job.job_guid, |job| Some(Job { phase: Phase::Runnable, ..job.clone() })).await;
    world.jobs.lose_next_reply(|row| row.attempt = 2);
    assert!(stopped(&next).await.is_err());
}

#[tokio::test]
async fn a_transition_does_not_start_from_a_later_attempt_than_that_of_its_run() {
    let (world, job) = running().await;
    world.jobs.edit_job(job.job_guid, |row| row.attempt = 2);
    let stop = Stop::because(StopCode::AuditFailed, "the counts differ", world.clock.now());
    let stopped = update_job(&*world.jobs, &job, |job| job.stop(&stop)).await.unwrap();
    assert!(stopped.done().is_err());
}

#[tokio::test]
async fn a_run_that_recognises_its_own_commit_sends_the_chunk_that_waits_for_it() {
    let world = World::new(chunks_of(1));
    let file = world.store_csv(files::plain_csv(3)).await;
    let job = world.create_with(file, json!({ "maxConcurrency": 1 })).await;
    world.split().await;
    let message = world.chunks.take().remove(0);
    let committer = &world.processor.committer;
    let (mark, counts) = (Mark { kind: MarkKind::Clean, run: LATE }, Counts { succeeded: 1, ..Counts::default() });
    let lost = [committer.commit_of(&message, mark, counts)];
    world.jobs.commit(job.job_guid, &lost).await.unwrap();
    let again = committer.commit(&message, mark, counts).await.unwrap();
    assert!(matches!(again, Committed::WonBefore(_)), "{again:?}");
    assert_eq!(world.chunks.take().len(), 1);
}

#[tokio::test]
async fn a_lease_is_refused_if_it_has_expired_and_another_run_holds_it() {
    let (world, job) = running().await;
    let take = async || take_lease(&*world.jobs, &*world.clock, &job, LATE, LEASE).await.unwrap().done();
    world.jobs.lose_next_reply(|_| ());
    assert!(take().await.is_ok());
    world.clock.advance(2 * LEASE);
    world.jobs.lose_next_reply(|row| row.lease = Some(Lease { holder: OTHER, until: row.moved_at + LEASE }));
    assert!(take().await.is_err());
}

#[tokio::test]
async fn a_run_that_sends_for_a_resume_notes_nothing_for_a_later_one() {
    let (world, job) = running().await;
    world.chunks.take();
    world.pause(job.job_guid).await;
    let resumed = world.resume(job.job_guid).await;
    // After its first note the job is paused and resumed, and the resend of that resume has begun too.
    world.jobs.lose_next_reply(|row| row.epoch += 2);
    world.split().await;
    let row = world.jobs.job(job.job_guid).await.unwrap();
    assert_eq!((row.epoch, row.resend_from), (resumed.epoch + 2, Some(0)));
    world.clock.advance(2 * world.limits.sweep.recovery.stale);
    world.sweep().await;
    assert_eq!(world.completed(job.job_guid).await, 150);
}
