use futures::future::join_all;

use super::fixtures::{ROOM, created, end, ended, guid, lease, new_job, refused, run, running, stop, taken};
use crate::contract::at;
use crate::model::job::states::Status;
use crate::model::job::{Job, Redrive, StopCode};
use crate::model::tally::Counts;
use crate::ports::{
    Admission, Ceilings, Completion, CreateError, Created, Due, Full, JobStore, Leased, NewAttempt, NewJob, PortError,
    RedriveError, Stopped, WAKE_SHARDS,
};
use crate::text::Position;

const ONE: Ceilings = Ceilings { owner: 1, job_type: 1, system: 1 };

/// The next attempt of a job, requested by run `by`.
fn next(seen: &Job, by: u8) -> NewAttempt {
    let redrive = Redrive {
        by: run(by),
        before: Counts { succeeded: 3, failed: 2, skipped: 0 },
        base: 1,
        unprocessed_from: Some(Position { offset: 600, row: 6 }),
        corrected: Some("results/corrected".into()),
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

pub async fn a_job_is_stopped_once(store: &impl JobStore) {
    let job = running(store).await;
    let Stopped::Now(seen) = store.stop(job, 1, &stop(StopCode::UnterminatedQuote)).await.unwrap() else {
        panic!("not stopped")
    };
    assert_eq!(seen.stop, Some(stop(StopCode::UnterminatedQuote)));
    assert_eq!((seen.status, seen.moved_at), (Status::Running, at(7)), "an error ends the job only at its completion");
    let Stopped::Not(seen) = store.stop(job, 1, &stop(StopCode::Cancelled)).await.unwrap() else {
        panic!("stopped twice")
    };
    assert_eq!(seen.stop, Some(stop(StopCode::UnterminatedQuote)));
    assert_eq!(seen.status, Status::Running);
}

pub async fn a_stop_makes_the_job_due_for_the_sweep(store: &impl JobStore) {
    for (number, code) in [(1, StopCode::SourceChanged), (2, StopCode::Cancelled)] {
        let job = created(store, number, "me").await;
        let Stopped::Now(seen) = store.stop(job, 1, &stop(code)).await.unwrap() else { panic!("not stopped") };
        assert_eq!(seen.wake_at, Some(at(7)));
        assert_eq!(store.job(job).await.unwrap(), seen);
    }
}

pub async fn a_stop_whose_reply_was_lost_is_recognised(store: &impl JobStore) {
    let job = running(store).await;
    for _ in 0..2 {
        let stopped = store.stop(job, 1, &stop(StopCode::SourceChanged)).await.unwrap();
        assert!(matches!(stopped, Stopped::Now(job) if job.stop == Some(stop(StopCode::SourceChanged))));
    }
}

pub async fn a_cancelled_job_stays_cancelling_when_it_is_leased(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    let stopped = store.stop(job, 1, &stop(StopCode::Cancelled)).await.unwrap();
    assert!(matches!(stopped, Stopped::Now(job) if job.status == Status::Cancelling));
    let seen = taken(store.lease(job, 1, lease(1, 100), at(8)).await.unwrap());
    assert_eq!((seen.status, seen.started_at), (Status::Cancelling, Some(at(8))));
    assert_eq!(refused(store.lease(job, 1, lease(2, 100), at(9)).await.unwrap()).lease, Some(lease(1, 100)));
}

pub async fn another_attempt_is_not_stopped(store: &impl JobStore) {
    let job = running(store).await;
    let stopped = store.stop(job, 2, &stop(StopCode::Cancelled)).await.unwrap();
    assert!(matches!(stopped, Stopped::Not(job) if job.stop.is_none() && job.status == Status::Running));
}

pub async fn a_redrive_starts_the_next_attempt_of_an_ended_job(store: &impl JobStore) {
    let job = running(store).await;
    store.count_tally(job, 1, run(1), 0, Position { offset: 600, row: 6 }, at(3)).await.unwrap();
    store.finish_split(job, 1, run(1), true, at(4)).await.unwrap();
    let Stopped::Now(seen) = store.stop(job, 1, &stop(StopCode::SourceChanged)).await.unwrap() else {
        panic!("not stopped")
    };
    let recovered = store.wake_later(Due { job, at: at(7) }, at(900), 3).await.unwrap();
    assert_eq!(recovered.map(|job| job.recoveries), Some(3));
    store.complete(&Completion { status: Status::Failed, outcome: None, ..end(seen) }).await.unwrap();
    let ended = store.job(job).await.unwrap();

    let attempt = next(&ended, 8);
    let redriven = store.redrive(&attempt).await.unwrap();
    assert_eq!(redriven, attempt.job());
    assert_eq!(store.job(job).await.unwrap(), redriven);
    assert_eq!((redriven.status, redriven.attempt, redriven.recoveries), (Status::Running, 2, 0));
    assert_eq!((redriven.split.tallies, redriven.split.done), (0, false));
    assert_eq!((&redriven.stop, redriven.finished_at, redriven.expires_at), (&None, None, None));
    assert_eq!((redriven.counts, redriven.completions), (ended.counts, 1), "the counts stay");
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

    assert!(matches!(store.lease(job, 1, lease(1, 100), at(31)).await.unwrap(), Leased::Refused(_)));
    assert!(matches!(store.lease(job, 2, lease(1, 100), at(31)).await.unwrap(), Leased::Taken(_)));
    store.count_tally(job, 2, run(1), 0, Position { offset: 5, row: 3 }, at(32)).await.unwrap();
    assert!(matches!(store.stop(job, 1, &stop(StopCode::Cancelled)).await.unwrap(), Stopped::Not(_)));
    let Stopped::Now(seen) = store.stop(job, 2, &stop(StopCode::Cancelled)).await.unwrap() else { panic!("not") };
    let completion = Completion { status: Status::Cancelled, outcome: None, finished_at: at(40), ..end(seen) };
    store.complete(&completion).await.unwrap();

    let second = store.job(job).await.unwrap();
    assert_eq!((second.status, second.attempt, second.completions), (Status::Cancelled, 2, 2));
    assert_eq!(second.redrive, Some(next(&first, 8).redrive));
    let redrive = Redrive { corrected: None, unprocessed_from: None, ..next(&second, 9).redrive };
    let attempt = NewAttempt { redrive, ..next(&second, 9) };
    assert_eq!(store.redrive(&attempt).await.unwrap(), attempt.job());
    assert_eq!(store.job(job).await.unwrap(), attempt.job());
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
        assert_eq!(store.redrive(&attempt).await.unwrap(), attempt.job());
    }
    // Also after the attempt was taken up and has ended.
    let Leased::Taken(taken) = store.lease(guid(1), 2, lease(2, 90), at(31)).await.unwrap() else { panic!("refused") };
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
    let failed = Job { status: Status::Failed, ..first.clone() };
    assert_eq!(moved(store.redrive(&next(&failed, 8)).await), first, "it ended otherwise");

    let redriven = store.redrive(&next(&first, 8)).await.unwrap();
    let by_another = store.redrive(&NewAttempt { ceilings: ONE, ..next(&first, 9) }).await;
    assert_eq!(moved(by_another), redriven, "a changed job is reported before a full ceiling");
    let second = ended(store, job, 40).await;
    assert_eq!(moved(store.redrive(&next(&first, 9)).await), second, "that attempt is past");
    store.redrive(&next(&second, 9)).await.unwrap();
}

pub async fn a_missing_job_is_not_redriven(store: &impl JobStore) {
    let ended = Job { status: Status::Completed, ..new_job(1, "me").job };
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

pub async fn the_first_chunk_of_an_attempt_is_noted_once(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    assert_eq!(store.note_first_chunk(job, 1, at(1)).await.unwrap().first_chunk_at, None, "it does not run");
    taken(store.lease(job, 1, lease(1, 100), at(1)).await.unwrap());
    assert_eq!(store.note_first_chunk(job, 2, at(2)).await.unwrap().first_chunk_at, None, "another attempt");
    assert_eq!(store.note_first_chunk(job, 1, at(3)).await.unwrap().first_chunk_at, Some(at(3)));
    assert_eq!(store.note_first_chunk(job, 1, at(4)).await.unwrap().first_chunk_at, Some(at(3)));
    let ended = ended(store, job, 120).await;
    assert_eq!(ended.first_chunk_at, Some(at(3)));
    assert_eq!(store.redrive(&next(&ended, 8)).await.unwrap().first_chunk_at, None, "of the next attempt");
    assert_eq!(store.job(job).await.unwrap().first_chunk_at, None);
}

pub async fn no_chunk_of_a_paused_or_stopped_job_is_noted(store: &impl JobStore) {
    let job = running(store).await;
    store.pause(job, 1, at(2)).await.unwrap();
    assert_eq!(store.note_first_chunk(job, 1, at(3)).await.unwrap().first_chunk_at, None);
    store.resume(job, 1, at(4)).await.unwrap();
    store.stop(job, 1, &stop(StopCode::SourceChanged)).await.unwrap();
    assert_eq!(store.note_first_chunk(job, 1, at(5)).await.unwrap().first_chunk_at, None);
}

pub async fn a_job_does_not_stop_for_lack_of_capacity_once_a_chunk_has_begun(store: &impl JobStore) {
    let lack = stop(StopCode::CapacityExceeded);
    for is_paused in [false, true] {
        let number = 2 + u32::from(is_paused);
        for has_begun in [true, false] {
            let job = created(store, 10 * number + u32::from(has_begun), "me").await;
            taken(store.lease(job, 1, lease(1, 100), at(1)).await.unwrap());
            if has_begun {
                store.note_first_chunk(job, 1, at(2)).await.unwrap();
            }
            if is_paused {
                store.pause(job, 1, at(3)).await.unwrap();
            }
            let stopped = store.stop(job, 1, &lack).await.unwrap();
            match has_begun {
                true => assert!(matches!(stopped, Stopped::Not(job) if job.stop.is_none())),
                false => assert!(matches!(stopped, Stopped::Now(job) if job.stop == Some(lack.clone()))),
            }
        }
    }
}
