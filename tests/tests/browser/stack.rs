//! The one stack of this process, and a browser for each test.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use acceptance::local_stack::{LocalStack, options};
use serde_json::{Value, json};

use crate::browser::{Chromium, chromium};

static STACK: OnceLock<LocalStack> = OnceLock::new();
static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();

/// Runs a test on the shared stack with a browser of its own, if there is a Chromium.
pub fn on_the_stack<F: Future<Output = ()>>(name: &str, test: impl FnOnce(&'static LocalStack, Chromium) -> F) {
    let Some(executable) = chromium(name) else { return };
    let runtime = runtime();
    let stack = STACK.get_or_init(|| {
        // A job type without input. No test calls its target.
        let targets = r#"{"report": {"webhook": "https://example.com/report", "input": "none"}}"#;
        let parameters = [
            ("OwnerJobCeiling", "50"),
            ("JobTargets", targets),
            // A resumed job waits for the runs from before its pause.
            ("ProcessTimeoutSeconds", "10"),
            ("ItemTimeoutSeconds", "3"),
            ("StopGraceSeconds", "12"),
        ];
        runtime.block_on(LocalStack::up(&options(folder().join("stack"), &parameters)))
    });
    runtime.block_on(async {
        let chromium = Chromium::launch(&executable).await;
        test(stack, chromium).await;
    });
}

/// The runtime of all tests.
pub fn runtime() -> &'static tokio::runtime::Runtime {
    RUNTIME.get_or_init(|| tokio::runtime::Runtime::new().expect("a runtime"))
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser")
}

/// The address of the page of a stack.
pub fn page(stack: &LocalStack) -> String {
    rowmill::stack::page_url(stack.api_url())
}

/// The address of a job on the page.
pub fn job_page(stack: &LocalStack, job: &str) -> String {
    format!("{}#/jobs/{job}", page(stack))
}

/// A file of the repository.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

pub async fn job_over(stack: &LocalStack, text: String, name: &str, job_type: &str, params: Value) -> String {
    let file = stack.upload("text/csv", text).await;
    let body = json!({ "jobType": job_type, "fileGuid": file, "params": params, "metadata": { "fileName": name } });
    stack.create_from(&body).await
}
