//! The contract of [`UploadStore`].

use crate::model::keys;
use uuid::Uuid;

use super::{at, run_checks};
use crate::model::ids::{FileGuid, Owner};
use crate::model::upload::{Multipart, Upload, UploadState};
use crate::ports::{PortError, UploadStore};

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
        a_ready_upload_is_not_removed,
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
            store.remove_unfinished(pending.file_guid).await.unwrap();
            assert!(matches!(store.upload(pending.file_guid, at(0)).await, Err(PortError::NotFound)));
        }
        let late = store.mark_ready(pending.file_guid, "\"e\"").await;
        assert!(matches!(late, Err(PortError::NotFound)), "it does not come back: {late:?}");
    }
}

async fn a_ready_upload_is_not_removed(store: &impl UploadStore) {
    let pending = upload(1, in_parts());
    store.create(&pending).await.unwrap();
    store.mark_ready(pending.file_guid, "\"e\"").await.unwrap();
    assert!(matches!(store.remove_unfinished(pending.file_guid).await, Err(PortError::Changed)));
    assert!(store.upload(pending.file_guid, at(0)).await.is_ok());
}
