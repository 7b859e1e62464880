//! The widgets of the dashboard.

use rowmill_aws::observe::metrics::Metric::{self, *};
use rowmill_aws::observe::metrics::NAMESPACE;
use serde::Serialize;

use crate::functions::{self, stem};
use crate::resources::{self, QueueResource};

/// A widget, with its place on a grid of three columns.
#[derive(Serialize)]
pub struct Widget {
    x: usize,
    y: usize,
    title: &'static str,
    period: u32,
    statistic: &'static str,
    /// Each as JSON.
    metrics: Vec<String>,
}

/// Tables by their ids. `DashboardBody` says what their names are.
pub const TABLES: [&str; 5] = ["JobsTable", "AdmissionTable", "UploadsTable", "RecordsTable", "ConnectionsTable"];

pub fn widgets() -> Vec<Widget> {
    let of_queues = |metric: &str, queues: Vec<QueueResource>| {
        queues.iter().map(|queue| line("AWS/SQS", metric, "QueueName", &format!("{}.QueueName", queue.id))).collect()
    };
    let queues = |metric| of_queues(metric, resources::queues());
    let of_functions = |metric: &str| {
        let functions = functions::all().into_iter().filter(|function| !functions::needs_api(function));
        functions.map(|f| line("AWS/Lambda", metric, "FunctionName", &format!("{}Function", stem(f.name)))).collect()
    };
    let of_tables = TABLES.map(|table| line("AWS/DynamoDB", "WriteThrottleEvents", "TableName", table)).to_vec();
    let dead_letters = of_queues("ApproximateNumberOfMessagesVisible", resources::dead_letter_queues());
    let widgets: [(_, _, _, Vec<String>); 16] = [
        ("Oldest message of each queue, seconds", 60, "Maximum", queues("ApproximateAgeOfOldestMessage")),
        ("Messages that wait", 60, "Maximum", queues("ApproximateNumberOfMessagesVisible")),
        ("Messages in flight", 60, "Maximum", queues("ApproximateNumberOfMessagesNotVisible")),
        ("Jobs", 300, "Sum", counts(&[JobsCreated, JobsRedriven, JobsStarted, JobsEnded])),
        (
            "Ended jobs by outcome",
            300,
            "Sum",
            counts(&[JobsSucceeded, JobsPartial, JobsWithoutSuccess, JobsFailed, JobsCancelled]),
        ),
        (
            "Refusals",
            300,
            "Sum",
            counts(&[
                JobsRefused,
                OwnerFull,
                JobTypeFull,
                SystemFull,
                RequestsLimited,
                RequestsBlocked,
                RequestsFailed,
            ]),
        ),
        ("Dispatch delay, seconds", 300, "p50", spread(DispatchDelay)),
        ("Chunk duration, seconds", 300, "p50", spread(ChunkDuration)),
        ("Items by outcome", 300, "Sum", counts(&[ItemsSucceeded, ItemsFailed, ItemsSkipped])),
        (
            "Retries and recoveries",
            300,
            "Sum",
            counts(&[ItemsTransient, MessagesReturned, MessagesRedelivered, MessagesSentAgain, JobsRecovered]),
        ),
        ("Tasks of workers", 60, "Maximum", counts(&[TasksOffered, TasksHeld, TasksDead])),
        ("Dead letters", 300, "Sum", counts(&[DeadLetters])),
        ("Dead letters that wait", 300, "Maximum", dead_letters),
        ("Errors of functions", 300, "Sum", of_functions("Errors")),
        ("Throttled invocations", 300, "Sum", of_functions("Throttles")),
        ("Throttled writes to tables", 300, "Sum", of_tables),
    ];
    let placed = |(place, (title, period, statistic, metrics))| Widget {
        x: place % 3 * 8,
        y: place / 3 * 6,
        title,
        period,
        statistic,
        metrics,
    };
    widgets.into_iter().enumerate().map(placed).collect()
}

fn line(namespace: &str, metric: &str, dimension: &str, value: &str) -> String {
    format!(r#"["{namespace}", "{metric}", "{dimension}", "${{{value}}}"]"#)
}

fn counts(metrics: &[Metric]) -> Vec<String> {
    metrics.iter().map(|metric| line(NAMESPACE, metric.name(), "stack", "AWS::StackName")).collect()
}

fn spread(metric: Metric) -> Vec<String> {
    let name = metric.name();
    let of =
        |statistic| format!(r#"["{NAMESPACE}", "{name}", "stack", "${{AWS::StackName}}", {{"stat": "{statistic}"}}]"#);
    ["p50", "p99", "Maximum"].map(of).to_vec()
}
