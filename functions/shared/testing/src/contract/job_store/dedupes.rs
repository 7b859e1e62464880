use futures::future::join_all;

use super::fixtures::{ROOM, guid, keyed, new_job};
use crate::contract::at;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::ports::{Ceilings, CreateError, Created, Dedupe, Idempotency, JobStore, NewJob, PortError};

/// Job `number` with the dedupe key `k`, which expires after 100 seconds. It replaces this job.
fn deduped(number: u32, owner: &str, replaces: Option<JobGuid>) -> NewJob {
    let dedupe = Dedupe { key: "k".into(), replaces, expires_at: at(100) };
    NewJob { dedupe: Some(dedupe), ..new_job(number, owner) }
}

async fn known(store: &impl JobStore, owner: &str, second: i64) -> Option<JobGuid> {
    store.deduped(&Owner(owner.into()), "k", at(second)).await.unwrap()
}

pub async fn a_second_job_with_a_dedupe_key_finds_the_first(store: &impl JobStore) {
    assert_eq!(known(store, "me", 0).await, None);
    assert_eq!(store.create(&deduped(1, "me", None)).await.unwrap(), Created::New);
    assert_eq!(store.create(&deduped(2, "me", None)).await.unwrap(), Created::Same(guid(1)));
    assert!(matches!(store.job(guid(2)).await, Err(PortError::NotFound)));
    assert_eq!(known(store, "me", 0).await, Some(guid(1)));
    assert_eq!(store.create(&new_job(3, "me")).await.unwrap(), Created::New, "without a key");
}

pub async fn a_dedupe_key_finds_its_job_even_at_a_ceiling(store: &impl JobStore) {
    let one = |new| NewJob { ceilings: Ceilings { owner: 1, job_type: 1, system: 1 }, ..new };
    assert_eq!(store.create(&one(deduped(1, "me", None))).await.unwrap(), Created::New);
    assert_eq!(store.create(&one(deduped(2, "me", None))).await.unwrap(), Created::Same(guid(1)));
}

pub async fn a_dedupe_key_belongs_to_one_owner(store: &impl JobStore) {
    assert_eq!(store.create(&deduped(1, "me", None)).await.unwrap(), Created::New);
    assert_eq!(store.create(&deduped(2, "you", None)).await.unwrap(), Created::New);
    assert_eq!((known(store, "me", 0).await, known(store, "you", 0).await), (Some(guid(1)), Some(guid(2))));
    assert_eq!(known(store, "she", 0).await, None);
}

pub async fn a_dedupe_key_is_forgotten_when_it_expires(store: &impl JobStore) {
    assert_eq!(store.create(&deduped(1, "me", None)).await.unwrap(), Created::New);
    assert_eq!((known(store, "me", 99).await, known(store, "me", 100).await), (Some(guid(1)), None));
    let mut later = deduped(2, "me", None);
    later.job.created_at = at(100);
    assert_eq!(store.create(&later).await.unwrap(), Created::New);
}

pub async fn only_the_job_that_was_seen_is_replaced(store: &impl JobStore) {
    assert_eq!(store.create(&deduped(1, "me", None)).await.unwrap(), Created::New);
    assert_eq!(store.create(&deduped(2, "me", Some(guid(1)))).await.unwrap(), Created::New);
    assert_eq!(known(store, "me", 0).await, Some(guid(2)));
    // Another request has seen job 1 too.
    assert_eq!(store.create(&deduped(3, "me", Some(guid(1)))).await.unwrap(), Created::Same(guid(2)));
    // Nothing is left of job 9, also no row of the key: there is nothing to replace.
    assert_eq!(store.create(&deduped(4, "you", Some(guid(9)))).await.unwrap(), Created::New);
}

async fn one_is_new(store: &impl JobStore, numbers: std::ops::Range<u32>, replaces: Option<JobGuid>) -> JobGuid {
    let jobs: Vec<NewJob> = numbers.map(|number| deduped(number, "me", replaces)).collect();
    let results = join_all(jobs.iter().map(|new| store.create(new))).await;
    let mut new = jobs.iter().zip(&results).filter(|(_, result)| matches!(result, Ok(Created::New)));
    let (winner, _) = new.next().expect("one is new");
    assert!(new.next().is_none(), "and only one");
    let winner = winner.job.job_guid;
    let same = results.iter().filter(|result| matches!(result, Ok(Created::Same(job)) if *job == winner));
    assert_eq!(same.count(), jobs.len() - 1);
    assert_eq!(known(store, "me", 0).await, Some(winner));
    winner
}

pub async fn one_of_ten_concurrent_requests_with_a_dedupe_key_creates_a_job(store: &impl JobStore) {
    one_is_new(store, 1..11, None).await;
}

pub async fn one_of_ten_concurrent_requests_replaces_a_job(store: &impl JobStore) {
    let first = one_is_new(store, 1..2, None).await;
    one_is_new(store, 2..12, Some(first)).await;
}

pub async fn a_repeated_request_finds_its_job_before_the_dedupe_key_counts(store: &impl JobStore) {
    let both = |number, key| NewJob { dedupe: deduped(number, "me", None).dedupe, ..keyed(number, "me", key, "f") };
    assert_eq!(store.create(&both(1, "a")).await.unwrap(), Created::New);
    assert_eq!(store.create(&both(2, "a")).await.unwrap(), Created::Before(guid(1)));
    assert_eq!(store.create(&both(3, "b")).await.unwrap(), Created::Same(guid(1)));
    assert_eq!(store.remembered(&Owner("me".into()), "b", at(0)).await.unwrap(), None, "nothing was written");
}

pub async fn a_key_is_remembered_for_the_job_of_another_request(store: &impl JobStore) {
    let me = Owner("me".into());
    let wanted = |fingerprint: &str, until| Idempotency {
        key: "k".into(),
        fingerprint: fingerprint.into(),
        expires_at: at(until),
    };
    for job in [guid(1), guid(2)] {
        assert_eq!(store.remember(&me, &wanted("f", 100), job, at(0)).await.unwrap(), guid(1));
    }
    assert_eq!(store.remembered(&me, "k", at(99)).await.unwrap(), Some((guid(1), "f".to_owned())));
    assert!(matches!(store.remember(&me, &wanted("g", 100), guid(1), at(0)).await, Err(CreateError::KeyReused)));
    assert_eq!(store.create(&keyed(3, "me", "k", "f")).await.unwrap(), Created::Before(guid(1)));
    assert_eq!(store.create(&keyed(4, "you", "k", "f")).await.unwrap(), Created::New);
    assert_eq!(store.remember(&me, &wanted("g", 200), guid(2), at(100)).await.unwrap(), guid(2), "it has expired");
}

pub async fn a_refused_job_takes_no_dedupe_key(store: &impl JobStore) {
    let full = Ceilings { owner: 0, ..ROOM };
    let refused = store.create(&NewJob { ceilings: full, ..deduped(1, "me", None) }).await;
    assert!(matches!(refused, Err(CreateError::Full(_))));
    assert_eq!(known(store, "me", 0).await, None);
    assert_eq!(store.create(&deduped(2, "me", None)).await.unwrap(), Created::New);
}
