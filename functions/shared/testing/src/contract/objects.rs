//! The contract of [`Objects`].

use std::collections::BTreeMap;
use std::ops::Deref;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::run_checks;
use rowmill_core::ports::{ObjectErasures, Objects, PortError};

/// A bucket with an external writer.
pub trait Outsider: Deref<Target: Objects + ObjectErasures> {
    /// Stores an object with metadata.
    fn store(
        &self,
        key: &str,
        content_type: &str,
        metadata: BTreeMap<String, String>,
        bytes: Bytes,
    ) -> impl Future<Output = ()>;
}

/// Checks an [`Objects`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn objects<S: Outsider>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        an_object_reads_back_as_it_was_stored,
        a_missing_object_is_not_found,
        a_range_gives_its_bytes,
        a_range_past_the_end_gives_the_bytes_up_to_the_end,
        an_object_that_was_replaced_has_changed,
        storing_the_same_object_again_does_not_change_it,
        bytes_with_a_wrong_checksum_are_not_stored,
        an_object_of_several_mebibytes_is_stored_completely,
        an_object_has_its_media_type_and_no_notes,
        notes_on_an_object_can_be_read,
        objects_are_erased_by_the_beginning_of_their_keys,
    );
}

async fn put(store: &impl Outsider, key: &str, text: &'static str) -> String {
    store.put(key, "text/plain", Bytes::from_static(text.as_bytes()), None).await.unwrap()
}

async fn an_object_reads_back_as_it_was_stored(store: &impl Outsider) {
    for (key, text) in [("uploads/a", "hello"), ("results/b/1/ä.jsonl", "x"), ("uploads/empty", "")] {
        let etag = put(store, key, text).await;
        let head = store.head(key).await.unwrap();
        assert_eq!((head.size, &head.etag), (text.len() as u64, &etag));
        assert!(etag.starts_with('"') && etag.ends_with('"'), "{etag}");
        assert_eq!(store.read(key).await.unwrap(), text);
    }
}

async fn a_missing_object_is_not_found(store: &impl Outsider) {
    assert!(matches!(store.head("uploads/none").await, Err(PortError::NotFound)));
    assert!(matches!(store.read("uploads/none").await, Err(PortError::NotFound)));
    assert!(matches!(store.read_range("uploads/none", "\"e\"", 0..5).await, Err(PortError::NotFound)));
}

async fn a_range_gives_its_bytes(store: &impl Outsider) {
    let etag = put(store, "uploads/a", "0123456789").await;
    for (range, expected) in [(0..10, "0123456789"), (0..1, "0"), (3..7, "3456"), (9..10, "9"), (4..4, "")] {
        assert_eq!(store.read_range("uploads/a", &etag, range).await.unwrap(), expected);
    }
}

async fn a_range_past_the_end_gives_the_bytes_up_to_the_end(store: &impl Outsider) {
    let etag = put(store, "uploads/a", "0123456789").await;
    assert_eq!(store.read_range("uploads/a", &etag, 7..100).await.unwrap(), "789");
    assert_eq!(store.read_range("uploads/a", &etag, 10..20).await.unwrap(), "");
    assert_eq!(store.read_range("uploads/a", &etag, 50..60).await.unwrap(), "");
}

async fn an_object_that_was_replaced_has_changed(store: &impl Outsider) {
    let before = put(store, "uploads/a", "0123456789").await;
    let after = put(store, "uploads/a", "abcdefghij").await;
    assert_ne!(before, after);
    for range in [0..3, 4..4] {
        let read = store.read_range("uploads/a", &before, range).await;
        assert!(matches!(read, Err(PortError::Changed)), "{read:?}");
    }
    assert_eq!(store.read_range("uploads/a", &after, 0..3).await.unwrap(), "abc");
}

async fn storing_the_same_object_again_does_not_change_it(store: &impl Outsider) {
    let before = put(store, "uploads/a", "same").await;
    assert_eq!(put(store, "uploads/a", "same").await, before);
    assert_eq!(store.read_range("uploads/a", &before, 0..4).await.unwrap(), "same");
}

async fn bytes_with_a_wrong_checksum_are_not_stored(store: &impl Outsider) {
    let bytes = Bytes::from_static(b"hello");
    let right: [u8; 32] = Sha256::digest(&bytes).into();
    assert!(store.put("uploads/a", "text/plain", bytes.clone(), Some(right)).await.is_ok());
    let wrong = store.put("uploads/b", "text/plain", bytes, Some([7; 32])).await;
    assert!(matches!(wrong, Err(PortError::Changed)), "{wrong:?}");
    assert!(matches!(store.head("uploads/b").await, Err(PortError::NotFound)));
}

async fn an_object_of_several_mebibytes_is_stored_completely(store: &impl Outsider) {
    let bytes: Bytes = (0..3_000_000_u32).map(|n| n.to_le_bytes()[(n % 3) as usize]).collect::<Vec<u8>>().into();
    let etag = store.put("uploads/big", "text/csv", bytes.clone(), None).await.unwrap();
    assert_eq!(store.head("uploads/big").await.unwrap().size, 3_000_000);
    let range = store.read_range("uploads/big", &etag, 1_000_000..2_500_000).await.unwrap();
    assert_eq!(range, bytes[1_000_000..2_500_000]);
}

async fn an_object_has_its_media_type_and_no_notes(store: &impl Outsider) {
    put(store, "results/a", "x").await;
    let head = store.head("results/a").await.unwrap();
    assert_eq!((head.content_type.as_deref(), head.metadata), (Some("text/plain"), BTreeMap::new()));
}

async fn notes_on_an_object_can_be_read(store: &impl Outsider) {
    let notes = [("rowmill-owner", "me"), ("rowmill-request", r#"{"params":{"delimiter":";"}}"#)];
    let notes: BTreeMap<String, String> =
        notes.into_iter().map(|(name, note)| (name.to_owned(), note.to_owned())).collect();
    store.store("inbox/import/a b+c.csv", "text/csv", notes.clone(), Bytes::from_static(b"id\n1\n")).await;
    let head = store.head("inbox/import/a b+c.csv").await.unwrap();
    assert_eq!((head.size, head.content_type.as_deref(), head.metadata), (5, Some("text/csv"), notes));
}

async fn objects_are_erased_by_the_beginning_of_their_keys(store: &impl Outsider) {
    let of_one: Vec<String> = (0..7).map(|number| format!("results/one/{number}/ä b+c.json")).collect();
    let of_others = ["results/oneself/1", "results/on", "uploads/one", "results/two/results/one/1"];
    for key in of_one.iter().map(String::as_str).chain(of_others) {
        put(store, key, "x").await;
    }
    let mut erased = 0;
    loop {
        match store.erase_objects("results/one/").await.unwrap() {
            0 => break,
            more => erased += more,
        }
    }
    assert_eq!(erased, of_one.len());
    for key in &of_one {
        assert!(matches!(store.head(key).await, Err(PortError::NotFound)), "{key}");
    }
    for key in of_others {
        assert_eq!(store.read(key).await.unwrap(), "x", "{key}");
    }
    for _ in 0..2 {
        store.erase_object("results/on").await.unwrap();
        assert!(matches!(store.head("results/on").await, Err(PortError::NotFound)));
    }
    assert_eq!(store.read("results/oneself/1").await.unwrap(), "x");
}
