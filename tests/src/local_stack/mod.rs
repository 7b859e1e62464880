//! The local stack as a test uses it: the API over HTTP, and the emulated tables, queues and processes beneath it.

mod api;
mod backup;
mod bucket;
mod command;
mod counters;
mod documented;
mod event_listener;
mod issuer;
mod job_watch;
mod live;
mod messages;
mod processes;
mod python;
mod python_environment;
mod row;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use reqwest::{Client, Method, StatusCode};
use rowmill::aws::{Target, sdk_config};
use rowmill::progress::Progress;
use rowmill::stack::{Stack, StackOptions, logs_dir};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::OnceCell;

pub use api::{ApiAnswer, ApiRequest, accepted, answer, refused};
pub use command::{Ran, ran};
pub use event_listener::EventListener;
pub use issuer::{AUDIENCE, Issuer, WORK_SCOPE, WRITE_SCOPE};
pub use job_watch::JobWatch;
pub use live::{LiveClient, ticket};
pub use processes::kill;
pub use python_environment::{alone, output, python_environment};
pub use row::Row;

/// Longest time of a job, or of anything else that must come by itself, before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A running stack. It ends with this process.
pub struct LocalStack {
    stack: Stack,
    logs: PathBuf,
    pub dynamodb: aws_sdk_dynamodb::Client,
    pub sqs: aws_sdk_sqs::Client,
    lambda: aws_sdk_lambda::Client,
    s3: aws_sdk_s3::Client,
    eventbridge: aws_sdk_eventbridge::Client,
    http: Client,
    api_url: String,
    /// True if the stack is of this version.
    is_present: bool,
    gateway_url: OnceCell<String>,
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the workspace")
}

/// The command `cargo rowmill`, run where and as everybody else runs it, so that nothing is built in another way.
pub fn rowmill() -> tokio::process::Command {
    let mut command = rowmill::package::cargo(workspace());
    command.arg("rowmill");
    command
}

/// A script of this workspace, called at its root.
pub fn script(path: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(workspace().join(path));
    command.current_dir(workspace()).kill_on_drop(true);
    rowmill::package::forget_outer_cargo(&mut command);
    command
}

/// The options of a stack of this workspace that keeps its state in this folder.
pub fn options(state_dir: PathBuf, parameters: &[(&str, &str)]) -> StackOptions {
    let parameter = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    StackOptions {
        state_dir,
        progress: Progress::Shown,
        parameters: parameters.iter().map(parameter).collect(),
        ..StackOptions::for_workspace(workspace())
    }
}

impl LocalStack {
    /// Brings a stack up.
    ///
    /// # Panics
    /// With the reason, where it does not come up.
    pub async fn up(options: &StackOptions) -> Self {
        let stack = Stack::up(options).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
        let target = Target::Emulator { endpoint_url: stack.endpoint().to_owned() };
        let config = sdk_config(&target).await;
        let (dynamodb, sqs) = (aws_sdk_dynamodb::Client::new(&config), aws_sdk_sqs::Client::new(&config));
        let lambda = aws_sdk_lambda::Client::new(&config);
        let s3 = aws_sdk_s3::config::Builder::from(&config).force_path_style(true).build();
        let (s3, eventbridge) = (aws_sdk_s3::Client::from_conf(s3), aws_sdk_eventbridge::Client::new(&config));
        let api_url = match &stack.record().api_url {
            Some(url) => url.clone(),
            None => serve_gateway(&stack).await,
        };
        Self {
            stack,
            logs: logs_dir(options),
            dynamodb,
            sqs,
            lambda,
            s3,
            eventbridge,
            http: http_client(),
            api_url,
            is_present: options.template == StackOptions::for_workspace(workspace()).template,
            gateway_url: OnceCell::new(),
        }
    }

    /// The same stack, called through a gateway instead of its HTTP API. The gateway runs in this process.
    pub async fn through_a_gateway(&self, method: Method, path: &str) -> ApiRequest {
        let url = self.gateway_url().await;
        ApiRequest::new(self.http.request(method.clone(), format!("{url}{path}")), method, path)
    }

    pub async fn gateway_url(&self) -> &str {
        self.gateway_url.get_or_init(|| serve_gateway(&self.stack)).await
    }

