//! A job type whose target is down: its jobs are paused instead of failing rows, and continue by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use acceptance::faults::{Death, at_every_call};
use acceptance::files;
use acceptance::use_cases::Limits;
use acceptance::world::{World, change, plain_type};
use async_trait::async_trait;
use dead_letter::settle::DeadMessage;
use process_items::end::ChunkEnd;
use process_items::invocation::Invocation;
use rowmill_api::job::{PauseCode, PausedBy};
use rowmill_core::model::breaker::{BreakerLimits, BreakerState};
use rowmill_core::model::checkpoint::FAILURES_MAX;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job::{Job, LEASE_MARGIN};
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor};
use rowmill_core::ports::{Checkpoints, Clock, Jobs};
use rowmill_core::progress::breaker::Looked;
use rowmill_settings::{ProcessTime, StopGrace};
use serde_json::json;

use crate::chunks_of;

/// The job type `mail`. Its target is up or down.
#[derive(Clone, Default)]
struct Mail {
    is_down: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
}

#[async_trait]
impl ItemProcessor for Mail {
    async fn process(&self, _: &Item) -> Result<ItemOutcome, ItemError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(ItemError::transient("unavailable", "the service answered 503")),
            false => Ok(ItemOutcome::Succeeded),
        }
    }
}

const PROBE: Duration = Duration::from_secs(60);

/// A world in which three failed runs open a breaker, and its target.
fn world() -> (World, Mail) {
    let mail = Mail::default();
    let limits = Limits {
        breaker: BreakerLimits { failures: 3, window: Duration::from_secs(600), probe: PROBE },
        ..chunks_of(10)
    };
    (World::with_job_type(limits, |_| Some(plain_type("mail", mail.clone()))), mail)
}

impl Mail {
    fn goes(&self, down: bool) {
        self.is_down.store(down, Ordering::SeqCst);
    }
}

/// A job with six chunks of ten rows.
async fn job(world: &World) -> JobGuid {
    let file = world.store_csv(files::plain_csv(60)).await;
    let job = world.create("mail", file, json!({})).await.expect("a job").job_guid;
    world.split().await;
    job
}

/// Delivers all queued chunks while the target is down. Returns how many runs gave their message back.
async fn fail_queued(world: &World) -> usize {
    let mut given_back = 0;
    for message in world.chunks.take() {
        given_back += usize::from(world.try_process(&message, false).await.is_err());
    }
    given_back
}

/// Two jobs whose target is down. The breaker has paused both, and one of them probes: it comes last.
async fn probing() -> (World, Mail, [JobGuid; 2], JobGuid) {
    let (world, mail) = world();
    let jobs = [job(&world).await, job(&world).await];
    mail.goes(true);
    fail_queued(&world).await;
    world.clock.advance(PROBE);
    world.sweep().await;
    let first = probes(&world).expect("a job probes");
    (world, mail, jobs, first)
}

async fn status(world: &World, job: JobGuid) -> Status {
    world.jobs.job(job).await.unwrap().status()
}

/// Lets time pass and sweeps, until no queue has messages and no job of the type is paused by the breaker.
async fn sweep_until_ended(world: &World, jobs: &[JobGuid]) {
    for _ in 0..60 {
        world.sweep_and_run().await;
        let mut open = 0;
        for job in jobs {
            open += usize::from(!status(world, *job).await.is_terminal());
        }
        if open == 0 {
            return;
        }
        world.clock.advance(PROBE);
    }
    panic!("they do not end");
}

async fn assert_succeeded(world: &World, jobs: &[JobGuid]) {
    for job in jobs {
        let shown = world.show(*job).await;
        assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 60, 0), "{shown:?}");
        assert_eq!(shown.pause, None);
    }
    assert_eq!(world.jobs.active("system"), 0);
}

fn probes(world: &World) -> Option<JobGuid> {
    match world.breakers.now("mail")?.state {
        BreakerState::Probing(probe) => Some(probe.job),
        _ => None,
    }
}

