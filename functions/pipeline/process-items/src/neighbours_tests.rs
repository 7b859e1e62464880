#![expect(clippy::single_range_in_vec_init, reason = "each range is a read")]

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::{join_all, select_all};
use jiff::Timestamp;
use rowmill_core::items::input::SHARED_READ_MAX_BYTES;
use rowmill_core::model::ids::RunId;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode, StoredText};
use rowmill_core::ports::{Entropy, ObjectHead, Objects, PortError, PortResult};
use rowmill_core::text::{Chunk, ChunkMode};
use rowmill_testing::fixtures;
use rowmill_testing::in_memory::CountingEntropy;
use tokio::sync::Semaphore;

use crate::neighbours::{Neighbours, SharedObjects, SharedRead};

/// A file whose reads are noted.
struct Bucket {
    text: Bytes,
    reads: Mutex<Vec<Range<u64>>>,
    /// Errors of the next reads.
    failures: Mutex<VecDeque<PortError>>,
    /// Number of reads that may end.
    may_end: Semaphore,
}

impl Bucket {
    fn with(text: impl Into<Bytes>) -> Self {
        let (reads, failures) = (Mutex::default(), Mutex::default());
        Self { text: text.into(), reads, failures, may_end: Semaphore::new(1000) }
    }

    /// 10 bytes for each of these chunks.
    fn of_tens(chunks: u8) -> Self {
        Self::with((0..chunks).flat_map(|chunk| [b'a' + chunk; 10]).collect::<Vec<_>>())
    }

    fn reads(&self) -> Vec<Range<u64>> {
        self.reads.lock().unwrap().clone()
    }

    /// Reads the chunk of this message, as its run does.
    async fn read(&self, neighbours: &Neighbours, message: &ChunkMessage) -> Result<Bytes, PortError> {
        self.read_shared(neighbours.take(message), message).await
    }

    async fn read_shared(&self, shared: Option<Arc<SharedRead>>, message: &ChunkMessage) -> Result<Bytes, PortError> {
        let objects = SharedObjects { objects: self, shared: shared.as_deref() };
        objects.read_range("k", "e", range(message)).await
    }

    /// Reads all chunks side by side.
    async fn read_all(&self, messages: &[ChunkMessage]) -> Vec<Result<Bytes, PortError>> {
        let neighbours = Neighbours::of(messages);
        join_all(messages.iter().map(|message| self.read(&neighbours, message))).await
    }
}

#[async_trait]
impl Objects for Bucket {
    async fn head(&self, _key: &str) -> Result<ObjectHead, PortError> {
        unreachable!("only ranges are read")
    }

    async fn read_range(&self, _key: &str, _etag: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        self.reads.lock().unwrap().push(range.clone());
        self.may_end.acquire().await.unwrap().forget();
        match self.failures.lock().unwrap().pop_front() {
            Some(error) => Err(error),
            None => Ok(self.text.slice(range.start as usize..self.text.len().min(range.end as usize))),
        }
    }

    async fn read(&self, _key: &str) -> Result<Bytes, PortError> {
        unreachable!("only ranges are read")
    }

    async fn put(&self, _key: &str, _of: &str, _bytes: Bytes, _sha256: Option<[u8; 32]>) -> PortResult<String> {
        unreachable!("only ranges are read")
    }
}

fn range(message: &ChunkMessage) -> Range<u64> {
    message.chunk.offset..message.chunk.offset + message.chunk.length
}

/// The message of the chunk with this index and this range.
fn message_of(index: u8, range: Range<u64>) -> ChunkMessage {
    let chunk = Chunk { offset: range.start, length: range.end - range.start, ..fixtures::chunk_message(0, 0).chunk };
    ChunkMessage { chunk, ..fixtures::chunk_message(0, index) }
}

/// The messages of so many chunks of 10 bytes, not in their order.
fn tens(chunks: u8) -> Vec<ChunkMessage> {
    let mut messages: Vec<_> =
        (0..chunks).map(|chunk| message_of(chunk, u64::from(chunk) * 10..u64::from(chunk + 1) * 10)).collect();
    messages.reverse();
    messages.rotate_left(usize::from(chunks) / 2);
    messages
}

