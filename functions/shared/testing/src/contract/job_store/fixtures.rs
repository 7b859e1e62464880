use uuid::Uuid;

use crate::contract::at;
use crate::fixtures::causes;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner, RunId};
use rowmill_core::model::job::states::JobOutcome;
use rowmill_core::model::job::{End, Job, Lease, Stop, StopCode};
use rowmill_core::model::results::Results;
use rowmill_core::model::spec::{OutputFile, Source, SourceFile, Spec};
use rowmill_core::model::tally::{ChunkAddress, Commit, Committed, Counts, Mark, MarkKind, Tally};
use rowmill_core::ports::{Ceilings, CommitAnswer, Completion, Created, Idempotency, JobStore, NewJob, PortError};
use rowmill_core::progress::update::update_job;
use rowmill_core::text::{Chunk, ChunkLimits, ChunkMode, Dialect, Format, Head, Position, SCANNER_VERSION};

/// Ceilings that no test reaches.
pub const ROOM: Ceilings = Ceilings { owner: 1000, job_type: 1000, system: 1000 };

/// The identifier of job `number`. Higher numbers were created later.
pub fn guid(number: u32) -> JobGuid {
    let millis = 1_750_000_000_000 + u128::from(number);
    JobGuid(Uuid::from_u128((millis << 80) | (0x7 << 76) | (0b10 << 62) | u128::from(number)))
}

pub const fn run(number: u8) -> RunId {
    RunId::from_bytes([number; RunId::BYTES])
}

/// Job `number` of an owner, for `create`.
pub fn new_job(number: u32, owner: &str) -> NewJob {
    let (job_guid, file_guid) = (guid(number), FileGuid(Uuid::from_u128(u128::from(number))));
    let spec = Spec {
        job_guid,
        owner: Owner(owner.to_owned()),
        job_type: "import".to_owned(),
        created_at: at(0),
        source: Source::File(SourceFile {
            file_guid: Some(file_guid),
            key: "uploads/x".into(),
            etag: "\"e\"".into(),
            size: 1009,
        }),
        head: Head {
            dialect: Dialect { format: Format::Csv, delimiter: b';' },
            columns: vec!["code".into(), "näme".into()],
            header: Some(vec!["code".into(), "code".into()]),
            data_start: 9,
        },
        limits: ChunkLimits { max_items: 10, max_bytes: 100, max_record_bytes: 50 },
        scanner_version: SCANNER_VERSION,
        params: serde_json::json!({"dataset": "d", "schema": {"maximum": 0.1}})
            .as_object()
            .cloned()
            .unwrap_or_default(),
        max_concurrency: None,
        output: Some(OutputFile {
            name: "out.csv".into(),
            content_type: "text/csv".into(),
            header: Some("a;b".into()),
            gzip: true,
            has_changes: false,
        }),
        inputs: None,
        results_to: None,
        request: None,
        new_dataset_partitions: 64,
    };
    let metadata = serde_json::json!({"ticket": 7, "tags": ["a", ""]}).as_object().cloned();
    let job = Job { metadata, ..Job::waiting(&spec, at(14_400), at(900)) };
    NewJob { job, spec, ceilings: ROOM, idempotency: None, dedupe: None }
}

/// The same with an idempotency key that expires after 100 seconds.
pub fn keyed(number: u32, owner: &str, key: &str, fingerprint: &str) -> NewJob {
    let idempotency = Idempotency { key: key.into(), fingerprint: fingerprint.into(), expires_at: at(100) };
    NewJob { idempotency: Some(idempotency), ..new_job(number, owner) }
}

/// Creates job `number` of an owner.
pub async fn created(store: &impl JobStore, number: u32, owner: &str) -> JobGuid {
    let new = new_job(number, owner);
    assert_eq!(store.create(&new).await.expect("created"), Created::New);
    new.job.job_guid
}

/// Carries out a transition of a job.
pub async fn change(
    store: &impl JobStore,
    job: JobGuid,
    transition: impl Fn(&Job) -> Option<Job> + Send + Sync,
) -> Job {
    let seen = store.job(job).await.expect("there");
    update_job(store, &seen, transition).await.expect("available").done().expect("the transition starts from this job")
}

/// Run 1 takes the lease of a job at second 1, until this second.
pub async fn leased(store: &impl JobStore, job: JobGuid, until: i64) -> Job {
    change(store, job, |job| job.take(Lease { holder: run(1), until: at(until) }, at(1))).await
}

/// Creates job 1. Run 1 takes its lease until second 100.
pub async fn running(store: &impl JobStore) -> JobGuid {
    let job = created(store, 1, "me").await;
    leased(store, job, 100).await;
    job
}

/// A completion of this job at second 20.
pub fn end(seen: Job) -> Completion {
    end_at(seen, 20)
}

/// The same at another second.
pub fn end_at(seen: Job, second: i64) -> Completion {
    let outcome = seen.stopped_by().map_or(Ok(JobOutcome::Partial), |stop| Err(stop.clone()));
    let counts = Counts { succeeded: 3, failed: 2, skipped: 0 };
    let results = Some(Results { attempt: 1, manifest: run(2), causes: causes() });
    let end = End { outcome, counts, results, finished_at: at(second), expires_at: at(2000) };
    Completion { seen, end, usage: usage(7) }
}

/// A usage with another number of each unit.
pub const fn usage(units: u64) -> Usage {
    Usage {
        dynamodb_requests: units,
        read_halves: units + 1,
        write_halves: units + 2,
        s3_reads: units + 3,
        s3_writes: units + 4,
        sqs_requests: units + 5,
        lambda_requests: units + 6,
        lambda_mb_ms: units + 7,
    }
}

/// Takes the lease of the present attempt of a job and ends it at this second.
pub async fn ended(store: &impl JobStore, job: JobGuid, second: i64) -> Job {
    let lease = Lease { holder: run(1), until: at(second) };
    let seen = change(store, job, |job| job.take(lease, at(second - 1))).await;
    store.complete(&end_at(seen, second)).await.expect("ended");
    store.job(job).await.expect("there")
}

pub fn stop(code: StopCode) -> Stop {
    Stop { code, message: "because".into(), row: Some(3), offset: None, at: at(7) }
}

/// Tally `number` of attempt 1, with `chunks` chunks of 5 items.
pub fn tally(number: u32, chunks: usize) -> Tally {
    let chunk = Chunk { offset: 9, length: 50, first_row: 1, items: 5, mode: ChunkMode::Items };
    Tally::of(1, number, Position { offset: 9, row: 1 }, &vec![chunk; chunks], at(2))
}

/// A commit by this run of a chunk of 5 items: 3 succeeded, 1 failed, 1 skipped.
pub fn commit(tally: u32, index: u8, by: u8) -> Commit {
    Commit {
        chunk: ChunkAddress { attempt: 1, tally, index },
        mark: Mark { kind: MarkKind::HasFailed, run: run(by) },
        counts: Counts { succeeded: 3, failed: 1, skipped: 1 },
        bytes: 50,
        at: at(5),
    }
}

/// Commits a chunk of the first job alone.
pub async fn commit_chunk(store: &impl JobStore, commit: &Commit) -> Result<Committed, PortError> {
    Ok(match store.commit(guid(1), std::slice::from_ref(commit)).await? {
        CommitAnswer::Applied(tally) => Committed::Won(tally),
        CommitAnswer::Refused(tally) => commit.refused_by(&tally).expect("the chunk is accounted for"),
    })
}
