//! Clients that foreign generators make from the OpenAPI document: nothing of it is dropped, the TypeScript compiles in
//! strict mode, and a script with each client uploads a file, runs a job and reads its failed rows.
//!
//! The packages of npm need Node.js. Without it that test says that it is skipped; `ROWMILL_REQUIRE_NODE=1` makes this
//! a failure.

use std::path::{Path, PathBuf};

use acceptance::local_stack::{LocalStack, answer, output, python_environment};
use reqwest::StatusCode;
use serde_json::Value;
use tokio::process::Command;

use crate::stack::on_the_stack;

/// Set to `1`, it makes a missing Node.js a failure.
const REQUIRED: &str = "ROWMILL_REQUIRE_NODE";

#[test]
fn a_generated_python_client_drops_nothing_and_reads_failed_rows() {
    on_the_stack(async |stack| {
        let folder = folder("python", &["failed_rows.py"]);
        let programs = python_environment(&folder.join("venv"), &source("requirements.txt")).await;
        store_document(stack, &folder).await;
        let mut generate = Command::new(programs.join("openapi-python-client"));
        // It formats what it generates with `ruff`, and warns if there is none on the path.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(programs.clone()).chain(std::env::split_paths(&path)));
        generate.env("PATH", path.expect("paths")).args(["generate", "--path", "openapi.json", "--fail-on-warning"]);
        generate.args(["--meta", "none", "--overwrite", "--output-path", "rowmill_client"]);
        run(generate, &folder).await;
        let mut script = Command::new(programs.join("python"));
        script.arg("failed_rows.py").env("ROWMILL_URL", stack.api_url());
        assert_eq!(run(script, &folder).await.trim(), "partial 2 schema_violation");
    });
}

#[test]
fn redocly_finds_nothing_and_a_generated_typescript_client_is_strict_and_reads_failed_rows() {
    let Some(npm) = npm("redocly_finds_nothing…") else { return };
    on_the_stack(async |stack| {
        let sources = ["failed_rows.ts", "package.json", "package-lock.json", "tsconfig.json"];
        let folder = folder("typescript", &sources);
        store_document(stack, &folder).await;
        install(&npm, &folder).await;
        let program = |name: &str| Command::new(folder.join("node_modules/.bin").join(name));
        let mut lint = program("redocly");
        lint.args(["lint", "openapi.json", "--format", "json"]).env("REDOCLY_TELEMETRY", "off");
        lint.env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
        let found = run(lint, &folder).await;
        assert!(found.contains(r#""errors": 0"#) && found.contains(r#""warnings": 0"#), "{found}");
        let mut generate = program("openapi-typescript");
        generate.args(["openapi.json", "--output", "rowmill.d.ts"]);
        run(generate, &folder).await;
        let mut compile = program("tsc");
        compile.args(["--project", "."]);
        run(compile, &folder).await;
        let mut script = Command::new("node");
        script.arg("compiled/failed_rows.js").env("ROWMILL_URL", stack.api_url());
        assert_eq!(run(script, &folder).await.trim(), "partial 2 schema_violation");
    });
}

/// Stores the document as the stack serves it.
async fn store_document(stack: &LocalStack, folder: &Path) {
    let (status, document): (_, Value) = answer(stack.get("/api/openapi.json")).await;
    assert_eq!(status, StatusCode::OK, "{document}");
    std::fs::write(folder.join("openapi.json"), document.to_string()).expect("a file");
}

/// Installs the packages of npm, if they are not there in the pinned versions.
async fn install(npm: &Path, folder: &Path) {
    let (stamp, pinned) = (folder.join("node_modules/pinned.json"), std::fs::read(source("package-lock.json")));
    let pinned = pinned.expect("a file");
    if std::fs::read(&stamp).ok().as_ref() != Some(&pinned) {
        let mut install = Command::new(npm);
        install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
        run(install, folder).await;
        std::fs::write(&stamp, pinned).expect("a file");
    }
}

/// Output of a program in this folder.
async fn run(mut command: Command, folder: &Path) -> String {
    command.current_dir(folder);
    let shown = format!("{:?}", command.as_std());
    let (succeeded, text) = output(command).await;
    assert!(succeeded, "{shown}\n{text}");
    text
}

/// A folder of its own with these files of `tests/clients`.
fn folder(name: &str, files: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients").join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    for file in files {
        std::fs::copy(source(file), folder.join(file)).expect("a file");
    }
    folder
}

/// A file of `tests/clients`.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

/// The program npm; `None` if there is none, after a line that says which test is skipped.
fn npm(test: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_the_path =
        |name: &str| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    let found = on_the_path("node").and(on_the_path("npm"));
    if found.is_none() {
        let how = "no Node.js with npm is on the PATH; it needs version 20 or newer";
        assert!(std::env::var_os(REQUIRED).is_none_or(|value| value != "1"), "{test}: {how}");
        eprintln!("skipped: {test}: {how}");
    }
    found
}
