//! A sample of everything that is stored or sent.

use aws_sdk_dynamodb::types::AttributeValue;
use complete_job::compose::Composition;
use jiff::Timestamp;
use rowmill_aws::adapters::dynamodb::{
    DynamoDbBreakers, DynamoDbJobStore, DynamoDbLive, DynamoDbQuotas, DynamoDbRecordStore, DynamoDbTasks,
    DynamoDbUploadStore,
};
use rowmill_core::model::blocks::{AT, Principal, REASON, scope};
use rowmill_core::model::breaker::{Breaker, BreakerState, Probe};
use rowmill_core::model::checkpoint::{Checkpoint, InFlight, Suspects};
use rowmill_core::model::chunk_index::{ChunkIndex, IndexedPart, RecordPosition, StoredChunks};
use rowmill_core::model::cost::Usage;
use rowmill_core::model::dead_letter::{DeadChunk, DeadLetter, DeadLetterKind};
use rowmill_core::model::files::{FileList, FilePosition, FileRow, LayoutId, Part, PartFile, PartText};
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner, RunId};
use rowmill_core::model::job::states::{JobOutcome, Phase};
use rowmill_core::model::job::{Awaits, End, Job, Lease, Priority, Redrive};
use rowmill_core::model::live::{Connection, ConnectionId, Ticket, TicketDigest, Topic};
use rowmill_core::model::messages::{
    ChunkMessage, CompletionMessage, DeliveryMode, FetchMessage, SplitMessage, StoredText,
};
use rowmill_core::model::outstanding::{OutstandingLimits, OutstandingUpload};
use rowmill_core::model::packing::{Compression, Packing, TextPacking};
use rowmill_core::model::permit::PermitSeen;
use rowmill_core::model::records::{Dataset, DatasetRecord, RecordVersion, Writer};
use rowmill_core::model::request_limits::RequestLimits;
use rowmill_core::model::results::{LeftOut, Manifest, ManifestFile, ResultFile, ResultKind, Results};
use rowmill_core::model::run_output::{FailedItem, ItemOutput, RunOutput};
use rowmill_core::model::spec::{AwaitedFile, OutputFile, Source, Spec};
use rowmill_core::model::stored_record::{Pruning, StoredRecord, Undoing};
use rowmill_core::model::tally::{ChunkAddress, Commit, Counts, Mark, MarkKind, Tally};
use rowmill_core::model::task::{Holder, Task};
use rowmill_core::model::upload::{FetchBegun, FetchFailure, Multipart, Origin, Upload, UploadState};
use rowmill_core::ports::{
    Admissions, Attempts, Blocks, Breakers, Ceilings, Checkpoints, CommitAnswer, Completion, Completions, Connections,
    DeadLetters, Dedupe, Idempotency, Jobs, KeyRange, NewAttempt, NewJob, OutstandingUploads, Permits, Reading,
    RecordStore, Replacement, RequestCounts, RequestToCount, Subscriptions, Tallies, Tasks, Tickets, UpdateAnswer,
    Updates, UploadStore, WAKE_SHARDS, Waits, WakeUps,
};
use rowmill_core::text::{Chunk, ChunkMode, Dialect, Format, Head, Position};
use rowmill_settings::QUEUES;
use rowmill_testing::contract;
use rowmill_testing::fixtures::{self, causes};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::dynamodb_server::{Server, create_job_tables, create_table};
use crate::lost_replies::{at, change};

/// The tables. Their files have these names, without the number.
pub const TABLES: [&str; 6] = ["jobs-0", "admission-0", "uploads", "connections", "records", "tasks-0"];

const CHUNK: ChunkAddress = ChunkAddress { attempt: 1, tally: 0, index: 0 };
const CUT: Chunk = Chunk { offset: 9, length: 50, first_row: 1, items: 5, mode: ChunkMode::Items };
const START: Position = Position { offset: 9, row: 1 };
const COUNTS: Counts = Counts { succeeded: 3, failed: 1, skipped: 1 };

fn guid(number: u128) -> JobGuid {
    JobGuid(Uuid::from_u128((1_750_000_000_000 << 80) | (7 << 76) | (0b10 << 62) | number))
}

fn file(number: u128) -> FileGuid {
    FileGuid(Uuid::from_u128(number))
}

const fn run(number: u8) -> RunId {
    RunId::from_bytes([number; 7])
}

fn me() -> Owner {
    Owner("me".into())
}

