//! Examples of every body, in the form of the types: what they show is what is sent.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rowmill_core::model::at_work::TaskState;
use rowmill_core::model::audit::{AuditProof, AuditVerdict};
use rowmill_core::model::causes::{Cause, CauseCount, CauseExample, CauseName};
use rowmill_core::model::cost::Usage;
use rowmill_core::model::dead_letter::DeadLetterKind;
use rowmill_core::model::files::{FileCounts, FileProblem, FileState};
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::job::Priority;
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::model::results::{CopyState, ResultFile, ResultKind};
use rowmill_core::model::run_output::FailedItem;
use rowmill_core::model::sha256::sha256_hex;
use rowmill_core::model::warnings::WarningCode;
use rowmill_core::model::why::{JobWhy, Reason, ReasonCode};
use rowmill_core::text::ColumnType;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::at_work::{TaskAtWork, TaskPage, WorkerList, WorkerView};
use crate::client_config::{ClientConfig, ClientLimits, SignIn};
use crate::cost::JobCost;
use crate::dataset::{DatasetList, DatasetView, ImportView, RecordList, RecordView, WrittenBy};
use crate::dead_letter::{DeadChunk, DeadLetter, DeadLetterList};
use crate::document::OpenApiDocument;
use crate::estimate::EstimateView;
use crate::item::{
    FailedItemPage, FilePage, ItemTable, SkippedItem, SkippedItemPage, SucceededItem, SucceededItemPage,
};
use crate::job::{JobLinks, JobPage, JobView, JobWarning, Stage};
use crate::live::LiveTicketView;
use crate::preview::{FileFormat, PreviewColumn, PreviewRow, PreviewView};
use crate::problem::{GatewayMessage, ProblemCode, ProblemView};
use crate::request::{
    AnnounceRequest, CreateJobRequest, DedupeBy, PreviewRequest, PruneRequest, RedriveRequest, RetuneRequest,
    SignPartsRequest, Tolerance, UploadRequest,
};
use crate::results::{CopyView, FileView, LinkView, ManifestView, ResultsView};
use crate::routes::Body;
use crate::task::{
    ItemFailure, LeaseRequest, ProductRequest, ReleaseRequest, ReportRequest, TaskItemView, TaskOrder, TaskOrderView,
    TaskView,
};
use crate::upload::{RequestView, UploadStatus, UploadView};

const JOB_GUID: JobGuid = JobGuid(Uuid::from_u128(0x01a1f997_c087_7785_ba44_fdac1155c2bf));
const FILE_GUID: FileGuid = FileGuid(Uuid::from_u128(0x7d3f6f4e_2f0b_4c57_9d0e_5a1c3b2e8f10));

/// Gives each body its example.
macro_rules! examples {
    ($($body:ident => $example:expr,)+) => {
        $(impl Body for $body {
            fn example() -> Self {
                $example
            }
        })+
    };
}

examples! {
    UploadRequest => UploadRequest::Announce(announce_request()),
    CreateJobRequest => create_job_request(),
    PruneRequest => PruneRequest { dry_run: Some(true) },
    RedriveRequest => RedriveRequest { file_guid: None, select: None, deadline_seconds: Some(3600) },
    RetuneRequest => RetuneRequest { deadline_seconds: Some(28_800), ..RetuneRequest::default() },
    UploadView => upload(),
    SignPartsRequest => SignPartsRequest { from: Some(58) },
    EstimateView => estimate(),
    PreviewRequest => preview_request(),
    PreviewView => preview(),
    JobView => job(),
    JobPage => JobPage { jobs: vec![job()], next: None },
    FailedItemPage => failed_items(),
    SkippedItemPage => skipped_items(),
    SucceededItemPage => succeeded_items(),
    FilePage => files(),
    ResultsView => results(),
    DeadLetterList => dead_letters(),
    DatasetList => datasets(),
    RecordList => records(),
    AuditProof => audit(),
    JobWhy => why(),
    GatewayMessage => GatewayMessage { message: "Too Many Requests".into() },
    TaskPage => TaskPage { tasks: vec![task_at_work()], next: None },
    WorkerList => workers(),
    LeaseRequest => LeaseRequest {
        job_types: vec!["render".to_owned()],
        worker: "render-7".to_owned(),
        client: Some("render-farm/1.4.0".to_owned()),
    },
    TaskView => task(),
    ReportRequest => report(),
    ReleaseRequest => ReleaseRequest { token: TOKEN.to_owned(), failed: false },
    ProductRequest => ProductRequest {
        token: TOKEN.to_owned(),
        item_identifier: format!("{JOB_GUID}/7"),
        name: "frame.png".to_owned(),
        content_type: Some("image/png".to_owned()),
        bytes: 7_340_032,
    },
    RequestView => upload().upload.expect("it is sent with one"),
    TaskOrderView => TaskOrderView { order: TaskOrder::Continue.into(), beat_seconds: Some(60) },
    LiveTicketView => live_ticket(),
    OpenApiDocument => document(),
    ClientConfig => client_config(),
    ProblemView => ProblemCode::NotFound.problem(ProblemCode::NotFound.meaning()),
}

