//! The slots that a job shares with others: a long pause gives them back, and a resume takes them again or waits for
//! them.

use std::time::Duration;

use acceptance::faults::at_every_call;
use acceptance::files;
use acceptance::world::{World, change};
use rowmill_api::job::{PauseCode, PausedBy, Stage};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::why::ReasonCode;
use rowmill_core::ports::{Ceilings, Clock, Jobs};
use rowmill_core::progress::update::update_job;

use crate::{chunks_of, split};

/// The slots taken: of the owner, of the type, of the system.
fn held(world: &World) -> [i64; 3] {
    let owner = format!("owner#{}", World::owner());
    [owner.as_str(), "type#validate", "system"].map(|scope| world.jobs.active(scope))
}

/// A paused job in a system with one slot. Its chunks are dropped.
async fn paused() -> (World, JobGuid) {
    let ceilings = Ceilings { owner: 9, job_type: 9, system: 1 };
    let world = World::new(chunks_of(2).but(|limits| limits.create.ceilings = ceilings));
    let job = world.validate_csv(files::plain_csv(9)).await;
    world.split().await;
    world.pause(job).await;
    world.process_queued().await;
    (world, job)
}

/// The same once it has given its slots back.
async fn resting() -> (World, JobGuid) {
    let (world, job) = paused().await;
    world.clock.advance(world.limits.sweep.stop.grace);
    world.sweep().await;
    assert_eq!(held(&world), [1, 0, 0]);
    (world, job)
}

#[tokio::test]
async fn a_paused_job_gives_its_slots_back_once_its_runs_have_ended_and_a_resume_takes_them_again() {
    let (world, job) = paused().await;
    world.sweep().await;
    assert_eq!(held(&world), [1, 1, 1], "its runs may be at work");
    world.clock.advance(world.limits.sweep.stop.grace);
    world.sweep().await;
    assert_eq!(held(&world), [1, 0, 0]);
    world.clock.advance(2 * world.limits.sweep.recovery.stale);
    world.sweep().await;
    assert_eq!(held(&world), [1, 0, 0], "once");
    world.resume(job).await;
    assert_eq!(held(&world), [1, 1, 1]);
    assert_eq!(world.completed(job).await, 9);
    assert_eq!(held(&world), [0, 0, 0]);
}

#[tokio::test]
async fn a_job_that_is_resumed_when_no_slot_is_free_waits_for_one() {
    let (world, job) = resting().await;
    let other = world.validate_csv(files::plain_csv(3)).await;
    let waiting = world.resume(job).await;
    assert!(waiting.awaits_slots());
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.stage), (Status::Paused, Stage::WaitingForSlot.into()));
    let pause = shown.pause.unwrap();
    let code = pause.reason.map(|reason| reason.code);
    assert_eq!((pause.by, code), (PausedBy::Limits.into(), Some(PauseCode::NoSlot.into())));
    let [why] = world.why(job).await.try_into().expect("one reason");
    assert_eq!((why.code, why.numbers["jobsOfOwner"], why.numbers["jobsOfSystem"]), (ReasonCode::NoSlot.into(), 1, 1));
    assert_eq!(why.jobs, [other]);
    assert_eq!(world.resume(job).await, waiting, "resuming it again changes nothing");
    world.sweep().await;
    assert!(world.jobs.job(job).await.unwrap().awaits_slots(), "none is free yet");
    assert_eq!(held(&world), [2, 1, 1]);
    assert_eq!(world.completed(other).await, 3);
    world.clock.advance(Duration::from_secs(60));
    world.sweep().await;
    assert_eq!(held(&world), [1, 1, 1]);
    assert_eq!(world.completed(job).await, 9);
    assert_eq!(held(&world), [0, 0, 0]);
}

#[tokio::test]
async fn a_job_that_waits_for_a_slot_can_be_paused_again() {
    let (world, job) = resting().await;
    let other = world.validate_csv(files::plain_csv(3)).await;
    world.resume(job).await;
    assert!(world.pause(job).await.is_paused_by_owner());
    assert_eq!(world.completed(other).await, 3);
    world.clock.advance(2 * world.limits.sweep.recovery.stale);
    world.sweep().await;
    assert!(world.jobs.job(job).await.unwrap().is_paused_by_owner());
    world.resume(job).await;
    assert_eq!(world.completed(job).await, 9);
    assert_eq!(held(&world), [0, 0, 0]);
}

#[tokio::test]
async fn the_time_that_a_job_waits_for_a_slot_is_no_part_of_a_pause_that_is_too_long() {
    let (world, job) = resting().await;
    world.validate_csv(files::plain_csv(3)).await;
    world.resume(job).await;
    // As long as a pause may last, if it began before the wait.
    let began = world.jobs.job(job).await.unwrap().paused_at.unwrap();
    world.clock.advance(Duration::from_secs(600));
    let paused = world.pause(job).await;
    let is_too_long = |longest| paused.stop_long_pause(longest, world.clock.now()).is_some();
    assert!(!is_too_long(world.clock.now().duration_since(began).unsigned_abs()));
    world.clock.advance(Duration::from_secs(60));
    assert!(is_too_long(Duration::from_secs(60)));
}