fn fields(fields: Value) -> Map<String, Value> {
    fields.as_object().cloned().unwrap()
}

/// The stores of a stack on DynamoDB, with a sample of each row.
pub struct Stores {
    pub server: Server,
    jobs: DynamoDbJobStore,
    breakers: DynamoDbBreakers,
    quotas: DynamoDbQuotas,
    uploads: DynamoDbUploadStore,
    live: DynamoDbLive,
    records: DynamoDbRecordStore,
    tasks: DynamoDbTasks,
}

impl Stores {
    pub async fn new() -> Self {
        let server = Server::start().await;
        let [jobs, admission, uploads, live, records, _] = TABLES.map(str::to_owned);
        create_job_tables(&server.client, 0).await;
        for (table, keys) in
            [(&uploads, &["fileGuid"][..]), (&live, &["scope", "entry"]), (&records, &["bucket", "key"])]
        {
            create_table(&server.client, table, keys).await;
        }
        let client = || server.client.clone();
        Self {
            jobs: DynamoDbJobStore::new(client(), jobs, Some(admission.clone())),
            breakers: DynamoDbBreakers::new(client(), admission.clone()),
            quotas: DynamoDbQuotas::new(client(), admission),
            uploads: DynamoDbUploadStore::new(client(), uploads),
            live: DynamoDbLive::new(client(), live),
            records: DynamoDbRecordStore::new(client(), records, contract::records_clock()),
            tasks: DynamoDbTasks::new(client(), server.tasks_table().await),
            server,
        }
    }

    pub async fn write(&self) {
        self.write_jobs().await;
        self.write_details().await;
        self.write_admission().await;
        self.write_uploads().await;
        self.write_live().await;
        self.write_tasks().await;
        let upsert =
            DatasetRecord { key: "k".into(), version: version(), fields: fields(json!({"n": 1.5, "t": ["ä", null]})) };
        let dataset = self.records.open(&Dataset::lasting("d", 1), version().by).await.unwrap();
        assert!(self.records.upsert(&dataset, &[upsert]).await[0].is_ok());
        let expiring = Dataset { expires_in: Some(3600), ..Dataset::lasting("e", 1) };
        let expiring = self.records.open(&expiring, version().by).await.unwrap();
        let upsert = DatasetRecord { key: "k".into(), version: version(), fields: fields(json!({ "n": 1 })) };
        assert!(self.records.upsert(&expiring, &[upsert]).await[0].is_ok());
        let row = |number| DatasetRecord {
            key: "undone".into(),
            version: RecordVersion { row: number, ..version() },
            fields: fields(json!({ "n": number })),
        };
        let mut earlier = row(1);
        earlier.version.by.job_created_ms -= 1;
        earlier.version.by.job_guid = guid(9);
        let below = StoredRecord::first(earlier).with(&row(2)).unwrap();
        let Undoing::Reverse(undone) = below.undo(version().by.job_guid, guid(8)) else { unreachable!() };
        let import = Writer { job_created_ms: version().by.job_created_ms + 1, job_guid: guid(7) };
        let Pruning::Remove(pruned) = below.prune(import, guid(6)) else { unreachable!() };
        let mut later = row(3);
        later.version.by.job_created_ms += 2;
        let above = pruned.with(&later).unwrap();
        for (key, record) in [("undone", *undone), ("pruned", *pruned), ("above a prune", above)] {
            let record = StoredRecord { latest: DatasetRecord { key: key.into(), ..record.latest }, ..record };
            let replacement = Replacement { key: key.into(), record: Some(record), seen: None };
            let stored = self.records.replace(&dataset, &[replacement]).await;
            assert!(matches!(stored[..], [Ok(true)]), "{stored:?}");
        }
    }