/// The example of a problem of this code with this status.
pub(super) fn problem(code: ProblemCode, status: u16) -> Value {
    let problem = code.problem(code.meaning());
    value(&ProblemView { status, title: code.title(status).to_owned(), ..problem })
}

fn value(example: &impl Serialize) -> Value {
    serde_json::to_value(example).expect("an example is JSON")
}

/// So many seconds after the example's job was created.
fn at(seconds: i64) -> Timestamp {
    Timestamp::constant(1_795_000_000 + seconds, 0)
}

/// A completed job with a failed row.
pub fn job() -> JobView {
    JobView {
        job_guid: JOB_GUID,
        job_type: "import".to_owned(),
        file_guid: Some(FILE_GUID),
        files: None,
        priority: Priority::Normal.into(),
        max_concurrency: None,
        tolerance: None,
        status: Status::Completed,
        outcome: Some(JobOutcome::Partial),
        stage: Stage::Ended.into(),
        message: "Job complete".to_owned(),
        percent: 100,
        item_count: 11_231,
        item_count_final: true,
        item_progress: 11_231,
        items_succeeded: 11_230,
        items_failed: 1,
        items_skipped: 0,
        items_at_work: None,
        chunks_in_flight: 0,
        cost: Some(cost()),
        attempt: 1,
        version: 1_924_145_348_608,
        created_at: at(0),
        started_at: Some(at(1)),
        first_chunk_at: Some(at(2)),
        heartbeat_at: at(7),
        deadline_at: at(14_400),
        start_by: Some(at(1800)),
        finished_at: Some(at(7)),
        expires_at: Some(at(2_592_000)),
        pause: None,
        error: None,
        warnings: vec![JobWarning {
            code: WarningCode::UnnamedColumns.into(),
            message: "Columns of the header have no name. They are read under other names: column 4 as `column4`."
                .to_owned(),
        }],
        causes: vec![CauseCount { name: cause(), items: 1 }],
        undone_by: None,
        unprocessed: None,
        metadata: json!({ "order": "7/2" }).as_object().cloned(),
        links: JobLinks::of(JOB_GUID),
    }
}

/// What is wrong with the failed row.
const TOO_FEW: &str = "2 cells where the header has 3";

fn cause() -> CauseName {
    CauseName { code: "ragged_row".to_owned(), column: None, rule: None }
}

/// The cost of the example's job.
fn cost() -> JobCost {
    JobCost::of(&Usage {
        dynamodb_requests: 94,
        read_halves: 88,
        write_halves: 250,
        s3_reads: 28,
        s3_writes: 5,
        sqs_requests: 6,
        lambda_requests: 6,
        lambda_mb_ms: 4_587_520,
    })
}

fn estimate() -> EstimateView {
    EstimateView {
        items: Some(11_000),
        items_final: false,
        chunks: Some(22),
        cost: Some(cost()),
        seconds_at_least: Some(1.5),
    }
}

