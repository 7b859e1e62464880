use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rowmill_core::model::packing::{Packing, TextPacking};
use rowmill_core::model::spec::SourceFile;
use rowmill_core::ports::{ObjectHead, Objects, PortError, PortResult, patience};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::{Limits, ReadAhead, SourceReader, TextStream};

/// A file in a bucket whose reads end when the test says so.
#[derive(Default)]
struct Bucket {
    text: Vec<u8>,
    /// The reads that have begun and not ended, by the byte at which they begin.
    waiting: Mutex<BTreeMap<u64, oneshot::Sender<Result<(), PortError>>>>,
    held: Arc<Held>,
    /// The patience of each read.
    patience: Mutex<Vec<Option<Instant>>>,
}

/// Bytes of reads in flight, and of ranges that somebody still has.
#[derive(Default)]
struct Held {
    now: AtomicU64,
    most: AtomicU64,
}

/// Bytes that count as held until they are dropped.
struct Counted {
    bytes: Vec<u8>,
    held: Arc<Held>,
}

impl Counted {
    fn new(bytes: &[u8], held: &Arc<Held>) -> Self {
        let now = held.now.fetch_add(bytes.len() as u64, Ordering::SeqCst) + bytes.len() as u64;
        held.most.fetch_max(now, Ordering::SeqCst);
        Self { bytes: bytes.to_vec(), held: Arc::clone(held) }
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.held.now.fetch_sub(self.bytes.len() as u64, Ordering::SeqCst);
    }
}

impl Bucket {
    fn with(text: &[u8]) -> Arc<Self> {
        Arc::new(Self { text: text.to_vec(), ..Self::default() })
    }

    fn reader(self: &Arc<Self>, range_bytes: u64, reads: usize) -> SourceReader {
        SourceReader::new(self.clone(), self.file(), 0, ReadAhead { range_bytes, reads })
    }

    fn file(&self) -> SourceFile {
        SourceFile { file_guid: None, key: "k".to_owned(), etag: "e".to_owned(), size: self.text.len() as u64 }
    }

    /// Offsets of the reads in flight.
    fn waiting(&self) -> Vec<u64> {
        self.waiting.lock().unwrap().keys().copied().collect()
    }

    fn end(&self, start: u64, how: Result<(), PortError>) {
        self.waiting.lock().unwrap().remove(&start).expect("a read in flight").send(how).expect("somebody waits");
    }
}

#[async_trait]
impl Objects for Bucket {
    async fn head(&self, _key: &str) -> Result<ObjectHead, PortError> {
        unreachable!("only ranges are read")
    }

    async fn read_range(&self, _key: &str, _etag: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        let bytes = Counted::new(&self.text[range.start as usize..range.end as usize], &self.held);
        self.patience.lock().unwrap().push(patience::current());
        let (sender, end) = oneshot::channel();
        self.waiting.lock().unwrap().insert(range.start, sender);
        end.await.expect("the test says how it ends").map(|()| Bytes::from_owner(bytes))
    }

    async fn read(&self, _key: &str) -> Result<Bytes, PortError> {
        unreachable!("only ranges are read")
    }

    async fn put(&self, _key: &str, _of: &str, _bytes: Bytes, _sha256: Option<[u8; 32]>) -> PortResult<String> {
        unreachable!("only ranges are read")
    }
}

/// Lets all spawned reads go on as far as they can.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Polls this until it waits for a read, and gives it up.
async fn begin(work: impl Future) {
    tokio::select! {
        biased;
        _ = work => panic!("no read has ended"),
        () = settle() => {}
    }
}

#[tokio::test]
async fn ranges_are_handed_out_in_order_whichever_read_ends_first() {
    let bucket = Bucket::with(b"aabbccd");
    let mut reader = bucket.reader(2, 4);
    begin(reader.next()).await;
    assert_eq!(bucket.waiting(), [0, 2, 4, 6]);
    for start in [6, 2, 4] {
        bucket.end(start, Ok(()));
        begin(reader.next()).await;
    }
    bucket.end(0, Ok(()));
    for expected in ["aa", "bb", "cc", "d"] {
        assert_eq!(reader.next().await.unwrap().unwrap(), expected);
    }
    assert_eq!((reader.next().await.unwrap(), reader.offset()), (None, 7));
}

#[tokio::test]
async fn so_many_reads_are_in_flight_and_no_more_and_one_range_more_is_held() {
    for (reads, one_by_one) in [1, 2, 3, 7].into_iter().flat_map(|reads| [(reads, true), (reads, false)]) {
        let bucket = Bucket::with(&[b'x'; 1000]);
        let mut reader = bucket.reader(10, reads);
        begin(reader.next()).await;
        assert_eq!(bucket.waiting().len(), reads);
        for rest in (0..100).rev() {
            let ending = if one_by_one { bucket.waiting()[..1].to_vec() } else { bucket.waiting() };
            for start in ending.into_iter().rev() {
                bucket.end(start, Ok(()));
                settle().await;
            }
            let _used = reader.next().await.unwrap().unwrap();
            settle().await;
            let ahead = reads.min(rest);
            assert_eq!(bucket.held.now.load(Ordering::SeqCst), (ahead as u64 + 1) * 10);
            assert!(bucket.waiting().len() == ahead || !one_by_one);
        }
        assert_eq!(bucket.held.most.load(Ordering::SeqCst), (reads as u64 + 1) * 10);
    }
}