    /// A job in each phase; one as it was created, one that ended and one that was redriven.
    async fn write_jobs(&self) {
        let phases = [fixtures::full_job().phase].into_iter().chain(fixtures::phases());
        for (number, phase) in (3..).zip(phases) {
            self.jobs.create(&new_job(number)).await.unwrap();
            let seen = self.jobs.job(guid(number)).await.unwrap();
            let next = Job { job_guid: guid(number), phase, ..fixtures::full_job() };
            assert!(matches!(self.jobs.update(&seen, &next, Usage::NONE).await, Ok(UpdateAnswer::Written(_))));
            let stored = Job { usage: seen.usage, revision: seen.revision + 1, ..next };
            assert_eq!(self.jobs.job(guid(number)).await.unwrap(), stored);
        }
        let idempotency = Idempotency { key: "key".into(), fingerprint: "f".into(), expires_at: at(100) };
        let dedupe = Dedupe { key: "key".into(), replaces: None, expires_at: at(200) };
        let waiting = NewJob { idempotency: Some(idempotency), dedupe: Some(dedupe), ..new_job(0) };
        self.jobs.create(&waiting).await.unwrap();
        for number in [1, 2] {
            self.jobs.create(&new_job(number)).await.unwrap();
            let lease = Lease { holder: run(1), until: at(50) };
            let seen = change(&self.jobs, guid(number), |job| job.take(lease, at(1))).await;
            let results = Some(Results { attempt: 1, manifest: run(2), causes: causes() });
            let (outcome, finished_at, expires_at) = (Ok(JobOutcome::Partial), at(20), at(2000));
            let end = End { outcome, counts: COUNTS, results, finished_at, expires_at };
            let usage = Usage { lambda_mb_ms: 9, ..Usage::of_transaction(5).with_sends(6) };
            self.jobs.complete(&Completion { seen, end, usage }).await.unwrap();
        }
        for (number, awaits, source) in [
            (11, Awaits::Job(guid(1)), AwaitedFile::Result { job: guid(1), kind: ResultKind::Output }),
            (12, Awaits::File, AwaitedFile::Upload(file(4))),
        ] {
            let NewJob { mut spec, job, .. } = new_job(number);
            spec.source = Source::Awaited(source);
            let waiting = NewJob { job: Job { awaits: Some(awaits), ..job }, spec, ..new_job(number) };
            self.jobs.create(&waiting).await.unwrap();
        }
        let redrive = fixtures::full_job().redrive.unwrap();
        let (seen, ceilings) = (self.jobs.job(guid(2)).await.unwrap(), new_job(2).ceilings);
        let redrive = Redrive { before: COUNTS, ..redrive };
        let attempt = NewAttempt { seen, redrive, ceilings, at: at(30), deadline_at: at(900), wake_at: at(90) };
        self.jobs.redrive(&attempt).await.unwrap();
    }

    /// The other rows of the first job.
    async fn write_details(&self) {
        let (jobs, job) = (&self.jobs, guid(0));
        let usage = Usage::of_transaction(3).with_sends(2);
        let tally = Tally { stored_by: Some(run(3)), usage, ..Tally::of(1, 0, START, &[CUT; 5], at(2)) };
        jobs.put_tally(job, &tally).await.unwrap();
        let kinds = [MarkKind::Clean, MarkKind::HasFailed, MarkKind::HasOutputs, MarkKind::Skipped, MarkKind::Stopped];
        let commits = (0..).zip(kinds).map(|(index, kind)| {
            let (chunk, mark) = (ChunkAddress { index, ..CHUNK }, Mark { kind, run: run(4) });
            Commit { chunk, mark, counts: COUNTS, bytes: 50, at: at(5) }
        });
        jobs.note_next_sent(job, 1, 0).await.unwrap();
        let CommitAnswer::Applied(tally) = jobs.commit(job, &commits.collect::<Vec<_>>()).await.unwrap() else {
            panic!("not committed")
        };
        jobs.fold(job, &tally).await.unwrap();
        jobs.set_final_tallies(job, 1, 1).await.unwrap();
        jobs.move_checkpoint(job, &checkpoint()).await.unwrap();
        let chunk = Some(DeadChunk { tally: 0, index: 0, first_row: 1, items: 5 });
        let about = DeadLetterKind::Items.into();
        let letter = DeadLetter { message_id: "m".into(), about, attempt: 1, chunk, at: at(6) };
        jobs.record_dead_letter(job, &letter).await.unwrap();
    }

    async fn write_admission(&self) {
        for (job_type, breaker) in breakers() {
            self.breakers.move_breaker(job_type, &breaker).await.unwrap();
        }
        self.quotas.count(&request(), LIMITS).await.unwrap();
        self.quotas.add(&me(), &outstanding(1), OUTSTANDING, at(0)).await.unwrap();
        // As `rowmill block` writes it.
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let block = self.server.client.put_item().table_name(TABLES[1]).item("scope", text(&scope(&principal())));
        let block = block.item(AT, AttributeValue::N("1750000000000".into())).item(REASON, text("why"));
        block.send().await.unwrap();
    }

