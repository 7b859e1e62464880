//! The contract of [`Queue`].

use std::collections::BTreeSet;
use std::ops::Deref;

use super::run_checks;
use rowmill_core::model::ids::{Owner, RunId};
use rowmill_core::model::job::Priority;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode, StoredText};
use rowmill_core::model::tally::ChunkAddress;
use rowmill_core::ports::Queue;
use rowmill_core::text::{Chunk, ChunkMode};

/// A queue whose messages a test can take.
pub trait Receiver: Deref<Target: Queue<ChunkMessage>> {
    /// Takes the messages delivered since the last call.
    fn take(&self) -> impl Future<Output = Vec<ChunkMessage>>;
}

/// Checks a [`Queue`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn queue<S: Receiver>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        a_sent_message_arrives,
        messages_of_several_requests_all_arrive,
        sending_no_messages_does_nothing,
        waiting_messages_are_counted,
    );
}

fn message(tally: u32, index: u8) -> ChunkMessage {
    ChunkMessage {
        job_guid: rowmill_core::model::ids::JobGuid(uuid::Uuid::from_u128(7)),
        owner: Owner("größe of Rome".into()),
        address: ChunkAddress { attempt: 1, tally, index },
        epoch: 4,
        chunk: Chunk { offset: u64::from(index), length: 10, first_row: 1, items: 5, mode: ChunkMode::Items },
        delivery_mode: DeliveryMode::Recovered,
        max_concurrency: Some(3),
        stored: Some(StoredText { by: RunId::from_bytes([3; RunId::BYTES]), weight: 17 }),
        part: None,
        job_type: Some("import".into()),
        priority: Priority::High,
        lane: Some(2),
    }
}

async fn a_sent_message_arrives(queue: &impl Receiver) {
    queue.send(&[message(0, 7)]).await.unwrap();
    let arrived = queue.take().await;
    assert_eq!(arrived, [message(0, 7)]);
}

async fn messages_of_several_requests_all_arrive(queue: &impl Receiver) {
    let messages: Vec<_> = (0..64).map(|index| message(3, index)).collect();
    queue.send(&messages).await.unwrap();
    let arrived = queue.take().await;
    let chunks: BTreeSet<_> = arrived.iter().map(|message| message.address).collect();
    assert_eq!(chunks.len(), 64, "each at least once");
    assert!(arrived.iter().all(|message| messages.contains(message)));
}

async fn sending_no_messages_does_nothing(queue: &impl Receiver) {
    queue.send(&[]).await.unwrap();
    assert!(queue.take().await.is_empty());
}

async fn waiting_messages_are_counted(queue: &impl Receiver) {
    assert_eq!(queue.backlog().await.unwrap(), 0);
    let messages: Vec<_> = (0..12).map(|index| message(3, index)).collect();
    queue.send(&messages).await.unwrap();
    assert_eq!(queue.backlog().await.unwrap(), 12);
    queue.take().await;
    assert_eq!(queue.backlog().await.unwrap(), 0);
}
