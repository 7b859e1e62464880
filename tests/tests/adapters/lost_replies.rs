//! Lost replies: the request took effect, and the SDK sends it again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::SharedHttpClient;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use jiff::Timestamp;
use rowmill_aws::adapters::dynamodb::{DynamoDbJobStore, DynamoDbRecordStore};
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::dead_letter::{DeadLetter, DeadLetterKind};
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner, RunId};
use rowmill_core::model::job::states::JobOutcome;
use rowmill_core::model::job::{End, Job, Lease, Redrive, Stop, StopCode};
use rowmill_core::model::records::{Dataset, DatasetRecord, RecordVersion, Upserted, Writer};
use rowmill_core::model::spec::{Source, SourceFile, Spec};
use rowmill_core::model::tally::{ChunkAddress, Commit, Committed, Counts, Mark, MarkKind, Tally};
use rowmill_core::ports::{
    Admissions, Attempts, Ceilings, CheckpointMoved, Checkpoints, CommitAnswer, Completion, Completions, Created,
    DeadLetters, Idempotency, Jobs, NewAttempt, NewJob, RecordStore, Tallies, UpdateAnswer, Updates,
};
use rowmill_core::text::{Chunk, ChunkMode, Position};
use rowmill_testing::contract;
use rowmill_testing::fixtures;
use uuid::Uuid;

use crate::dynamodb_server::Server;
use crate::{config, https_client};

/// Forwards each request, and loses the first reply to each different one.
#[derive(Clone, Debug)]
struct Lossy {
    inner: SharedHttpConnector,
    seen: Arc<Mutex<HashSet<Vec<u8>>>>,
}

impl HttpConnector for Lossy {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = request.body().bytes().unwrap_or_default().to_vec();
        let first = self.seen.lock().unwrap().insert(body);
        let reply = self.inner.call(request);
        HttpConnectorFuture::new(async move {
            let reply = reply.await?;
            if first { Err(ConnectorError::io("the reply was lost".into())) } else { Ok(reply) }
        })
    }
}

pub async fn lossy(server: &Server) -> Client {
    let inner: SharedHttpClient = https_client();
    let seen = Arc::default();
    let http = http_client_fn(move |settings: &HttpConnectorSettings, components| {
        let inner = inner.http_connector(settings, components);
        SharedHttpConnector::new(Lossy { inner, seen: Arc::clone(&seen) })
    });
    Client::new(&config(&server.endpoint, http).await)
}

/// A job store that loses the first reply to each request, and its server.
pub async fn lossy_job_store() -> (Server, DynamoDbJobStore) {
    let server = Server::start().await;
    let (jobs, admission) = server.job_tables().await;
    let store = DynamoDbJobStore::new(lossy(&server).await, jobs, Some(admission));
    (server, store)
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_750_000_000 + second).unwrap()
}

pub fn new_job() -> NewJob {
    let (job_guid, file_guid) = (JobGuid(Uuid::from_u128((7 << 76) | (0b10 << 62) | 1)), FileGuid(Uuid::from_u128(2)));
    let source = SourceFile { file_guid: Some(file_guid), key: "k".into(), etag: "e".into(), size: 10 };
    let spec = Spec {
        job_guid,
        owner: Owner("me".into()),
        job_type: "validate".to_owned(),
        created_at: at(0),
        source: Source::File(source),
        ..fixtures::spec()
    };
    let job = Job::waiting(&spec, at(9), at(5));
    let idempotency = Idempotency { key: "k".into(), fingerprint: "f".into(), expires_at: at(100) };
    let ceilings = Ceilings { owner: 1, job_type: 1, system: 1 };
    NewJob { job, spec, ceilings, idempotency: Some(idempotency), dedupe: None }
}

/// Another job of the same owner.
pub fn named(number: u128) -> NewJob {
    let mut new = new_job();
    new.job.job_guid = JobGuid(Uuid::from_u128((7 << 76) | (0b10 << 62) | number));
    NewJob { idempotency: None, ..new }
}

/// The end of a job at second 5.
pub fn end(seen: Job, outcome: Result<JobOutcome, Stop>, counts: Counts) -> Completion {
    let end = End { outcome, counts, results: None, finished_at: at(5), expires_at: at(500) };
    Completion { seen, end, usage: Usage::NONE }
}

