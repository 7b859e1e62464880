use super::fixtures::{guid, run};
use crate::contract::at;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::permit::{Permit, PermitSeen};
use rowmill_core::model::tally::ChunkAddress;
use rowmill_core::model::task::TaskId;
use rowmill_core::ports::JobStore;

const CHUNK: ChunkAddress = ChunkAddress { attempt: 1, tally: 3, index: 7 };

fn leased(token: u8) -> Checkpoint {
    Checkpoint::blank(CHUNK, at(1)).moved(run(token), at(2))
}

fn free(number: u32) -> PermitSeen {
    PermitSeen { job_type: "render".to_owned(), number, token: None }
}

fn permit(number: u32, job: u32, token: u8) -> Permit {
    Permit { number, task: TaskId { job: guid(job), chunk: CHUNK }, token: run(token) }
}

pub async fn a_lease_takes_its_permit(store: &impl JobStore) {
    assert!(store.permits("render").await.unwrap().is_empty());
    assert!(store.lease_with_permit(guid(1), &leased(1), &free(2)).await.unwrap());
    assert!(store.lease_with_permit(guid(2), &leased(2), &free(0)).await.unwrap());
    assert_eq!(store.permits("render").await.unwrap(), [permit(0, 2, 2), permit(2, 1, 1)]);
    assert!(store.permits("rende").await.unwrap().is_empty() && store.permits("renders").await.unwrap().is_empty());
    assert_eq!(store.checkpoint(guid(1), CHUNK).await.unwrap(), Some(leased(1)));
}

pub async fn a_permit_is_taken_only_as_seen_and_only_with_its_lease(store: &impl JobStore) {
    assert!(store.lease_with_permit(guid(1), &leased(1), &free(0)).await.unwrap());
    assert!(!store.lease_with_permit(guid(2), &leased(2), &free(0)).await.unwrap(), "it is taken");
    assert_eq!(store.checkpoint(guid(2), CHUNK).await.unwrap(), None);
    assert!(!store.lease_with_permit(guid(1), &leased(3), &free(1)).await.unwrap(), "the task is leased");
    assert_eq!(store.permits("render").await.unwrap(), [permit(0, 1, 1)]);
    let seen = |token| PermitSeen { token: Some(run(token)), ..free(0) };
    assert!(!store.lease_with_permit(guid(2), &leased(2), &seen(9)).await.unwrap());
    assert!(store.lease_with_permit(guid(2), &leased(2), &seen(1)).await.unwrap());
    assert_eq!(store.permits("render").await.unwrap(), [permit(0, 2, 2)]);
}

pub async fn a_permit_is_given_back_only_as_seen(store: &impl JobStore) {
    let of = permit(0, 1, 1);
    store.give_permit_back("render", &of).await.unwrap();
    assert!(store.lease_with_permit(guid(1), &leased(1), &free(0)).await.unwrap());
    for other in [permit(0, 1, 9), permit(0, 2, 1)] {
        store.give_permit_back("render", &other).await.unwrap();
    }
    assert_eq!(store.permits("render").await.unwrap(), [of]);
    store.give_permit_back("render", &of).await.unwrap();
    store.give_permit_back("render", &of).await.unwrap();
    assert!(store.permits("render").await.unwrap().is_empty());
    assert!(store.lease_with_permit(guid(2), &leased(2), &free(0)).await.unwrap());
}