    async fn write_uploads(&self) {
        for number in 1..=5 {
            let (size, sha256, file_name) = (10, Some("ab".into()), Some("f.csv".into()));
            let (file_guid, content_type, key) = (file(number), "text/csv".into(), format!("uploads/{number}"));
            let multipart = (2..=3).contains(&number).then(|| Multipart { id: "m".into(), part_size: 5 });
            let (owner, state, created_at, expires_at) = (me(), UploadState::Pending { multipart }, at(0), at(900));
            let upload = Upload {
                file_guid,
                owner,
                file_name,
                content_type,
                size,
                sha256,
                key,
                state,
                origin: (number > 3).then(|| Origin::at("https://data.example.org/f.csv?key=value")),
                created_at,
                expires_at,
            };
            self.uploads.create(&upload).await.unwrap();
        }
        self.uploads.mark_ready(file(3), "e").await.unwrap();
        let (multipart, validator) = (Multipart { id: "m".into(), part_size: 5 }, Some("v".into()));
        let begun = FetchBegun { size: 10, content_type: "text/csv".into(), validator, multipart };
        self.uploads.begin_fetch(file(4), &begun).await.unwrap();
        let failure = FetchFailure { code: "source_refused".into(), detail: "It is gone.".into() };
        self.uploads.fail(file(5), &failure).await.unwrap();
    }

    async fn write_live(&self) {
        let connection = Connection { id: connection(), owner: me(), until: at(100) };
        let ticket = Ticket { owner: me(), until: at(60), connection_until: at(100) };
        self.live.issue(&TicketDigest::of("t"), &ticket).await.unwrap();
        self.live.open(&connection).await.unwrap();
        for topic in [Topic::Mine, Topic::Job(guid(0))] {
            self.live.subscribe(&connection, topic, 9).await.unwrap();
        }
    }

    /// A task that waits and has never been lent, one that a worker has leased with a permit, and that of a service.
    async fn write_tasks(&self) {
        for task in [task(1, false), task(2, false), task(3, true)] {
            self.tasks.offer(&task, at(7)).await.unwrap();
        }
        let holder = Holder { worker: "w".into(), since: at(8) };
        self.tasks.put_off(&task(2, false), at(38), Some(&holder)).await.unwrap();
        self.tasks.note_ask("render", at(8)).await.unwrap();
        let leased = Checkpoint::blank(task(2, false).id().chunk, at(8)).leased(run(7), 5, 5, at(8));
        let permit = PermitSeen { job_type: "render".into(), number: 0, token: None };
        assert!(self.jobs.lease_with_permit(guid(0), &leased, &permit).await.unwrap());
    }

    /// What the stores read, a line for each value.
    pub async fn read(&self) -> Vec<String> {
        let (jobs, job, now, mut lines) = (&self.jobs, guid(0), at(0), Vec::new());
        macro_rules! read {
            ($($value:expr),+ $(,)?) => { $(lines.push(format!("{:?}", $value.await));)+ };
        }
        for number in 0..=12 {
            read!(jobs.job(guid(number)), jobs.spec(guid(number)));
        }
        for shard in 0..WAKE_SHARDS {
            read!(jobs.due(shard, Timestamp::MAX, 9));
        }
        let full = Ceilings { owner: 1, job_type: 1, system: 1 };
        read!(
            jobs.tally(job, 1, 0),
            jobs.totals(job, 1),
            jobs.checkpoint(job, CHUNK),
            jobs.dead_letters(job, 9),
            jobs.remembered(&me(), "key", now),
            jobs.deduped(&me(), "key", now),
            jobs.awaiting(guid(1).0),
            jobs.awaiting(file(4).0),
            async { jobs.taken(&me(), "import").await.map(|taken| taken.reached(full)) },
        );
        for (job_type, _) in breakers() {
            read!(self.breakers.breaker(job_type));
        }
        read!(
            self.quotas.count(&request(), LIMITS),
            self.quotas.add(&me(), &outstanding(2), OUTSTANDING, now),
            self.quotas.block(&principal()),
            self.uploads.upload(file(1), now),
            self.uploads.upload(file(2), now),
            self.uploads.upload(file(3), now),
            self.uploads.upload(file(4), now),
            self.uploads.upload(file(5), now),
            self.live.connection(&connection(), now),
            self.live.watchers(&me()),
            self.live.redeem(&TicketDigest::of("t"), now),
            jobs.checkpoint(job, task(2, false).id().chunk),
            jobs.permits("render"),
            self.tasks.of_job("render", &me(), job, None, 9),
            self.tasks.owners("render", 0, 9),
            self.tasks.last_ask("render"),
            self.records.opened("d"),
            self.records.opened("e"),
            self.records.page(&Dataset::lasting("d", 1), 0, KeyRange::default(), 9, Reading::Recent),
        );
        lines
    }
}

