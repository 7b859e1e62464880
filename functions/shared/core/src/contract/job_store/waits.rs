use uuid::Uuid;

use super::fixtures::{guid, new_job};
use crate::model::ids::FileGuid;
use crate::model::job::Awaits;
use crate::model::spec::{AwaitedFile, Source};
use crate::ports::{JobStore, NewJob, PortError};

const FILE: FileGuid = FileGuid(Uuid::from_u128(77));

/// A job that waits for this job, if any, and for an upload.
fn waiting(number: u32, before: Option<u32>) -> NewJob {
    let mut new = new_job(number, "me");
    new.spec.source = Source::Awaited(AwaitedFile::Upload(FILE));
    new.job.awaits = Some(before.map_or(Awaits::File, |before| Awaits::Job(guid(before))));
    new
}

pub async fn a_waiting_job_is_listed_under_all_that_it_waits_for(store: &impl JobStore) {
    for new in [new_job(1, "me"), waiting(2, None), waiting(3, Some(1))] {
        store.create(&new).await.unwrap();
    }
    assert_eq!(store.job(guid(3)).await.unwrap().awaits, Some(Awaits::Job(guid(1))));
    assert_eq!(store.awaiting(FILE.0).await.unwrap(), [guid(2), guid(3)]);
    assert_eq!(store.awaiting(guid(1).0).await.unwrap(), [guid(3)]);
    assert_eq!(store.awaiting(guid(2).0).await.unwrap(), []);
}

pub async fn the_first_spec_that_is_found_counts(store: &impl JobStore) {
    let new = waiting(2, None);
    store.create(&new).await.unwrap();
    let (found, mut other) = (new_job(2, "me").spec, new_job(2, "me").spec);
    other.limits.max_items += 1;
    assert_eq!(store.put_found(&found).await.unwrap(), found);
    assert_eq!(store.put_found(&other).await.unwrap(), found);
    assert_eq!(store.spec(guid(2)).await.unwrap(), found);
    let missing = new_job(3, "me").spec;
    assert!(matches!(store.put_found(&missing).await, Err(PortError::NotFound)));
    store.create(&new_job(3, "me")).await.unwrap();
    let stored = store.put_found(&missing).await.unwrap();
    assert_eq!(stored, new_job(3, "me").spec, "its file was there from the beginning");
}
