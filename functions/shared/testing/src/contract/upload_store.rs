//! The contract of [`UploadStore`].

use rowmill_core::model::keys;
use uuid::Uuid;

use super::{at, run_checks};
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::upload::{FetchBegun, FetchFailure, Multipart, Origin, Upload, UploadState};
use rowmill_core::ports::{PortError, UploadStore};

/// Checks an [`UploadStore`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn upload_store<S: UploadStore>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        an_upload_reads_back_as_it_was_created,
        an_upload_that_is_created_again_does_not_change,
        a_missing_upload_is_not_found,
        an_expired_upload_is_not_found,
        an_upload_can_be_marked_ready_again,
        an_unfinished_upload_can_be_removed,
        a_fetch_begins_once,
        an_upload_that_cannot_be_fetched_keeps_the_first_reason_and_no_url,
        what_is_only_needed_to_fetch_a_file_is_forgotten,
    );
}

fn upload(number: u128, state: UploadState) -> Upload {
    let file_guid = FileGuid(Uuid::from_u128(number));
    Upload {
        file_guid,
        owner: Owner("me".into()),
        file_name: Some("größe.csv".into()),
        content_type: "text/csv".into(),
        size: u64::MAX,
        sha256: Some("00ff".into()),
        key: keys::upload(file_guid),
        state,
        origin: None,
        created_at: at(0),
        expires_at: at(100),
    }
}

fn in_parts() -> UploadState {
    UploadState::Pending { multipart: Some(Multipart { id: "m".into(), part_size: u64::MAX }) }
}

async fn an_upload_reads_back_as_it_was_created(store: &impl UploadStore) {
    let multipart = in_parts();
    let ready = UploadState::Ready { etag: "\"e\"".into() };
    for (number, state) in (1..).zip([UploadState::Pending { multipart: None }, multipart, ready]) {
        let full = upload(number, state);
        let upload = if number == 1 { Upload { file_name: None, sha256: None, ..full } } else { full };
        store.create(&upload).await.unwrap();
        assert_eq!(store.upload(upload.file_guid, at(0)).await.unwrap(), upload);
    }
}

async fn an_upload_that_is_created_again_does_not_change(store: &impl UploadStore) {
    let pending = upload(1, UploadState::Pending { multipart: None });
    store.create(&pending).await.unwrap();
    store.mark_ready(pending.file_guid, "\"e\"").await.unwrap();
    store.create(&Upload { size: 7, ..pending.clone() }).await.unwrap();
    let ready = Upload { state: UploadState::Ready { etag: "\"e\"".into() }, ..pending.clone() };
    assert_eq!(store.upload(pending.file_guid, at(0)).await.unwrap(), ready);
}

async fn a_missing_upload_is_not_found(store: &impl UploadStore) {
    let nobody = FileGuid(Uuid::from_u128(1));
    assert!(matches!(store.upload(nobody, at(0)).await, Err(PortError::NotFound)));
    assert!(matches!(store.mark_ready(nobody, "\"e\"").await, Err(PortError::NotFound)));
    assert!(matches!(store.upload(nobody, at(0)).await, Err(PortError::NotFound)), "marking it creates none");
}

async fn an_expired_upload_is_not_found(store: &impl UploadStore) {
    let upload = upload(1, UploadState::Pending { multipart: None });
    store.create(&upload).await.unwrap();
    assert!(store.upload(upload.file_guid, at(99)).await.is_ok());
    assert!(matches!(store.upload(upload.file_guid, at(100)).await, Err(PortError::NotFound)));
}

async fn an_upload_can_be_marked_ready_again(store: &impl UploadStore) {
    let pending = upload(1, in_parts());
    store.create(&pending).await.unwrap();
    for _ in 0..2 {
        store.mark_ready(pending.file_guid, "\"e\"").await.unwrap();
        let ready = Upload { state: UploadState::Ready { etag: "\"e\"".into() }, ..pending.clone() };
        assert_eq!(store.upload(pending.file_guid, at(0)).await.unwrap(), ready);
    }
}

