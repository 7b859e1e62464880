use uuid::Uuid;

use super::fixtures::{end, guid, leased, new_job};
use crate::contract::at;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::ids::FileGuid;
use rowmill_core::model::job::Awaits;
use rowmill_core::model::spec::{AwaitedFile, Source};
use rowmill_core::ports::{
    Admission, Ceilings, CreateError, Created, Full, Idempotency, JobStore, NewJob, PortError, UpdateAnswer,
};

const FILE: FileGuid = FileGuid(Uuid::from_u128(77));

/// A job that waits for this job, if any, and for an upload.
fn waiting(number: u32, before: Option<u32>) -> NewJob {
    let mut new = new_job(number, "me");
    new.spec.source = Source::Awaited(AwaitedFile::Upload(FILE));
    new.job = new.job.awaiting(Some(before.map_or(Awaits::File, |before| Awaits::Job(guid(before)))));
    new
}

pub async fn a_waiting_job_takes_the_slot_of_its_owner_alone_until_it_goes_on(store: &impl JobStore) {
    let ceilings = Ceilings { owner: 2, job_type: 1, system: 1 };
    let idempotency = Some(Idempotency { key: "k".into(), fingerprint: "f".into(), expires_at: at(900) });
    let busy = NewJob { ceilings, ..new_job(1, "you") };
    store.create(&busy).await.unwrap();
    for number in [2, 3] {
        let waiting = NewJob { ceilings, idempotency: idempotency.clone(), ..waiting(number, None) };
        let expected = if number == 2 { Created::New } else { Created::Before(guid(2)) };
        assert_eq!(store.create(&waiting).await.unwrap(), expected);
    }
    store.create(&NewJob { ceilings, ..waiting(4, None) }).await.unwrap();
    let third = store.create(&NewJob { ceilings, ..waiting(5, None) }).await;
    assert!(matches!(third, Err(CreateError::Full(Full { admission: Admission::OwnerFull, .. }))), "{third:?}");
    let seen = store.job(guid(2)).await.unwrap();
    let next = seen.found(&new_job(2, "me").spec, &[], at(9)).unwrap();
    assert!(matches!(store.update(&seen, &next, Usage::NONE).await.unwrap(), UpdateAnswer::Full(_)));
    store.complete(&end(leased(store, guid(1), 9).await)).await.unwrap();
    assert!(matches!(store.update(&seen, &next, Usage::NONE).await.unwrap(), UpdateAnswer::Written(_)));
    let taken = store.taken(&seen.owner, "import").await.unwrap();
    assert_eq!([taken.owner.active, taken.job_type.active, taken.system.active], [2, 1, 1]);
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