const LIMITS: RequestLimits = RequestLimits { per_minute: 1, per_hour: 1 };
const OUTSTANDING: OutstandingLimits = OutstandingLimits { uploads: 1, bytes: 10 };

/// Job `number`, of one of the four sources.
fn new_job(number: u128) -> NewJob {
    let spec = fixtures::spec();
    let source = match (number % 4, spec.source.clone()) {
        (1, Source::File(file)) => {
            let packing = TextPacking { compression: Some(Compression::Zstd), ..TextPacking::default() };
            Source::Packed { file, packing: Packing::Text(packing) }
        }
        (2, _) => Source::Dataset { dataset: "d".into(), keys_of: None },
        (3, Source::File(list)) => Source::Files(FileList { list, files: 2, bytes: 90 }),
        (_, file) => file,
    };
    let dialect = Dialect { format: Format::Csv, delimiter: b';' };
    let header = Some(vec!["a".into(), "a".into()]);
    let head = Head { dialect, columns: vec!["a".into(), "a_2".into()], header, data_start: 9 };
    let (name, content_type) = ("out.csv".into(), "text/csv".into());
    let output = Some(OutputFile { name, content_type, header: Some("a;b".into()), gzip: true, has_changes: false });
    let (created_at, params, max_concurrency) = (at(0), fields(json!({"dataset": "d"})), Some(3));
    let (job_guid, owner) = (guid(number), me());
    let spec = Spec { job_guid, owner, created_at, source, head, params, max_concurrency, output, ..spec };
    let ceilings = Ceilings { owner: 1000, job_type: 1000, system: 1000 };
    NewJob { job: Job::waiting(&spec, at(900), at(90)), spec, ceilings, idempotency: None, dedupe: None }
}

fn task(index: u8, called: bool) -> Task {
    let (address, delivery_mode) = (ChunkAddress { index, ..CHUNK }, DeliveryMode::Recovered);
    let message =
        ChunkMessage { job_guid: guid(0), owner: me(), address, delivery_mode, ..fixtures::chunk_message(0, 0) };
    Task { job_type: "render".into(), message, due_at: at(7), called, holder: None }
}

fn version() -> RecordVersion {
    RecordVersion { by: Writer::new(at(0), guid(0)), row: 1 }
}

fn principal() -> Principal {
    Principal::Owner(me())
}

fn connection() -> ConnectionId {
    ConnectionId("c=".into())
}

fn request() -> RequestToCount {
    RequestToCount { principal: principal(), operation: "createJob".into(), id: run(7), at: at(0) }
}

fn outstanding(number: u128) -> OutstandingUpload {
    OutstandingUpload { file_guid: file(number), bytes: 10, until: at(100) }
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        rev: 1,
        by: Some(run(5)),
        done: 2,
        counts: COUNTS,
        run_output: Some(run(6)),
        isolated: true,
        in_flight: Some(InFlight::of_run(at(9), 1, 1)),
        suspects: Some(Suspects { until: 4, part: 1, beyond: Some(2), deaths: 1, failures: 1 }),
        passed_over: 1,
        begun: Some(3),
        ..Checkpoint::blank(CHUNK, at(8))
    }
}

