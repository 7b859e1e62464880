//! Uploads that are not complete: what is stored of them, links to send the rest, and aborts that meet crashes and
//! completions.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use acceptance::faults::Death;
use acceptance::use_cases::Limits;
use acceptance::world::World;
use bytes::Bytes;
use rowmill_api::request::{AnnounceRequest, SignPartsRequest};
use rowmill_api::upload::{PartRange, UploadStatus, UploadView};
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::keys;
use rowmill_core::model::outstanding::{OUTSTANDING_FOR, OutstandingLimits};
use rowmill_core::model::upload::{Upload, UploadState};
use rowmill_core::ports::{Clock, MultipartObjects, Objects, PortError, UploadStore};
use upload::upload::{UploadError, UploadLimits};
use uuid::Uuid;

/// A world in which files of more than 10 bytes are sent in parts of 10.
struct Bench(World);

const LIMITS: OutstandingLimits = OutstandingLimits { uploads: 2, bytes: 100 };

impl Deref for Bench {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

impl Bench {
    fn new() -> Self {
        let uploads =
            UploadLimits { single_put_max_bytes: 10, part_bytes: 10, outstanding: LIMITS, ..UploadLimits::default() };
        Self(World::new(Limits { uploads, ..Limits::default() }))
    }

    async fn announce(&self, size: u64) -> UploadView {
        let request =
            AnnounceRequest { file_name: "a.csv".to_owned(), content_type: "text/csv".to_owned(), size, sha256: None };
        self.uploads.announce(&owner(), &request).await.unwrap()
    }

    async fn multipart(&self, file: FileGuid) -> String {
        let upload = self.upload_rows.upload(file, self.clock.now()).await.unwrap();
        let UploadState::Pending { multipart: Some(multipart) } = upload.state else { panic!("{upload:?}") };
        multipart.id
    }

    async fn send_parts(&self, file: FileGuid, parts: &[(u32, usize)]) {
        let multipart = self.multipart(file).await;
        for (number, size) in parts {
            self.objects.store_part(&multipart, *number, vec![b'x'; *size].into()).unwrap();
        }
    }

    async fn sign(&self, file: FileGuid, from: Option<u32>) -> Result<UploadView, UploadError> {
        self.uploads.sign(&owner(), file, SignPartsRequest { from }).await
    }

    fn is_outstanding(&self, file: FileGuid) -> bool {
        self.quotas.outstanding(&owner()).iter().any(|upload| upload.file_guid == file)
    }

