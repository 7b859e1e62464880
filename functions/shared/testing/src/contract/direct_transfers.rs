//! The contract of [`DirectTransfers`].

use std::ops::Deref;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::run_checks;
use rowmill_core::ports::{
    DirectTransfers, MultipartObjects, Objects, PART_MIN_BYTES, PortError, PresignedRequest, UploadedPart,
};

/// A client that sends presigned requests.
pub trait Client: Deref<Target: DirectTransfers + MultipartObjects + Objects> {
    /// Sends a request with a body. Returns whether it was accepted.
    fn send(&self, request: &PresignedRequest, body: Bytes) -> impl Future<Output = bool>;

    /// Sends a read request. Returns the body and the file name to save it under.
    fn get(&self, request: &PresignedRequest) -> impl Future<Output = Option<(Bytes, String)>>;
}

/// Checks a [`DirectTransfers`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn direct_transfers<S: Client>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        a_client_stores_an_object_with_a_presigned_request,
        a_presigned_request_replaces_no_object,
        a_presigned_request_names_its_object,
        parts_make_one_object,
        parts_are_listed_by_number_regardless_of_their_arrival,
        an_upload_in_parts_is_completed_once,
        an_aborted_upload_in_parts_is_gone,
        a_function_can_store_parts_itself,
        a_client_reads_an_object_with_a_presigned_request,
    );
}

const HOUR: Duration = Duration::from_secs(3600);
const KEY: &str = "uploads/direct";

fn bytes(size: usize, fill: u8) -> Bytes {
    vec![fill; size].into()
}

fn header<'a>(request: &'a PresignedRequest, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

async fn send_part(store: &impl Client, multipart: &str, number: u32, body: Bytes) {
    let request = store.presign_part(KEY, multipart, number, body.len() as u64, HOUR).await.unwrap();
    assert_eq!(request.method, "PUT");
    assert_eq!(header(&request, "content-length"), Some(body.len().to_string().as_str()));
    assert!(store.send(&request, body).await, "part {number}");
}

async fn a_client_stores_an_object_with_a_presigned_request(store: &impl Client) {
    let body = Bytes::from_static(b"code;name\n1;a\n");
    let sha256: [u8; 32] = Sha256::digest(&body).into();
    for (key, sha256) in [("uploads/unchecked", None), ("uploads/checked", Some(sha256))] {
        let request = store.presign_put(key, "text/csv", body.len() as u64, sha256, HOUR).await.unwrap();
        assert!(store.send(&request, body.clone()).await);
        assert_eq!(store.read(key).await.unwrap(), body);
        assert_eq!(store.head(key).await.unwrap().size, body.len() as u64);
    }
}

async fn a_presigned_request_replaces_no_object(store: &impl Client) {
    let request = store.presign_put(KEY, "text/csv", 5, None, HOUR).await.unwrap();
    assert_eq!(header(&request, "if-none-match"), Some("*"));
    assert!(store.send(&request, Bytes::from_static(b"first")).await);
    assert!(!store.send(&request, Bytes::from_static(b"other")).await);
    assert_eq!(store.read(KEY).await.unwrap(), "first");
}

async fn a_presigned_request_names_its_object(store: &impl Client) {
    let request = store.presign_put(KEY, "text/csv", 14, Some([7; 32]), HOUR).await.unwrap();
    assert_eq!(request.method, "PUT");
    assert_eq!(header(&request, "content-type"), Some("text/csv"));
    assert_eq!(header(&request, "content-length"), Some("14"));
}

async fn parts_make_one_object(store: &impl Client) {
    let multipart = store.begin_multipart(KEY, "text/csv").await.unwrap();
    send_part(store, &multipart, 1, bytes(PART_MIN_BYTES, b'a')).await;
    send_part(store, &multipart, 2, bytes(7, b'b')).await;
    let parts = store.parts(KEY, &multipart).await.unwrap();
    assert!(matches!(store.head(KEY).await, Err(PortError::NotFound)), "no object before the upload is completed");
    store.complete_multipart(KEY, &multipart, &parts).await.unwrap();
    let whole = store.read(KEY).await.unwrap();
    assert_eq!(whole.len(), PART_MIN_BYTES + 7);
    assert_eq!(&whole[PART_MIN_BYTES - 1..], b"abbbbbbb");
}

