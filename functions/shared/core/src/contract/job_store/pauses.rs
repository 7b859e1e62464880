use super::fixtures::{created, end, lease, lost_job, refused, run, running, stop, taken};
use crate::contract::at;
use crate::model::ids::JobGuid;
use crate::model::job::StopCode;
use crate::model::job::states::Status;
use crate::ports::{Completion, Due, JobStore, Resent, Stopped, WAKE_SHARDS, WriteLost};
use crate::text::Position;

/// A running job that was paused at second 10.
async fn paused(store: &impl JobStore) -> JobGuid {
    let job = running(store).await;
    store.pause(job, 1, at(10)).await.unwrap();
    job
}

pub async fn a_paused_job_resumes_in_the_status_that_it_had(store: &impl JobStore) {
    for (job, before) in [(created(store, 2, "me").await, Status::Waiting), (running(store).await, Status::Running)] {
        let paused = store.pause(job, 1, at(10)).await.unwrap();
        assert_eq!((paused.status, paused.paused_from, paused.pauses), (Status::Paused, Some(before), 1));
        assert_eq!((paused.moved_at, paused.wake_at, paused.resend_from), (at(10), Some(at(900)), None));
        assert_eq!(store.job(job).await.unwrap(), paused);
        let resumed = store.resume(job, 1, at(20)).await.unwrap();
        assert_eq!((resumed.status, resumed.paused_from, resumed.pauses), (before, None, 2));
        assert_eq!((resumed.moved_at, resumed.wake_at, resumed.resend_from), (at(20), Some(at(20)), Some(0)));
        assert_eq!(store.job(job).await.unwrap(), resumed);
        let again = store.pause(job, 1, at(30)).await.unwrap();
        assert_eq!((again.status, again.pauses, again.resend_from), (Status::Paused, 3, None));
    }
}

pub async fn a_resumed_job_is_due_at_once_and_forgets_its_recoveries(store: &impl JobStore) {
    let job = paused(store).await;
    store.wake_later(Due { job, at: at(900) }, at(1000), 3).await.unwrap().expect("claimed");
    assert_eq!(store.resume(job, 1, at(20)).await.unwrap().recoveries, 0);
    let mut due = Vec::new();
    for shard in 0..WAKE_SHARDS {
        due.extend(store.due(shard, at(20), 10).await.unwrap());
    }
    assert_eq!(due, [Due { job, at: at(20) }]);
}

pub async fn a_repeated_pause_or_resume_changes_nothing(store: &impl JobStore) {
    let job = paused(store).await;
    assert_eq!(store.pause(job, 1, at(11)).await.unwrap().moved_at, at(10));
    store.resume(job, 1, at(20)).await.unwrap();
    let seen = lost_job(store.resume(job, 1, at(21)).await);
    assert_eq!((seen.status, seen.pauses, seen.moved_at), (Status::Running, 2, at(20)));
}

pub async fn another_attempt_is_neither_paused_nor_resumed(store: &impl JobStore) {
    let job = running(store).await;
    assert_eq!(lost_job(store.pause(job, 2, at(10)).await).status, Status::Running);
    store.pause(job, 1, at(10)).await.unwrap();
    assert_eq!(lost_job(store.pause(job, 2, at(11)).await).pauses, 1);
    assert_eq!(lost_job(store.resume(job, 2, at(11)).await).status, Status::Paused);
}

pub async fn a_stopped_or_ended_job_is_not_paused(store: &impl JobStore) {
    for (number, code) in [(2, StopCode::SourceChanged), (3, StopCode::Cancelled)] {
        let job = created(store, number, "me").await;
        store.stop(job, 1, &stop(code)).await.unwrap();
        assert_eq!(lost_job(store.pause(job, 1, at(10)).await).pauses, 0);
    }
    let job = running(store).await;
    let seen = store.job(job).await.unwrap();
    store.complete(&end(seen)).await.unwrap();
    assert_eq!(lost_job(store.pause(job, 1, at(21)).await).status, Status::Completed);
    assert_eq!(lost_job(store.resume(job, 1, at(21)).await).status, Status::Completed);
}

pub async fn a_stop_ends_a_pause(store: &impl JobStore) {
    let (waiting, job) = (created(store, 2, "me").await, paused(store).await);
    store.pause(waiting, 1, at(10)).await.unwrap();
    for (job, status) in [(waiting, Status::Waiting), (job, Status::Running)] {
        let Stopped::Now(seen) = store.stop(job, 1, &stop(StopCode::DeadlineExceeded)).await.unwrap() else {
            panic!("not stopped")
        };
        assert_eq!((seen.status, seen.paused_from, seen.wake_at), (status, None, Some(at(7))));
        assert_eq!(store.job(job).await.unwrap(), seen);
        let repeated = store.stop(job, 1, &stop(StopCode::DeadlineExceeded)).await.unwrap();
        assert!(matches!(repeated, Stopped::Now(_)), "its reply may be lost");
        assert_eq!(lost_job(store.resume(job, 1, at(12)).await).pauses, 1);
    }
}

