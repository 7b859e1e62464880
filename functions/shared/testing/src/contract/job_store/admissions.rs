use futures::future::join_all;

use jiff::Timestamp;

use super::fixtures::{ROOM, created, ended, guid, keyed, new_job};
use crate::contract::at;
use rowmill_core::model::ids::Owner;
use rowmill_core::ports::{
    Admission, Ceilings, CreateError, Created, ENDS_KEPT, JobFilter, JobStore, NewJob, PortError,
};

fn with(ceilings: Ceilings, new: NewJob) -> NewJob {
    NewJob { ceilings, ..new }
}

fn is_full(result: &Result<Created, CreateError>, of: Admission) -> bool {
    matches!(result, Err(CreateError::Full(full)) if full.admission == of)
}

pub async fn the_ceiling_of_an_owner_is_exact(store: &impl JobStore) {
    let ceilings = Ceilings { owner: 2, ..ROOM };
    for number in [1, 2] {
        assert_eq!(store.create(&with(ceilings, new_job(number, "me"))).await.unwrap(), Created::New);
    }
    assert!(is_full(&store.create(&with(ceilings, new_job(3, "me"))).await, Admission::OwnerFull));
    assert_eq!(store.create(&with(ceilings, new_job(4, "you"))).await.unwrap(), Created::New);
}

pub async fn the_ceiling_of_a_type_is_exact(store: &impl JobStore) {
    let ceilings = Ceilings { job_type: 1, ..ROOM };
    assert_eq!(store.create(&with(ceilings, new_job(1, "me"))).await.unwrap(), Created::New);
    assert!(is_full(&store.create(&with(ceilings, new_job(2, "you"))).await, Admission::TypeFull));
    let mut other = with(ceilings, new_job(3, "you"));
    other.job.job_type = "validate".into();
    assert_eq!(store.create(&other).await.unwrap(), Created::New);
}

pub async fn the_ceiling_of_the_system_is_exact(store: &impl JobStore) {
    let ceilings = Ceilings { system: 1, ..ROOM };
    assert_eq!(store.create(&with(ceilings, new_job(1, "me"))).await.unwrap(), Created::New);
    let mut other = with(ceilings, new_job(2, "you"));
    other.job.job_type = "validate".into();
    assert!(is_full(&store.create(&other).await, Admission::SystemFull));
}

pub async fn a_job_that_is_created_again_takes_one_slot(store: &impl JobStore) {
    let ceilings = Ceilings { owner: 2, ..ROOM };
    for _ in 0..3 {
        assert_eq!(store.create(&with(ceilings, new_job(1, "me"))).await.unwrap(), Created::New);
    }
    assert_eq!(store.create(&with(ceilings, new_job(2, "me"))).await.unwrap(), Created::New);
}

pub async fn a_ceiling_of_zero_admits_no_job(store: &impl JobStore) {
    let ceilings = Ceilings { owner: 0, ..ROOM };
    assert!(is_full(&store.create(&with(ceilings, new_job(1, "me"))).await, Admission::OwnerFull));
}

pub async fn two_hundred_concurrent_requests_admit_exactly_ten_jobs(store: &impl JobStore) {
    let ceilings = Ceilings { owner: 10, ..ROOM };
    let jobs: Vec<NewJob> = (0..200).map(|number| with(ceilings, new_job(number, "me"))).collect();
    let results = join_all(jobs.iter().map(|new| store.create(new))).await;
    let admitted = results.iter().filter(|result| matches!(result, Ok(Created::New))).count();
    let refused = results.iter().filter(|result| is_full(result, Admission::OwnerFull)).count();
    assert_eq!((admitted, refused), (10, 190));
    let filter = JobFilter { limit: 200, ..JobFilter::default() };
    assert_eq!(store.jobs(&Owner("me".into()), &filter, at(0)).await.unwrap().jobs.len(), 10);
}