async fn ended(store: &DynamoDbJobStore) -> Job {
    let new = new_job();
    assert_eq!(store.create(&new).await.unwrap(), Created::New);
    let lease = Lease { holder: RunId::from_bytes([1; 7]), until: at(50) };
    let seen = change(store, new.job.job_guid, |job| job.take(lease, at(1))).await;
    let counts = Counts { failed: 5, ..Counts::default() };
    store.complete(&end(seen, Ok(JobOutcome::Failed), counts)).await.unwrap();
    store.job(new.job.job_guid).await.unwrap()
}

#[tokio::test]
async fn a_job_ends_as_usual_if_every_reply_is_lost_once() {
    let (_server, store) = lossy_job_store().await;
    let new = new_job();
    let job = new.job.job_guid;
    assert_eq!(store.create(&new).await.unwrap(), Created::New);
    assert_eq!(store.create(&new).await.unwrap(), Created::New, "made again by the caller");

    let holder = RunId::from_bytes([1; 7]);
    change(&store, job, |job| job.take(Lease { holder, until: at(50) }, at(1))).await;

    let chunk = Chunk { offset: 0, length: 10, first_row: 1, items: 5, mode: ChunkMode::Items };
    store.put_tally(job, &Tally::of(1, 0, Position { offset: 0, row: 1 }, &[chunk], at(2))).await.unwrap();
    let commit = Commit {
        chunk: ChunkAddress { attempt: 1, tally: 0, index: 0 },
        mark: Mark { kind: MarkKind::Clean, run: holder },
        counts: Counts { succeeded: 5, ..Counts::default() },
        bytes: 10,
        at: at(3),
    };
    let CommitAnswer::Refused(tally) = store.commit(job, std::slice::from_ref(&commit)).await.unwrap() else {
        panic!("no reply was lost")
    };
    let found = commit.refused_by(&tally);
    assert!(matches!(found, Some(Committed::WonBefore(_))), "does not know its own commit: {found:?}");
    assert_eq!((tally.done, tally.counts.succeeded), (1, 5));
    assert_eq!(store.fold(job, &tally).await.unwrap().counts.succeeded, 5);

    let stop = Stop { code: StopCode::SourceChanged, message: "m".into(), row: None, offset: None, at: at(4) };
    let seen = change(&store, job, |job| job.stop(&stop)).await;
    store.complete(&end(seen, Err(stop), tally.counts)).await.unwrap();
    assert_eq!(store.job(job).await.unwrap().completions, 1);

    // One slot was taken and one given back: there is room for exactly one job.
    assert_eq!(store.create(&named(2)).await.unwrap(), Created::New);
    assert!(store.create(&named(3)).await.is_err());
}

#[tokio::test]
async fn a_record_is_written_or_superseded_if_the_reply_is_lost() {
    let server = Server::start().await;
    let store = DynamoDbRecordStore::new(lossy(&server).await, server.records_table().await, contract::records_clock());
    let writer = Writer { job_created_ms: 1, job_guid: JobGuid(Uuid::from_u128(1)) };
    let dataset = store.open(&Dataset::lasting("d", 256), writer).await.unwrap();
    assert_eq!(dataset, Dataset::lasting("d", 256));
    for (row, key) in [(1, "a"), (2, "a"), (3, "b")] {
        let version = RecordVersion { by: writer, row };
        let upsert = DatasetRecord { key: key.into(), version, fields: serde_json::Map::new() };
        let results = store.upsert(&dataset, &[upsert]).await;
        // More than its existence cannot be known.
        assert!(matches!(results[..], [Ok(Upserted::Written | Upserted::Superseded)]), "{results:?}");
    }
}

#[tokio::test]
async fn a_redrive_starts_one_attempt_if_every_reply_is_lost_once() {
    let (_server, store) = lossy_job_store().await;
    let ended = ended(&store).await;
    let redrive = Redrive {
        by: RunId::from_bytes([2; 7]),
        before: Counts { failed: 5, ..Counts::default() },
        base: 1,
        unprocessed_from: None,
        corrected: None,
        selection: None,
    };
    let ceilings = Ceilings { owner: 1, job_type: 1, system: 1 };
    let attempt = NewAttempt { seen: ended, redrive, ceilings, at: at(10), deadline_at: at(90), wake_at: at(20) };
    for who in ["the SDK", "the caller"] {
        assert_eq!(Some(store.redrive(&attempt).await.unwrap()), attempt.job(), "sent again by {who}");
    }
    assert_eq!(Some(store.job(attempt.seen.job_guid).await.unwrap()), attempt.job());
    // One slot was taken, and one is given back at the end: there is room for exactly one job.
    assert!(store.create(&named(2)).await.is_err());
    let lease = Lease { holder: RunId::from_bytes([3; 7]), until: at(50) };
    let seen = change(&store, attempt.seen.job_guid, |job| job.take(lease, at(11))).await;
    let counts = Counts { succeeded: 5, ..Counts::default() };
    let mut completion = end(seen, Ok(JobOutcome::Succeeded), counts);
    completion.end.finished_at = at(12);
    store.complete(&completion).await.unwrap();
    assert_eq!(store.create(&named(3)).await.unwrap(), Created::New);
    assert!(store.create(&named(4)).await.is_err());
}

