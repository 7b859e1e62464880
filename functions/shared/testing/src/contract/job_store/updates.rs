use std::time::Duration;

use futures::future::join_all;

use super::fixtures::{change, created, ended, guid, new_job, run, stop};
use crate::contract::at;
use rowmill_core::model::breaker::BreakerPause;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::job::states::Phase;
use rowmill_core::model::job::{Job, Lease, Priority, SharedSlots, SplitState, StopCode};
use rowmill_core::model::spec::Tolerance;
use rowmill_core::model::warnings;
use rowmill_core::ports::{Admission, Ceilings, CreateError, Created, JobStore, NewJob, PortError, UpdateAnswer};
use rowmill_core::progress::update::update_job;
use rowmill_core::text::Position;

/// The same job with other contents: the bits of `picks` say which fields are there.
fn variant(job: &Job, picks: u32) -> Job {
    let has = |bit: u32| picks & (1 << bit) != 0;
    let phase = match picks % 4 {
        0 => Phase::Runnable,
        1 => Phase::Paused(None),
        2 => Phase::Paused(Some(BreakerPause::after("unavailable", "it answered 503", at(9)))),
        _ => Phase::Stopping(stop(StopCode::SourceChanged)),
    };
    let cursor = Position { offset: 9 + u64::from(picks), row: 1 + u64::from(picks) };
    Job {
        phase,
        tolerance: has(3).then_some(Tolerance { percent: Some(2.5), count: Some(7), minimum_items: None }),
        deadline_at: at(14_400 + i64::from(picks)),
        priority: if has(4) { Priority::Low } else { Priority::Normal },
        lease: has(2).then(|| Lease { holder: run(3), until: at(77) }),
        composing: has(4).then(|| run(5)),
        resend_from: has(5).then_some(picks),
        paused_at: has(5).then(|| at(10)),
        first_chunk_at: has(6).then(|| at(8)),
        wake_at: has(7).then(|| at(900 + i64::from(picks))),
        warnings: if has(8) { vec![warnings::trailing_bytes(7)] } else { Vec::new() },
        started_at: has(9).then(|| at(2)),
        split: SplitState { tallies: picks, dispatched: picks, cursor, done: has(10), at_end: has(11) },
        recoveries: picks % 3,
        slots: [SharedSlots::Held, SharedSlots::Returned, SharedSlots::Awaited][picks as usize / 16 % 3],
        epoch: picks % 2,
        moved_at: at(i64::from(picks)),
        ..job.clone()
    }
}

fn written(answer: Result<UpdateAnswer, PortError>) -> Job {
    match answer {
        Ok(UpdateAnswer::Written(job)) => job,
        other => panic!("not written: {other:?}"),
    }
}

pub async fn an_update_makes_the_row_the_next_one(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    let mut seen = store.job(job).await.unwrap();
    for step in 0..60_u32 {
        // Any two rows may follow on each other; these are as different as random ones, and the same each time.
        let next = variant(&seen, step.wrapping_mul(0x9E37_79B9) >> 20);
        let after = written(store.update(&seen, &next, Usage::NONE).await);
        assert_eq!(after, Job { revision: seen.revision + 1, ..next });
        assert_eq!(store.job(job).await.unwrap(), after);
        seen = after;
    }
}

pub async fn a_row_that_has_moved_since_it_was_seen_is_not_updated(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    let seen = store.job(job).await.unwrap();
    let now = change(store, job, |job| job.pause(at(2))).await;
    let next = seen.pause(at(3)).expect("it waits");
    let answer = store.update(&seen, &next, Usage::NONE).await.unwrap();
    assert_eq!(answer, UpdateAnswer::Refused(now.clone()));
    assert_eq!(store.job(job).await.unwrap(), now);
    // A row that looks as it did is another one all the same.
    let resumed = Job { revision: now.revision, ..seen.clone() };
    let now = written(store.update(&now, &resumed, Usage::NONE).await);
    assert_eq!(Job { revision: seen.revision, ..now.clone() }, seen);
    assert_eq!(store.update(&seen, &next, Usage::NONE).await.unwrap(), UpdateAnswer::Refused(now));
}

