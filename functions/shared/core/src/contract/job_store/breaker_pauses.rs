use super::fixtures::{created, end, lease, lost_job, running, stop, taken};
use crate::contract::at;
use crate::model::breaker::BreakerPause;
use crate::model::ids::JobGuid;
use crate::model::job::StopCode;
use crate::model::job::states::Status;
use crate::ports::{Completion, Due, JobStore, Stopped, WAKE_SHARDS};

fn why() -> BreakerPause {
    BreakerPause::after("busy", "it answered 503", at(10))
}

/// A running job that the breaker paused at second 10. It is due at second 70.
async fn paused(store: &impl JobStore) -> JobGuid {
    let job = running(store).await;
    store.pause_by_breaker(job, 1, &why(), at(70)).await.unwrap();
    job
}

pub async fn a_job_that_the_breaker_pauses_says_why_and_is_due_when_it_says(store: &impl JobStore) {
    let job = running(store).await;
    let seen = store.pause_by_breaker(job, 1, &why(), at(70)).await.unwrap();
    assert_eq!((seen.status, seen.paused_from, seen.pauses), (Status::Paused, Some(Status::Running), 1));
    assert_eq!((seen.breaker_pause.as_ref(), seen.moved_at, seen.wake_at), (Some(&why()), at(10), Some(at(70))));
    assert_eq!(store.job(job).await.unwrap(), seen);
    let later = BreakerPause { at: at(20), ..why() };
    assert_eq!(store.pause_by_breaker(job, 1, &later, at(90)).await.unwrap(), seen, "another run, or a lost reply");
    let mut due = Vec::new();
    for shard in 0..WAKE_SHARDS {
        due.extend(store.due(shard, at(70), 10).await.unwrap());
    }
    assert_eq!(due, [Due { job, at: at(70) }]);
}

pub async fn a_job_that_the_breaker_has_paused_is_resumed_once(store: &impl JobStore) {
    let job = paused(store).await;
    assert_eq!(lost_job(store.resume_by_breaker(job, 1, 0, at(79)).await).status, Status::Paused, "another pause");
    assert_eq!(lost_job(store.resume_by_breaker(job, 2, 1, at(79)).await).status, Status::Paused, "another attempt");
    let seen = store.resume_by_breaker(job, 1, 1, at(80)).await.unwrap();
    assert_eq!((seen.status, seen.paused_from, seen.breaker_pause.as_ref()), (Status::Running, None, None));
    assert_eq!((seen.pauses, seen.resend_from, seen.wake_at, seen.moved_at), (2, Some(0), Some(at(80)), at(80)));
    assert_eq!(store.job(job).await.unwrap(), seen);
    let again = lost_job(store.resume_by_breaker(job, 1, 1, at(81)).await);
    assert_eq!((again.pauses, again.resend_from), (2, Some(0)), "its reply may be lost");
}

pub async fn an_owners_pause_replaces_that_of_the_breaker(store: &impl JobStore) {
    let job = paused(store).await;
    for second in [20, 21] {
        let seen = store.pause(job, 1, at(second)).await.unwrap();
        assert_eq!((seen.status, seen.paused_from, seen.pauses), (Status::Paused, Some(Status::Running), 2));
        assert_eq!((seen.breaker_pause.as_ref(), seen.moved_at), (None, at(20)));
    }
    assert!(lost_job(store.resume_by_breaker(job, 1, 1, at(30)).await).is_paused());
    assert!(lost_job(store.resume_by_breaker(job, 1, 2, at(30)).await).is_paused());
    assert_eq!(store.resume(job, 1, at(40)).await.unwrap().status, Status::Running);
}

pub async fn the_breaker_neither_pauses_nor_resumes_what_its_owner_has_paused(store: &impl JobStore) {
    let job = running(store).await;
    store.pause(job, 1, at(9)).await.unwrap();
    let seen = store.pause_by_breaker(job, 1, &why(), at(70)).await.unwrap();
    assert_eq!((seen.breaker_pause.as_ref(), seen.pauses, seen.wake_at), (None, 1, Some(at(900))));
    assert!(lost_job(store.resume_by_breaker(job, 1, 1, at(80)).await).is_paused());
}

pub async fn an_owner_resumes_what_the_breaker_has_paused(store: &impl JobStore) {
    let job = paused(store).await;
    let seen = store.resume(job, 1, at(20)).await.unwrap();
    assert_eq!((seen.status, seen.breaker_pause.as_ref(), seen.pauses), (Status::Running, None, 2));
    assert_eq!(store.job(job).await.unwrap(), seen);
    assert!(!lost_job(store.resume_by_breaker(job, 1, 1, at(80)).await).is_paused());
}

pub async fn a_stop_ends_a_pause_of_the_breaker(store: &impl JobStore) {
    for (number, code) in [(2, StopCode::DeadlineExceeded), (3, StopCode::Cancelled), (4, StopCode::CapacityExceeded)] {
        let job = created(store, number, "me").await;
        store.pause_by_breaker(job, 1, &why(), at(70)).await.unwrap();
        let Stopped::Now(seen) = store.stop(job, 1, &stop(code)).await.unwrap() else { panic!("not stopped") };
        assert_eq!((seen.paused_from, seen.breaker_pause.as_ref(), seen.wake_at), (None, None, Some(at(7))));
        assert_eq!(store.job(job).await.unwrap(), seen);
    }
    let job = paused(store).await;
    store.finish_split(job, 1, super::fixtures::run(1), true, at(11)).await.unwrap();
    let seen = taken(store.lease(job, 1, lease(2, 400), at(12)).await.unwrap());
    let completion = Completion { finished_at: at(20), ..end(seen) };
    store.complete(&completion).await.unwrap();
    let ended = store.job(job).await.unwrap();
    assert_eq!((&ended, ended.breaker_pause.as_ref()), (&completion.job(), None), "it ends like any other");
}

pub async fn the_breaker_pauses_no_stopped_job_and_no_other_attempt(store: &impl JobStore) {
    let job = running(store).await;
    assert_eq!(lost_job(store.pause_by_breaker(job, 2, &why(), at(70)).await).status, Status::Running);
    store.stop(job, 1, &stop(StopCode::SourceChanged)).await.unwrap();
    let seen = lost_job(store.pause_by_breaker(job, 1, &why(), at(70)).await);
    assert_eq!((seen.status, seen.breaker_pause), (Status::Running, None));
}
