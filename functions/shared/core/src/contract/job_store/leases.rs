use super::fixtures::{created, lease, refused, run, running, taken};
use crate::contract::at;
use crate::model::job::states::Status;
use crate::ports::JobStore;

pub async fn the_first_lease_makes_a_waiting_job_run(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    let first = taken(store.lease(job, 1, lease(1, 100), at(1)).await.unwrap());
    assert_eq!((first.status, first.started_at, first.moved_at), (Status::Running, Some(at(1)), at(1)));
    assert_eq!(first.lease, Some(lease(1, 100)));
    assert_eq!(store.job(job).await.unwrap(), first);
    let second = taken(store.lease(job, 1, lease(2, 300), at(200)).await.unwrap());
    assert_eq!((second.status, second.started_at, second.moved_at), (Status::Running, Some(at(1)), at(200)));
}

pub async fn a_held_lease_is_refused_until_it_expires(store: &impl JobStore) {
    let job = running(store).await;
    let seen = refused(store.lease(job, 1, lease(2, 200), at(99)).await.unwrap());
    assert_eq!(seen.lease, Some(lease(1, 100)));
    let seen = taken(store.lease(job, 1, lease(2, 200), at(100)).await.unwrap());
    assert_eq!(seen.lease, Some(lease(2, 200)));
    assert_eq!(refused(store.lease(job, 1, lease(1, 200), at(101)).await.unwrap()).lease, Some(lease(2, 200)));
}

pub async fn a_run_that_lost_the_reply_takes_its_lease_again(store: &impl JobStore) {
    let job = running(store).await;
    assert_eq!(taken(store.lease(job, 1, lease(1, 150), at(2)).await.unwrap()).lease, Some(lease(1, 150)));
}

pub async fn a_lease_is_for_the_current_attempt(store: &impl JobStore) {
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