#[tokio::test]
async fn a_pause_at_any_call_of_the_sweep_that_resumes_a_waiting_job_stays() {
    for call in 0.. {
        let (world, job) = resting().await;
        let other = world.validate_csv(files::plain_csv(3)).await;
        world.resume(job).await;
        assert_eq!(world.completed(other).await, 3);
        let (jobs, clock) = (world.jobs.clone(), world.clock.clone());
        world.faults.freeze(call, async move {
            change(&*jobs, job, |job| job.pause(clock.now())).await;
        });
        world.sweep().await;
        if world.faults.thaw() {
            break;
        }
        assert!(world.jobs.job(job).await.unwrap().is_paused_by_owner(), "call {call}");
    }
}

#[tokio::test]
async fn a_job_that_ends_without_its_slots_gives_back_only_its_owners() {
    for waits in [false, true] {
        let (world, job) = resting().await;
        let other = world.validate_csv(files::plain_csv(3)).await;
        if waits {
            assert!(world.resume(job).await.awaits_slots());
        }
        world.cancel(job).await;
        world.clock.advance(world.limits.sweep.stop.grace);
        world.sweep_and_run().await;
        assert_eq!(world.show(job).await.status, Status::Cancelled);
        assert_eq!(world.show(other).await.status, Status::Completed);
        assert_eq!(held(&world), [0, 0, 0], "waits: {waits}");
    }
}

#[tokio::test]
async fn a_job_that_completes_while_it_gives_its_slots_back_has_given_each_back_once() {
    let mut returned = 0;
    for call in 0.. {
        let (world, job) = split(100, 9).await;
        let chunks = world.chunks.take();
        world.process(&chunks[0], false).await;
        let seen = change(&*world.jobs, job, |job| job.pause(world.clock.now())).await;
        let grace = world.limits.sweep.stop.grace;
        world.clock.advance(grace);
        let (jobs, clock) = (world.jobs.clone(), world.clock.clone());
        world.faults.freeze(call, async move {
            let update = update_job(&*jobs, &seen, |job| job.return_slots(grace, clock.now())).await;
            update.expect("in-memory ports do not fail");
        });
        world.run().await;
        if world.faults.thaw() {
            break;
        }
        returned += 1;
        assert_eq!(world.show(job).await.status, Status::Completed, "call {call}");
        assert_eq!(held(&world), [0, 0, 0], "call {call}");
    }
    assert!(returned > 5, "{returned}");
}

#[tokio::test]
async fn a_sweep_that_dies_anywhere_gives_slots_back_once() {
    at_every_call(async |call, death| {
        let (world, _) = paused().await;
        world.clock.advance(world.limits.sweep.stop.grace);
        world.faults.plan(call, death);
        world.sweeper.sweep().await.ok();
        if world.faults.is_pending() {
            return false;
        }
        world.faults.revive();
        world.clock.advance(world.limits.sweep.stop.grace);
        world.sweep().await;
        assert_eq!(held(&world), [1, 0, 0]);
        true
    })
    .await;
}

#[tokio::test]
async fn a_resume_that_dies_anywhere_takes_slots_once() {
    at_every_call(async |call, death| {
        let (world, job) = resting().await;
        world.faults.plan(call, death);
        world.changer.resume(&World::owner(), job).await.ok();
        if world.faults.is_pending() {
            return false;
        }
        world.faults.revive();
        world.resume(job).await;
        // A repeated resume sends nothing.
        world.send_split(job).await;
        assert_eq!(held(&world), [1, 1, 1]);
        assert_eq!(world.completed(job).await, 9);
        assert_eq!(held(&world), [0, 0, 0]);
        true
    })
    .await;
}

#[tokio::test]
async fn a_job_that_its_owner_pauses_for_too_long_is_stopped() {
    let longest = Duration::from_secs(3600);
    let world = World::new(chunks_of(2).but(|limits| limits.sweep.longest_pause = longest));
    let job = world.validate_csv(files::plain_csv(9)).await;
    world.split().await;
    world.process_first(1).await;
    world.pause(job).await;
    world.clock.advance(longest - Duration::from_secs(1));
    world.sweep().await;
    assert!(world.jobs.job(job).await.unwrap().is_paused());
    world.clock.advance(Duration::from_secs(1));
    world.sweep().await;
    let stop = world.jobs.job(job).await.unwrap().stopped_by().map(|stop| stop.code);
    assert_eq!(stop, Some(StopCode::PausedTooLong));
    world.clock.advance(world.limits.sweep.stop.grace);
    world.sweep_and_run().await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_skipped), (Status::Failed, 2, 7));
    assert_eq!(held(&world), [0, 0, 0]);
}