/// An announced upload that is sent with one presigned request.
pub fn upload() -> UploadView {
    UploadView {
        file_guid: FILE_GUID,
        status: UploadStatus::Pending.into(),
        file_name: Some("people.csv".to_owned()),
        content_type: "text/csv".to_owned(),
        size: 7_340_032,
        sha256: None,
        created_at: at(-60),
        expires_at: at(604_740),
        bytes_stored: None,
        parts_stored: None,
        upload: Some(RequestView {
            method: "PUT".to_owned(),
            url: "https://bucket.s3.eu-central-1.amazonaws.com/uploads/7d3f6f4e?X-Amz-Signature=…".to_owned(),
            headers: BTreeMap::from([
                ("content-length".to_owned(), "7340032".to_owned()),
                ("content-type".to_owned(), "text/csv".to_owned()),
            ]),
            expires_at: at(3540),
        }),
        parts: None,
        part_size: None,
        next_part: None,
        source: None,
        failure: None,
    }
}

fn preview_request() -> PreviewRequest {
    PreviewRequest {
        job_type: Some("import".to_owned()),
        params: json!({ "dataset": "people", "key": "id" }).as_object().cloned().unwrap_or_default(),
        rows: Some(20),
    }
}

fn preview() -> PreviewView {
    let column = |name: &str, kind: ColumnType| PreviewColumn { name: name.to_owned(), r#type: kind.into() };
    let row = |row, cells: [&str; 2]| PreviewRow {
        row,
        cells: Some(cells.map(str::to_owned).into()),
        value: None,
        problem: None,
        output: None,
        shortened: false,
    };
    PreviewView {
        member: None,
        format: FileFormat::Csv.into(),
        packing: None,
        delimiter: Some(";".to_owned()),
        encoding: Some("windows-1252".to_owned()),
        header_row: Some(1),
        columns: vec![column("id", ColumnType::Integer), column("city", ColumnType::String)],
        column_count: 2,
        rows: vec![row(1, ["1", "Köln"]), row(2, ["2", "Orléans"])],
        complete: true,
        warnings: Vec::new(),
        params_problem: None,
    }
}

/// The results of the example's job.
pub fn results() -> ResultsView {
    let link = |name: &str| LinkView {
        file_name: format!("import-{JOB_GUID}-{name}"),
        url: format!("https://bucket.s3.eu-central-1.amazonaws.com/results/{name}?X-Amz-Signature=…"),
    };
    ResultsView {
        job_guid: JOB_GUID,
        attempt: 1,
        status: Status::Completed,
        expires_at: at(3600),
        files: vec![FileView {
            file: ResultFile {
                name: "failed-rows.csv".to_owned(),
                kind: ResultKind::FailedRows.into(),
                content_type: "text/csv".to_owned(),
                bytes: 123,
                items: Some(1),
                crc64_nvme: "rosUhgp5mIg=".to_owned(),
            },
            link: link("failed-rows.csv"),
        }],
        left_out: Vec::new(),
        causes: vec![Cause {
            name: cause(),
            items: 1,
            examples: vec![CauseExample { row: 7, message: TOO_FEW.to_owned() }],
        }],
        other_causes: 0,
        changes: None,
        manifest: ManifestView {
            name: "manifest.json".to_owned(),
            content_type: "application/json".to_owned(),
            bytes: 1024,
            crc64_nvme: "rosUhgp5mIg=".to_owned(),
            link: link("manifest.json"),
        },
        copy: Some(CopyView {
            to: format!("s3://reports/people/import-{JOB_GUID}/1/"),
            state: CopyState::Stored,
            problem: None,
        }),
    }
}

fn announce_request() -> AnnounceRequest {
    AnnounceRequest {
        file_name: "people.csv".to_owned(),
        content_type: "text/csv".to_owned(),
        size: 7_340_032,
        sha256: None,
    }
}

fn create_job_request() -> CreateJobRequest {
    CreateJobRequest {
        job_type: "import".to_owned(),
        file_guid: Some(FILE_GUID),
        source: None,
        after: None,
        items: None,
        dedupe: Some(DedupeBy::File),
        params: json!({ "dataset": "people", "key": "id" }).as_object().cloned().unwrap_or_default(),
        tolerance: Some(Tolerance { percent: Some(2.5), count: None, minimum_items: Some(100) }),
        max_concurrency: None,
        priority: Some(Priority::Normal),
        deadline_seconds: Some(14_400),
        start_within_seconds: Some(1800),
        keep_seconds: None,
        results_to: None,
        metadata: json!({ "order": "7/2" }).as_object().cloned(),
    }
}

const TOKEN: &str = "5b0c6f1d2e3a4b";

fn task() -> TaskView {
    TaskView {
        task_id: format!("{JOB_GUID}.1.0.3"),
        token: TOKEN.to_owned(),
        job_guid: JOB_GUID,
        job_type: "render".to_owned(),
        params: json!({ "width": 800 }).as_object().cloned().unwrap_or_default(),
        items: vec![TaskItemView {
            item_identifier: format!("{JOB_GUID}/7"),
            row: 7,
            record: json!({ "scene": "harbour", "frame": "12" }),
        }],
        first_beat_seconds: 30,
        beat_seconds: 60,
        stop_after_seconds: 90,
    }
}

/// A task in the hands of a worker, with half of its items done.
pub fn task_at_work() -> TaskAtWork {
    TaskAtWork {
        task_id: format!("{JOB_GUID}.1.0.3"),
        first_row: 7,
        items: 20,
        done: 10,
        state: TaskState::Held.into(),
        worker: Some("render-7".to_owned()),
        since: Some(at(60)),
        last_beat_at: Some(at(300)),
        until: Some(at(390)),
    }
}

/// A worker with two tasks.
pub fn workers() -> WorkerList {
    let worker = WorkerView {
        worker: "render-7".to_owned(),
        job_type: "render".to_owned(),
        tasks_held: 2,
        tasks_dead: 0,
        items: 40,
        items_done: 17,
        since: at(60),
        last_beat_at: Some(at(300)),
    };
    WorkerList { workers: vec![worker], complete: true }
}

fn report() -> ReportRequest {
    ReportRequest {
        token: TOKEN.to_owned(),
        item_identifiers: None,
        batch_item_failures: vec![ItemFailure {
            item_identifier: format!("{JOB_GUID}/7"),
            code: Some("no_such_scene".to_owned()),
            message: Some("there is no scene `harbour`".to_owned()),
            column: Some("scene".to_owned()),
            transient: None,
        }],
        outputs: Vec::new(),
    }
}

fn failed_items() -> FailedItemPage {
    let item = FailedItem {
        row: 7,
        file: None,
        offset: 412,
        length: 9,
        code: cause().code,
        message: TOO_FEW.to_owned(),
        column: None,
        rule: None,
        raw: Some("7,too few".to_owned()),
        raw_base64: None,
    };
    let table = ItemTable {
        format: "csv".to_owned(),
        delimiter: Some(",".to_owned()),
        columns: ["id", "name", "age"].map(str::to_owned).to_vec(),
        corrected_header: ["id", "name", "age", "row"].map(str::to_owned).to_vec(),
    };
    FailedItemPage { items: vec![item], next: None, table: Some(table) }
}

fn skipped_items() -> SkippedItemPage {
    SkippedItemPage { items: vec![SkippedItem::of(8, None)], next: Some("8".into()) }
}

fn succeeded_items() -> SucceededItemPage {
    let output = r#"{"row":7,"key":"7"}"#;
    SucceededItemPage { items: vec![SucceededItem::of(7, output.to_owned())], next: Some("7".into()) }
}

/// Also for the tests of the command.
pub fn datasets() -> DatasetList {
    let last_import = ImportView { job_guid: JOB_GUID, created_at: at(0) };
    let (name, records) = ("customers".into(), "/api/datasets/customers/records".into());
    let dataset = DatasetView { name, last_import, records, expires_in_seconds: Some(2_592_000) };
    DatasetList { datasets: vec![dataset], next: None }
}

/// Also for the tests of the command.
pub fn records() -> RecordList {
    let fields = json!({ "id": "c-17", "name": "Ada", "city": "Rome" });
    let written_by = WrittenBy { job_guid: JOB_GUID, row: 17 };
    let (fields, expires_at) = (fields.as_object().cloned().unwrap_or_default(), Some(at(2_592_000)));
    let record = RecordView { key: "c-17".into(), fields, written_by, expires_at };
    RecordList { records: vec![record], next: Some("3.c-17".into()) }
}

fn files() -> FilePage {
    let problem = FileProblem {
        code: "unreadable_file".to_owned(),
        message: "The gzip file ends early. Upload it again.".to_owned(),
    };
    let file = |number, name: &str, rows, failed, problem| FileCounts {
        name: name.to_owned(),
        number,
        state: FileState::Done,
        rows,
        pending: 0,
        succeeded: rows - failed,
        failed,
        skipped: 0,
        problem,
    };
    let files = vec![file(0, "2026-01.csv", 31_000, 12, None), file(1, "2026-02.csv.gz", 1, 1, Some(problem))];
    FilePage { files, next: None }
}

fn live_ticket() -> LiveTicketView {
    LiveTicketView {
        ticket: "9f2c…".to_owned(),
        url: "wss://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/live".to_owned(),
        expires_at: at(60),
    }
}

fn client_config() -> ClientConfig {
    let sign_in = SignIn {
        issuer: "https://issuer.example".to_owned(),
        client_id: "rowmill-page".to_owned(),
        scope: "openid".to_owned(),
        audience: "rowmill".to_owned(),
    };
    ClientConfig {
        live: true,
        sign_in: Some(sign_in),
        bucket_origin: "https://bucket.s3.eu-central-1.amazonaws.com".to_owned(),
        limits: ClientLimits { direct_max_bytes: 5_000_000, upload_max_bytes: 107_374_182_400 },
        job_types: ["export", "import", "transform", "validate"].map(str::to_owned).to_vec(),
        job_types_without_file: vec!["export".to_owned()],
    }
}

fn document() -> OpenApiDocument {
    OpenApiDocument { openapi: "3.1.0", info: json!({ "title": "Rowmill" }), paths: json!({}) }
}

fn dead_letters() -> DeadLetterList {
    let letter = DeadLetter {
        message_id: "2c8ab6a2-0d3c-4f0c-8e46-5f1d6f1f6a11".to_owned(),
        about: DeadLetterKind::Items.into(),
        attempt: 1,
        chunk: Some(DeadChunk { tally: 0, index: 3, first_row: 1501, items: 500 }),
        at: at(300),
    };
    DeadLetterList { dead_letters: vec![letter] }
}

/// The proof of the example's job.
pub fn audit() -> AuditProof {
    let view = AuditProof {
        job_guid: JOB_GUID,
        attempt: 1,
        status: Status::Completed,
        verdict: AuditVerdict::Proved.into(),
        finding: None,
        item_count: 11_231,
        items_succeeded: 11_230,
        items_failed: 1,
        items_skipped: 0,
        tallies: 1,
        chunks: 23,
        chunks_committed: 23,
        chunks_skipped: 0,
        chunks_open: 0,
        run_outputs: 1,
        tallies_expired: 0,
        at: at(60),
        next: None,
        evidence: sha256_hex("all that was read"),
        digest: String::new(),
    };
    view.sealed()
}

/// Why a job like the example's is not done: it has a limit of its own, and runs.
pub fn why() -> JobWhy {
    let width = Reason::new(
        ReasonCode::MaxConcurrency,
        "At most 4 chunks of the job are in flight at once: its `maxConcurrency`. The others wait.",
    );
    let width = width.number("limit", 4_u32).number("chunksInFlight", 4_u32).number("chunksWaiting", 12_u32);
    let running = Reason::new(ReasonCode::Running, "Items are being processed: 3500 so far, about 630000 an hour.");
    let running = running.since(at(10)).number("itemsDone", 3500_u32).number("itemsPerHour", 630_000_u32);
    let running = Reason { expected_end_at: Some(at(74)), ..running };
    JobWhy { job_guid: JOB_GUID, at: at(30), reasons: vec![width, running] }
}