#[tokio::test]
async fn jobs_whose_target_is_down_are_paused_with_the_reason_and_end_without_a_failed_row() {
    let (world, mail) = world();
    let jobs = [job(&world).await, job(&world).await];
    mail.goes(true);
    assert_eq!(fail_queued(&world).await, 2, "the third failed run opens the breaker, the others find it open");
    for job in jobs {
        let shown = world.show(job).await;
        let pause = shown.pause.expect("it is paused");
        assert_eq!((shown.status, &pause.by), (Status::Paused, &PausedBy::Breaker.into()));
        let reason = pause.reason.expect("a reason");
        assert_eq!(reason.code, PauseCode::TargetDown);
        assert_eq!(reason.message, "the service answered 503 (unavailable)");
        let BreakerState::Open { until } = world.breakers.now("mail").unwrap().state else { panic!("it is open") };
        assert_eq!(pause.next_probe_at, Some(until));
        assert!(reason.since < until && until <= reason.since + PROBE, "{reason:?}");
        assert!(shown.message.ends_with("its target is down. It continues by itself"), "{}", shown.message);
    }
    let calls = mail.calls.load(Ordering::SeqCst);
    world.sweep_and_run().await;
    assert_eq!(mail.calls.load(Ordering::SeqCst), calls, "nothing is tried before its time");

    // Two probes fail. Each calls the target for one job only.
    for _ in 0..4 {
        world.clock.advance(PROBE);
        world.sweep_and_run().await;
        for job in jobs {
            assert_eq!(status(&world, job).await, Status::Paused);
        }
    }
    assert_eq!(world.breakers.now("mail").unwrap().openings, 3);
    mail.goes(false);
    sweep_until_ended(&world, &jobs).await;
    assert_succeeded(&world, &jobs).await;
    assert_eq!(world.breakers.now("mail").unwrap().openings, 0, "it is closed");
}

#[tokio::test]
async fn a_run_without_failures_neither_reads_nor_writes_a_breaker() {
    let (world, _) = world();
    let job = job(&world).await;
    world.run().await;
    assert_succeeded(&world, &[job]).await;
    assert_eq!(world.breakers.now("mail"), None);
}

#[tokio::test]
async fn a_crash_at_any_call_of_the_run_that_pauses_its_job_loses_nothing() {
    for call in 0.. {
        for death in [Death::Before, Death::After] {
            let (world, mail) = world();
            let jobs = [job(&world).await];
            mail.goes(true);
            let messages = world.chunks.take();
            for message in &messages[..2] {
                assert!(world.try_process(message, false).await.is_err());
            }
            world.faults.plan(call, death);
            world.try_process(&messages[2], false).await.ok();
            if world.faults.is_pending() {
                return;
            }
            world.faults.revive();
            for message in &messages {
                let again = world.try_process(message, true).await;
                assert_eq!(again.expect("it is dropped"), ChunkEnd::Dropped, "call {call} {death:?}");
            }
            assert_eq!(status(&world, jobs[0]).await, Status::Paused, "call {call} {death:?}");
            mail.goes(false);
            sweep_until_ended(&world, &jobs).await;
            assert_succeeded(&world, &jobs).await;
        }
    }
}

#[tokio::test]
async fn a_crash_at_any_call_of_the_sweep_that_probes_or_resumes_loses_nothing() {
    let mut crashes = 0;
    for sweep in 0..3 {
        for call in 0.. {
            let mut happened = false;
            for death in [Death::Before, Death::After] {
                let (world, mail) = world();
                let jobs = [job(&world).await, job(&world).await];
                mail.goes(true);
                fail_queued(&world).await;
                mail.goes(false);
                for _ in 0..sweep {
                    world.clock.advance(PROBE);
                    world.sweep_and_run().await;
                }
                world.clock.advance(PROBE);
                world.faults.plan(call, death);
                world.sweeper.sweep().await.ok();
                happened |= !world.faults.is_pending();
                world.faults.plan(u64::MAX, death);
                world.faults.revive();
                world.clock.advance(world.limits.sweep.stop.grace);
                sweep_until_ended(&world, &jobs).await;
                assert_succeeded(&world, &jobs).await;
            }
            crashes += u32::from(happened);
            if !happened {
                break;
            }
        }
    }
    assert!(crashes > 20, "{crashes}");
}