/// True if each has the bytes of [`Bucket::of_tens`].
fn are_tens(messages: &[ChunkMessage], read: &[Result<Bytes, PortError>]) -> bool {
    let expected = |message: &ChunkMessage| [b'a' + message.address.index; 10];
    messages.iter().zip(read).all(|(message, read)| read.as_ref().is_ok_and(|bytes| **bytes == expected(message)))
}

#[tokio::test]
async fn ten_neighbours_are_one_read() {
    let (bucket, messages) = (Bucket::of_tens(10), tens(10));
    let read = bucket.read_all(&messages).await;
    assert!(are_tens(&messages, &read), "{read:?}");
    assert_eq!(bucket.reads(), [0..100]);
}

#[tokio::test]
async fn the_chunks_of_two_jobs_are_two_reads() {
    let (bucket, mut messages) = (Bucket::of_tens(10), tens(10));
    let other = CountingEntropy::default().job_guid(Timestamp::UNIX_EPOCH);
    for message in &mut messages {
        if message.address.index % 2 == 0 {
            message.job_guid = other;
        }
    }
    let read = bucket.read_all(&messages).await;
    assert!(are_tens(&messages, &read), "{read:?}");
    let mut reads = bucket.reads();
    reads.sort_by_key(|range| range.start);
    assert_eq!(reads, [0..90, 10..100]);
}

#[tokio::test]
async fn a_short_gap_is_read_and_a_long_one_is_not() {
    let bucket = Bucket::with(vec![b'x'; 1 << 20]);
    let read = |ranges: [Range<u64>; 3]| {
        let messages: Vec<_> = (0..).zip(ranges).map(|(index, range)| message_of(index, range)).collect();
        let bucket = &bucket;
        async move {
            bucket.reads.lock().unwrap().clear();
            let lengths: Vec<_> =
                bucket.read_all(&messages).await.into_iter().map(|read| read.unwrap().len()).collect();
            assert_eq!(lengths, [10, 20, 30]);
            bucket.reads()
        }
    };
    assert_eq!(read([0..10, 12..32, 65_568..65_598]).await, [0..65_598]);
    assert_eq!(read([0..10, 10..30, 65_567..65_597]).await, [0..30, 65_567..65_597]);
    // The same bytes twice: no file is cut like this, so nothing is made of it.
    assert_eq!(read([0..10, 5..25, 200_000..200_030]).await.len(), 3);
}

#[tokio::test]
async fn a_chunk_that_may_be_done_or_is_no_range_of_the_file_reads_for_itself() {
    type Change = fn(&mut ChunkMessage);
    let changes: [(&str, Change); 5] = [
        ("recovered", |message| message.delivery_mode = DeliveryMode::Recovered),
        ("isolated", |message| message.delivery_mode = DeliveryMode::Isolated),
        ("of a redrive", |message| message.address.attempt = 2),
        ("stored", |message| {
            message.stored = Some(StoredText { by: RunId::from_bytes([1; 7]), weight: 1 });
        }),
        ("too long", |message| message.chunk.mode = ChunkMode::TooLong),
    ];
    for (what, change) in changes {
        let (bucket, mut messages) = (Bucket::of_tens(5), tens(5));
        let changed = messages.iter_mut().find(|message| message.address.index == 4).unwrap();
        change(changed);
        let changed = changed.clone();
        let neighbours = Neighbours::of(&messages);
        assert!(neighbours.take(&changed).is_none(), "{what}");
        for message in messages.iter().filter(|message| **message != changed) {
            bucket.read(&neighbours, message).await.unwrap();
        }
        assert_eq!(bucket.reads(), [0..40], "{what}");
    }
}

