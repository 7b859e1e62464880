use std::time::Duration;

use futures::future::join_all;

use super::fixtures::{ROOM, change, created, end, end_at, guid, leased, new_job, run, running, stop, usage};
use crate::contract::at;
use crate::fixtures::causes;
use rowmill_core::model::job::states::{JobOutcome, Phase, Status};
use rowmill_core::model::job::{End, Job, Priority, SharedSlots, SplitState, StopCode, Tuning};
use rowmill_core::model::results::Results;
use rowmill_core::model::tally::Counts;
use rowmill_core::ports::{Admission, Ceilings, Completion, CreateError, Created, JobStore, NewJob, WriteLost};

fn was_lost(result: &Result<(), WriteLost>) -> bool {
    matches!(result, Err(WriteLost::Condition(_)))
}

pub async fn a_job_ends_once(store: &impl JobStore) {
    let job = running(store).await;
    let seen = store.job(job).await.unwrap();
    store.complete(&end(seen.clone())).await.unwrap();
    let ended = store.job(job).await.unwrap();
    let expected = Job {
        phase: Phase::Ended(End {
            outcome: Ok(JobOutcome::Partial),
            counts: Counts { succeeded: 3, failed: 2, skipped: 0 },
            results: Some(Results { attempt: 1, manifest: run(2), causes: causes() }),
            finished_at: at(20),
            expires_at: at(2000),
        }),
        usage: usage(7),
        split: SplitState { done: true, ..seen.split },
        completions: 1,
        moved_at: at(20),
        lease: None,
        wake_at: None,
        revision: seen.revision + 1,
        ..seen.clone()
    };
    assert_eq!(ended, expected);
    let later = end_at(seen, 21);
    assert!(was_lost(&store.complete(&later).await));
    assert_eq!(store.job(job).await.unwrap(), ended);
}

pub async fn an_ended_job_returns_its_slots(store: &impl JobStore) {
    let one = Ceilings { owner: 1, job_type: 1, system: 1 };
    let job = |number, ceilings| NewJob { ceilings, ..new_job(number, "me") };
    assert_eq!(store.create(&job(1, one)).await.unwrap(), Created::New);
    let full = store.create(&job(2, one)).await;
    assert!(matches!(full, Err(CreateError::Full(full)) if full.admission == Admission::OwnerFull));
    let seen = leased(store, guid(1), 9).await;
    store.complete(&end(seen.clone())).await.unwrap();
    // A second completion gives nothing back.
    let later = end_at(seen, 21);
    assert!(was_lost(&store.complete(&later).await));
    assert_eq!(store.create(&job(2, one)).await.unwrap(), Created::New);
    let full = store.create(&job(3, Ceilings { system: 1, ..ROOM })).await;
    assert!(matches!(full, Err(CreateError::Full(full)) if full.admission == Admission::SystemFull));
    let full = store.create(&job(3, Ceilings { job_type: 1, ..ROOM })).await;
    assert!(matches!(full, Err(CreateError::Full(full)) if full.admission == Admission::TypeFull));
}

pub async fn a_completion_whose_reply_was_lost_is_recognised(store: &impl JobStore) {
    let job = running(store).await;
    let completion = end(store.job(job).await.unwrap());
    store.complete(&completion).await.unwrap();
    store.complete(&completion).await.unwrap();
    assert_eq!(store.job(job).await.unwrap().completions, 1);
    let one = Ceilings { owner: 1, job_type: 1, system: 1 };
    assert_eq!(store.create(&NewJob { ceilings: one, ..new_job(2, "me") }).await.unwrap(), Created::New);
    let full = store.create(&NewJob { ceilings: one, ..new_job(3, "me") }).await;
    assert!(matches!(full, Err(CreateError::Full(_))), "the slots were given back once");
}

pub async fn a_job_that_was_stopped_since_it_was_read_does_not_end(store: &impl JobStore) {
    let job = running(store).await;
    let seen = store.job(job).await.unwrap();
    change(store, job, |job| job.stop(&stop(StopCode::SourceChanged))).await;
    let Err(WriteLost::Condition(now)) = store.complete(&end(seen)).await else { panic!("ended") };
    assert_eq!(now.stopped_by(), Some(&stop(StopCode::SourceChanged)));
    assert_eq!(now.status(), Status::Running);
    store.complete(&end(*now)).await.unwrap();
}

pub async fn a_stopped_job_ends_with_its_stop(store: &impl JobStore) {
    let job = running(store).await;
    let seen = change(store, job, |job| job.stop(&stop(StopCode::Cancelled))).await;
    store.complete(&end(seen)).await.unwrap();
    let ended = store.job(job).await.unwrap();
    assert_eq!((ended.status(), ended.stopped_by()), (Status::Cancelled, Some(&stop(StopCode::Cancelled))));
}

