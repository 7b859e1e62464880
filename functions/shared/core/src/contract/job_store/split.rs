use super::story::{created, lease, run, running, stop};
use crate::contract::at;
use crate::model::job::{Job, StopCode};
use crate::model::states::Status;
use crate::ports::{JobStore, Leased, Stopped, WriteLost};
use crate::text::Position;

const NEXT: Position = Position { offset: 600, row: 321 };

fn taken(leased: Leased) -> Job {
    match leased {
        Leased::Taken(job) => job,
        Leased::Refused(job) => panic!("refused: {job:?}"),
    }
}

fn refused(leased: Leased) -> Job {
    match leased {
        Leased::Refused(job) => job,
        Leased::Taken(job) => panic!("taken: {job:?}"),
    }
}

fn lost<T: std::fmt::Debug>(result: Result<T, WriteLost>) -> Job {
    match result {
        Err(WriteLost::Condition(job)) => *job,
        other => panic!("not lost: {other:?}"),
    }
}

pub async fn the_first_lease_makes_a_waiting_job_run(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    let first = taken(store.lease(job, 1, lease(1, 100), at(1)).await.unwrap());
    assert_eq!((first.status, first.started_at, first.moved_at), (Status::Running, Some(at(1)), at(1)));
    assert_eq!(first.lease, Some(lease(1, 100)));
    assert_eq!(store.job(job).await.unwrap(), first);
    let second = taken(store.lease(job, 1, lease(2, 300), at(200)).await.unwrap());
    assert_eq!((second.status, second.started_at, second.moved_at), (Status::Running, Some(at(1)), at(200)));
}

pub async fn a_held_lease_is_refused_until_it_runs_out(store: &impl JobStore) {
    let job = running(store).await;
    let seen = refused(store.lease(job, 1, lease(2, 200), at(99)).await.unwrap());
    assert_eq!(seen.lease, Some(lease(1, 100)));
    let seen = taken(store.lease(job, 1, lease(2, 200), at(100)).await.unwrap());
    assert_eq!(seen.lease, Some(lease(2, 200)));
    assert_eq!(refused(store.lease(job, 1, lease(1, 200), at(101)).await.unwrap()).lease, Some(lease(2, 200)));
}

pub async fn a_run_that_lost_the_reply_gets_its_lease_again(store: &impl JobStore) {
    let job = running(store).await;
    assert_eq!(taken(store.lease(job, 1, lease(1, 150), at(2)).await.unwrap()).lease, Some(lease(1, 150)));
}

pub async fn a_lease_is_for_the_present_attempt(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    assert_eq!(refused(store.lease(job, 2, lease(1, 100), at(1)).await.unwrap()).status, Status::Waiting);
}

pub async fn only_its_holder_releases_a_lease(store: &impl JobStore) {
    let job = running(store).await;
    store.release(job, run(2)).await.unwrap();
    assert_eq!(store.job(job).await.unwrap().lease, Some(lease(1, 100)));
    store.release(job, run(1)).await.unwrap();
    assert_eq!(store.job(job).await.unwrap().lease, None);
    store.release(job, run(1)).await.unwrap();
    taken(store.lease(job, 1, lease(2, 100), at(2)).await.unwrap());
}

pub async fn tallies_are_counted_one_after_the_other_under_the_lease(store: &impl JobStore) {
    let job = running(store).await;
    store.count_tally(job, 1, run(1), 0, NEXT, at(3)).await.unwrap();
    let seen = store.job(job).await.unwrap();
    assert_eq!((seen.split.tallies, seen.split.dispatched, seen.split.cursor), (1, 0, NEXT));
    assert_eq!(seen.moved_at, at(3));

    let again = lost(store.count_tally(job, 1, run(1), 0, NEXT, at(4)).await);
    assert_eq!(again, seen, "counted once");
    assert_eq!(lost(store.count_tally(job, 1, run(1), 2, NEXT, at(4)).await), seen, "none is passed over");
    assert_eq!(lost(store.count_tally(job, 1, run(2), 1, NEXT, at(4)).await), seen, "not without the lease");
    assert_eq!(lost(store.count_tally(job, 2, run(1), 1, NEXT, at(4)).await), seen, "not for another attempt");
    store.release(job, run(1)).await.unwrap();
    lost(store.count_tally(job, 1, run(1), 1, NEXT, at(4)).await);

    taken(store.lease(job, 1, lease(2, 100), at(5)).await.unwrap());
    let end = Position { offset: 1009, row: 500 };
    store.count_tally(job, 1, run(2), 1, end, at(6)).await.unwrap();
    let seen = store.job(job).await.unwrap();
    assert_eq!((seen.split.tallies, seen.split.dispatched, seen.split.cursor), (2, 1, end));
}