    /// Checks that nothing is left of an upload.
    async fn is_gone(&self, file: FileGuid, multipart: &str) {
        assert!(!self.is_outstanding(file), "its bytes are given back");
        let row = self.upload_rows.upload(file, self.clock.now()).await;
        assert!(matches!(row, Err(PortError::NotFound)), "{row:?}");
        let parts = self.objects.parts(&keys::upload(file), multipart).await;
        assert!(matches!(parts, Err(PortError::NotFound)), "{parts:?}");
        assert!(self.objects.head(&keys::upload(file)).await.is_err());
    }
}

fn owner() -> Owner {
    Owner("me".to_owned())
}

fn numbers(view: &UploadView) -> Vec<u32> {
    view.parts.as_ref().unwrap().iter().map(|part| part.part_number).collect()
}

#[tokio::test]
async fn what_is_stored_is_shown_and_only_the_rest_is_signed_again() {
    let bench = Bench::new();
    let upload = bench.announce(45).await;
    let file = upload.file_guid;
    assert_eq!((numbers(&upload), upload.part_size), (vec![1, 2, 3, 4, 5], Some(10)));
    let empty = bench.uploads.show(&owner(), file).await.unwrap();
    assert_eq!((empty.bytes_stored, empty.parts_stored), (Some(0), Some(vec![])));
    // Part 4 has a wrong length: it counts as missing.
    bench.send_parts(file, &[(1, 10), (2, 10), (5, 5), (4, 3)]).await;
    let shown = bench.uploads.show(&owner(), file).await.unwrap();
    let stored = [(1, 2), (5, 5)].map(|(first, last)| PartRange { first, last });
    assert_eq!((shown.bytes_stored, shown.parts_stored.as_deref()), (Some(25), Some(&stored[..])));
    assert_eq!((shown.parts, shown.part_size), (None, Some(10)));
    let signed = bench.sign(file, None).await.unwrap();
    assert_eq!((numbers(&signed), signed.next_part, signed.bytes_stored), (vec![3, 4], None, Some(25)));
    assert_eq!(signed.parts.as_ref().unwrap()[0].size, 10);
    assert_eq!(numbers(&bench.sign(file, Some(4)).await.unwrap()), [4]);
    assert_eq!(numbers(&bench.sign(file, Some(99)).await.unwrap()), [0; 0]);
    for from in [0, 10_001] {
        let wrong = bench.sign(file, Some(from)).await;
        assert!(matches!(wrong, Err(UploadError::Field { field: "from", .. })), "{wrong:?}");
    }
    let theirs = Owner("them".to_owned());
    let stolen = bench.uploads.sign(&theirs, file, SignPartsRequest::default()).await;
    assert!(matches!(stolen, Err(UploadError::Unknown(_))));
    assert!(matches!(bench.uploads.delete(&theirs, file).await, Err(UploadError::Unknown(_))));

    bench.send_parts(file, &[(3, 10), (4, 10)]).await;
    assert_eq!(numbers(&bench.sign(file, None).await.unwrap()), [0; 0], "complete it now");
    bench.uploads.complete(&owner(), file).await.unwrap();
    let ready = bench.uploads.show(&owner(), file).await.unwrap();
    assert_eq!((ready.status, ready.bytes_stored), (UploadStatus::Ready.into(), Some(45)));
    assert!(matches!(bench.sign(file, None).await, Err(UploadError::Ready(_))));
    bench.uploads.delete(&owner(), file).await.unwrap();
    bench.is_gone(file, "none").await;
}

#[tokio::test]
async fn an_upload_by_a_single_request_gets_its_request_again_until_it_is_stored() {
    let bench = Bench::new();
    let file = bench.announce(5).await.file_guid;
    let signed = bench.sign(file, None).await.unwrap();
    assert!(signed.upload.is_some() && signed.parts.is_none() && signed.bytes_stored == Some(0));
    bench.objects.put(&keys::upload(file), "text/csv", Bytes::from_static(b"12345"), None).await.unwrap();
    assert!(matches!(bench.sign(file, None).await, Err(UploadError::Ready(_))));
    assert!(!bench.is_outstanding(file));
    let other = bench.announce(5).await.file_guid;
    bench.uploads.delete(&owner(), other).await.unwrap();
    bench.is_gone(other, "none").await;
}

#[tokio::test]
async fn a_deletion_frees_the_quota_at_once() {
    let bench = Bench::new();
    let first = bench.announce(45).await.file_guid;
    bench.announce(5).await;
    let request =
        AnnounceRequest { file_name: "a.csv".to_owned(), content_type: "text/csv".to_owned(), size: 50, sha256: None };
    let full = bench.uploads.announce(&owner(), &request).await;
    assert!(matches!(full, Err(UploadError::TooMany { .. })));
    bench.send_parts(first, &[(1, 10)]).await;
    let multipart = bench.multipart(first).await;
    bench.uploads.delete(&owner(), first).await.unwrap();
    bench.is_gone(first, &multipart).await;
    bench.uploads.announce(&owner(), &request).await.unwrap();
    assert!(matches!(bench.uploads.delete(&owner(), first).await, Err(UploadError::Unknown(_))), "it is gone");
}

#[tokio::test]
async fn a_death_at_any_call_of_a_deletion_leaves_what_a_repeated_one_removes() {
    for death in [Death::Before, Death::After] {
        for size in [45, 5] {
            for call in 0.. {
                let bench = Bench::new();
                let file = bench.announce(size).await.file_guid;
                let multipart = match size {
                    45 => {
                        bench.send_parts(file, &[(1, 10), (3, 10)]).await;
                        bench.multipart(file).await
                    }
                    _ => "none".to_owned(),
                };
                bench.faults.plan(call, death);
                let died = bench.mortal_uploads.delete(&owner(), file).await.is_err();
                if bench.faults.is_pending() {
                    assert!(call > 3, "a deletion has more calls");
                    break;
                }
                bench.faults.revive();
                assert!(died, "call {call}");
                // As long as anything counts or is stored, the row is there, so that the request can be repeated.
                match bench.uploads.delete(&owner(), file).await {
                    Ok(()) | Err(UploadError::Unknown(_)) => bench.is_gone(file, &multipart).await,
                    Err(error) => panic!("{death:?} {call}: {error}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_deletion_that_meets_a_completion_leaves_nothing() {
    for deletion_is_frozen in [true, false] {
        for call in 0..12 {
            let bench = Arc::new(Bench::new());
            let file = bench.announce(25).await.file_guid;
            bench.send_parts(file, &[(1, 10), (2, 10), (3, 5)]).await;
            let multipart = bench.multipart(file).await;
            let other = Arc::clone(&bench);
            bench.faults.freeze(call, async move {
                match deletion_is_frozen {
                    true => drop(other.uploads.complete(&owner(), file).await),
                    false => other.uploads.delete(&owner(), file).await.unwrap(),
                }
            });
            let frozen = match deletion_is_frozen {
                true => bench.mortal_uploads.delete(&owner(), file).await.err(),
                false => bench.mortal_uploads.complete(&owner(), file).await.err(),
            };
            let was_frozen = !bench.faults.thaw();
            // Both ends are told as they are: what was deleted is not called incomplete.
            match &frozen {
                None => {}
                Some(UploadError::Aborted(_) | UploadError::Unknown(_)) if !deletion_is_frozen => {}
                other => panic!("{deletion_is_frozen}, call {call}: {other:?}"),
            }
            if deletion_is_frozen || was_frozen {
                bench.is_gone(file, &multipart).await;
            }
        }
    }
}

#[tokio::test]
async fn a_completion_that_died_before_it_marked_the_upload_is_noticed() {
    let bench = Bench::new();
    let file = bench.announce(25).await.file_guid;
    bench.send_parts(file, &[(1, 10), (2, 10), (3, 5)]).await;
    let multipart = bench.multipart(file).await;
    let key = keys::upload(file);
    let parts = bench.objects.parts(&key, &multipart).await.unwrap();
    bench.objects.complete_multipart(&key, &multipart, &parts).await.unwrap();
    let shown = bench.uploads.show(&owner(), file).await.unwrap();
    assert_eq!((shown.status, shown.bytes_stored), (UploadStatus::Ready.into(), Some(25)));
    assert!(!bench.is_outstanding(file));
}

#[tokio::test]
async fn an_upload_that_is_resumed_after_its_day_counts_as_outstanding_again() {
    let bench = Bench::new();
    let file = bench.announce(45).await.file_guid;
    bench.clock.advance(OUTSTANDING_FOR + Duration::from_secs(1));
    // A further announcement that needs the room drops it.
    let [second, third] = [bench.announce(45).await.file_guid, bench.announce(45).await.file_guid];
    let full = bench.sign(file, None).await;
    assert!(matches!(full, Err(UploadError::TooMany { .. })), "{full:?}");
    bench.uploads.delete(&owner(), second).await.unwrap();
    assert_eq!(numbers(&bench.sign(file, None).await.unwrap()).len(), 5);
    let counted = bench.quotas.outstanding(&owner()).into_iter().find(|upload| upload.file_guid == file).unwrap();
    assert_eq!((counted.bytes, counted.until), (45, bench.clock.now() + OUTSTANDING_FOR));
    assert!(bench.is_outstanding(third));
}

#[tokio::test]
async fn a_dropped_file_is_deleted_unless_another_one_lies_in_its_place() {
    let bench = Bench::new();
    let key = "inbox/import/daily.csv";
    let etag = bench.objects.put(key, "text/csv", Bytes::from_static(b"tuesday"), None).await.unwrap();
    let announced = bench.announce(5).await.file_guid;
    let announced = bench.upload_rows.upload(announced, bench.clock.now()).await.unwrap();
    let files = [("\"monday\"", 1), (etag.as_str(), 2)].map(|(etag, number)| {
        let state = UploadState::Ready { etag: etag.to_owned() };
        Upload { file_guid: FileGuid(Uuid::from_u128(number)), key: key.to_owned(), state, ..announced.clone() }
    });
    for file in &files {
        bench.upload_rows.create(file).await.unwrap();
    }
    bench.uploads.delete(&owner(), files[0].file_guid).await.unwrap();
    assert!(bench.objects.head(key).await.is_ok(), "the later file stays");
    bench.uploads.delete(&owner(), files[1].file_guid).await.unwrap();
    assert!(bench.objects.head(key).await.is_err());
}