pub async fn one_of_ten_concurrent_completions_takes_effect(store: &impl JobStore) {
    let job = running(store).await;
    let seen = store.job(job).await.unwrap();
    let completions: Vec<_> = (20..30).map(|second| end_at(seen.clone(), second)).collect();
    let results = join_all(completions.iter().map(|completion| store.complete(completion))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(results.iter().filter(|result| was_lost(result)).count(), 9);
    assert_eq!(store.job(job).await.unwrap().completions, 1);
}

pub async fn a_job_that_nobody_has_taken_up_ends_at_once(store: &impl JobStore) {
    let one = Ceilings { owner: 1, job_type: 1, system: 1 };
    let cancel = stop(StopCode::Cancelled);
    for (number, is_paused) in [(1, false), (2, true)] {
        let new = NewJob { ceilings: one, ..new_job(number, "me") };
        assert_eq!(store.create(&new).await.unwrap(), Created::New, "the slots of the job before are free");
        let job = new.job.job_guid;
        if is_paused {
            change(store, job, |job| job.pause(at(2))).await;
        }
        let seen = store.job(job).await.unwrap();
        let completion = Completion::of_untaken(&seen, &cancel, Duration::from_secs(100)).expect("untaken");
        store.complete(&completion).await.unwrap();
        store.complete(&completion).await.expect("its reply may be lost");
        let ended = store.job(job).await.unwrap();
        assert_eq!(ended, completion.job());
        assert_eq!((ended.status(), ended.stopped_by(), ended.completions), (Status::Cancelled, Some(&cancel), 1));
        assert_eq!((ended.started_at, ended.split.done, ended.wake_at), (None, true, None));
        assert_eq!(ended.unprocessed_from().map(|from| from.row), Some(1), "the whole file");
    }
}

pub async fn a_job_that_was_taken_up_since_it_was_read_does_not_end_at_once(store: &impl JobStore) {
    let cancel = stop(StopCode::Cancelled);
    let untaken = |seen: &Job| Completion::of_untaken(seen, &cancel, Duration::from_secs(100));
    let end = created(store, 1, "me").await;
    let seen = store.job(end).await.unwrap();
    leased(store, end, 100).await;
    assert!(was_lost(&store.complete(&untaken(&seen).expect("untaken")).await));
    let running = store.job(end).await.unwrap();
    assert_eq!((running.status(), untaken(&running)), (Status::Running, None));

    // Paused while it waited, resumed, taken up, and paused again: the row looks as it was seen but for that.
    let job = created(store, 2, "me").await;
    let seen = change(store, job, |job| job.pause(at(1))).await;
    change(store, job, |job| job.resume(at(2))).await;
    leased(store, job, 100).await;
    change(store, job, |job| Some(job.release(run(1)))).await;
    change(store, job, |job| job.pause(at(4))).await;
    assert!(was_lost(&store.complete(&untaken(&seen).expect("untaken")).await));
}

pub async fn an_untaken_job_does_not_end_if_its_deadline_has_moved_since_it_was_read(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    let seen = store.job(job).await.unwrap();
    let later = Tuning { deadline_at: Some(seen.deadline_at + Duration::from_secs(60)), ..Tuning::default() };
    change(store, job, |job| job.retune(&later, at(5))).await;
    let overdue =
        |seen: &Job| Completion::of_untaken(seen, &stop(StopCode::CapacityExceeded), Duration::from_secs(100));
    let Err(WriteLost::Condition(now)) = store.complete(&overdue(&seen).expect("untaken")).await else {
        panic!("ended")
    };
    store.complete(&overdue(&now).expect("untaken")).await.unwrap();
}

pub async fn a_job_that_ends_keeps_limits_that_it_got_since_it_was_read(store: &impl JobStore) {
    let job = running(store).await;
    let seen = store.job(job).await.unwrap();
    let tuning = Tuning { priority: Some(Priority::Low), deadline_at: Some(at(9_000)), ..Tuning::default() };
    change(store, job, |job| job.retune(&tuning, at(5))).await;
    store.complete(&end(seen)).await.unwrap();
    let ended = store.job(job).await.unwrap();
    assert_eq!((ended.priority, ended.deadline_at, ended.wake_at), (Priority::Low, at(9_000), None));
}

pub async fn a_job_that_was_paused_or_resumed_since_it_was_read_does_not_end(store: &impl JobStore) {
    let job = running(store).await;
    let (seen, paused) = (store.job(job).await.unwrap(), change(store, job, |job| job.pause(at(2))).await);
    assert!(was_lost(&store.complete(&end(seen)).await));
    change(store, job, |job| job.resume(at(3))).await;
    assert!(was_lost(&store.complete(&end(paused)).await));
}

pub async fn a_job_without_shared_slots_gives_back_only_its_owners(store: &impl JobStore) {
    let two = Ceilings { owner: 2, job_type: 2, system: 2 };
    let create = async |number| store.create(&NewJob { ceilings: two, ..new_job(number, "me") }).await;
    let job = running(store).await;
    // The completion was prepared before the slots were given back.
    let seen = change(store, job, |job| job.pause(at(2))).await;
    let returned = change(store, job, |job| job.return_slots(Duration::ZERO, at(3))).await;
    assert!(!returned.has_shared_slots());
    store.complete(&end(seen.clone())).await.unwrap();
    store.complete(&end(seen)).await.expect("its reply may be lost");
    let ended = store.job(job).await.unwrap();
    assert_eq!((ended.status(), ended.slots), (Status::Completed, SharedSlots::Held));
    assert_eq!([create(2).await.unwrap(), create(3).await.unwrap()], [Created::New, Created::New]);
    assert!(matches!(create(4).await, Err(CreateError::Full(full)) if full.admission == Admission::OwnerFull));
    let of_other = store.create(&NewJob { ceilings: two, ..new_job(5, "other") }).await;
    assert!(matches!(of_other, Err(CreateError::Full(full)) if full.admission == Admission::TypeFull));
}

pub async fn a_paused_job_can_complete(store: &impl JobStore) {
    let job = running(store).await;
    let paused = change(store, job, |job| job.pause(at(2))).await;
    store.complete(&end(paused)).await.unwrap();
    let ended = store.job(job).await.unwrap();
    assert_eq!((ended.status(), ended.wake_at), (Status::Completed, None));
}
