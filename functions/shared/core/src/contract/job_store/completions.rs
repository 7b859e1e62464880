use std::time::Duration;

use futures::future::join_all;

use super::fixtures::{ROOM, created, end, guid, lease, new_job, run, running, stop, usage};
use crate::contract::at;
use crate::model::job::states::{JobOutcome, Status};
use crate::model::job::{Job, StopCode};
use crate::model::results::Results;
use crate::model::tally::Counts;
use crate::ports::{
    Admission, Ceilings, Completion, CreateError, Created, JobStore, Leased, NewJob, Stopped, WriteLost,
};

fn was_lost(result: &Result<(), WriteLost>) -> bool {
    matches!(result, Err(WriteLost::Condition(_)))
}

pub async fn a_job_ends_once(store: &impl JobStore) {
    let job = running(store).await;
    let seen = store.job(job).await.unwrap();
    store.complete(&end(seen.clone())).await.unwrap();
    let ended = store.job(job).await.unwrap();
    let expected = Job {
        status: Status::Completed,
        outcome: Some(JobOutcome::Partial),
        counts: Some(Counts { succeeded: 3, failed: 2, skipped: 0 }),
        usage: usage(7),
        results: Some(Results { attempt: 1, manifest: run(2) }),
        completions: 1,
        finished_at: Some(at(20)),
        moved_at: at(20),
        expires_at: Some(at(2000)),
        lease: None,
        wake_at: None,
        ..seen.clone()
    };
    assert_eq!(ended, expected);
    let later = Completion { finished_at: at(21), ..end(seen) };
    assert!(was_lost(&store.complete(&later).await));
    assert_eq!(store.job(job).await.unwrap(), ended);
}

pub async fn an_ended_job_returns_its_slots(store: &impl JobStore) {
    let one = Ceilings { owner: 1, job_type: 1, system: 1 };
    let job = |number, ceilings| NewJob { ceilings, ..new_job(number, "me") };
    assert_eq!(store.create(&job(1, one)).await.unwrap(), Created::New);
    let full = store.create(&job(2, one)).await;
    assert!(matches!(full, Err(CreateError::Full(full)) if full.admission == Admission::OwnerFull));
    let Leased::Taken(seen) = store.lease(guid(1), 1, lease(1, 9), at(1)).await.unwrap() else { panic!("refused") };
    let completion = end(seen);
    store.complete(&completion).await.unwrap();
    // A second completion gives nothing back.
    let later = Completion { finished_at: at(21), ..completion };
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
    store.stop(job, 1, &stop(StopCode::SourceChanged)).await.unwrap();
    let Err(WriteLost::Condition(now)) = store.complete(&end(seen)).await else { panic!("ended") };
    assert_eq!(now.stop, Some(stop(StopCode::SourceChanged)));
    assert_eq!(now.status, Status::Running);
    store.complete(&Completion { status: Status::Failed, outcome: None, ..end(*now) }).await.unwrap();
}

pub async fn a_stopped_job_ends_with_its_stop(store: &impl JobStore) {
    let job = running(store).await;
    let Stopped::Now(seen) = store.stop(job, 1, &stop(StopCode::Cancelled)).await.unwrap() else { panic!("not") };
    let completion = Completion { status: Status::Cancelled, outcome: None, ..end(seen) };
    store.complete(&completion).await.unwrap();
    let ended = store.job(job).await.unwrap();
    assert_eq!((ended.status, ended.outcome), (Status::Cancelled, None));
    assert_eq!(ended.stop, Some(stop(StopCode::Cancelled)));
}

pub async fn a_waiting_job_does_not_end(store: &impl JobStore) {
    let new = new_job(1, "me");
    store.create(&new).await.unwrap();
    assert!(was_lost(&store.complete(&end(new.job.clone())).await));
    assert_eq!(store.job(guid(1)).await.unwrap(), new.job);
}

pub async fn an_ended_job_is_neither_leased_nor_stopped(store: &impl JobStore) {
    let job = running(store).await;
    store.complete(&end(store.job(job).await.unwrap())).await.unwrap();
    let ended = store.job(job).await.unwrap();
    let leased = store.lease(job, 1, lease(2, 900), at(500)).await.unwrap();
    assert_eq!(leased, Leased::Refused(ended.clone()));
    let stopped = store.stop(job, 1, &stop(StopCode::Cancelled)).await.unwrap();
    assert_eq!(stopped, Stopped::Not(ended));
}