async fn parts_are_listed_by_number_regardless_of_their_arrival(store: &impl Client) {
    let multipart = store.begin_multipart(KEY, "text/csv").await.unwrap();
    assert_eq!(store.parts(KEY, &multipart).await.unwrap(), []);
    for number in [10, 2, 1] {
        send_part(store, &multipart, number, bytes(number as usize, b'x')).await;
    }
    let listed = store.parts(KEY, &multipart).await.unwrap();
    let sizes: Vec<_> = listed.iter().map(|part| (part.number, part.size)).collect();
    assert_eq!(sizes, [(1, 1), (2, 2), (10, 10)]);
    send_part(store, &multipart, 2, bytes(20, b'y')).await;
    let listed = store.parts(KEY, &multipart).await.unwrap();
    assert_eq!((listed.len(), listed[1].size), (3, 20), "a part that is sent again replaces the first one");
}

async fn an_upload_in_parts_is_completed_once(store: &impl Client) {
    let multipart = store.begin_multipart(KEY, "text/csv").await.unwrap();
    send_part(store, &multipart, 1, bytes(3, b'a')).await;
    let parts: Vec<UploadedPart> = store.parts(KEY, &multipart).await.unwrap();
    store.complete_multipart(KEY, &multipart, &parts).await.unwrap();
    assert!(matches!(store.parts(KEY, &multipart).await, Err(PortError::NotFound)));
    assert!(matches!(store.put_part(KEY, &multipart, 2, bytes(3, b'b')).await, Err(PortError::NotFound)));
    assert_eq!(store.read(KEY).await.unwrap(), "aaa");
}

async fn an_aborted_upload_in_parts_is_gone(store: &impl Client) {
    let multipart = store.begin_multipart(KEY, "text/csv").await.unwrap();
    let other = store.begin_multipart(KEY, "text/csv").await.unwrap();
    send_part(store, &multipart, 1, bytes(3, b'a')).await;
    send_part(store, &other, 1, bytes(5, b'b')).await;
    store.abort_multipart(KEY, &multipart).await.unwrap();
    assert!(matches!(store.parts(KEY, &multipart).await, Err(PortError::NotFound)));
    assert!(matches!(store.abort_multipart(KEY, &multipart).await, Err(PortError::NotFound)));
    let late = store.presign_part(KEY, &multipart, 2, 3, HOUR).await.unwrap();
    assert!(!store.send(&late, bytes(3, b'a')).await, "a link that was signed before stores nothing");
    let parts = store.parts(KEY, &other).await.unwrap();
    store.complete_multipart(KEY, &other, &parts).await.unwrap();
    assert!(matches!(store.abort_multipart(KEY, &other).await, Err(PortError::NotFound)));
    assert_eq!(store.read(KEY).await.unwrap(), "bbbbb", "a completed upload cannot be aborted");
}

async fn a_function_can_store_parts_itself(store: &impl Client) {
    let multipart = store.begin_multipart(KEY, "text/csv").await.unwrap();
    let first = store.put_part(KEY, &multipart, 1, bytes(PART_MIN_BYTES, b'a')).await.unwrap();
    let wrong = store.put_part(KEY, &multipart, 2, bytes(3, b'x')).await.unwrap();
    let second = store.put_part(KEY, &multipart, 2, bytes(2, b'b')).await.unwrap();
    assert_eq!((first.size, wrong.size, second.size), (PART_MIN_BYTES as u64, 3, 2));
    assert_eq!(store.parts(KEY, &multipart).await.unwrap(), [first.clone(), second.clone()], "the later part wins");
    store.complete_multipart(KEY, &multipart, &[first, second]).await.unwrap();
    assert_eq!(&store.read(KEY).await.unwrap()[PART_MIN_BYTES - 1..], b"abb");
}

async fn a_client_reads_an_object_with_a_presigned_request(store: &impl Client) {
    let body = Bytes::from_static(b"a,row\n1,7\n");
    store.put(KEY, "text/csv", body.clone(), None).await.unwrap();
    let request = store.presign_get(KEY, "text/csv", "failed \"rows\".csv", HOUR).await.unwrap();
    assert_eq!((request.method.as_str(), request.headers.len()), ("GET", 0), "a plain link can follow it");
    let (read, name) = store.get(&request).await.unwrap();
    assert_eq!((read, name.as_str()), (body, "failed _rows_.csv"), "unsafe characters are replaced");
}
