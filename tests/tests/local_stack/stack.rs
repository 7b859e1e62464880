//! The stack and what the tests do with it.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use reqwest::{Client, RequestBuilder, StatusCode};
use rowmill::aws::{Target, sdk_config};
use rowmill::progress::Progress;
use rowmill::stack::{Stack, StackOptions};
use serde_json::{Value, json};

/// How long a job may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(300);

/// The one stack of this process.
pub struct LocalStack {
    stack: Stack,
    /// The emulated tables.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// The emulated queues.
    pub sqs: aws_sdk_sqs::Client,
    http: Client,
}

static STACK: OnceLock<LocalStack> = OnceLock::new();
static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();

/// Runs a test on the shared stack.
pub fn on_the_stack<F: Future<Output = ()>>(test: impl FnOnce(&'static LocalStack) -> F) {
    let runtime = RUNTIME.get_or_init(|| tokio::runtime::Runtime::new().expect("a runtime"));
    let stack = STACK.get_or_init(|| runtime.block_on(LocalStack::up()));
    runtime.block_on(test(stack));
}

impl LocalStack {
    async fn up() -> Self {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the workspace");
        let options = StackOptions {
            state_dir: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("stack"),
            progress: Progress::Shown,
            // What a killed function held is back after six times this.
            parameters: vec![("ProcessTimeoutSeconds".to_owned(), "10".to_owned())],
            ..StackOptions::for_workspace(workspace)
        };
        let stack = Stack::up(&options).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
        let target = Target::Emulator { endpoint_url: stack.endpoint().to_owned() };
        let config = sdk_config(&target).await;
        let (dynamodb, sqs) = (aws_sdk_dynamodb::Client::new(&config), aws_sdk_sqs::Client::new(&config));
        Self { stack, dynamodb, sqs, http: http_client() }
    }

    /// Kills the processes of a function, as they are; how many there were.
    pub fn kill_processes_of(&self, function: &str) -> usize {
        let of_function = |environment: &[u8]| {
            let wanted = format!("AWS_LAMBDA_FUNCTION_NAME=rowmill-{function}");
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        let children = format!("/proc/{pid}/task/{pid}/children", pid = self.stack.pid());
        let children = std::fs::read_to_string(children).expect("the emulator runs");
        let pids = children.split_whitespace().filter(|pid| {
            // One that has ended meanwhile has no environment any more.
            std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| of_function(&environment))
        });
        pids.filter(|pid| Command::new("kill").args(["-9", pid]).status().is_ok_and(|status| status.success())).count()
    }

    /// One of the template's outputs.
    pub fn output(&self, name: &str) -> &str {
        self.stack.outputs().get(name).unwrap_or_else(|| panic!("the template has no output {name}"))
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.stack.api_url())
    }

    /// A `GET` to the API.
    pub fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(self.url(path))
    }

    /// A `POST` to the API.
    pub fn post(&self, path: &str) -> RequestBuilder {
        self.http.post(self.url(path))
    }

    /// Any request to anywhere.
    pub fn request(&self, method: &str, url: &str) -> RequestBuilder {
        self.http.request(method.parse().expect("a method"), url)
    }

    /// Uploads a file in the request itself.
    pub async fn upload(&self, content_type: &str, bytes: impl Into<Vec<u8>>) -> String {
        let request = self.post("/api/uploads").header("content-type", content_type).body(bytes.into());
        let (status, upload) = answer(request).await;
        assert_eq!(status, StatusCode::CREATED, "{upload}");
        upload["fileGuid"].as_str().expect("a fileGuid").to_owned()
    }

    /// Creates a job.
    pub async fn create(&self, job_type: &str, file_guid: &str, params: Value) -> String {
        let wish = json!({ "jobType": job_type, "fileGuid": file_guid, "params": params });
        let (status, job) = answer(self.post("/api/jobs").json(&wish)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{job}");
        job["jobGuid"].as_str().expect("a jobGuid").to_owned()
    }

    /// The job as it stands.
    pub async fn job(&self, job: &str) -> Value {
        let (status, job) = answer(self.get(&format!("/api/jobs/{job}"))).await;
        assert_eq!(status, StatusCode::OK, "{job}");
        job
    }

    /// The job when it has ended. On the way there, its percentage must never go back and its sums must hold.
    pub async fn ended(&self, job: &str) -> Value {
        let started = Instant::now();
        let mut percent = 0;
        loop {
            let shown = self.job(job).await;
            let number = |name: &str| shown[name].as_u64().unwrap_or_else(|| panic!("{name} in {shown}"));
            let sum = number("itemsSucceeded") + number("itemsFailed") + number("itemsSkipped");
            assert_eq!(number("itemProgress"), sum, "{shown}");
            assert!(number("percent") >= percent, "went back from {percent}: {shown}");
            percent = number("percent");
            if shown["finishedAt"].is_string() {
                return shown;
            }
            assert!(percent < 100, "{shown}");
            assert!(started.elapsed() < PATIENCE, "the job does not end: {shown}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// All failed items of a job.
    pub async fn failed_items(&self, job: &str) -> Vec<Value> {
        let (mut items, mut after) = (Vec::new(), String::new());
        loop {
            let (status, page) =
                answer(self.get(&format!("/api/jobs/{job}/items?outcome=failed&limit=7{after}"))).await;
            assert_eq!(status, StatusCode::OK, "{page}");
            items.extend(page["items"].as_array().expect("items").clone());
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return items,
            }
        }
    }

    /// All rows of a job in the jobs table, by their sort key.
    pub async fn job_rows(&self, job: &str) -> BTreeMap<String, Row> {
        let key = AttributeValue::S(job.to_owned());
        let query = self.dynamodb.query().table_name(self.output("JobsTable")).consistent_read(true);
        let query = query.key_condition_expression("jobId = :job").expression_attribute_values(":job", key);
        let rows =
            query.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await.expect("the table answers");
        rows.into_iter().map(|row| (row["row"].as_s().expect("a sort key").clone(), Row(row))).collect()
    }

    /// How many records a dataset has, read from the table.
    pub async fn records(&self, dataset: &str) -> Vec<Row> {
        let mut records = Vec::new();
        for bucket in 0..16 {
            let key = AttributeValue::S(format!("{dataset}#{bucket}"));
            let query = self.dynamodb.query().table_name(self.output("RecordsTable")).consistent_read(true);
            let query = query
                .key_condition_expression("#bucket = :bucket")
                .expression_attribute_names("#bucket", "bucket")
                .expression_attribute_values(":bucket", key);
            let rows = query.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await;
            records.extend(rows.expect("the table answers").into_iter().map(Row));
        }
        records
    }
}

fn http_client() -> Client {
    // The client checks no certificate here, and still wants somebody who could.
    rustls::crypto::ring::default_provider().install_default().ok();
    Client::new()
}

/// A row of a table.
pub struct Row(std::collections::HashMap<String, AttributeValue>);

impl Row {
    /// A number of it.
    pub fn number(&self, name: &str) -> u64 {
        let number =
            self.0.get(name).and_then(|value| value.as_n().ok()).unwrap_or_else(|| panic!("{name} in {:?}", self.0));
        number.parse().expect("a whole number")
    }

    /// A text of it.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(|value| value.as_s().ok()).unwrap_or_else(|| panic!("{name} in {:?}", self.0))
    }
}

/// Sends a request; the status and the JSON of the answer.
pub async fn answer(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.expect("the API answers");
    let status = response.status();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// The error with its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