    /// Has what a killed function held come back this soon. In the template a queue hides a message for six times the
    /// function's time limit; the protocol only needs it to be longer than that limit, and a test has less time.
    pub async fn hide_messages_for(&self, queues: &[&str], time: Duration) {
        for queue in queues {
            let request = self.sqs.set_queue_attributes().queue_url(self.output(queue));
            let request = request.attributes(QueueAttributeName::VisibilityTimeout, time.as_secs().to_string());
            request.send().await.expect("the queue takes it");
        }
    }

    // -- The API --------------------------------------------------------------------------------------

    pub fn get(&self, path: &str) -> ApiRequest {
        self.call(Method::GET, path)
    }

    pub fn post(&self, path: &str) -> ApiRequest {
        self.call(Method::POST, path)
    }

    pub fn call(&self, method: Method, path: &str) -> ApiRequest {
        let url = format!("{}{path}", self.api_url());
        let request = ApiRequest::new(self.http.request(method.clone(), url), method, path);
        if self.is_present { request } else { request.of_another_version() }
    }

    /// Where the API is: the stack's HTTP API, or the gateway of a stack that has none.
    pub fn api_url(&self) -> &str {
        &self.api_url
    }

    /// Base URL of the emulated AWS services.
    pub fn endpoint(&self) -> &str {
        self.stack.endpoint()
    }

    /// Uploads a file in the request itself.
    pub async fn upload(&self, content_type: &str, bytes: impl Into<Vec<u8>>) -> String {
        let request = self.post("/api/uploads").header("content-type", content_type).body(bytes.into());
        let (status, upload) = answer(request).await;
        assert_eq!(status, StatusCode::CREATED, "{upload}");
        upload["fileGuid"].as_str().expect("a fileGuid").to_owned()
    }

    pub async fn create(&self, job_type: &str, file_guid: &str, params: Value) -> String {
        self.create_from(&json!({ "jobType": job_type, "fileGuid": file_guid, "params": params })).await
    }

    /// Creates the job that this body asks for.
    pub async fn create_from(&self, body: &Value) -> String {
        let job = accepted(self.post("/api/jobs").json(body)).await;
        job["jobGuid"].as_str().expect("a jobGuid").to_owned()
    }

    /// The audit of a job, read to its last page.
    pub async fn audit(&self, job: &str) -> Value {
        let mut audit = answer(self.get(&format!("/api/jobs/{job}/audit"))).await.1;
        while let Some(next) = audit["next"].as_str() {
            audit = answer(self.get(&format!("/api/jobs/{job}/audit?after={next}"))).await.1;
        }
        audit
    }

    /// Creates a job over a file and waits for its end.
    pub async fn run(&self, job_type: &str, file_guid: &str, params: Value) -> (String, Value) {
        self.run_from(&json!({ "jobType": job_type, "fileGuid": file_guid, "params": params })).await
    }

    /// Creates the job that this body asks for and waits for its end.
    pub async fn run_from(&self, body: &Value) -> (String, Value) {
        let job = self.create_from(body).await;
        let ended = self.ended(&job).await;
        (job, ended)
    }

    /// Asks for an action on a job, such as `cancel`. The job as the answer has it.
    pub async fn act(&self, job: &str, action: &str) -> Value {
        accepted(self.post(&format!("/api/jobs/{job}/{action}"))).await
    }

    pub async fn job(&self, job: &str) -> Value {
        let (status, job) = answer(self.get(&format!("/api/jobs/{job}"))).await;
        assert_eq!(status, StatusCode::OK, "{job}");
        job
    }

