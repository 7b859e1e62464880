//! The contracts of [`RequestCounts`], [`Blocks`] and [`OutstandingUploads`].

use std::ops::Deref;

use futures::future::join_all;
use uuid::Uuid;

use super::{at, run_checks};
use rowmill_core::model::blocks::Principal;
use rowmill_core::model::ids::{FileGuid, Owner, RunId};
use rowmill_core::model::outstanding::{OutstandingFull, OutstandingLimits, OutstandingUpload};
use rowmill_core::model::request_limits::{RequestLimits, RequestsCounted};
use rowmill_core::ports::{
    Block, Blocks, Counted, OutstandingError, OutstandingUploads, RequestCounts, RequestToCount,
};

/// Checks a [`RequestCounts`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn request_counts<S: RequestCounts>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        requests_are_counted_up_to_the_limit_of_a_minute,
        requests_are_counted_up_to_the_limit_of_an_hour,
        every_principal_and_every_route_has_its_own_count,
        a_repeated_request_is_counted_once,
        concurrent_requests_are_counted_exactly,
        a_limit_of_zero_refuses_every_request,
    );
}

/// An operator, who blocks principals.
#[allow(async_fn_in_trait, reason = "only tests implement it")]
pub trait Operator: Deref<Target: Blocks> {
    /// Blocks a principal, or lifts its block.
    async fn set_block(&self, principal: &Principal, block: Option<Block>);
}

/// Checks a [`Blocks`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn blocks<S: Operator>(make: impl AsyncFn() -> S) {
    run_checks!(make, a_block_is_read_until_it_is_lifted);
}

/// Checks an [`OutstandingUploads`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn outstanding_uploads<S: OutstandingUploads>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        uploads_are_outstanding_up_to_their_number,
        uploads_are_outstanding_up_to_their_bytes,
        a_removed_upload_makes_room,
        an_upload_that_no_longer_counts_makes_room,
        many_uploads_that_no_longer_count_make_room,
        an_upload_that_is_added_or_removed_again_changes_nothing,
        concurrent_uploads_are_added_exactly,
        every_owner_has_outstanding_uploads_of_its_own,
    );
}

fn owner(name: &str) -> Principal {
    Principal::Owner(Owner(name.into()))
}

fn request(number: u32, second: i64) -> RequestToCount {
    let [a, b, c, d] = number.to_be_bytes();
    let id = RunId::from_bytes([9, 9, 9, a, b, c, d]);
    RequestToCount { principal: owner("me"), operation: "createJob".into(), id, at: at(second) }
}

/// The start of a check is 40 s into a minute and 400 s into an hour.
// Both keep the second, so they are in the next minute and in the next hour.
const NEXT_MINUTE: i64 = 60;
const NEXT_HOUR: i64 = 3600;

const fn limits(per_minute: u32, per_hour: u32) -> RequestLimits {
    RequestLimits { per_minute, per_hour }
}

const fn yes(minute: u32, hour: u32) -> Counted {
    Counted::Yes(RequestsCounted { minute, hour })
}

const fn no(minute: u32, hour: u32) -> Counted {
    Counted::No(RequestsCounted { minute, hour })
}

async fn requests_are_counted_up_to_the_limit_of_a_minute(store: &impl RequestCounts) {
    let limits = limits(2, 10);
    assert_eq!(store.count(&request(1, 0), limits).await.unwrap(), yes(1, 1));
    assert_eq!(store.count(&request(2, 1), limits).await.unwrap(), yes(2, 2));
    assert_eq!(store.count(&request(3, 2), limits).await.unwrap(), no(2, 2));
    assert_eq!(store.count(&request(4, NEXT_MINUTE), limits).await.unwrap(), yes(1, 3));
}

async fn requests_are_counted_up_to_the_limit_of_an_hour(store: &impl RequestCounts) {
    let limits = limits(5, 2);
    assert_eq!(store.count(&request(1, 0), limits).await.unwrap(), yes(1, 1));
    assert_eq!(store.count(&request(2, NEXT_MINUTE), limits).await.unwrap(), yes(1, 2));
    assert_eq!(store.count(&request(3, 2 * NEXT_MINUTE), limits).await.unwrap(), no(0, 2));
    assert_eq!(store.count(&request(4, NEXT_HOUR), limits).await.unwrap(), yes(1, 1));
}