#[tokio::test]
async fn another_job_takes_the_probe_over_from_one_that_is_cancelled_paused_by_its_owner_or_unreadable() {
    for case in 0..3 {
        let (world, mail, jobs, first) = probing().await;
        world.splits.take();
        match case {
            0 => drop(world.pause(first).await),
            1 => drop(world.cancel(first).await),
            _ => world.jobs.spoil_tally(first, 1, 0),
        }
        let other = jobs.into_iter().find(|job| *job != first).unwrap();
        assert_eq!(status(&world, other).await, Status::Paused);
        mail.goes(false);
        world.clock.advance(2 * PROBE);
        sweep_until_ended(&world, &[other]).await;
        assert_succeeded_alone(&world, other).await;
    }
}

#[tokio::test]
async fn a_job_that_waits_for_a_slot_holds_up_no_probe() {
    let (world, _, jobs, first) = probing().await;
    let now = world.clock.now();
    let waits = |job: &Job| {
        let paused = job.pause(now)?;
        Some(paused.await_slots(&paused.resume(now)?))
    };
    assert!(change(&*world.jobs, first, waits).await.awaits_slots());
    let other = jobs.into_iter().find(|job| *job != first).unwrap();
    let looked = world.sweeper.breaker.look_at(&world.jobs.job(other).await.unwrap(), 0).await.unwrap();
    assert!(matches!(looked, Looked::Resumed(_)), "{looked:?}");
    assert_eq!(probes(&world), Some(other));
}

#[tokio::test]
async fn a_resume_by_the_owner_at_any_call_of_a_sweep_has_its_own_message_only() {
    let mut first = 0;
    for call in 0.. {
        let (world, mail) = world();
        let job = job(&world).await;
        mail.goes(true);
        fail_queued(&world).await;
        world.clock.advance(PROBE);
        let (jobs, clock, is_first) = (world.jobs.clone(), world.clock.clone(), Arc::new(AtomicBool::new(false)));
        let resumed = is_first.clone();
        world.faults.freeze(call, async move {
            if jobs.job(job).await.expect("the job is there").is_paused() {
                change(&*jobs, job, |job| job.resume(clock.now())).await;
                resumed.store(true, Ordering::SeqCst);
            }
        });
        let sent = world.sweep().await.messages;
        if world.faults.thaw() {
            break;
        }
        let by_sweep = !is_first.load(Ordering::SeqCst);
        assert_eq!(sent, u64::from(by_sweep), "call {call}");
        first += u32::from(!by_sweep);
    }
    assert!(first > 3, "{first}");
}

async fn assert_succeeded_alone(world: &World, job: JobGuid) {
    assert_eq!(world.completed(job).await, 60);
}

#[tokio::test]
async fn a_pause_by_the_owner_ends_the_breakers_and_a_resume_by_the_owner_too() {
    let (world, mail) = world();
    let jobs = [job(&world).await, job(&world).await];
    mail.goes(true);
    fail_queued(&world).await;
    let paused = world.pause(jobs[0]).await;
    assert_eq!((paused.breaker_pause(), paused.epoch), (None, 2));
    let shown = world.show(jobs[0]).await.pause.expect("it is paused");
    assert_eq!((shown.by, shown.reason, shown.next_probe_at), (PausedBy::Owner.into(), None, None));
    world.resume(jobs[1]).await;
    assert_eq!(status(&world, jobs[1]).await, Status::Running);
    world.run().await;
    assert_eq!(status(&world, jobs[1]).await, Status::Paused, "its next failing run pauses it again");

    mail.goes(false);
    world.clock.advance(PROBE);
    sweep_until_ended(&world, &jobs[1..]).await;
    for _ in 0..10 {
        world.clock.advance(world.limits.sweep.recovery.stale);
        world.sweep_and_run().await;
    }
    assert_eq!(status(&world, jobs[0]).await, Status::Paused, "only its owner resumes it");
    world.resume(jobs[0]).await;
    world.run().await;
    assert_succeeded(&world, &jobs).await;
}