    /// The job when this holds of it for the first time.
    pub async fn job_when(&self, job: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let shown = self.job(job).await;
            if holds(&shown) {
                return shown;
            }
            assert!(started.elapsed() < PATIENCE, "the job does not get there: {shown}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The job when it has ended, which may take the sweep.
    pub async fn ended_with_sweeps(&self, job: &str) -> Value {
        let sweeps = async {
            loop {
                self.sweep().await;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            ended = self.ended(job) => ended,
            () = sweeps => unreachable!("the sweep goes on for ever"),
        }
    }

    /// The job when it has ended. On the way there, its percentage must never go back and its sums must hold.
    pub async fn ended(&self, job: &str) -> Value {
        let started = Instant::now();
        let mut watch = JobWatch::default();
        loop {
            let shown = self.job(job).await;
            watch.look(&shown);
            if shown["finishedAt"].is_string() {
                return shown;
            }
            assert!(started.elapsed() < PATIENCE, "the job does not end: {shown}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// All failed items of a job, a few at a time.
    pub async fn failed_items(&self, job: &str) -> Vec<Value> {
        self.items(job, "failed", 7).await
    }

    /// All items of a job with this outcome, in pages of so many.
    pub async fn items(&self, job: &str, outcome: &str, page: usize) -> Vec<Value> {
        let (mut items, mut after) = (Vec::new(), String::new());
        loop {
            let path = format!("/api/jobs/{job}/items?outcome={outcome}&limit={page}{after}");
            let (status, page) = answer(self.get(&path)).await;
            assert_eq!(status, StatusCode::OK, "{page}");
            items.extend(page["items"].as_array().expect("items").clone());
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return items,
            }
        }
    }

    pub async fn dead_letters(&self, job: &str) -> Vec<Value> {
        let (status, letters) = answer(self.get(&format!("/api/jobs/{job}/dead-letters"))).await;
        assert_eq!(status, StatusCode::OK, "{letters}");
        letters["deadLetters"].as_array().expect("dead letters").clone()
    }

    // -- Tables and queues ----------------------------------------------------------------------------

    pub fn output(&self, name: &str) -> &str {
        self.stack.outputs().get(name).unwrap_or_else(|| panic!("the template has no output {name}"))
    }

    /// All rows of the table of this output.
    pub async fn all_rows(&self, output: &str) -> Vec<HashMap<String, AttributeValue>> {
        let scan = self.dynamodb.scan().table_name(self.output(output)).consistent_read(true);
        scan.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await.expect("the table answers")
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

    /// The row of a job itself, as it is now.
    pub async fn job_row(&self, job: &str) -> Row {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let request = self.dynamodb.get_item().table_name(self.output("JobsTable")).consistent_read(true);
        let answer = request.key("jobId", text(job)).key("row", text("job")).send().await;
        Row(answer.expect("the table answers").item.expect("the job's row"))
    }

    /// All records of a dataset of the only owner.
    pub async fn records(&self, dataset: &str) -> Vec<Row> {
        let mut records = Vec::new();
        for bucket in 0..256 {
            let key = AttributeValue::S(format!("local/{dataset}#{bucket}"));
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

    /// The fields of all records of a dataset, by their keys.
    pub async fn record_fields(&self, dataset: &str) -> BTreeMap<String, Value> {
        let records = self.records(dataset).await.into_iter();
        records.map(|record| (record.text("key").to_owned(), record.json("fields"))).collect()
    }

    /// Sends a message to a queue, named by the template's output.
    pub async fn send<M: Serialize>(&self, queue: &str, message: &M) {
        let body = serde_json::to_string(message).expect("a message");
        let sent = self.sqs.send_message().queue_url(self.output(queue)).message_body(body).send().await;
        sent.expect("the queue takes it");
    }

    /// Sends a message to a group of a FIFO queue, which is named by the template's output.
    pub async fn send_to_group<M: Serialize>(&self, queue: &str, group: &str, message: &M) {
        let body = serde_json::to_string(message).expect("a message");
        let name = uuid::Uuid::new_v4().simple().to_string();
        let request = self.sqs.send_message().queue_url(self.output(queue)).message_body(body);
        let sent = request.message_group_id(group).message_deduplication_id(name).send().await;
        sent.expect("the queue takes it");
    }
}

/// Waits until this holds.
///
/// # Panics
/// With what is missing, if it takes too long.
pub async fn until(missing: impl fmt::Display, mut holds: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < PATIENCE, "{missing}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Serves the API of a stack by a gateway in this process, and returns its URL.
async fn serve_gateway(stack: &Stack) -> String {
    let gateway = rowmill::stack::gateway(stack.record()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(rowmill::gateway::serve(listener, Arc::new(gateway), Progress::Shown));
    url
}

/// An HTTP client for this machine.
pub fn http_client() -> Client {
    // The client checks no certificate here, and still wants somebody who could.
    rustls::crypto::ring::default_provider().install_default().ok();
    Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client")
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