async fn every_principal_and_every_route_has_its_own_count(store: &impl RequestCounts) {
    let limits = limits(1, 1);
    let mine = request(1, 0);
    let address = Principal::of_address([192, 0, 2, 7].into());
    for one in [
        mine.clone(),
        RequestToCount { principal: owner("you"), ..mine.clone() },
        RequestToCount { principal: address, ..mine.clone() },
        RequestToCount { operation: "createUpload".into(), ..mine },
    ] {
        assert_eq!(store.count(&one, limits).await.unwrap(), yes(1, 1));
    }
}

async fn a_repeated_request_is_counted_once(store: &impl RequestCounts) {
    let limits = limits(2, 2);
    assert_eq!(store.count(&request(1, 0), limits).await.unwrap(), yes(1, 1));
    assert_eq!(store.count(&request(1, 0), limits).await.unwrap(), yes(1, 1));
    assert_eq!(store.count(&request(2, 0), limits).await.unwrap(), yes(2, 2));
    assert_eq!(store.count(&request(2, 0), limits).await.unwrap(), yes(2, 2), "at the limit, too");
    assert_eq!(store.count(&request(3, 0), limits).await.unwrap(), no(2, 2));
}

async fn concurrent_requests_are_counted_exactly(store: &impl RequestCounts) {
    let requests: Vec<_> = (0..50).map(|number| request(number, 0)).collect();
    let counts = join_all(requests.iter().map(|request| store.count(request, limits(20, 1000)))).await;
    let counted = counts.iter().filter(|counted| matches!(counted, Ok(Counted::Yes(_)))).count();
    assert_eq!(counted, 20, "{counts:?}");
}

async fn a_limit_of_zero_refuses_every_request(store: &impl RequestCounts) {
    assert_eq!(store.count(&request(1, 0), limits(0, 5)).await.unwrap(), no(0, 0));
    assert_eq!(store.count(&request(2, 0), limits(5, 0)).await.unwrap(), no(0, 0));
}

async fn a_block_is_read_until_it_is_lifted(store: &impl Operator) {
    let address = Principal::of_address([192, 0, 2, 7].into());
    for principal in [owner("größe of Rome"), address] {
        assert_eq!(store.block(&principal).await.unwrap(), None);
        for reason in [None, Some("sent bombs".to_owned())] {
            let block = Block { at: at(1), reason };
            store.set_block(&principal, Some(block.clone())).await;
            assert_eq!(store.block(&principal).await.unwrap(), Some(block));
        }
        assert_eq!(store.block(&owner("you")).await.unwrap(), None);
        store.set_block(&principal, None).await;
        assert_eq!(store.block(&principal).await.unwrap(), None);
    }
}

fn me() -> Owner {
    Owner("me".into())
}

fn upload(number: u128, bytes: u64, until: i64) -> OutstandingUpload {
    OutstandingUpload { file_guid: FileGuid(Uuid::from_u128(number)), bytes, until: at(until) }
}

const ROOM: OutstandingLimits = OutstandingLimits { uploads: 100, bytes: u64::MAX };

fn full(result: Result<(), OutstandingError>) -> OutstandingFull {
    let Err(OutstandingError::Full(full)) = result else { panic!("not full: {result:?}") };
    full
}

async fn uploads_are_outstanding_up_to_their_number(store: &impl OutstandingUploads) {
    let limits = OutstandingLimits { uploads: 2, ..ROOM };
    store.add(&me(), &upload(1, 5, 100), limits, at(0)).await.unwrap();
    store.add(&me(), &upload(2, 6, 90), limits, at(0)).await.unwrap();
    let refused = full(store.add(&me(), &upload(3, 1, 110), limits, at(0)).await);
    assert_eq!(refused, OutstandingFull { uploads: 2, bytes: 11, free_at: at(90) });
    store.add(&me(), &upload(3, 1, 110), OutstandingLimits { uploads: 3, ..ROOM }, at(0)).await.unwrap();
}