fn breakers() -> [(&'static str, Breaker); 3] {
    let probe = Probe { job: guid(0), attempt: 1, began: at(0), accounted: 3, until: at(9) };
    let of =
        |state| Breaker { rev: 1, at: at(0), state, openings: 1, code: "busy".into(), failed_probe: Some(guid(1)) };
    [
        ("import", of(BreakerState::Closed { since: at(0), failed: 1, good: 2 })),
        ("export", of(BreakerState::Open { until: at(9) })),
        ("validate", of(BreakerState::Probing(probe))),
    ]
}

/// The messages of each queue. Those of the inbox queue are written by S3.
pub fn messages() -> Value {
    let of = |stem: &str, priority: Priority| {
        let job = Job { priority, ..fixtures::full_job() };
        let chunk = ChunkMessage::of(&job, CHUNK, CUT);
        match stem {
            "Jobs" | "JobsHigh" | "Starts" => json!([SplitMessage::of(&job)]),
            "Items" | "ItemsHigh" | "ItemsLow" => {
                let stored = Some(StoredText { by: run(3), weight: 70 });
                let of_file = ChunkMessage { stored, part: Some(Box::new(part())), ..chunk.clone() };
                json!([
                    chunk,
                    ChunkMessage { stored, delivery_mode: DeliveryMode::Recovered, ..chunk.clone() },
                    of_file
                ])
            }
            "Isolate" => json!([ChunkMessage { delivery_mode: DeliveryMode::Isolated, ..chunk }]),
            "Lanes" => json!([ChunkMessage { lane: Some(1), ..chunk }]),
            "Completions" => {
                let runnable = Job { composing: None, phase: Phase::Runnable, ..job.clone() };
                json!([CompletionMessage::of(&job), CompletionMessage::of(&runnable)])
            }
            "Fetches" => json!([FetchMessage { file_guid: file(4), owner: me() }]),
            "Inbox" => json!([]),
            other => panic!("the queue {other} has no sample of its messages"),
        }
    };
    let priority = |stem: &str| match stem {
        high if high.ends_with("High") => Priority::High,
        low if low.ends_with("Low") => Priority::Low,
        _ => Priority::Normal,
    };
    let stems = QUEUES.iter().filter_map(|queue| Some(queue.queue?.stem));
    stems.map(|stem| (stem.to_owned(), of(stem, priority(stem)))).collect::<Map<_, _>>().into()
}

fn layout() -> LayoutId {
    LayoutId::of(&Head::without_columns(Dialect { format: Format::Jsonl, delimiter: b',' }, 0)).unwrap().0
}

/// The part of a chunk of a job over many files.
fn part() -> Part {
    let text = PartText::Object { key: "uploads/7".into(), etag: "\"e\"".into() };
    Part { layout: Some(layout()), file: Some(PartFile { name: "b.csv".into(), number: 1, start: START, text }) }
}

/// The objects with a format of their own. A run output is JSON lines, so it is a text here.
pub fn objects() -> Value {
    let next = Some(RecordPosition { partition: 1, after: Some("k".into()) });
    let next_file = Some(FilePosition { line: 90, number: 1, begun: Some(START) });
    let stored = Some(StoredChunks { by: run(3), weights: vec![70], next, next_file });
    let parts = vec![IndexedPart { first: 0, part: part() }];
    let index = ChunkIndex { start: START, end: Position { offset: 59, row: 6 }, chunks: vec![CUT], stored, parts };
    let result = ResultFile {
        name: "failed-rows.csv".into(),
        kind: ResultKind::FailedRows.into(),
        content_type: "text/csv".into(),
        bytes: 7,
        items: Some(1),
        crc64_nvme: "rosUhgp5mIg=".into(),
    };
    let files = vec![ManifestFile { file: result, by: run(2).to_string() }];
    let left_out = vec![LeftOut { file: "out.csv".into(), message: "why".into() }];
    let manifest = Manifest {
        schema_version: 1,
        job: json!({"status": "completed"}),
        files: files.clone(),
        left_out,
        causes: Vec::new(),
        other_causes: 0,
        changes: None,
        copied_to: Some("s3://b/p/import-j/1/".into()),
    };
    let (column, raw, raw_base64) = (Some("a".into()), Some("x;y".into()), Some("/w==".into()));
    let (code, message) = ("ragged_row".into(), "why".into());
    let file = Some(FileRow { name: "b.csv".into(), row: 1, layout: Some(layout()) });
    let failed = FailedItem { row: 1, file, offset: 9, length: 3, code, message, column, rule: None, raw, raw_base64 };
    let outputs = vec![ItemOutput { row: 2, output: "a;b".into() }];
    let output = RunOutput { failed: vec![failed], outputs, skipped_from: Some(3) };
    let output = String::from_utf8(output.to_bytes().unwrap()).unwrap();
    // Its fields are private to complete-job: this form is the sample, and what is written is what was read of it.
    let composition: Composition = serde_json::from_value(json!({
        "files": files, "leftOut": manifest.left_out, "step": {"outputs": {"after": 7}}, "tooLong": 1, "restarts": 1,
        "open": {
            "name": "out.csv", "kind": "output", "contentType": "text/csv", "gzip": false, "items": 2,
            "multipart": {"id": "m", "by": run(2), "parts": [{"number": 1, "etag": "e", "size": 8}]}, "bytes": 9, "crc": 5,
        },
    }))
    .unwrap();
    json!({"chunkIndex": index, "manifest": manifest, "runOutput": output, "composition": composition})
}