pub async fn nothing_is_counted_once_the_job_is_stopped(store: &impl JobStore) {
    let job = running(store).await;
    store.stop(job, 1, &stop(StopCode::SourceChanged)).await.unwrap();
    let seen = lost(store.count_tally(job, 1, run(1), 0, NEXT, at(8)).await);
    assert_eq!(seen.stop, Some(stop(StopCode::SourceChanged)));
    assert_eq!(seen.lease, Some(lease(1, 100)), "the holder has the split to end all the same");
    assert_eq!(seen.split.tallies, 0);
}

pub async fn nothing_is_counted_once_the_split_is_finished(store: &impl JobStore) {
    let job = running(store).await;
    store.finish_split(job, 1, run(1), true, at(3)).await.unwrap();
    taken(store.lease(job, 1, lease(2, 100), at(4)).await.unwrap());
    assert!(lost(store.count_tally(job, 1, run(2), 0, NEXT, at(5)).await).split.done);
}

pub async fn a_paused_split_is_dispatched_and_gives_the_lease_back(store: &impl JobStore) {
    let job = running(store).await;
    store.count_tally(job, 1, run(1), 0, NEXT, at(3)).await.unwrap();
    assert_eq!(lost(store.pause_split(job, 1, run(2), at(4)).await).split.dispatched, 0, "not without the lease");
    assert_eq!(lost(store.pause_split(job, 2, run(1), at(4)).await).split.dispatched, 0, "not for another attempt");
    store.pause_split(job, 1, run(1), at(5)).await.unwrap();
    let seen = store.job(job).await.unwrap();
    assert_eq!((seen.split.tallies, seen.split.dispatched, seen.split.cursor), (1, 1, NEXT));
    assert_eq!((seen.split.done, seen.lease, seen.moved_at), (false, None, at(5)));
    assert_eq!(lost(store.pause_split(job, 1, run(1), at(6)).await), seen);
}

pub async fn the_end_of_the_split_gives_the_lease_back(store: &impl JobStore) {
    let job = running(store).await;
    store.count_tally(job, 1, run(1), 0, NEXT, at(3)).await.unwrap();
    let held = store.job(job).await.unwrap();
    assert_eq!(lost(store.finish_split(job, 1, run(2), true, at(4)).await), held, "not by another run");
    assert_eq!(lost(store.finish_split(job, 2, run(1), true, at(4)).await), held, "not for another attempt");
    let done = store.finish_split(job, 1, run(1), true, at(4)).await.unwrap();
    assert!(done.split.done && done.split.at_end);
    assert_eq!((done.split.tallies, done.split.dispatched, done.lease, done.moved_at), (1, 1, None, at(4)));
    assert_eq!(store.job(job).await.unwrap(), done);
    assert_eq!(
        lost(store.finish_split(job, 1, run(1), true, at(5)).await),
        done,
        "whose reply was lost sees that it is done"
    );
}

pub async fn a_split_that_ends_early_says_so(store: &impl JobStore) {
    let job = running(store).await;
    let done = store.finish_split(job, 1, run(1), false, at(4)).await.unwrap();
    assert_eq!((done.split.done, done.split.at_end), (true, false));
    assert_eq!(store.job(job).await.unwrap(), done);
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

pub async fn a_stopped_job_is_looked_at_from_then_on(store: &impl JobStore) {
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

pub async fn a_cancelled_job_is_cancelling_whoever_takes_it_up(store: &impl JobStore) {
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