#[tokio::test]
async fn long_neighbours_are_several_reads() {
    const THIRD: u64 = SHARED_READ_MAX_BYTES / 3;
    let bucket = Bucket::with(vec![b'x'; 9 * THIRD as usize + SHARED_READ_MAX_BYTES as usize]);
    let mut messages: Vec<_> =
        (0..7).map(|place: u8| message_of(place, u64::from(place) * THIRD..(u64::from(place) + 1) * THIRD)).collect();
    // One that alone is longer than a shared read may be.
    messages.push(message_of(7, 7 * THIRD..7 * THIRD + SHARED_READ_MAX_BYTES + 1));
    let read = bucket.read_all(&messages).await;
    assert!(
        read.iter()
            .zip(&messages)
            .all(|(read, message)| { read.as_ref().unwrap().len() as u64 == message.chunk.length })
    );
    let thirds = |from: u64, to: u64| from * THIRD..to * THIRD;
    assert_eq!(bucket.reads(), [thirds(0, 3), thirds(3, 6), thirds(6, 7), range(&messages[7])]);
}

#[tokio::test]
async fn if_the_shared_read_fails_each_chunk_reads_for_itself() {
    let (bucket, messages) = (Bucket::of_tens(10), tens(10));
    bucket.failures.lock().unwrap().push_back(PortError::unavailable("reading", "busy"));
    let read = bucket.read_all(&messages).await;
    assert!(are_tens(&messages, &read), "{read:?}");
    let mut reads = bucket.reads();
    assert_eq!(reads.remove(0), 0..100);
    reads.sort_by_key(|range| range.start);
    assert_eq!(reads, (0..10).map(|chunk| chunk * 10..(chunk + 1) * 10).collect::<Vec<_>>(), "and nobody shares again");
}

#[tokio::test]
async fn each_chunk_of_a_changed_file_hears_so() {
    let (bucket, messages) = (Bucket::of_tens(10), tens(10));
    bucket.failures.lock().unwrap().extend((0..11).map(|_| PortError::Changed));
    let read = bucket.read_all(&messages).await;
    assert!(read.iter().all(|read| matches!(read, Err(PortError::Changed))), "{read:?}");
    assert_eq!(bucket.reads().len(), 11);
}

#[tokio::test]
async fn of_a_file_that_has_become_shorter_each_chunk_gets_what_it_would_have_read() {
    let (bucket, messages) = (Bucket::of_tens(5), tens(6));
    let read = bucket.read_all(&messages).await;
    for (read, message) in read.iter().zip(&messages) {
        let expected = if message.address.index < 5 { 10 } else { 0 };
        assert_eq!(read.as_ref().unwrap().len(), expected);
    }
}

#[tokio::test]
async fn a_chunk_that_is_given_up_while_it_reads_takes_no_other_with_it() {
    let (bucket, messages) = (Bucket { may_end: Semaphore::new(0), ..Bucket::of_tens(5) }, tens(5));
    let neighbours = Neighbours::of(&messages);
    let mut reads: Vec<_> = messages.iter().map(|message| Box::pin(bucket.read(&neighbours, message))).collect();
    // All wait for the read of the first one.
    tokio::select! {
        biased;
        _ = select_all(&mut reads) => panic!("no read has ended"),
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(bucket.reads(), [0..50]);
    drop(reads.remove(0));
    bucket.may_end.add_permits(5);
    let read = join_all(reads).await;
    assert!(are_tens(&messages[1..], &read), "{read:?}");
    assert_eq!(bucket.reads(), [0..50, 0..50], "another chunk reads for all");
}

#[tokio::test]
async fn shared_bytes_are_freed_when_the_last_chunk_has_ended() {
    struct Freed(Arc<AtomicBool>);
    impl AsRef<[u8]> for Freed {
        fn as_ref(&self) -> &[u8] {
            &[b'x'; 30]
        }
    }
    impl Drop for Freed {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    let freed = Arc::new(AtomicBool::new(false));
    let mut bucket = Bucket::with(Bytes::from_owner(Freed(Arc::clone(&freed))));
    let messages = tens(3);
    let neighbours = Neighbours::of(&messages);
    let mut shared: Vec<_> = messages.iter().map(|message| neighbours.take(message)).collect();
    let bytes = bucket.read_shared(shared[0].clone(), &messages[0]).await.unwrap();
    bucket.text = Bytes::new();
    drop(bytes);
    // The second one ends without its bytes: its job was stopped.
    shared.truncate(1);
    assert!(!freed.load(Ordering::SeqCst), "the first one has not ended");
    shared.clear();
    assert!(freed.load(Ordering::SeqCst));
}