async fn an_unfinished_upload_can_be_removed(store: &impl UploadStore) {
    for (number, state) in (1..).zip([in_parts(), UploadState::Pending { multipart: None }]) {
        let pending = upload(number, state);
        store.create(&pending).await.unwrap();
        for _ in 0..2 {
            store.remove(pending.file_guid).await.unwrap();
            assert!(matches!(store.upload(pending.file_guid, at(0)).await, Err(PortError::NotFound)));
        }
        let late = store.mark_ready(pending.file_guid, "\"e\"").await;
        assert!(matches!(late, Err(PortError::NotFound)), "it does not come back: {late:?}");
    }
}

fn fetched(number: u128) -> Upload {
    let origin = Some(Origin::at("https://example.com/a.csv?key=secret"));
    Upload { size: 0, sha256: None, origin, ..upload(number, UploadState::Pending { multipart: None }) }
}

fn begun() -> FetchBegun {
    let multipart = Multipart { id: "m".into(), part_size: 5 };
    FetchBegun { size: 7, content_type: "text/plain".into(), validator: Some("\"v\"".into()), multipart }
}

fn no_more(upload: &Upload) -> Option<Origin> {
    upload.origin.clone().map(|origin| Origin { url: None, validator: None, ..origin })
}

async fn a_fetch_begins_once(store: &impl UploadStore) {
    let waiting = fetched(1);
    store.create(&waiting).await.unwrap();
    assert_eq!(store.upload(waiting.file_guid, at(0)).await.unwrap(), waiting);
    for _ in 0..2 {
        store.begin_fetch(waiting.file_guid, &begun()).await.unwrap();
    }
    let FetchBegun { size, content_type, validator, multipart } = begun();
    let origin = waiting.origin.clone().map(|origin| Origin { validator, ..origin });
    let state = UploadState::Pending { multipart: Some(multipart) };
    let found = store.upload(waiting.file_guid, at(0)).await.unwrap();
    assert_eq!(found, Upload { size, content_type, state, origin, ..waiting.clone() });
    let multipart = Multipart { id: "other".into(), part_size: 5 };
    let other = FetchBegun { multipart, ..begun() };
    assert!(matches!(store.begin_fetch(waiting.file_guid, &other).await, Err(PortError::Changed)));
    assert_eq!(store.upload(waiting.file_guid, at(0)).await.unwrap(), found);
    let nobody = store.begin_fetch(FileGuid(Uuid::from_u128(2)), &begun()).await;
    assert!(matches!(nobody, Err(PortError::NotFound)));
}

async fn an_upload_that_cannot_be_fetched_keeps_the_first_reason_and_no_url(store: &impl UploadStore) {
    let failure = |code: &str| FetchFailure { code: code.into(), detail: "It has no such file.".into() };
    for (number, has_begun) in [(1, false), (2, true)] {
        let waiting = fetched(number);
        store.create(&waiting).await.unwrap();
        if has_begun {
            store.begin_fetch(waiting.file_guid, &begun()).await.unwrap();
        }
        store.fail(waiting.file_guid, &failure("first")).await.unwrap();
        store.fail(waiting.file_guid, &failure("second")).await.unwrap();
        let failed = store.upload(waiting.file_guid, at(0)).await.unwrap();
        assert_eq!((&failed.state, &failed.origin), (&UploadState::Failed(failure("first")), &no_more(&waiting)));
        assert!(matches!(store.begin_fetch(waiting.file_guid, &begun()).await, Err(PortError::Changed)));
        store.remove(waiting.file_guid).await.unwrap();
        assert!(matches!(store.fail(waiting.file_guid, &failure("late")).await, Err(PortError::NotFound)));
    }
}

async fn what_is_only_needed_to_fetch_a_file_is_forgotten(store: &impl UploadStore) {
    let waiting = fetched(1);
    store.create(&waiting).await.unwrap();
    store.begin_fetch(waiting.file_guid, &begun()).await.unwrap();
    store.mark_ready(waiting.file_guid, "\"e\"").await.unwrap();
    let ready = store.upload(waiting.file_guid, at(0)).await.unwrap();
    assert_eq!((&ready.state, &ready.origin), (&UploadState::Ready { etag: "\"e\"".into() }, &no_more(&waiting)));
    let late = FetchFailure { code: "late".into(), detail: String::new() };
    assert!(matches!(store.fail(waiting.file_guid, &late).await, Err(PortError::Changed)));
}
