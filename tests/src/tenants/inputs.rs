//! The hostile inputs.

use std::fmt::Write as _;
use std::path::PathBuf;

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::hostile::{Attack, HostileInput, HostileRequest};
use crate::files;

const CSV: &str = "text/csv";
const JSONL: &str = "application/x-ndjson";
const BINARY: &str = "application/octet-stream";
const JSON: &str = "application/json";

/// Every hostile input. `foreign` is an ended job of another owner, `own` one of the hostile owner.
pub(super) fn all(foreign: &Value, own: &Value) -> Vec<HostileInput> {
    let mut all = time_bombs();
    all.push(stack_bomb());
    all.extend(memory_bombs());
    all.extend(bad_files());
    all.extend(damaged_files());
    all.extend(bad_requests(foreign));
    all.extend(floods(own));
    all
}

fn input(name: &str, attack: Attack) -> HostileInput {
    HostileInput { name: name.to_owned(), attack }
}

fn job(name: &str, content_type: &'static str, bytes: impl Into<Vec<u8>>, params: Value) -> HostileInput {
    input(name, Attack::Job { content_type, bytes: bytes.into(), job_type: "validate", params })
}

fn with_schema(schema: &Value) -> Value {
    json!({ "schema": schema })
}

/// Params and rows that take much time.
fn time_bombs() -> Vec<HostileInput> {
    let recursive = json!({ "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
    let nested = (0..60).fold(json!({}), |inner, _| json!({ "a": inner }));
    let next = |n: usize| json!({ "$ref": format!("#/$defs/d{}", n + 1) });
    let mut defs: Map<String, Value> =
        (0..40).map(|n| (format!("d{n}"), json!({ "allOf": [next(n), next(n)] }))).collect();
    defs.insert("d40".into(), json!({}));
    let doubled = json!({ "$ref": "#/$defs/d0", "$defs": defs });
    let slow_pattern = json!({ "properties": { "a": { "pattern": "(.{0,20}[a-f]{0,20}){0,20}!" } } });
    let long_cells = format!("a,b\n{}", format!("{},1\n", "abcdefgh".repeat(100_000)).repeat(4));
    vec![
        job("recursion over a nested row", JSONL, format!("{{}}\n{nested}\n"), with_schema(&recursive)),
        job("references that double", CSV, "a\n1\n", with_schema(&doubled)),
        job("a slow pattern on long cells", CSV, long_cells, with_schema(&slow_pattern)),
    ]
}

/// Params and a row that take more stack than a thread has by default: 30 choices on each of 120 levels.
fn stack_bomb() -> HostileInput {
    let level = |n: usize| (format!("d{n}"), json!({ "oneOf": [{ "$ref": format!("#/$defs/d{}", n + 1) }, false] }));
    let mut choices: Map<String, Value> = (0..30).map(level).collect();
    choices.insert("d30".into(), json!({ "properties": { "a": { "$ref": "#/$defs/d0" } } }));
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": choices });
    let deepest = (0..120).fold(json!({}), |inner, _| json!({ "a": inner }));
    job("choices to the bottom of a row", JSONL, format!("{deepest}\n"), with_schema(&schema))
}

/// Params and files that take much memory.
fn memory_bombs() -> Vec<HostileInput> {
    let patterns: Map<String, Value> =
        (0..100).map(|n| (format!("c{n}"), json!({ "pattern": format!(r"\p{{L}}{{100}}{n}") }))).collect();
    let doubling = vec![json!({ "set": "a", "template": "{a}{a}" }); 31];
    let doubling = Attack::Job {
        content_type: CSV,
        bytes: b"a\nx\n\"\"\n".to_vec(),
        job_type: "transform",
        params: json!({ "mapping": doubling }),
    };
    let mut bomb = b"a,b\n".to_vec();
    bomb.resize(200 << 20, b'x');
    vec![
        job("patterns that compile to much", CSV, "a\n1\n", with_schema(&json!({ "properties": patterns }))),
        input("a mapping that doubles a field", doubling),
        job("a gzip bomb", "application/gzip", files::gzip(&bomb), json!({ "format": "csv" })),
        job("a workbook of empty rows", BINARY, empty_rows(), json!({})),
    ]
}

/// 230 MiB of rows without cells. Beside them stands enough noise to keep below the ratio at which a file is a bomb at
/// once.
fn empty_rows() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    let some = "<row/>".repeat(1400);
    files::workbook((0..29_000).map(|_| format!("{some}<row s=\"{:032x}{:016x}\"/>", random.u128(..), random.u64(..))))
}

/// Files that are not what anybody can process.
fn bad_files() -> Vec<HostileInput> {
    let mut truncated = files::data("unicode.xlsx");
    truncated.truncate(truncated.len() / 2);
    let header = (0..100_000).fold(String::new(), |mut header, n| {
        let _ = write!(header, "c{n},");
        header
    });
    let mut random = fastrand::Rng::with_seed(11);
    let noise: Vec<u8> = (0..200_000).map(|_| random.u8(..)).collect();
    let deep = format!("{}\n", "[".repeat(1_000_000));
    let hidden = json!({ "a": { "$serde_json::private::RawValue": "[".repeat(100) } }).to_string() + "\n";
    vec![
        job("a truncated workbook", BINARY, truncated, json!({})),
        job("one row of two megabytes", CSV, format!("a,b\n1,{}", "x".repeat(2_000_000)), json!({})),
        job("a header of 100,000 columns", CSV, header, json!({})),
        job("a quote that is never closed", CSV, format!("a,b\n\"{}", "1,2\n".repeat(400_000)), json!({})),
        job("a row nested a million levels deep", JSONL, deep, json!({})),
        job("a row with text that is parsed again", JSONL, hidden, json!({})),
        job("noise", BINARY, noise, json!({ "format": "csv" })),
        job("an empty file", CSV, "", json!({})),
    ]
}

/// The corpus of the fuzzer.
fn damaged_files() -> Vec<HostileInput> {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/fuzz");
    let entries = |folder: PathBuf| {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        paths
    };
    let mut inputs = Vec::new();
    for folder in entries(corpus) {
        let name = format!("corpus: {}", folder.file_name().unwrap_or_default().display());
        for file in entries(folder) {
            inputs.push(job(&name, BINARY, std::fs::read(&file).expect("a file"), json!({})));
        }
    }
    inputs
}

fn request(
    method: Method,
    path: impl Into<String>,
    content_type: &'static str,
    body: impl Into<Vec<u8>>,
) -> HostileRequest {
    HostileRequest { method, path: path.into(), content_type, body: body.into() }
}

/// Requests that are too large, too many, or not the owner's.
fn bad_requests(foreign: &Value) -> Vec<HostileInput> {
    let post = |path: &str, body: &str| request(Method::POST, path, JSON, body);
    let deep = format!(r#"{{"jobType":"validate","params":{}"#, "[".repeat(200_000));
    let hidden = r#"{"jobType":"validate","metadata":{"a":{"b":1,"$serde_json::private::Number":"x"}}}"#;
    let huge = json!({ "fileName": "a.csv", "contentType": CSV, "size": 100_u64 << 30 }).to_string();
    let (job, file) = (&foreign["jobGuid"], &foreign["fileGuid"]);
    let path = |rest: &str| format!("/api/jobs/{}{rest}", job.as_str().expect("a guid"));
    let read = |rest: &str| request(Method::GET, path(rest), JSON, "");
    let change = |rest: &str| request(Method::POST, path(rest), JSON, "");
    let on_foreign_file = json!({ "jobType": "validate", "fileGuid": file }).to_string();
    let foreign = vec![
        read(""),
        read("/results"),
        read("/items?outcome=failed"),
        read("/dead-letters"),
        read("/audit"),
        change("/cancel"),
        change("/pause"),
        change("/resume"),
        change("/redrive"),
        post("/api/jobs", &on_foreign_file),
        post("/api/jobs/estimate", &on_foreign_file),
    ];
    vec![
        input("a body nested 200,000 levels deep", Attack::Requests(vec![post("/api/jobs", &deep)])),
        input("a name that is read as something else", Attack::Requests(vec![post("/api/jobs", hidden)])),
        input("a body that is no text", Attack::Requests(vec![request(Method::POST, "/api/jobs", JSON, [0xFF; 100])])),
        input(
            "a file that is too large for a request",
            Attack::Requests(vec![request(Method::POST, "/api/uploads", BINARY, vec![0; 5_000_001])]),
        ),
        input("announcements of 100 GiB", Attack::Requests((0..3).map(|_| post("/api/uploads", &huge)).collect())),
        input("the job and the file of another owner", Attack::Requests(foreign)),
    ]
}

/// Floods of changes and of each expensive read, each of more than twice the requests of a minute: a flood may lie in
/// two minutes.
fn floods(own: &Value) -> Vec<HostileInput> {
    let job = own["jobGuid"].as_str().expect("a guid");
    let flood = |name: &str, method: Method, rest: &str, times: usize| {
        let request = request(method, format!("/api/jobs/{job}/{rest}"), JSON, "");
        input(name, Attack::Flood { request, times })
    };
    vec![
        flood("a flood of changes", Method::POST, "cancel", 250),
        flood("a flood of audits", Method::GET, "audit", 130),
        flood("a flood of lists of items", Method::GET, "items?outcome=failed&limit=1000", 250),
        flood("a flood of results", Method::GET, "results", 610),
        flood("a flood of dead letters", Method::GET, "dead-letters", 250),
    ]
}