#[tokio::test]
async fn an_error_waits_for_the_ranges_before_it_and_its_range_is_read_again() {
    let bucket = Bucket::with(b"aabbccdd");
    let mut reader = bucket.reader(2, 3);
    begin(reader.next()).await;
    bucket.end(2, Err(PortError::Changed));
    bucket.end(4, Err(PortError::NotFound));
    begin(reader.next()).await;
    bucket.end(0, Ok(()));
    assert_eq!(reader.next().await.unwrap().unwrap(), "aa");
    assert!(matches!(reader.next().await, Err(PortError::Changed)));
    assert_eq!(reader.offset(), 2);
    settle().await;
    assert_eq!(bucket.held.now.load(Ordering::SeqCst), 0, "the reads behind the error are cancelled");
    begin(reader.next()).await;
    bucket.end(2, Ok(()));
    assert_eq!(reader.next().await.unwrap().unwrap(), "bb");
}

#[tokio::test]
async fn dropping_the_reader_cancels_all_reads() {
    let bucket = Bucket::with(&[b'x'; 100]);
    let mut reader = bucket.reader(10, 5);
    begin(reader.next()).await;
    bucket.end(0, Ok(()));
    bucket.end(30, Ok(()));
    drop(reader.next().await.unwrap());
    settle().await;
    assert_eq!(bucket.held.now.load(Ordering::SeqCst), 50);
    drop(reader);
    settle().await;
    assert_eq!(bucket.held.now.load(Ordering::SeqCst), 0);
    assert_eq!(Arc::strong_count(&bucket), 1, "no task is left");
}

#[tokio::test]
async fn a_careful_reader_reads_further_ahead_with_each_range() {
    let bucket = Bucket::with(&[b'x'; 1000]);
    let ahead = ReadAhead { range_bytes: 10, reads: 4 };
    let mut reader = SourceReader::careful(bucket.clone(), bucket.file(), 0, ahead);
    for (place, expected) in [0, 1, 2, 4, 4, 4].into_iter().enumerate() {
        let place = place as u64 * 10;
        begin(reader.next()).await;
        bucket.end(place, Ok(()));
        assert_eq!(reader.next().await.unwrap().unwrap().len(), 10);
        settle().await;
        assert_eq!(bucket.waiting().len(), expected, "behind the range at {place}");
    }
}

#[tokio::test]
async fn a_file_that_has_become_shorter_has_changed() {
    struct Short;

    #[async_trait]
    impl Objects for Short {
        async fn head(&self, _key: &str) -> Result<ObjectHead, PortError> {
            unreachable!("only ranges are read")
        }

        async fn read_range(&self, _key: &str, _etag: &str, range: Range<u64>) -> Result<Bytes, PortError> {
            Ok(Bytes::from_static(b"abc").slice(range.start as usize..3.min(range.end as usize)))
        }

        async fn read(&self, _key: &str) -> Result<Bytes, PortError> {
            unreachable!("only ranges are read")
        }

        async fn put(&self, _key: &str, _of: &str, _bytes: Bytes, _sha256: Option<[u8; 32]>) -> PortResult<String> {
            unreachable!("only ranges are read")
        }
    }

    let file = SourceFile { file_guid: None, key: "k".to_owned(), etag: "e".to_owned(), size: 4 };
    let mut reader = SourceReader::new(Arc::new(Short), file, 0, ReadAhead { range_bytes: 2, reads: 8 });
    assert_eq!(reader.next().await.unwrap().unwrap(), "ab");
    assert!(matches!(reader.next().await, Err(PortError::Changed)));
}

#[tokio::test]
async fn reads_in_tasks_and_threads_have_the_patience_of_their_reader() {
    let (bucket, until) = (Bucket::with(b"abcd"), Some(Instant::now()));
    let mut reader = bucket.reader(2, 2);
    patience::of(until, begin(reader.next())).await;
    assert_eq!(*bucket.patience.lock().unwrap(), [until, until]);

    let (bucket, packing) = (Bucket::with(b"abcd"), Packing::Text(TextPacking::default()));
    let open = async || TextStream::open(bucket.clone(), &bucket.file(), &packing, Limits::of_beginning(), 1);
    let mut text = patience::of(until, open()).await;
    while bucket.waiting().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    bucket.end(0, Ok(()));
    assert_eq!(text.next().await.unwrap().unwrap().bytes, "abcd");
    assert_eq!(*bucket.patience.lock().unwrap(), [until]);
}