pub async fn a_paused_job_can_be_cancelled(store: &impl JobStore) {
    let job = paused(store).await;
    let Stopped::Now(seen) = store.stop(job, 1, &stop(StopCode::Cancelled)).await.unwrap() else {
        panic!("not stopped")
    };
    assert_eq!((seen.status, seen.paused_from), (Status::Cancelling, None));
    let stopped = store.stop(job, 1, &stop(StopCode::SourceChanged)).await.unwrap();
    assert!(matches!(stopped, Stopped::Not(job) if job.stop == seen.stop));
}

pub async fn a_paused_job_is_only_leased_once_its_split_has_ended(store: &impl JobStore) {
    let job = paused(store).await;
    assert_eq!(refused(store.lease(job, 1, lease(2, 400), at(300)).await.unwrap()).status, Status::Paused);
    assert_eq!(refused(store.lease(job, 1, lease(1, 400), at(300)).await.unwrap()).lease, Some(lease(1, 100)));
    store.finish_split(job, 1, run(1), true, at(301)).await.unwrap();
    let seen = taken(store.lease(job, 1, lease(2, 400), at(302)).await.unwrap());
    assert_eq!((seen.status, seen.lease), (Status::Paused, Some(lease(2, 400))));
}

pub async fn no_tally_is_counted_in_a_pause(store: &impl JobStore) {
    let job = paused(store).await;
    let next = Position { offset: 99, row: 7 };
    let Err(WriteLost::Condition(seen)) = store.count_tally(job, 1, run(1), 0, next, at(11)).await else {
        panic!("counted")
    };
    assert_eq!((seen.status, seen.split.tallies), (Status::Paused, 0));
    store.resume(job, 1, at(12)).await.unwrap();
    store.count_tally(job, 1, run(1), 0, next, at(13)).await.unwrap();
}

pub async fn a_paused_job_can_complete(store: &impl JobStore) {
    let job = paused(store).await;
    store.finish_split(job, 1, run(1), true, at(11)).await.unwrap();
    let seen = taken(store.lease(job, 1, lease(2, 400), at(12)).await.unwrap());
    let completion = Completion { finished_at: at(20), ..end(seen) };
    store.complete(&completion).await.unwrap();
    let ended = store.job(job).await.unwrap();
    assert_eq!(ended, completion.job());
    assert_eq!((ended.status, ended.paused_from, ended.pauses), (Status::Completed, None, 1));
}

pub async fn a_job_that_was_paused_or_resumed_since_it_was_read_does_not_end(store: &impl JobStore) {
    let job = running(store).await;
    let running = store.job(job).await.unwrap();
    let paused = store.pause(job, 1, at(10)).await.unwrap();
    assert!(matches!(store.complete(&end(running)).await, Err(WriteLost::Condition(seen)) if seen.is_paused()));
    store.resume(job, 1, at(11)).await.unwrap();
    assert!(matches!(store.complete(&end(paused)).await, Err(WriteLost::Condition(seen)) if !seen.is_paused()));
}

pub async fn what_is_sent_again_is_noted_for_one_resume(store: &impl JobStore) {
    let job = paused(store).await;
    let pauses = store.resume(job, 1, at(20)).await.unwrap().pauses;
    let note = async |from, next| store.note_resent(job, Resent { pauses, from, next }, at(21)).await.unwrap();
    assert!(note(0, Some(1)).await);
    assert!(note(0, Some(1)).await, "its reply may be lost");
    let seen = store.job(job).await.unwrap();
    assert_eq!((seen.resend_from, seen.moved_at), (Some(1), at(21)));
    assert!(!note(0, Some(3)).await, "another run has gone further");
    assert!(note(1, None).await);
    assert!(note(1, None).await, "its reply may be lost");
    assert_eq!(store.job(job).await.unwrap().resend_from, None);

    store.pause(job, 1, at(30)).await.unwrap();
    assert!(!note(0, Some(1)).await);
    store.resume(job, 1, at(31)).await.unwrap();
    assert!(!note(0, None).await, "it belongs to the resume before");
    assert_eq!(store.job(job).await.unwrap().resend_from, Some(0));
}
