//! The messages of a tally's chunks.

use rowmill_core::job::Job;
use rowmill_core::messages::{ChunkMessage, Handling};
use rowmill_core::tally::ChunkAddress;
use rowmill_core::text::Chunk;

/// The messages of these chunks of a tally, as they leave when the tally was just counted.
pub fn chunk_messages(job: &Job, max_concurrency: Option<u32>, tally: u32, chunks: &[Chunk]) -> Vec<ChunkMessage> {
    let message = |(index, chunk): (u8, &Chunk)| ChunkMessage {
        job_guid: job.job_guid,
        owner: job.owner.clone(),
        address: ChunkAddress { attempt: job.attempt, tally, index },
        chunk: *chunk,
        handling: Handling::Fresh,
        max_concurrency,
    };
    (0..).zip(chunks).map(message).collect()
}

/// The message as it leaves once more: its chunk may be done in part, or whole.
pub const fn recovered(message: &mut ChunkMessage) {
    message.handling = Handling::Recovered;
}