async fn uploads_are_outstanding_up_to_their_bytes(store: &impl OutstandingUploads) {
    let limits = OutstandingLimits { bytes: 10, ..ROOM };
    store.add(&me(), &upload(1, 6, 100), limits, at(0)).await.unwrap();
    let refused = full(store.add(&me(), &upload(2, 5, 100), limits, at(0)).await);
    assert_eq!(refused, OutstandingFull { uploads: 1, bytes: 6, free_at: at(100) });
    store.add(&me(), &upload(3, 4, 100), limits, at(0)).await.unwrap();
    full(store.add(&me(), &upload(4, 1, 100), limits, at(0)).await);
    full(store.add(&Owner("you".into()), &upload(5, 11, 100), limits, at(0)).await);
}

async fn a_removed_upload_makes_room(store: &impl OutstandingUploads) {
    let limits = OutstandingLimits { uploads: 1, bytes: 10 };
    store.add(&me(), &upload(1, 10, 100), limits, at(0)).await.unwrap();
    full(store.add(&me(), &upload(2, 10, 100), limits, at(0)).await);
    store.remove(&me(), upload(1, 0, 0).file_guid).await.unwrap();
    store.add(&me(), &upload(2, 10, 100), limits, at(0)).await.unwrap();
}

async fn an_upload_that_no_longer_counts_makes_room(store: &impl OutstandingUploads) {
    let limits = OutstandingLimits { uploads: 1, bytes: 10 };
    store.add(&me(), &upload(1, 10, 100), limits, at(0)).await.unwrap();
    full(store.add(&me(), &upload(2, 10, 200), limits, at(99)).await);
    store.add(&me(), &upload(2, 10, 200), limits, at(100)).await.unwrap();
    // The first one is gone: it gives nothing back a second time.
    store.remove(&me(), upload(1, 0, 0).file_guid).await.unwrap();
    full(store.add(&me(), &upload(3, 10, 200), limits, at(100)).await);
}

async fn many_uploads_that_no_longer_count_make_room(store: &impl OutstandingUploads) {
    for number in 0..100 {
        store.add(&me(), &upload(number, 1, 100), ROOM, at(0)).await.unwrap();
    }
    full(store.add(&me(), &upload(200, 1, 200), ROOM, at(0)).await);
    for number in 200..300 {
        store.add(&me(), &upload(number, 1, 200), ROOM, at(100)).await.unwrap();
    }
    full(store.add(&me(), &upload(300, 1, 200), ROOM, at(100)).await);
}

async fn an_upload_that_is_added_or_removed_again_changes_nothing(store: &impl OutstandingUploads) {
    let limits = OutstandingLimits { uploads: 2, bytes: 20 };
    for _ in 0..2 {
        store.add(&me(), &upload(1, 10, 100), limits, at(0)).await.unwrap();
    }
    store.add(&me(), &upload(2, 10, 100), limits, at(0)).await.unwrap();
    store.add(&me(), &upload(2, 10, 100), limits, at(0)).await.unwrap();
    for _ in 0..2 {
        store.remove(&me(), upload(1, 0, 0).file_guid).await.unwrap();
    }
    store.add(&me(), &upload(3, 10, 100), limits, at(0)).await.unwrap();
    full(store.add(&me(), &upload(4, 0, 100), limits, at(0)).await);
}

async fn concurrent_uploads_are_added_exactly(store: &impl OutstandingUploads) {
    let limits = OutstandingLimits { uploads: 10, ..ROOM };
    let (me, uploads) = (me(), (0..40).map(|number| upload(number, 1, 100)).collect::<Vec<_>>());
    let results = join_all(uploads.iter().map(|upload| store.add(&me, upload, limits, at(0)))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 10, "{results:?}");
}

async fn every_owner_has_outstanding_uploads_of_its_own(store: &impl OutstandingUploads) {
    let limits = OutstandingLimits { uploads: 1, ..ROOM };
    store.add(&me(), &upload(1, 1, 100), limits, at(0)).await.unwrap();
    store.add(&Owner("you".into()), &upload(2, 1, 100), limits, at(0)).await.unwrap();
    store.remove(&Owner("she".into()), upload(1, 0, 0).file_guid).await.unwrap();
    full(store.add(&me(), &upload(3, 1, 100), limits, at(0)).await);
}