pub async fn one_of_ten_concurrent_completions_takes_effect(store: &impl JobStore) {
    let job = running(store).await;
    let seen = store.job(job).await.unwrap();
    let completions: Vec<_> = (0..10).map(|n| Completion { finished_at: at(20 + n), ..end(seen.clone()) }).collect();
    let results = join_all(completions.iter().map(|completion| store.complete(completion))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(results.iter().filter(|result| was_lost(result)).count(), 9);
    assert_eq!(store.job(job).await.unwrap().completions, 1);
}

pub async fn a_paused_composition_stores_its_state_and_releases_the_lease(store: &impl JobStore) {
    let job = running(store).await;
    assert!(was_lost(&store.pause_composition(job, 1, run(2), run(9), at(3)).await), "not without the lease");
    assert!(was_lost(&store.pause_composition(job, 2, run(1), run(9), at(3)).await), "not for another attempt");
    store.pause_composition(job, 1, run(1), run(9), at(4)).await.unwrap();
    let seen = store.job(job).await.unwrap();
    assert_eq!((seen.composing, seen.lease, seen.moved_at), (Some(run(9)), None, at(4)));
    assert!(was_lost(&store.pause_composition(job, 1, run(1), run(8), at(5)).await), "a paused run has no lease");
}

pub async fn a_job_that_nobody_has_taken_up_ends_at_once(store: &impl JobStore) {
    let one = Ceilings { owner: 1, job_type: 1, system: 1 };
    let cancel = stop(StopCode::Cancelled);
    for (number, is_paused) in [(1, false), (2, true)] {
        let new = NewJob { ceilings: one, ..new_job(number, "me") };
        assert_eq!(store.create(&new).await.unwrap(), Created::New, "the slots of the job before are free");
        let job = new.job.job_guid;
        if is_paused {
            store.pause(job, 1, at(2)).await.unwrap();
        }
        let seen = store.job(job).await.unwrap();
        let completion = Completion::of_untaken(&seen, &cancel, Duration::from_secs(100)).expect("untaken");
        store.complete(&completion).await.unwrap();
        store.complete(&completion).await.expect("its reply may be lost");
        let ended = store.job(job).await.unwrap();
        assert_eq!(ended, completion.job());
        assert_eq!((ended.status, ended.stop.as_ref(), ended.completions), (Status::Cancelled, Some(&cancel), 1));
        assert_eq!((ended.started_at, ended.split.done, ended.wake_at), (None, true, None));
        assert_eq!(ended.unprocessed_from().map(|from| from.row), Some(1), "the whole file");
    }
}

pub async fn a_job_that_was_taken_up_since_it_was_read_does_not_end_at_once(store: &impl JobStore) {
    let cancel = stop(StopCode::Cancelled);
    let untaken = |seen: &Job| Completion::of_untaken(seen, &cancel, Duration::from_secs(100));
    let end = created(store, 1, "me").await;
    let seen = store.job(end).await.unwrap();
    assert!(matches!(store.lease(end, 1, lease(1, 100), at(1)).await.unwrap(), Leased::Taken(_)));
    assert!(was_lost(&store.complete(&untaken(&seen).expect("untaken")).await));
    let running = store.job(end).await.unwrap();
    assert_eq!((running.status, untaken(&running)), (Status::Running, None));

    // Paused while it waited, resumed, taken up, and paused again: the row looks as it was seen but for that.
    let job = created(store, 2, "me").await;
    let seen = store.pause(job, 1, at(1)).await.unwrap();
    store.resume(job, 1, at(2)).await.unwrap();
    assert!(matches!(store.lease(job, 1, lease(1, 100), at(3)).await.unwrap(), Leased::Taken(_)));
    store.release(job, run(1)).await.unwrap();
    store.pause(job, 1, at(4)).await.unwrap();
    assert!(was_lost(&store.complete(&untaken(&seen).expect("untaken")).await));
}