pub async fn a_reached_limit_is_seen_before_a_job_is_created(store: &impl JobStore) {
    let ceilings = Ceilings { owner: 2, job_type: 3, system: 4 };
    let owner = |name: &str| Owner(name.into());
    let job_type = new_job(1, "me").job.job_type;
    let reached = async |owner: Owner, job_type: &str| {
        store.taken(&owner, job_type).await.unwrap().reached(ceilings).map(|full| full.admission)
    };
    assert_eq!(reached(owner("me"), &job_type).await, None, "no counter has a row");
    for number in [1, 2] {
        store.create(&new_job(number, "me")).await.unwrap();
    }
    assert_eq!(reached(owner("me"), &job_type).await, Some(Admission::OwnerFull));
    assert_eq!(reached(owner("you"), &job_type).await, None);
    store.create(&new_job(3, "you")).await.unwrap();
    assert_eq!(reached(owner("you"), &job_type).await, Some(Admission::TypeFull));
    assert_eq!(reached(owner("you"), "another").await, None);
    store.create(&new_job(4, "them")).await.unwrap();
    assert_eq!(reached(owner("you"), "another").await, Some(Admission::SystemFull));
    let taken = store.taken(&owner("me"), &job_type).await.unwrap();
    assert_eq!((taken.owner.active, taken.job_type.active, taken.system.active), (2, 4, 4));
}

pub async fn a_refused_job_leaves_nothing_behind(store: &impl JobStore) {
    let full = Ceilings { system: 0, ..ROOM };
    assert!(is_full(&store.create(&with(full, keyed(1, "me", "k", "f"))).await, Admission::SystemFull));
    assert!(matches!(store.job(guid(1)).await, Err(PortError::NotFound)));
    assert!(matches!(store.spec(guid(1)).await, Err(PortError::NotFound)));
    assert_eq!(store.remembered(&Owner("me".into()), "k", at(0)).await.unwrap(), None);
    // It took no slot of the owner or of the type either.
    let one = Ceilings { owner: 1, job_type: 1, system: 1 };
    assert_eq!(store.create(&with(one, keyed(1, "me", "k", "f"))).await.unwrap(), Created::New);
}

/// The stored ends of jobs under the limit that `ceilings` makes full, oldest first.
async fn recent_ends(store: &impl JobStore, owner: &str, ceilings: Ceilings) -> Vec<Timestamp> {
    let Err(CreateError::Full(mut full)) = store.create(&with(ceilings, new_job(999, owner))).await else {
        panic!("not full")
    };
    full.recent_ends.sort();
    full.recent_ends
}

pub async fn a_refusal_has_the_recent_ends_under_its_ceiling(store: &impl JobStore) {
    let no_owner = Ceilings { owner: 0, ..ROOM };
    assert!(recent_ends(store, "me", no_owner).await.is_empty(), "nothing has");
    for (number, owner) in [(1, "me"), (2, "you"), (3, "me")] {
        created(store, number, owner).await;
        ended(store, guid(number), 20 + i64::from(number)).await;
    }
    assert_eq!(recent_ends(store, "me", no_owner).await, [at(21), at(23)]);
    assert_eq!(recent_ends(store, "you", no_owner).await, [at(22)]);
    for full in [Ceilings { job_type: 0, ..ROOM }, Ceilings { system: 0, ..ROOM }] {
        assert_eq!(recent_ends(store, "me", full).await, [at(21), at(22), at(23)]);
    }
}

pub async fn only_the_most_recent_ends_are_kept(store: &impl JobStore) {
    let last = 20 + i64::try_from(ENDS_KEPT).expect("a few");
    for (number, second) in (1..).zip(19..=last) {
        created(store, number, "me").await;
        ended(store, guid(number), second).await;
    }
    let kept: Vec<Timestamp> = (21..=last).map(at).collect();
    assert_eq!(recent_ends(store, "me", Ceilings { owner: 0, ..ROOM }).await, kept);
    assert_eq!(recent_ends(store, "me", Ceilings { system: 0, ..ROOM }).await, kept);
}

