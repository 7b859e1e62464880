use super::fixtures::{lease, run, running, stop, taken};
use crate::contract::at;
use crate::model::job::{Job, StopCode};
use crate::model::warnings;
use crate::ports::{JobStore, WriteLost};
use crate::text::Position;

const NEXT: Position = Position { offset: 600, row: 321 };

fn lost<T: std::fmt::Debug>(result: Result<T, WriteLost>) -> Job {
    match result {
        Err(WriteLost::Condition(job)) => *job,
        other => panic!("not lost: {other:?}"),
    }
}

pub async fn tallies_are_counted_in_order_under_the_lease(store: &impl JobStore) {
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

pub async fn no_tally_is_counted_after_a_stop(store: &impl JobStore) {
    let job = running(store).await;
    store.stop(job, 1, &stop(StopCode::SourceChanged)).await.unwrap();
    let seen = lost(store.count_tally(job, 1, run(1), 0, NEXT, at(8)).await);
    assert_eq!(seen.stop, Some(stop(StopCode::SourceChanged)));
    assert_eq!(seen.lease, Some(lease(1, 100)), "the holder has the split to end all the same");
    assert_eq!(seen.split.tallies, 0);
}

pub async fn no_tally_is_counted_after_the_split_is_finished(store: &impl JobStore) {
    let job = running(store).await;
    store.finish_split(job, 1, run(1), true, at(3)).await.unwrap();
    taken(store.lease(job, 1, lease(2, 100), at(4)).await.unwrap());
    assert!(lost(store.count_tally(job, 1, run(2), 0, NEXT, at(5)).await).split.done);
}

pub async fn warnings_are_replaced_under_the_lease(store: &impl JobStore) {
    let job = running(store).await;
    let found = [warnings::trailing_bytes(9), warnings::not_utf8(3, Some("Shift_JIS"))];
    let before = store.job(job).await.unwrap();
    assert_eq!(lost(store.warn(job, 1, run(2), &found, at(3)).await), before, "not without the lease");
    assert_eq!(lost(store.warn(job, 2, run(1), &found, at(3)).await), before, "not for another attempt");
    for at in [at(4), at(5)] {
        store.warn(job, 1, run(1), &found, at).await.unwrap();
        let seen = store.job(job).await.unwrap();
        assert_eq!((seen.warnings.as_slice(), seen.moved_at), (&found[..], at));
        let unchanged = Job { warnings: before.warnings.clone(), moved_at: before.moved_at, ..seen };
        assert_eq!(unchanged, before, "nothing else changes");
    }
}

pub async fn a_paused_split_is_dispatched_and_releases_the_lease(store: &impl JobStore) {
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

pub async fn a_finished_split_releases_the_lease(store: &impl JobStore) {
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

pub async fn a_split_that_ends_early_is_recorded_as_such(store: &impl JobStore) {
    let job = running(store).await;
    let done = store.finish_split(job, 1, run(1), false, at(4)).await.unwrap();
    assert_eq!((done.split.done, done.split.at_end), (true, false));
    assert_eq!(store.job(job).await.unwrap(), done);
}
