//! Copies of the messages that the functions send each other.

use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Priority;
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, DeliveryMode, SplitMessage};
use rowmill_core::model::tally::{CHUNKS_PER_TALLY, ChunkAddress};
use rowmill_core::text::{ChunkCutter, ChunkLimits, Dialect, Format, Position};

/// The owner of every job without login.
fn owner() -> Owner {
    Owner(Owner::LOCAL.to_owned())
}

/// The message that `create-job` sent for a job.
pub fn split_message(job_guid: JobGuid) -> SplitMessage {
    SplitMessage { job_guid, attempt: 1, tallies: 0, epoch: 0, owner: owner(), priority: Priority::Normal }
}

/// The message that completes a job's first attempt.
pub fn completion_message(job_guid: JobGuid) -> CompletionMessage {
    CompletionMessage { job_guid, attempt: 1, composing: None, owner: owner() }
}

/// The chunk messages of a job over this CSV file with a header line. Chunks are a pure function of the file, so these
/// are the same messages that `split-job` sent.
///
/// # Panics
/// If the file has no header line, or an unclosed quote.
pub fn chunk_messages(job_guid: JobGuid, file: &[u8], chunk_max_items: u32) -> Vec<ChunkMessage> {
    let data_start = file.iter().position(|byte| *byte == b'\n').expect("a header line") + 1;
    let limits = ChunkLimits { max_items: chunk_max_items, max_bytes: 1 << 20, max_record_bytes: 1 << 20 };
    let dialect = Dialect { format: Format::Csv, delimiter: b',' };
    let mut cutter = ChunkCutter::new(&dialect, limits, Position { offset: data_start as u64, row: 1 });
    let mut chunks = Vec::new();
    cutter.push(&file[data_start..], &mut chunks);
    cutter.finish(&mut chunks).expect("all quotes are closed");
    let address = |number: usize| ChunkAddress {
        attempt: 1,
        tally: u32::try_from(number / CHUNKS_PER_TALLY).expect("few tallies"),
        index: u8::try_from(number % CHUNKS_PER_TALLY).expect("few chunks in a tally"),
    };
    let message = |(number, chunk)| ChunkMessage {
        job_guid,
        owner: owner(),
        address: address(number),
        epoch: 0,
        chunk,
        delivery_mode: DeliveryMode::Fresh,
        max_concurrency: None,
        stored: None,
        part: None,
        job_type: None,
        priority: Priority::Normal,
        lane: None,
    };
    chunks.into_iter().enumerate().map(message).collect()
}
