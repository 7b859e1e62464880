use std::time::Duration;

use super::fixtures::{change, created, end, ended, guid, leased, new_job};
use crate::contract::at;
use rowmill_core::model::dead_letter::{DeadLetter, DeadLetterKind};
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::ports::{Due, ERASE_SHARD, JobFilter, JobStore, NewJob, PortError, WAKE_SHARDS};

/// More rows than one call erases.
const LETTERS: usize = 300;

/// Job 1 with many rows, which ended at second 20 and was deleted at second 30.
async fn deleted(store: &impl JobStore) -> JobGuid {
    let job = created(store, 1, "me").await;
    for number in 0..LETTERS {
        let about = DeadLetterKind::Items.into();
        let letter = DeadLetter { message_id: format!("m{number}"), about, attempt: 1, chunk: None, at: at(1) };
        store.record_dead_letter(job, &letter).await.unwrap();
    }
    ended(store, job, 20).await;
    delete(store, job).await;
    job
}

async fn delete(store: &impl JobStore, job: JobGuid) {
    change(store, job, |job| job.delete(at(30), Duration::from_secs(100))).await;
}

pub async fn a_deleted_job_is_due_to_be_erased_and_for_nothing_else(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    ended(store, job, 20).await;
    delete(store, job).await;
    assert!(store.due(ERASE_SHARD, at(129), 10).await.unwrap().is_empty());
    assert_eq!(store.due(ERASE_SHARD, at(130), 10).await.unwrap(), [Due { job, at: at(130) }]);
    for shard in 0..WAKE_SHARDS {
        assert!(store.due(shard, at(9_000), 10).await.unwrap().is_empty());
    }
    change(store, job, |job| job.claim(at(130), at(200), 0)).await;
    assert!(store.due(ERASE_SHARD, at(199), 10).await.unwrap().is_empty());
    assert_eq!(store.due(ERASE_SHARD, at(200), 10).await.unwrap(), [Due { job, at: at(200) }]);
}

/// Also if the sweep has put it off between the reading and the end of the job.
pub async fn a_job_with_a_time_of_its_own_is_due_when_that_is_over(store: &impl JobStore) {
    let new = new_job(1, "me");
    let job = new.job.job_guid;
    store.create(&NewJob { job: Job { keep_seconds: Some(100), ..new.job }, ..new }).await.unwrap();
    let seen = leased(store, job, 100).await;
    change(store, job, |job| job.claim(job.wake_at?, at(120), 1)).await;
    store.complete(&end(seen.clone())).await.unwrap();
    assert_eq!(store.job(job).await.unwrap().wake_at, Some(at(120)));
    assert!(store.due(ERASE_SHARD, at(119), 10).await.unwrap().is_empty());
    assert_eq!(store.due(ERASE_SHARD, at(120), 10).await.unwrap(), [Due { job, at: at(120) }]);
    for shard in 0..WAKE_SHARDS {
        assert!(store.due(shard, at(9_000), 10).await.unwrap().is_empty());
    }
    // In the stored row the wake time of another job is the one that was seen.
    let other = new_job(2, "me");
    let other_guid = other.job.job_guid;
    let until_wake = Some(at(900).duration_since(at(20)).as_secs().unsigned_abs());
    store.create(&NewJob { job: Job { keep_seconds: until_wake, ..other.job }, ..other }).await.unwrap();
    let seen = leased(store, other_guid, 100).await;
    change(store, other_guid, |job| job.claim(job.wake_at?, at(50), 1)).await;
    store.complete(&end(seen.clone())).await.unwrap();
    assert_eq!((seen.wake_at, store.job(other_guid).await.unwrap().wake_at), (Some(at(900)), Some(at(900))));
}

pub async fn nobody_sees_a_deleted_job(store: &impl JobStore) {
    let (job, other) = (created(store, 1, "me").await, created(store, 2, "me").await);
    ended(store, job, 20).await;
    delete(store, job).await;
    let filter = JobFilter { limit: 10, ..JobFilter::default() };
    let listed = store.jobs(&Owner("me".into()), &filter, at(31)).await.unwrap().jobs;
    assert_eq!(listed.iter().map(|job| job.job_guid).collect::<Vec<_>>(), [other]);
    assert_eq!(store.job(job).await.unwrap().deleted_at, Some(at(30)));
}

pub async fn all_rows_of_a_deleted_job_are_erased_and_no_others(store: &impl JobStore) {
    let job = deleted(store).await;
    let other = created(store, 2, "me").await;
    let letters = store.dead_letters(job, LETTERS).await.unwrap();
    assert_eq!(letters.len(), LETTERS);
    store.record_dead_letter(other, &letters[0]).await.unwrap();
    assert!(!store.erase_rows(job).await.unwrap(), "the first call leaves rows");
    assert!(store.job(job).await.is_ok(), "the job row is the last one");
    while !store.erase_rows(job).await.unwrap() {}
    assert!(matches!(store.job(job).await, Err(PortError::NotFound)));
    assert!(matches!(store.spec(job).await, Err(PortError::NotFound)));
    assert!(store.dead_letters(job, LETTERS).await.unwrap().is_empty());
    assert!(store.erase_rows(job).await.unwrap(), "again, nothing is left");
    assert!(store.job(other).await.is_ok() && store.spec(other).await.is_ok());
    assert_eq!(store.dead_letters(other, 10).await.unwrap().len(), 1);
}

pub async fn a_job_that_is_not_deleted_is_not_erased(store: &impl JobStore) {
    let (active, job) = (created(store, 1, "me").await, created(store, 2, "me").await);
    ended(store, job, 20).await;
    for job in [active, job] {
        assert!(!store.erase_rows(job).await.unwrap());
        assert!(store.job(job).await.is_ok() && store.spec(job).await.is_ok());
    }
    assert!(store.erase_rows(guid(3)).await.unwrap(), "of a job that is not there, nothing is left");
}
