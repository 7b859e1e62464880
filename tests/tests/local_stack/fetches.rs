//! Files that the stack fetches from a server that drops connections, changes its file, knows no ranges, and redirects.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use acceptance::file_server::{FileAnswer, FileRequest, FileServer};
use acceptance::files;
use acceptance::local_stack::{LocalStack, accepted, answer, refused};
use bytes::Bytes;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

/// The server of this process.
pub static FILES: OnceLock<Files> = OnceLock::new();

/// Rows of the big file: it has three parts.
const ROWS: u64 = 2_000_000;

pub struct Files {
    pub server: FileServer,
    size: usize,
    /// Number of requests for the file whose server drops connections.
    dropping: Arc<AtomicUsize>,
}

impl Files {
    pub async fn start() -> Self {
        let text = Bytes::from(files::plain_csv(ROWS));
        let (size, dropping) = (text.len(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&dropping);
        let server = FileServer::start(move |request| file_answer(&text, request, &counted)).await;
        Self { server, size, dropping }
    }

    fn url(&self, path: &str) -> String {
        self.server.url(path)
    }
}

fn file_answer(text: &Bytes, FileRequest { path, range }: FileRequest, counted: &AtomicUsize) -> FileAnswer {
    // Every third connection is dropped.
    let is_cut = path.starts_with("/big") && counted.fetch_add(1, Ordering::SeqCst) % 3 == 2;
    let (head, body) = match (path.as_str(), range) {
        ("/away.csv", _) => ("302 Found\r\nlocation: http://169.254.169.254/latest/meta-data".to_owned(), Bytes::new()),
        ("/plain.csv", _) | (_, None) => ("200 OK\r\ncontent-type: text/csv".to_owned(), text.clone()),
        ("/big.csv?key=secret" | "/changes.csv", Some(range)) => {
            let range = range.start..range.end.min(text.len());
            let is_new = path == "/changes.csv" && range.start > 20_000_000;
            let version = if is_new { "\"new\"" } else { "\"old\"" };
            let told = format!("bytes {}-{}/{}", range.start, range.end - 1, text.len());
            (format!("206 Partial\r\netag: {version}\r\ncontent-range: {told}"), text.slice(range))
        }
        _ => ("404 Not Found".to_owned(), Bytes::new()),
    };
    FileAnswer { head, body, is_cut }
}

async fn order(stack: &LocalStack, path: &str) -> Value {
    let body = json!({ "source": { "url": FILES.get().expect("it runs").url(path) } });
    let (status, upload) = answer(stack.post("/api/uploads").json(&body)).await;
    assert_eq!((status, &upload["status"]), (StatusCode::ACCEPTED, &json!("fetching")), "{upload}");
    upload
}

/// The upload once it is neither pending nor being fetched.
async fn ended(stack: &LocalStack, upload: &Value) -> Value {
    let path = format!("/api/uploads/{}", upload["fileGuid"].as_str().expect("a guid"));
    loop {
        let (_, upload) = answer(stack.get(&path)).await;
        if upload["status"] != "fetching" {
            return upload;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[test]
fn a_file_of_a_server_that_drops_connections_is_processed_by_one_command() {
    on_the_stack(async |stack| {
        let server = FILES.get().expect("it runs");
        let ran = stack.runs(&["run", &server.url("/big.csv?key=secret"), "--type", "validate"]).await;
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("succeeded  2,000,000"), "{}", ran.out);
        assert!(ran.out.contains("file       big.csv") && !ran.out.contains("secret"), "{}", ran.out);
        assert!(server.dropping.load(Ordering::SeqCst) > 4, "some of them were dropped");
    });
}

#[test]
fn a_file_without_ranges_is_fetched_whole() {
    on_the_stack(async |stack| {
        let upload = ended(stack, &order(stack, "/plain.csv").await).await;
        let size = FILES.get().expect("it runs").size;
        assert_eq!((&upload["status"], &upload["size"]), (&json!("ready"), &json!(size)), "{upload}");
        assert_eq!((&upload["contentType"], &upload["bytesStored"]), (&json!("text/csv"), &json!(size)));
        let job = stack.create("validate", upload["fileGuid"].as_str().expect("a guid"), json!({})).await;
        assert_eq!(stack.ended(&job).await["itemsSucceeded"], json!(ROWS));
    });
}

#[test]
fn a_file_that_cannot_be_fetched_says_why_and_no_job_runs_on_it() {
    on_the_stack(async |stack| {
        for (path, code, says) in [
            ("/missing.csv", "source_refused", "The source answered with status 404 (Not Found)."),
            ("/away.csv", "source_refused", "redirects to a URL that cannot be fetched"),
            ("/changes.csv", "source_changed", "has changed at its source"),
        ] {
            let upload = ended(stack, &order(stack, path).await).await;
            assert_eq!((&upload["status"], &upload["failure"]["code"]), (&json!("failed"), &json!(code)), "{upload}");
            assert!(upload["failure"]["detail"].as_str().is_some_and(|detail| detail.contains(says)), "{upload}");
            let job = json!({ "jobType": "validate", "fileGuid": upload["fileGuid"] });
            let (problem, _) =
                refused(stack.post("/api/jobs").json(&job), StatusCode::UNPROCESSABLE_ENTITY, "upload_failed").await;
            assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(says)), "{problem}");
        }
        let server = FILES.get().expect("it runs");
        let ran = stack.runs(&["upload", &server.url("/missing.csv")]).await;
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(ran.err.contains("the file could not be fetched: The source answered with status 404"), "{}", ran.err);
        for url in ["https://elsewhere.example/a.csv", "http://127.0.0.1:1/", "https://me:you@elsewhere.example/"] {
            let body = json!({ "source": { "url": url } });
            let request = stack.post("/api/uploads").json(&body);
            let (problem, _) = refused(request, StatusCode::UNPROCESSABLE_ENTITY, "invalid_request").await;
            assert_eq!(problem["field"], "source.url", "{problem}");
        }
    });
}

#[test]
fn a_job_on_a_file_that_is_fetched_starts_when_it_is_stored() {
    on_the_stack(async |stack| {
        let upload = order(stack, "/big.csv?key=secret").await;
        let job = stack.create("validate", upload["fileGuid"].as_str().expect("a guid"), json!({})).await;
        let body = json!({ "jobType": "validate", "fileGuid": upload["fileGuid"], "priority": "high" });
        let high = stack.create_from(&body).await;
        let shown = stack.job(&job).await;
        assert_eq!((&shown["status"], &shown["stage"]), (&json!("waiting"), &json!("fetching")), "{shown}");
        let (_, why) = answer(stack.get(&format!("/api/jobs/{job}/why"))).await;
        assert_eq!(why["reasons"][0]["code"], "file_fetching", "{why}");
        for job in [&job, &high] {
            let done = stack.ended(job).await;
            assert_eq!((&done["outcome"], &done["itemsSucceeded"]), (&json!("succeeded"), &json!(ROWS)), "{done}");
        }

        let missing = order(stack, "/missing.csv").await;
        let body = json!({ "jobType": "validate", "fileGuid": missing["fileGuid"] });
        let created = answer(stack.post("/api/jobs").json(&body)).await;
        // The stack may have found out before.
        if created.0 == StatusCode::ACCEPTED {
            let failed = stack.ended(created.1["jobGuid"].as_str().expect("a guid")).await;
            assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("source_failed")));
        } else {
            assert_eq!(created.1["code"], "upload_failed", "{}", created.1);
        }
    });
}

