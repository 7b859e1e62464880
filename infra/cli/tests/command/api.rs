//! An API that answers from a script, and a storage beside it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rowmill_api::estimate::EstimateView;
use rowmill_api::job::JobView;
use rowmill_api::openapi::examples;
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::Body as _;
use rowmill_api::upload::UploadView;
use rowmill_core::model::audit::{AuditCode, AuditFinding, AuditProof, AuditVerdict};
use rowmill_core::model::job::states::Status;
use rowmill_core::model::run_output::FailedItem;
use serde_json::{Value, json};

/// The guid of every job and upload.
pub const GUID: &str = "01a1f997-c087-7785-ba44-fdac1155c2bf";

/// A job type of which the API has a job for every file.
pub const KNOWN: &str = "known";

/// A job type that the API refuses.
pub const REFUSED: &str = "refused";

/// A job type that reads no file.
pub const REPORT: &str = "report";

/// Serves an API on which every job is as given, for as long as the test runs; its base URL.
pub fn api(job: Value) -> String {
    recorded(job).0
}

/// The same, with what is sent to it.
pub fn recorded(job: Value) -> (String, Receiver<Sent>) {
    let (sender, sent) = channel();
    (serve(move |connection| answer(connection, &job, &sender)), sent)
}

/// Serves connections by this function, for as long as the test runs; the base URL.
pub fn serve(answer: impl Fn(&TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming() {
            let answer = answer.clone();
            thread::spawn(move || answer(&connection.unwrap()));
        }
    });
    url
}

/// A request: method and path, body.
pub type Sent = (String, Vec<u8>);

/// Reads a request: it, and the host that it is sent to.
pub fn receive(connection: &TcpStream) -> (Sent, String) {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let (mut length, mut host) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        match header.to_ascii_lowercase().split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().unwrap(),
            Some(("host", value)) => host = value.trim().to_owned(),
            _ => {}
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    ((line.rsplit_once(' ').unwrap().0.to_owned(), body), host)
}

/// Sends an answer. One without content has no body.
pub fn reply(mut connection: &TcpStream, status: u16, body: &Value) {
    let body = if status == 204 { String::new() } else { body.to_string() };
    let head = format!("HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
    // The client may have been killed.
    let _ = write!(connection, "{head}\r\nconnection: close\r\n\r\n{body}");
}

fn answer(connection: &TcpStream, job: &Value, sent: &Sender<Sent>) {
    let ((request, body), host) = receive(connection);
    let json = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    let (sent_type, has_file) = (json["jobType"].clone(), json["fileGuid"].is_string());
    let line = request.clone();
    // Most tests do not look.
    let _ = sent.send((request, body));
    let (status, body) = match line.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["POST", path] if path.starts_with("/api/uploads") => {
            let file_guid = GUID.parse().unwrap();
            (201, to_json(&UploadView { file_guid, upload: None, ..examples::upload() }))
        }
        ["POST", "/api/jobs/estimate"] if sent_type == REFUSED => {
            (400, to_json(&ProblemCode::InvalidParams.problem("`params.dataset` is missing.")))
        }
        ["POST", "/api/jobs/estimate"] if sent_type == REPORT || has_file => (200, to_json(&EstimateView::example())),
        ["POST", "/api/jobs/estimate"] => (204, Value::Null),
        ["POST", "/api/jobs"] if sent_type == KNOWN => (200, job.clone()),
        ["POST", _] => (202, job.clone()),
        ["GET", path] if path.starts_with("/api/uploads/") => {
            let file_name = Some("rows.csv".to_owned());
            (200, to_json(&UploadView { upload: None, file_name, ..examples::upload() }))
        }
        ["GET", path] if path.contains("/items") => {
            let (code, message) = ("ragged_row".to_owned(), "3 cells".to_owned());
            let raw = Some("a,\u{1b}[31mb".to_owned());
            let item = FailedItem {
                row: 2,
                file: None,
                offset: 9,
                length: 7,
                code,
                message,
                column: None,
                rule: None,
                raw,
                raw_base64: None,
            };
            (200, json!({ "items": [item], "next": null }))
        }
        ["GET", path] if path.ends_with("/results") => results(&host, job),
        ["GET", path] if path.starts_with("/bucket/") => return deliver(connection, path),
        ["GET", path] if path.ends_with("/audit") => {
            let verdict = AuditVerdict::Continues.into();
            (200, to_json(&AuditProof { verdict, next: Some("c".into()), ..examples::audit() }.sealed()))
        }
        ["GET", path] if path.contains("/audit?after=c") => (200, audit_of(job)),
        ["GET", path] if path.ends_with("/dead-letters") => {
            let chunk = json!({ "tally": 0, "index": 3, "firstRow": 1501, "items": 500 });
            let letter = json!({ "messageId": "m", "about": "items", "attempt": 1, "chunk": chunk, "at": "2026-11-20T15:00:00Z" });
            (200, json!({ "deadLetters": [letter] }))
        }
        ["GET", path] if path.starts_with("/api/jobs?") => (200, json!({ "jobs": vec![job; 100], "next": null })),
        _ => (200, job.clone()),
    };
    reply(connection, status, &body);
}

