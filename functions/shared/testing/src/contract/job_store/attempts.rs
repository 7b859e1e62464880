use futures::future::join_all;

use super::fixtures::{ROOM, change, created, end, end_at, ended, guid, leased, new_job, run, running, stop};
use crate::contract::at;
use rowmill_core::model::causes::Selection;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::job::states::{Phase, Status};
use rowmill_core::model::job::{Job, Redrive, StopCode};
use rowmill_core::model::tally::Counts;
use rowmill_core::ports::{
    Admission, Ceilings, CreateError, Created, Due, Full, JobStore, NewAttempt, NewJob, PortError, RedriveError,
    WAKE_SHARDS,
};
use rowmill_core::text::Position;

const ONE: Ceilings = Ceilings { owner: 1, job_type: 1, system: 1 };

/// The next attempt of a job, requested by run `by`.
fn next(seen: &Job, by: u8) -> NewAttempt {
    let redrive = Redrive {
        by: run(by),
        before: Counts { succeeded: 3, failed: 2, skipped: 0 },
        base: 1,
        unprocessed_from: Some(Position { offset: 600, row: 6 }),
        corrected: Some("results/corrected".into()),
        selection: Some(Selection { codes: vec!["ragged_row".into()], ..Selection::default() }),
    };
    NewAttempt { seen: seen.clone(), redrive, ceilings: ROOM, at: at(30), deadline_at: at(14_430), wake_at: at(930) }
}

fn moved(result: Result<Job, RedriveError>) -> Job {
    match result {
        Err(RedriveError::Moved(job)) => *job,
        other => panic!("not moved: {other:?}"),
    }
}

fn full(result: Result<Job, RedriveError>) -> Full {
    match result {
        Err(RedriveError::Full(full)) => full,
        other => panic!("not full: {other:?}"),
    }
}

pub async fn a_redrive_starts_the_next_attempt_of_an_ended_job(store: &impl JobStore) {
    let job = running(store).await;
    change(store, job, |job| job.count_tally(run(1), 0, Position { offset: 600, row: 6 }, at(3))).await;
    change(store, job, |job| job.finish_split(run(1), true, at(4))).await;
    change(store, job, |job| job.begin(at(5))).await;
    change(store, job, |job| job.stop(&stop(StopCode::SourceChanged))).await;
    let seen = change(store, job, |job| job.claim(at(7), at(900), 3)).await;
    store.complete(&end(seen)).await.unwrap();
    let ended = store.job(job).await.unwrap();

    let attempt = next(&ended, 8);
    let redriven = store.redrive(&attempt).await.unwrap();
    assert_eq!(Some(&redriven), attempt.job().as_ref());
    assert_eq!(store.job(job).await.unwrap(), redriven);
    assert_eq!((redriven.status(), redriven.attempt, redriven.recoveries), (Status::Running, 2, 0));
    assert_eq!(redriven.first_chunk_at, None, "of the next attempt");
    assert_eq!((redriven.split.tallies, redriven.split.done), (0, false));
    assert_eq!((&redriven.phase, redriven.completions), (&Phase::Runnable, 1));
    assert_eq!((redriven.created_at, redriven.started_at), (ended.created_at, ended.started_at));

    let mut due = Vec::new();
    for shard in 0..WAKE_SHARDS {
        due.extend(store.due(shard, at(930), 10).await.unwrap());
    }
    assert_eq!(due, [Due { job, at: at(930) }]);
}

pub async fn a_redriven_job_can_end_and_be_redriven_again(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    let first = ended(store, job, 20).await;
    store.redrive(&next(&first, 8)).await.unwrap();

    leased(store, job, 100).await;
    change(store, job, |job| job.count_tally(run(1), 0, Position { offset: 5, row: 3 }, at(32))).await;
    let seen = change(store, job, |job| job.stop(&stop(StopCode::Cancelled))).await;
    store.complete(&end_at(seen, 40)).await.unwrap();

    let second = store.job(job).await.unwrap();
    assert_eq!((second.status(), second.attempt, second.completions), (Status::Cancelled, 2, 2));
    assert_eq!(second.redrive, Some(next(&first, 8).redrive));
    let redrive = Redrive { corrected: None, unprocessed_from: None, ..next(&second, 9).redrive };
    let attempt = NewAttempt { redrive, ..next(&second, 9) };
    assert_eq!(Some(store.redrive(&attempt).await.unwrap()), attempt.job());
    assert_eq!(Some(store.job(job).await.unwrap()), attempt.job());
    assert_eq!(ended(store, job, 50).await.completions, 3);
}

pub async fn a_redrive_takes_slots_and_its_end_returns_them(store: &impl JobStore) {
    let job = |number| NewJob { ceilings: ONE, ..new_job(number, "me") };
    store.create(&job(1)).await.unwrap();
    let first = ended(store, guid(1), 20).await;
    store.create(&job(2)).await.unwrap();

    let attempt = NewAttempt { ceilings: ONE, ..next(&first, 8) };
    assert_eq!(
        full(store.redrive(&attempt).await),
        Full { admission: Admission::OwnerFull, recent_ends: vec![at(20)] }
    );
    assert_eq!(store.job(guid(1)).await.unwrap(), first, "nothing is written");

    ended(store, guid(2), 25).await;
    store.redrive(&attempt).await.unwrap();
    assert!(matches!(store.create(&job(3)).await, Err(CreateError::Full(_))), "its slots are taken");
    ended(store, guid(1), 40).await;
    let Err(CreateError::Full(mut full)) =
        store.create(&NewJob { ceilings: Ceilings { owner: 0, ..ONE }, ..job(3) }).await
    else {
        panic!("not full")
    };
    full.recent_ends.sort();
    assert_eq!(full.recent_ends, [at(20), at(25), at(40)]);
    store.create(&job(3)).await.unwrap();
}