#[test]
fn the_output_of_a_job_is_imported_by_the_next_one_in_two_requests() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", files::plain_csv(3000)).await;
        let transform = stack.create("transform", &file, json!({ "columns": ["id", "name"] })).await;
        let body = json!({ "jobType": "import", "source": { "jobGuid": transform, "file": "output" },
            "params": { "dataset": "chained", "key": "id" } });
        let import = accepted(stack.post("/api/jobs").json(&body)).await;
        let import = import["jobGuid"].as_str().expect("a guid").to_owned();
        // Its dataset is not there yet.
        let params = json!({ "dataset": "chained", "format": "jsonl" });
        let body = json!({ "jobType": "export", "after": import, "priority": "high", "params": params });
        let export = stack.create_from(&body).await;
        let after = ["run", "--type", "validate", "--after", &import, &file];
        let ran = stack.runs(&after).await;
        assert!(ran.code == Some(0) && ran.out.contains("succeeded  3,000"), "{}{}", ran.out, ran.err);
        let imported = stack.job(&import).await;
        assert_eq!((&imported["outcome"], &imported["itemsSucceeded"]), (&json!("succeeded"), &json!(3000)));
        let records = stack.record_fields("chained").await;
        assert_eq!(records.len(), 3000);
        assert!(
            records.values().all(|fields| fields.as_object().is_some_and(|fields| fields.len() == 2)),
            "two columns"
        );
        let exported = stack.ended(&export).await;
        assert_eq!((&exported["outcome"], &exported["itemsSucceeded"]), (&json!("succeeded"), &json!(3000)));
        for job in [&transform, &import, &export] {
            let audit = stack.runs(&["audit", job]).await;
            assert!(audit.code == Some(0) && audit.out.starts_with("Audit of attempt 1: proved\n"), "{audit:?}");
        }
        let again = stack.runs(&["run", "--type", "validate", "--results-of", &transform]).await;
        assert!(again.code == Some(0) && again.out.contains("succeeded  3,000"), "{}{}", again.out, again.err);

        let long = stack.upload("text/csv", files::plain_csv(40_000)).await;
        let first = stack.create("import", &long, json!({ "dataset": "followed", "key": "id" })).await;
        let body = json!({ "jobType": "validate", "fileGuid": file, "after": first });
        let then = accepted(stack.post("/api/jobs").json(&body)).await;
        stack.act(&first, "cancel").await;
        let failed = stack.ended_with_sweeps(then["jobGuid"].as_str().expect("a guid")).await;
        assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("preceding_failed")));
    });
}