/// The end of the audit: a job that failed is refuted, one that was cancelled has figures that were altered.
fn audit_of(job: &Value) -> Value {
    let message = "Tally 3 differs.".to_owned();
    let code = AuditCode::TallyDiffers.into();
    let finding = AuditFinding { code, message, attempt: 1, tally: Some(3), chunk: None };
    let proof = match job["status"].as_str() {
        Some("failed") => {
            AuditProof { verdict: AuditVerdict::Refuted.into(), finding: Some(finding), ..examples::audit() }.sealed()
        }
        Some("cancelled") => AuditProof { items_failed: 7, ..examples::audit() },
        _ => examples::audit(),
    };
    to_json(&proof)
}

/// The results of every job that has ended, by kind: the name the API gives it, its content, its items.
const LEFT: [(&str, &str, &str, u64); 3] = [
    ("failedRows", "rows-failed-rows.csv", "a,row,code,message,column\n1,1,ragged_row,3 cells,\n", 1),
    ("output", "../../rows-output.csv", "a,b\n1,2\n", 1),
    (SLOW, "rows-slow.csv", "never\n", 1),
];

/// The kind of a result of which nothing but the beginning ever comes. Jobs of type `slow` leave it.
pub const SLOW: &str = "slow";

fn results(host: &str, job: &Value) -> (u16, Value) {
    let refusal = |code: ProblemCode| (code.status(), to_json(&code.problem("No results.")));
    match job["status"].as_str() {
        Some("completed") => {}
        Some("running") => return refusal(ProblemCode::JobActive),
        _ => return refusal(ProblemCode::NoResults),
    }
    let entry = |kind: &str, file_name: &str, content: &str, items: u64| {
        let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, content.as_bytes());
        json!({ "name": kind, "kind": kind, "contentType": "text/csv", "bytes": content.len(), "items": items,
            "crc64Nvme": BASE64_STANDARD.encode(crc.to_be_bytes()), "fileName": file_name,
            "url": format!("http://{host}/bucket/{kind}?X-Amz-Signature=secret") })
    };
    let is_left = |kind: &str| match kind {
        "failedRows" => job["itemsFailed"] != 0,
        kind => (kind == SLOW) == (job["jobType"] == SLOW),
    };
    let left = LEFT.iter().filter(|(kind, ..)| is_left(kind));
    let files: Vec<_> = left.map(|(kind, name, content, items)| entry(kind, name, content, *items)).collect();
    let manifest = entry("manifest", "rows-manifest.json", "{}", 0);
    let mut results = to_json(&examples::results());
    (results["jobGuid"], results["files"], results["manifest"]) = (json!(GUID), json!(files), manifest);
    (200, results)
}

/// Answers as the storage does.
fn deliver(mut connection: &TcpStream, path: &str) {
    let kind = path.split(['/', '?']).nth(2).unwrap();
    let content = LEFT.iter().find(|(known, ..)| *known == kind).map_or("{}", |(_, _, content, _)| content);
    write!(connection, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", content.len()).unwrap();
    if kind == SLOW {
        connection.write_all(&content.as_bytes()[..1]).unwrap();
        // Until the client has had enough.
        let _ = connection.read(&mut [0]);
    } else {
        connection.write_all(content.as_bytes()).unwrap();
    }
}

pub fn job(status: &str, outcome: Option<&str>, succeeded: u64, failed: u64) -> Value {
    let status = Status::parse(status).unwrap();
    let items = succeeded + failed;
    let example = examples::job();
    let mut job = to_json(&JobView {
        job_guid: GUID.parse().unwrap(),
        job_type: "validate".to_owned(),
        status,
        percent: if status.is_terminal() { 100 } else { 37 },
        item_count: items,
        item_progress: items,
        items_succeeded: succeeded,
        items_failed: failed,
        finished_at: example.finished_at.filter(|_| status.is_terminal()),
        ..example
    });
    job["outcome"] = json!(outcome);
    if status == Status::Failed {
        job["error"] = json!({ "code": "unterminated_quote", "message": "the quote", "row": 4 });
    }
    job
}

fn to_json(view: &impl serde::Serialize) -> Value {
    serde_json::to_value(view).unwrap()
}
