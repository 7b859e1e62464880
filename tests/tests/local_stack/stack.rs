//! The one stack of this process.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use acceptance::local_stack::{LocalStack, options};

use crate::fetches::{FILES, Files};
use crate::service::{SERVICE, Service};
use crate::{inputs, lanes, many_files, tables, targets};

static STACK: OnceLock<LocalStack> = OnceLock::new();
static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();

/// Runs a test on the shared stack.
pub fn on_the_stack<F: Future<Output = ()>>(test: impl FnOnce(&'static LocalStack) -> F) {
    let runtime = RUNTIME.get_or_init(|| tokio::runtime::Runtime::new().expect("a runtime"));
    let stack = STACK.get_or_init(|| runtime.block_on(up()));
    runtime.block_on(test(stack));
}

async fn up() -> LocalStack {
    let service = Service::start().await;
    SERVICE.get_or_init(|| service);
    let files = Files::start().await;
    let fetch_hosts = FILES.get_or_init(|| files).server.hosts();
    let (targets, arns) = (targets::config().to_string(), targets::arns());
    let parameters = [
        ("ProcessTimeoutSeconds", "10"),
        ("ItemTimeoutSeconds", "3"),
        ("StopGraceSeconds", "12"),
        ("StaleSeconds", "20"),
        ("BreakerProbeSeconds", "3"),
        // Some tests send the messages of chunks again, and know how the file is cut.
        ("FastChunkFactor", "1"),
        // Tests that run side by side are one owner's.
        ("OwnerJobCeiling", "50"),
        // Some announce files that they never send.
        ("OwnerUploadsOutstanding", "1000"),
        ("OwnerBytesOutstanding", "1000000000000000"),
        ("OwnerLiveConnections", "5000"),
        ("JobTargets", &targets),
        ("InvokeTargetArns", &arns),
        ("ImportTables", &tables::arns()),
        ("JobTypes", lanes::JOB_TYPES),
        ("FetchHosts", &fetch_hosts),
        ("InputBuckets", &format!("arn:aws:s3:::{}", many_files::BUCKET)),
        ("InputPrefix", "{owner}/"),
        ("OutputBuckets", &format!("arn:aws:s3:::{}", inputs::REPORTS)),
        ("OutputPrefix", "{owner}/"),
        ("LanesMaximumConcurrency", "4"),
    ];
    let stack = LocalStack::up(&options(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("stack"), &parameters)).await;
    SERVICE.get().expect("the service runs").trust(targets::webhook_secret(&stack).await.current.0);
    let queues = [
        "FetchesQueueUrl",
        "ItemsQueueUrl",
        "ItemsHighQueueUrl",
        "ItemsLowQueueUrl",
        "IsolateQueueUrl",
        "LanesQueueUrl",
    ];
    stack.hide_messages_for(&queues, Duration::from_secs(12)).await;
    stack
}