pub async fn a_redrive_respects_every_ceiling(store: &impl JobStore) {
    created(store, 1, "me").await;
    let first = ended(store, guid(1), 20).await;
    let ceilings = Ceilings { owner: 0, ..ROOM };
    let refused = full(store.redrive(&NewAttempt { ceilings, ..next(&first, 8) }).await);
    assert_eq!(refused, Full { admission: Admission::OwnerFull, recent_ends: vec![at(20)] });
    let mut ends = vec![at(20)];
    for (number, ceilings, admission) in [
        (2, Ceilings { job_type: 1, ..ROOM }, Admission::TypeFull),
        (3, Ceilings { system: 1, ..ROOM }, Admission::SystemFull),
    ] {
        let other = NewJob { ceilings, ..new_job(number, "you") };
        assert_eq!(store.create(&other).await.unwrap(), Created::New);
        let mut refused = full(store.redrive(&NewAttempt { ceilings, ..next(&first, 8) }).await);
        refused.recent_ends.sort();
        assert_eq!(refused, Full { admission, recent_ends: ends.clone() });
        ended(store, guid(number), 20 + i64::from(number)).await;
        ends.push(at(20 + i64::from(number)));
    }
    store.redrive(&NewAttempt { ceilings: ONE, ..next(&first, 8) }).await.unwrap();
}

pub async fn a_redrive_whose_reply_was_lost_is_recognised(store: &impl JobStore) {
    created(store, 1, "me").await;
    let attempt = NewAttempt { ceilings: ONE, ..next(&ended(store, guid(1), 20).await, 8) };
    for _ in 0..2 {
        assert_eq!(Some(store.redrive(&attempt).await.unwrap()), attempt.job());
    }
    // Also after the attempt was taken up and has ended.
    let taken = leased(store, guid(1), 90).await;
    assert_eq!(store.redrive(&attempt).await.unwrap(), taken);
    store.complete(&end(taken)).await.unwrap();
    assert_eq!(store.redrive(&attempt).await.unwrap().completions, 2);
    // One slot was taken and one given back: there is room for one job.
    let job = |number| NewJob { ceilings: ONE, ..new_job(number, "me") };
    store.create(&job(2)).await.unwrap();
    assert!(matches!(store.create(&job(3)).await, Err(CreateError::Full(_))));
}

pub async fn a_job_that_has_changed_since_it_was_read_is_not_redriven(store: &impl JobStore) {
    let job = running(store).await;
    let seen = store.job(job).await.unwrap();
    assert_eq!(moved(store.redrive(&next(&seen, 8)).await), seen, "it has not ended");
    store.complete(&end(seen.clone())).await.unwrap();
    let first = store.job(job).await.unwrap();
    assert_eq!(moved(store.redrive(&next(&seen, 8)).await), first, "it has ended since");
    let earlier = Job { revision: first.revision - 1, ..first.clone() };
    assert_eq!(moved(store.redrive(&next(&earlier, 8)).await), first, "its row was written since");

    let redriven = store.redrive(&next(&first, 8)).await.unwrap();
    let by_another = store.redrive(&NewAttempt { ceilings: ONE, ..next(&first, 9) }).await;
    assert_eq!(moved(by_another), redriven, "a changed job is reported before a full ceiling");
    let second = ended(store, job, 40).await;
    assert_eq!(moved(store.redrive(&next(&first, 9)).await), second, "that attempt is past");
    store.redrive(&next(&second, 9)).await.unwrap();
}

pub async fn a_missing_job_is_not_redriven(store: &impl JobStore) {
    let seen = new_job(1, "me").job;
    let ended = seen.ended(&end(seen.clone()).end, Usage::NONE);
    let redriven = store.redrive(&next(&ended, 8)).await;
    assert!(matches!(redriven, Err(RedriveError::Port(PortError::NotFound))), "{redriven:?}");
    assert!(matches!(store.job(guid(1)).await, Err(PortError::NotFound)));
}

pub async fn one_of_ten_concurrent_redrives_takes_effect(store: &impl JobStore) {
    let ceilings = Ceilings { owner: 2, job_type: 2, system: 2 };
    created(store, 1, "me").await;
    let first = ended(store, guid(1), 20).await;
    let attempts: Vec<_> = (1..=10).map(|by| NewAttempt { ceilings, ..next(&first, by) }).collect();
    let results = join_all(attempts.iter().map(|attempt| store.redrive(attempt))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(results.iter().filter(|result| matches!(result, Err(RedriveError::Moved(_)))).count(), 9);
    assert_eq!(store.job(guid(1)).await.unwrap().attempt, 2);
    // One slot was taken: there is room for one more job.
    let job = |number| NewJob { ceilings, ..new_job(number, "me") };
    store.create(&job(2)).await.unwrap();
    assert!(matches!(store.create(&job(3)).await, Err(CreateError::Full(_))));
}