#[tokio::test]
async fn the_slots_of_a_paused_job_move_once_if_every_reply_is_lost_once() {
    let (_server, store) = lossy_job_store().await;
    let one = |number| NewJob { ceilings: Ceilings { owner: 9, job_type: 1, system: 1 }, ..named(number) };
    let job = one(1).job.job_guid;
    store.create(&one(1)).await.unwrap();
    let paused = change(&store, job, |job| job.pause(at(2))).await;
    let returned = change(&store, job, |job| job.return_slots(Duration::ZERO, at(3))).await;
    assert_eq!((returned.has_shared_slots(), returned.revision), (false, paused.revision + 1));
    let resumed = change(&store, job, |job| job.resume(at(4))).await;
    assert_eq!((resumed.has_shared_slots(), resumed.revision), (true, paused.revision + 2));
    assert!(store.create(&one(2)).await.is_err(), "they are taken");
    change(&store, job, |job| job.pause(at(5))).await;
    change(&store, job, |job| job.return_slots(Duration::ZERO, at(6))).await;
    assert_eq!(store.create(&one(3)).await.unwrap(), Created::New);
    assert!(store.create(&one(4)).await.is_err(), "each is given back once");
}

#[tokio::test]
async fn a_checkpoint_moves_one_revision_at_a_time_if_every_reply_is_lost_once() {
    let (_server, store) = lossy_job_store().await;
    let job = new_job().job.job_guid;
    let mut checkpoint = Checkpoint::blank(ChunkAddress { attempt: 1, tally: 0, index: 5 }, at(1));
    for by in 1..=3 {
        let next =
            Checkpoint { done: u32::from(by), ..checkpoint.moved(RunId::from_bytes([by; 7]), at(i64::from(by))) };
        assert_eq!(store.move_checkpoint(job, &next).await.unwrap(), CheckpointMoved::Won);
        let other = checkpoint.moved(RunId::from_bytes([9; 7]), at(9));
        assert_eq!(store.move_checkpoint(job, &other).await.unwrap(), CheckpointMoved::Lost(next.clone()));
        checkpoint = next;
    }
    assert_eq!(store.checkpoint(job, checkpoint.chunk).await.unwrap(), Some(checkpoint));
}

#[tokio::test]
async fn an_update_whose_reply_was_lost_is_recognised_and_not_written_again() {
    let (_server, store) = lossy_job_store().await;
    let new = new_job();
    store.create(&new).await.unwrap();
    let seen = store.job(new.job.job_guid).await.unwrap();
    let next = seen.pause(at(2)).unwrap();
    let answer = store.update(&seen, &next, Usage::NONE).await.unwrap();
    let paused = Job { revision: seen.revision + 1, ..next };
    assert_eq!(answer, UpdateAnswer::WrittenBefore(paused.clone()));
    assert_eq!(store.job(new.job.job_guid).await.unwrap(), paused);
    let resumed = change(&store, new.job.job_guid, |job| job.resume(at(3))).await;
    assert_eq!((resumed.epoch, resumed.revision), (2, seen.revision + 2), "each is written once");
}

/// Carries out a transition of a job.
pub async fn change(
    store: &DynamoDbJobStore,
    job: JobGuid,
    transition: impl Fn(&Job) -> Option<Job> + Send + Sync,
) -> Job {
    acceptance::world::change(store, job, transition).await
}

#[tokio::test]
async fn a_dead_letter_is_recorded_once_if_every_reply_is_lost_once() {
    let (_server, store) = lossy_job_store().await;
    let job = new_job().job.job_guid;
    let about = DeadLetterKind::Split.into();
    let letter = DeadLetter { message_id: "m".into(), about, attempt: 1, chunk: None, at: at(1) };
    store.record_dead_letter(job, &letter).await.unwrap();
    assert_eq!(store.dead_letters(job, 10).await.unwrap(), [letter]);
}