pub async fn a_repeated_request_finds_its_job(store: &impl JobStore) {
    assert_eq!(store.create(&keyed(1, "me", "k", "f")).await.unwrap(), Created::New);
    assert_eq!(store.create(&keyed(2, "me", "k", "f")).await.unwrap(), Created::Before(guid(1)));
    assert!(matches!(store.job(guid(2)).await, Err(PortError::NotFound)));
    let known = store.remembered(&Owner("me".into()), "k", at(0)).await.unwrap();
    assert_eq!(known, Some((guid(1), "f".to_owned())));
}

pub async fn a_repeated_request_finds_its_job_even_at_a_ceiling(store: &impl JobStore) {
    let one = Ceilings { owner: 1, job_type: 1, system: 1 };
    assert_eq!(store.create(&with(one, keyed(1, "me", "k", "f"))).await.unwrap(), Created::New);
    assert_eq!(store.create(&with(one, keyed(2, "me", "k", "f"))).await.unwrap(), Created::Before(guid(1)));
    let other = store.create(&with(one, keyed(3, "me", "k", "g"))).await;
    assert!(matches!(other, Err(CreateError::KeyReused)));
}

pub async fn a_key_used_for_another_request_is_refused(store: &impl JobStore) {
    assert_eq!(store.create(&keyed(1, "me", "k", "f")).await.unwrap(), Created::New);
    assert!(matches!(store.create(&keyed(2, "me", "k", "g")).await, Err(CreateError::KeyReused)));
    assert!(matches!(store.job(guid(2)).await, Err(PortError::NotFound)));
}

pub async fn a_key_belongs_to_one_owner(store: &impl JobStore) {
    assert_eq!(store.create(&keyed(1, "me", "k", "f")).await.unwrap(), Created::New);
    assert_eq!(store.create(&keyed(2, "you", "k", "g")).await.unwrap(), Created::New);
    assert_eq!(store.remembered(&Owner("she".into()), "k", at(0)).await.unwrap(), None);
}

pub async fn a_key_is_forgotten_when_it_expires(store: &impl JobStore) {
    assert_eq!(store.create(&keyed(1, "me", "k", "f")).await.unwrap(), Created::New);
    let me = Owner("me".into());
    assert!(store.remembered(&me, "k", at(99)).await.unwrap().is_some());
    assert_eq!(store.remembered(&me, "k", at(100)).await.unwrap(), None);
    let mut later = keyed(2, "me", "k", "g");
    later.job.created_at = at(100);
    if let Some(idempotency) = &mut later.idempotency {
        idempotency.expires_at = at(200);
    }
    assert_eq!(store.create(&later).await.unwrap(), Created::New);
    assert_eq!(store.remembered(&me, "k", at(150)).await.unwrap(), Some((guid(2), "g".to_owned())));
}

pub async fn concurrent_repeats_of_a_request_create_one_job(store: &impl JobStore) {
    let ceilings = Ceilings { system: 3, ..ROOM };
    let jobs: Vec<NewJob> = (1..=20).map(|number| with(ceilings, keyed(number, "me", "k", "f"))).collect();
    let results = join_all(jobs.iter().map(|new| store.create(new))).await;
    let mut new = jobs.iter().zip(&results).filter(|(_, result)| matches!(result, Ok(Created::New)));
    let (winner, _) = new.next().expect("one is new");
    assert!(new.next().is_none(), "and only one");
    let others =
        results.iter().filter(|result| matches!(result, Ok(Created::Before(job)) if *job == winner.job.job_guid));
    assert_eq!(others.count(), 19);
    // The others took no slots.
    assert_eq!(store.create(&with(ceilings, new_job(21, "you"))).await.unwrap(), Created::New);
    assert_eq!(store.create(&with(ceilings, new_job(22, "you"))).await.unwrap(), Created::New);
    assert!(is_full(&store.create(&with(ceilings, new_job(23, "you"))).await, Admission::SystemFull));
}
