//! Plain values for tests: a spec, jobs and a chunk's message. A test sets the fields that it is about and takes the
//! rest from here.

use jiff::Timestamp;
use serde_json::{Map, json};
use uuid::Uuid;

use rowmill_core::model::breaker::BreakerPause;
use rowmill_core::model::causes::{CauseCount, CauseName, Selection};
use rowmill_core::model::cost::Usage;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner, RunId};
use rowmill_core::model::job::states::{JobOutcome, Phase, Status};
use rowmill_core::model::job::{Awaits, End, Job, Lease, Priority, Redrive, SharedSlots, SplitState, Stop, StopCode};
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::results::Results;
use rowmill_core::model::spec::{Source, SourceFile, Spec, Tolerance};
use rowmill_core::model::tally::{ChunkAddress, Counts};
use rowmill_core::model::warnings;
use rowmill_core::text::{Chunk, ChunkLimits, ChunkMode, Dialect, Format, Head, Position, SCANNER_VERSION};

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
        inputs: None,
        results_to: None,
        request: None,
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

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or_default()
}

/// A job in which every field differs from its default, paused by the breaker.
pub fn full_job() -> Job {
    Job {
        job_guid: JobGuid(Uuid::from_u128(7)),
        owner: Owner("me".into()),
        job_type: "import".into(),
        file_guid: Some(FileGuid(Uuid::from_u128(8))),
        is_stored: true,
        files: Some(9),
        data_start: 9,
        data_bytes: u64::MAX,
        warnings: vec![warnings::trailing_bytes(7)],
        tolerance: Some(Tolerance { percent: Some(2.5), count: None, minimum_items: Some(7) }),
        max_concurrency: Some(3),
        priority: Priority::High,
        tallies_ahead: Some(2),
        metadata: json!({"tag": ["a", 1.5]}).as_object().cloned(),
        phase: Phase::Paused(Some(BreakerPause::after("unavailable", "it answered 503", at(9)))),
        awaits: Some(Awaits::Job(JobGuid(Uuid::from_u128(9)))),
        attempt: 2,
        split: SplitState {
            tallies: 3,
            dispatched: 2,
            cursor: Position { offset: 99, row: 4 },
            done: true,
            at_end: true,
        },
        lease: Some(Lease { holder: RunId::from_bytes([1; 7]), until: at(5000) }),
        usage: Usage::of_transaction(5).with_sends(6),
        completions: 1,
        redrive: Some(Redrive {
            by: RunId::from_bytes([2; 7]),
            before: Counts { succeeded: 4, failed: 5, skipped: 6 },
            base: 1,
            unprocessed_from: Some(Position { offset: 98, row: 3 }),
            corrected: Some("results/corrected".into()),
            selection: Some(Selection { codes: vec!["ragged_row".into()], ..Selection::default() }),
        }),
        undone_by: Some(JobGuid(Uuid::from_u128(11))),
        keep_seconds: Some(13),
        deleted_at: None,
        composing: Some(RunId::from_bytes([5; 7])),
        recoveries: 7,
        paused_at: Some(at(10)),
        epoch: 8,
        resend_from: Some(9),
        slots: SharedSlots::Awaited,
        created_at: at(1),
        attempt_at: at(13),
        started_at: Some(at(2)),
        first_chunk_at: Some(at(8)),
        moved_at: at(3),
        deadline_at: at(4),
        start_by: Some(at(14)),
        wake_at: Some(at(6)),
        revision: 11,
    }
}

/// The causes of two failed items.
pub fn causes() -> Vec<CauseCount> {
    let name = CauseName { code: "c".into(), column: Some("a".into()), rule: None };
    vec![CauseCount { name, items: 2 }]
}

/// The other phases in which a job is stored.
pub fn phases() -> Vec<Phase> {
    let stop = |code| Stop { code, message: "m".into(), row: None, offset: Some(3), at: at(12) };
    let ended = |outcome, results| {
        let counts = Counts { succeeded: 1, failed: 2, skipped: 3 };
        Phase::Ended(End { outcome, counts, results, finished_at: at(5), expires_at: at(7000) })
    };
    vec![
        Phase::Runnable,
        Phase::Paused(None),
        Phase::Stopping(stop(StopCode::Cancelled)),
        Phase::Stopping(stop(StopCode::SourceChanged)),
        ended(
            Ok(JobOutcome::Partial),
            Some(Results { attempt: 2, manifest: RunId::from_bytes([4; 7]), causes: causes() }),
        ),
        ended(Err(stop(StopCode::Cancelled)), None),
        ended(Err(stop(StopCode::SourceChanged)), None),
    ]
}
