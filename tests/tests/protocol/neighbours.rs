//! Chunks of an invocation that follow each other in the file are read at once.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use acceptance::files;
use acceptance::world::World;
use async_trait::async_trait;
use bytes::Bytes;
use process_items::handler::handle;
use rowmill_aws::{Batch, Delivery};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::ports::{Jobs, ObjectHead, Objects, PortError, PortResult};

use crate::chunks_of;

/// The bucket, with the ranges that were read.
struct Noted {
    objects: Arc<dyn Objects>,
    ranges: Mutex<Vec<Range<u64>>>,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Objects for Noted {
    async fn head(&self, key: &str) -> Result<ObjectHead, PortError> {
        self.objects.head(key).await
    }

    async fn read_range(&self, key: &str, etag: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        self.ranges.lock().unwrap().push(range.clone());
        self.objects.read_range(key, etag, range).await
    }

    async fn read(&self, key: &str) -> Result<Bytes, PortError> {
        self.objects.read(key).await
    }

    async fn put(&self, key: &str, of: &str, bytes: Bytes, sha256: Option<[u8; 32]>) -> PortResult<String> {
        self.objects.put(key, of, bytes, sha256).await
    }
}

/// A world with a job of ten chunks that is split, the bucket of `process-items`, and the messages of the chunks.
async fn split_in_ten() -> (World, JobGuid, Arc<Noted>, Vec<ChunkMessage>) {
    let mut world = World::new(chunks_of(5));
    let job = world.validate_csv(files::plain_csv(50)).await;
    world.split().await;
    let noted = Arc::new(Noted { objects: world.processor.ports.objects.clone(), ranges: Mutex::default() });
    world.processor.ports.objects = noted.clone();
    let messages = world.chunks.take();
    assert_eq!(messages.len(), 10);
    (world, job, noted, messages)
}

/// Delivers these messages to one invocation. Returns how many must be delivered again.
async fn invoke(world: &World, messages: &[ChunkMessage], receive_count: impl Fn(usize) -> u32) -> usize {
    let delivery = |(place, message): (usize, &ChunkMessage)| Delivery {
        message_id: place.to_string(),
        message: message.clone(),
        receive_count: receive_count(place),
        receipt: place.to_string(),
    };
    let deliveries = messages.iter().enumerate().map(delivery).collect();
    handle(&world.processor, Batch { deliveries, deadline: world.deadline() }).await.len()
}

fn whole(messages: &[ChunkMessage]) -> Range<u64> {
    let (first, last) = (messages.first().unwrap().chunk, messages.last().unwrap().chunk);
    first.offset..last.offset + last.length
}

#[tokio::test]
async fn ten_chunks_of_an_invocation_are_one_read_and_count_as_ever() {
    let (world, job, noted, messages) = split_in_ten().await;
    assert_eq!(invoke(&world, &messages, |_| 1).await, 0);
    assert_eq!(*noted.ranges.lock().unwrap(), [whole(&messages)]);
    assert_eq!(world.completed(job).await, 50);
}

#[tokio::test]
async fn a_chunk_that_was_delivered_before_reads_for_itself() {
    let (world, job, noted, messages) = split_in_ten().await;
    assert_eq!(invoke(&world, &messages, |place| if place == 3 { 2 } else { 1 }).await, 0);
    let mut ranges = noted.ranges.lock().unwrap().clone();
    ranges.sort_by_key(|range| range.start);
    // The short gap that it leaves is read by its neighbours.
    assert_eq!(ranges, [whole(&messages), whole(&messages[3..4])]);
    assert_eq!(world.run_and_show(job).await.items_succeeded, 50);
}

#[tokio::test]
async fn nothing_is_read_for_chunks_that_are_done_or_whose_job_is_stopped() {
    let (world, job, noted, messages) = split_in_ten().await;
    assert_eq!(invoke(&world, &messages[..5], |_| 1).await, 0);
    noted.ranges.lock().unwrap().clear();
    assert_eq!(invoke(&world, &messages[..5], |_| 2).await, 0);
    world.cancel(job).await;
    assert_eq!(invoke(&world, &messages[5..], |_| 1).await, 0);
    assert!(noted.ranges.lock().unwrap().is_empty());
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_skipped), (Status::Cancelled, 25, 25));
}

#[tokio::test]
async fn a_file_that_was_replaced_stops_the_job() {
    let (world, job, _, messages) = split_in_ten().await;
    let key = world.objects.keys().into_iter().find(|key| key.starts_with("uploads/")).unwrap();
    world.objects.put(&key, "text/csv", files::plain_csv(51).into(), None).await.unwrap();
    assert_eq!(invoke(&world, &messages, |_| 1).await, 0);
    let row = world.jobs.job(job).await.unwrap();
    let stop = row.stopped_by().unwrap();
    assert_eq!(stop.code, StopCode::SourceChanged);
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_skipped), (Status::Failed, 50));
}
