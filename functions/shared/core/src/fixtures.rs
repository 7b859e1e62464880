//! Plain values for tests: a spec, a job and a chunk's message. A test sets the fields that it is about and takes the
//! rest from here.

use jiff::Timestamp;
use serde_json::Map;
use uuid::Uuid;

use crate::model::ids::{FileGuid, JobGuid, Owner};
use crate::model::job::states::{JobOutcome, Phase, Status};
use crate::model::job::{End, Job, Stop, StopCode};
use crate::model::messages::ChunkMessage;
use crate::model::spec::{Source, SourceFile, Spec};
use crate::model::tally::{ChunkAddress, Counts};
use crate::text::{Chunk, ChunkLimits, ChunkMode, Dialect, Format, Head, SCANNER_VERSION};

/// The spec of an `import` of a JSON Lines file, created at the Unix epoch, with nil GUIDs.
pub fn spec() -> Spec {
    let file_guid = FileGuid(Uuid::nil());
    Spec {
        job_guid: JobGuid(Uuid::nil()),
        owner: Owner(Owner::LOCAL.to_owned()),
        job_type: "import".to_owned(),
        created_at: Timestamp::UNIX_EPOCH,
        source: Source::File(SourceFile {
            file_guid: Some(file_guid),
            key: "uploads/x".to_owned(),
            etag: "e".to_owned(),
            size: 1,
        }),
        head: Head::without_columns(Dialect { format: Format::Jsonl, delimiter: b',' }, 0),
        limits: ChunkLimits { max_items: 10, max_bytes: 1000, max_record_bytes: 1000 },
        scanner_version: SCANNER_VERSION,
        params: Map::new(),
        max_concurrency: None,
        output: None,
        new_dataset_partitions: 256,
    }
}

/// The job of [`spec`], created and waiting. All of its times are the Unix epoch.
pub fn job() -> Job {
    Job::waiting(&spec(), Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH)
}

/// The same job in this status. It was taken up unless it waits, and no item of it was counted.
pub fn job_in(status: Status) -> Job {
    let at = Timestamp::UNIX_EPOCH;
    let stop = |code| Stop::because(code, "because", at);
    let ended = |outcome| {
        Phase::Ended(End {
            outcome,
            counts: Counts::default(),
            results: None,
            finished_at: at,
            expires_at: Timestamp::MAX,
        })
    };
    let phase = match status {
        Status::Waiting | Status::Running => Phase::Runnable,
        Status::Paused => Phase::Paused(None),
        Status::Cancelling => Phase::Stopping(stop(StopCode::Cancelled)),
        Status::Completed => ended(Ok(JobOutcome::Empty)),
        Status::Failed => ended(Err(stop(StopCode::SourceChanged))),
        Status::Cancelled => ended(Err(stop(StopCode::Cancelled))),
    };
    Job { started_at: (status != Status::Waiting).then_some(at), phase, ..job() }
}

/// The message of this chunk of the first attempt of [`job`]: one item, sent for the first time.
pub fn chunk_message(tally: u32, index: u8) -> ChunkMessage {
    let chunk = Chunk { offset: 0, length: 1, first_row: 1, items: 1, mode: ChunkMode::Items };
    ChunkMessage::of(&job(), ChunkAddress { attempt: 1, tally, index }, chunk)
}