/// A job that goes on while the target is known to be down, and the message of its isolated chunk.
async fn isolated_while_down() -> (World, Mail, JobGuid, ChunkMessage) {
    let (world, mail) = world();
    let job = job(&world).await;
    mail.goes(true);
    let messages = world.chunks.take();
    assert!(world.try_process(&messages[0], false).await.is_err());
    world.dead_letters.settle("m1", &DeadMessage::Chunk(messages[0].clone())).await.unwrap();
    let isolated = world.isolated.take().remove(0);
    assert_eq!(isolated.delivery_mode, DeliveryMode::Isolated);
    for _ in 1..FAILURES_MAX {
        assert!(world.try_process(&isolated, true).await.is_err(), "it opens no breaker: its items may be the cause");
    }
    for message in &messages[1..3] {
        world.try_process(message, false).await.ok();
    }
    let epoch = world.resume(job).await.epoch;
    (world, mail, job, ChunkMessage { epoch, ..isolated })
}

#[tokio::test]
async fn an_isolated_chunk_does_not_use_up_its_deliveries_while_the_breaker_is_open() {
    let (world, mail, job, isolated) = isolated_while_down().await;
    let end = world.try_process(&isolated, true).await.unwrap();
    assert_eq!(end, ChunkEnd::Dropped, "its item does not fail alone while the target is known to be down");
    mail.goes(false);
    world.clock.advance(PROBE);
    sweep_until_ended(&world, &[job]).await;
    assert_succeeded(&world, &[job]).await;
}

#[tokio::test]
async fn one_failed_call_of_a_run_that_pauses_its_job_is_no_death_of_its_item() {
    let failures = at_every_call(async |call, death| {
        let (world, mail, job, isolated) = isolated_while_down().await;
        let calls = mail.calls.load(Ordering::SeqCst);
        world.faults.plan_failure(call, death);
        let end = world.try_process(&isolated, true).await;
        let stored = world.jobs.checkpoint(job, isolated.address).await.unwrap().unwrap();
        assert_eq!(stored.in_flight, None, "{death:?} call {call}");
        assert!(stored.suspects.is_none_or(|suspects| suspects.deaths == 0), "{death:?} call {call}");
        let has_failed = !world.faults.is_pending();
        if !has_failed {
            assert_eq!(end.unwrap(), ChunkEnd::Dropped);
            assert!(mail.calls.load(Ordering::SeqCst) > calls, "its item has run");
            assert!(world.jobs.job(job).await.unwrap().breaker_pause().is_some());
        }
        has_failed
    })
    .await;
    assert!(failures >= 12, "{failures}");
}

#[tokio::test]
async fn the_grace_covers_a_run_that_stands_still_before_it_pauses_its_job() {
    let (world, mail) = world();
    let job = job(&world).await;
    mail.goes(true);
    let (began, longest) = (world.clock.now(), ProcessTime::default().limit);
    for message in world.chunks.take() {
        let processor = &world.processor;
        let invocation = Invocation::new(&processor.ports, &processor.committer, Duration::ZERO, [(&message, false)]);
        processor.process(&message, false, began + longest, &invocation).await.ok();
    }
    let row = world.jobs.job(job).await.unwrap();
    assert!(row.breaker_pause().is_some_and(|pause| pause.at <= world.clock.now()), "as its owner sees it");
    // Its write is the last act of its invocation, and another run begins right before it.
    let others_end = began + longest + longest;
    assert!(row.paused_at.unwrap() + StopGrace::default().grace > others_end + LEASE_MARGIN);
}

#[tokio::test]
async fn a_job_that_the_breaker_has_paused_ends_at_its_deadline() {
    let (world, mail) = world();
    let job = job(&world).await;
    mail.goes(true);
    fail_queued(&world).await;
    let deadline = world.jobs.job(job).await.unwrap().deadline_at;
    while world.clock.now() < deadline {
        world.clock.advance(PROBE * 16);
        world.sweep_and_run().await;
    }
    for _ in 0..3 {
        world.sweep().await;
        world.clock.advance(world.limits.sweep.stop.grace);
    }
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_failed, shown.items_skipped), (Status::Failed, 0, 60), "{shown:?}");
}
