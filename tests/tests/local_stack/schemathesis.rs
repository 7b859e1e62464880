//! Schemathesis against a stack of its own: requests made from the OpenAPI document, good ones and bad ones, and every
//! answer checked against the document. It lists, cancels and redrives all jobs that it finds, so it shares no stack.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use acceptance::local_stack::{LocalStack, answer, options, output, python_environment};
use reqwest::StatusCode;
use serde_json::json;
use tokio::process::Command;

/// Number of requests for each route in the phases that draw them by chance. Without it, few.
const EXAMPLES: &str = "ROWMILL_SCHEMATHESIS_EXAMPLES";

/// Seed of the requests. Without it, always the same.
const SEED: &str = "ROWMILL_SCHEMATHESIS_SEED";

#[tokio::test]
async fn schemathesis_finds_nothing() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemathesis");
    let schemathesis = python_environment(&folder.join("venv"), &source("requirements.txt")).await.join("schemathesis");
    let stack = LocalStack::up(&options(folder.join("stack"), &[])).await;
    let config = folder.join("schemathesis.toml");
    std::fs::copy(source("schemathesis.toml"), &config).expect("a file");
    let (jobs, uploads) = real_names(&stack).await;
    let document = folder.join("openapi.json");
    std::fs::write(&document, served_document(&stack, &uploads[0]).await).expect("a file");
    std::fs::write(folder.join("jobs.dict"), dictionary(&jobs)).expect("a file");
    std::fs::write(folder.join("uploads.dict"), dictionary(&uploads)).expect("a file");

    let mut command = Command::new(schemathesis);
    command.env("NO_COLOR", "1").env("COLUMNS", "120");
    command.current_dir(&folder).arg("--config-file").arg(config).arg("run");
    for (variable, option) in [(EXAMPLES, "--max-examples"), (SEED, "--seed")] {
        if let Some(value) = std::env::var_os(variable) {
            command.arg(option).arg(value);
        }
    }
    command.arg("--url").arg(stack.api_url()).arg(document);
    let (succeeded, text) = output(command).await;
    println!("{text}");
    assert!(succeeded, "Schemathesis has found something: see its output above");
}

/// The document as the stack serves it, except that its examples of requests name this upload. So they are carried out,
/// and the requests that are made from them too.
async fn served_document(stack: &LocalStack, upload: &str) -> String {
    let (status, document) = answer(stack.get("/api/openapi.json")).await;
    assert_eq!(status, StatusCode::OK, "{document}");
    let example = "/paths/~1api~1jobs/post/requestBody/content/application~1json/example/fileGuid";
    let example = document.pointer(example).and_then(|guid| guid.as_str()).expect("an example");
    document.to_string().replace(example, upload)
}

/// The names of jobs that have ended, with failed rows and without, and of uploads that are stored and that are
/// announced.
async fn real_names(stack: &LocalStack) -> (Vec<String>, Vec<String>) {
    let schema = json!({ "properties": { "n": { "type": "integer" } } });
    let (mut jobs, mut uploads) = (Vec::new(), Vec::new());
    for text in ["id,n\n1,1\n2,x\n3,3\n", "id,n\n1,1\n"] {
        let file = stack.upload("text/csv", text).await;
        jobs.push(stack.create("validate", &file, json!({ "schema": schema })).await);
        uploads.push(file);
    }
    for job in &jobs {
        stack.ended(job).await;
    }
    let announced = json!({ "fileName": "announced.csv", "contentType": "text/csv", "size": 100 });
    let (status, upload) = answer(stack.post("/api/uploads").json(&announced)).await;
    assert_eq!(status, StatusCode::CREATED, "{upload}");
    uploads.push(upload["fileGuid"].as_str().expect("a guid").to_owned());
    (jobs, uploads)
}

/// A dictionary of Schemathesis: a quoted text in each line.
fn dictionary(words: &[String]) -> String {
    words.iter().fold(String::new(), |mut lines, word| {
        let _ = writeln!(lines, "\"{word}\"");
        lines
    })
}

/// A file of `tests/schemathesis`.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemathesis").join(name)
}