pub async fn a_missing_job_is_not_updated(store: &impl JobStore) {
    let seen = new_job(1, "me").job;
    let next = seen.pause(at(3)).expect("it waits");
    assert!(matches!(store.update(&seen, &next, Usage::NONE).await, Err(PortError::NotFound)));
    assert!(matches!(store.job(guid(1)).await, Err(PortError::NotFound)));
}

pub async fn one_of_ten_concurrent_updates_is_written(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    let seen = store.job(job).await.unwrap();
    let nexts: Vec<Job> = (0..10).map(|step| variant(&seen, step)).collect();
    let answers = join_all(nexts.iter().map(|next| store.update(&seen, next, Usage::NONE))).await;
    let mut writes = answers.into_iter().filter_map(|answer| match answer.unwrap() {
        UpdateAnswer::Written(job) => Some(job),
        _ => None,
    });
    assert_eq!(writes.next(), Some(store.job(job).await.unwrap()));
    assert_eq!(writes.next(), None);
}

pub async fn ten_concurrent_transitions_take_effect_one_after_the_other(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    let seen = store.job(job).await.unwrap();
    let transition = |job: &Job| job.resume(at(4)).or_else(|| job.pause(at(3)));
    let updates = join_all((0..10).map(|_| update_job(store, &seen, transition))).await;
    assert!(updates.into_iter().all(|update| update.unwrap().done().is_ok()));
    let after = store.job(job).await.unwrap();
    assert_eq!((after.epoch, after.revision), (10, seen.revision + 10));
}

const ONE: Ceilings = Ceilings { owner: 3, job_type: 1, system: 1 };

/// Creates this job, of a system that admits one.
async fn create(store: &impl JobStore, number: u32) -> Result<Created, CreateError> {
    store.create(&NewJob { ceilings: ONE, ..new_job(number, "me") }).await
}

fn is_full(created: &Result<Created, CreateError>) -> bool {
    matches!(created, Err(CreateError::Full(full)) if full.admission == Admission::TypeFull)
}

pub async fn a_paused_job_gives_its_shared_slots_back_and_takes_them_again(store: &impl JobStore) {
    create(store, 1).await.unwrap();
    let paused = change(store, guid(1), |job| job.pause(at(2))).await;
    let returned = change(store, guid(1), |job| job.return_slots(Duration::ZERO, at(3))).await;
    assert_eq!((returned.slots, returned.revision), (SharedSlots::Returned, paused.revision + 1));
    assert_eq!(store.job(guid(1)).await.unwrap(), returned);
    assert_eq!(create(store, 2).await.unwrap(), Created::New);
    let resumed = returned.resume(at(4)).expect("it is paused");
    let answer = store.update(&returned, &resumed, Usage::NONE).await.unwrap();
    assert!(matches!(answer, UpdateAnswer::Full(full) if full.admission == Admission::TypeFull));
    assert_eq!(store.job(guid(1)).await.unwrap(), returned, "nothing is written");
    let waiting = change(store, guid(1), |job| job.resume(at(5))).await;
    assert!(waiting.awaits_slots() && waiting.wake_at == Some(at(5)));
    ended(store, guid(2), 20).await;
    let resumed = change(store, guid(1), |job| job.resume_awaiting(waiting.epoch, at(21))).await;
    assert!(resumed.has_shared_slots() && !resumed.is_paused());
    assert_eq!(store.job(guid(1)).await.unwrap(), resumed);
    assert!(is_full(&create(store, 3).await), "it has its slots again");
    ended(store, guid(1), 30).await;
    assert_eq!(create(store, 3).await.unwrap(), Created::New);
}

pub async fn shared_slots_are_given_back_once(store: &impl JobStore) {
    create(store, 1).await.unwrap();
    let seen = change(store, guid(1), |job| job.pause(at(2))).await;
    let next = seen.return_slots(Duration::ZERO, at(3)).expect("it is paused");
    let now = written(store.update(&seen, &next, Usage::NONE).await);
    assert_eq!(store.update(&seen, &next, Usage::NONE).await.unwrap(), UpdateAnswer::Refused(now));
    assert_eq!(create(store, 2).await.unwrap(), Created::New);
    assert!(is_full(&create(store, 3).await), "one was free");
}
