//! The alarms, each with its row of the runbook in `docs/operating.md`.
//!
//! Most follow from a declaration: a queue, a function, a stream or a table. The others stand in [`of_the_stack`].

use rowmill_aws::observe::metrics::{Metric, NAMESPACE};
use rowmill_settings::declaration::{Advice, Errors, Function, Stream};
use serde::Serialize;

use crate::functions::{self, stem};
use crate::resources::{self, QueueResource, name_of};

const HOUR_SECONDS: u32 = 60 * 60;

/// An alarm on a metric, evaluated in periods of five minutes.
#[derive(Clone, Serialize)]
pub struct Alarm {
    pub name: String,
    needs_api: bool,
    /// What is wrong, and what follows.
    says: String,
    namespace: &'static str,
    metric: &'static str,
    /// Name and value, as YAML.
    dimension: (&'static str, String),
    /// The metric of the account whose quota the metric is compared with, in percent; empty for none. Both have no
    /// dimension then.
    of_quota: &'static str,
    statistic: &'static str,
    periods: u32,
    /// As YAML.
    threshold: String,
    /// True if it is raised below the threshold, or without the metric.
    wants_metric: bool,
    /// True if it says that there is more work than capacity, or that functions fail: jobs may still end well.
    #[serde(skip)]
    pub is_early: bool,
    /// Meaning in the runbook.
    #[serde(skip)]
    pub means: String,
    #[serde(skip)]
    pub advice: Advice,
}

impl Alarm {
    /// Metrics that CloudWatch charges it for.
    pub fn metrics(&self) -> usize {
        if self.of_quota.is_empty() { 1 } else { 2 }
    }
}

/// All alarms: first those that call for what the pipeline cannot repair by itself.
pub fn all() -> Vec<Alarm> {
    let mut alarms: Vec<Alarm> = resources::dead_letter_queues().iter().flat_map(of_dead_letters).collect();
    alarms.extend(of_the_stack());
    alarms.extend(functions::all().into_iter().flat_map(of_streams));
    alarms.extend(resources::declared().map(|queue| Alarm {
        threshold: "!Ref QueueAgeAlarmSeconds".to_owned(),
        periods: queue.late.periods,
        is_early: true,
        ..of_queue(
            format!("{}Behind", queue.stem),
            "ApproximateAgeOfOldestMessage",
            &format!("{}Queue", queue.stem),
            queue.late.says.to_owned(),
            queue.late.means,
            queue.late.advice,
        )
    }));
    alarms.extend(functions::all().into_iter().flat_map(of_function));
    alarms.extend(["Jobs", "Admission", "Records"].into_iter().flat_map(of_table));
    // Stable: the order within both parts is that of the flow.
    alarms.sort_by_key(|alarm| alarm.is_early);
    alarms
}

/// An alarm that is raised if the metric is above 0 for fifteen minutes.
fn on(namespace: &'static str, metric: &'static str, dimension: (&'static str, String), advice: Advice) -> Alarm {
    Alarm {
        name: String::new(),
        needs_api: false,
        says: String::new(),
        namespace,
        metric,
        dimension,
        of_quota: "",
        statistic: "Sum",
        periods: 3,
        threshold: "0".to_owned(),
        wants_metric: false,
        is_early: true,
        means: String::new(),
        advice,
    }
}

fn of_queue(name: String, metric: &'static str, queue: &str, says: String, means: &str, advice: Advice) -> Alarm {
    Alarm {
        name,
        says,
        statistic: "Maximum",
        periods: 1,
        is_early: false,
        means: means.to_owned(),
        ..on("AWS/SQS", metric, ("QueueName", format!("!GetAtt {queue}.QueueName")), advice)
    }
}

/// A dead-letter queue with a reader has two alarms, because SQS excludes a message that was received three times from
/// the age of the oldest message. Unread dead letters grow old; dead letters that cannot be settled are always in
/// flight.
fn of_dead_letters(queue: &QueueResource) -> Vec<Alarm> {
    let (stem, name) = (queue.stem, queue.stem.to_lowercase());
    if !queue.is_read() {
        let (means, todo) = match stem {
            "Inbox" => (
                "dropped files never became jobs: `receive-file` failed 1,000 times on a file",
                "the log; once the cause is gone, move the messages back to the inbox queue (SQS: start DLQ redrive), \
                 which is safe. SQS counts 14 days from the first delivery, of which some four are left",
            ),
            "Announcements" => (
                "events of jobs were not published in 23 hours",
                "ask the API for the jobs of that time; the queue says where in the stream they were",
            ),
            _ => (
                "messages of the queue became dead letters, and no function reads those",
                "the log of the queue's reader; once the cause is gone, move the messages back (SQS: start DLQ redrive)",
            ),
        };
        let says = format!("A message of the {name} was given up. No function reads it again: see the runbook.");
        let advice = Advice { meanwhile: "nothing", todo };
        return vec![of_queue(
            format!("{stem}GivenUp"),
            "ApproximateNumberOfMessagesVisible",
            &queue.id,
            says,
            means,
            advice,
        )];
    }
    let unread = Alarm {
        threshold: HOUR_SECONDS.to_string(),
        ..of_queue(
            format!("{stem}DeadLettersUnread"),
            "ApproximateAgeOfOldestMessage",
            &queue.id,
            format!("Dead letters of the {name} queue have waited for an hour. dead-letter does not receive them."),
            "dead letters **wait** for an hour: `dead-letter` does not receive them",
            Advice {
                meanwhile: "messages are kept for 14 days",
                todo: "is the function there, is its event source mapping enabled?",
            },
        )
    };
    let unsettled = Alarm {
        periods: 12,
        ..of_queue(
            format!("{stem}DeadLettersUnsettled"),
            "ApproximateNumberOfMessagesNotVisible",
            &queue.id,
            format!(
                "Dead letters of the {name} queue have come back for an hour. dead-letter cannot settle them; its log \
                 says why."
            ),
            "dead letters **come back** for an hour: `dead-letter` cannot settle them",
            Advice {
                meanwhile: "they are tried again; on a lane the others of the lane wait behind them",
                todo: "the log of `dead-letter`; `message not understood` is one reason",
            },
        )
    };
    vec![unread, unsettled]
}

fn of_streams(function: &Function) -> Vec<Alarm> {
    let of = |stream: &Stream| Alarm {
        name: format!("{}Behind", stream.name),
        needs_api: functions::needs_api(function),
        // In milliseconds. It grows with every kind of failure; not every kind counts as an error of the function.
        metric: "IteratorAge",
        statistic: "Maximum",
        periods: 1,
        threshold: (stream.late * 1000).to_string(),
        is_early: false,
        ..on_function(function, stream.says.to_owned(), stream.means.to_owned(), stream.advice)
    };
    function.streams().map(of).collect()
}

fn on_function(function: &Function, says: String, means: String, advice: Advice) -> Alarm {
    let stem = stem(function.name);
    Alarm {
        name: format!("{stem}Fails"),
        needs_api: functions::needs_api(function),
        says,
        means,
        ..on("AWS/Lambda", "Errors", ("FunctionName", format!("!Ref {stem}Function")), advice)
    }
}

/// Errors and throttles. An average of errors is a rate: Lambda reports 0 or 1 for each invocation.
fn of_function(function: &Function) -> Vec<Alarm> {
    let name = function.name;
    let errors = match function.errors {
        Errors::Share(advice) => Some(Alarm {
            statistic: "Average",
            threshold: "0.1".to_owned(),
            ..on_function(
                function,
                format!(
                    "More than a tenth of the invocations of {name} have ended in an error for fifteen minutes. Its \
                     log says why."
                ),
                "for 15 minutes more than a tenth of the invocations of the function ended in an error".to_owned(),
                advice,
            )
        }),
        Errors::Any(advice) => Some(Alarm {
            is_early: false,
            ..on_function(
                function,
                format!("Invocations of {name} have ended in an error for fifteen minutes. Its log says why."),
                "for 15 minutes invocations of the function ended in an error".to_owned(),
                advice,
            )
        }),
        Errors::Stream => None,
    };
    let advice = match functions::is_of_api(function) {
        true => Advice {
            meanwhile: "clients get an error and try again",
            todo: "raise the account's concurrency, or lower `ItemsMaximumConcurrency` to leave room for the API",
        },
        false => Advice {
            meanwhile: "messages wait; each throttled delivery of a queue counts towards those of a dead letter",
            todo: "raise the account's concurrency, or lower the concurrencies of the mappings",
        },
    };
    let throttles = Alarm {
        name: format!("{}Throttled", stem(name)),
        metric: "Throttles",
        ..on_function(
            function,
            format!("Lambda has throttled {name} for fifteen minutes. The concurrency of the account is used up."),
            "Lambda throttled the function for 15 minutes".to_owned(),
            advice,
        )
    };
    errors.into_iter().chain([throttles]).collect()
}

fn of_table(stem: &'static str) -> Vec<Alarm> {
    let advice = Advice {
        meanwhile: "they are [repeated with backoff](performance.md#throttled-requests), and workers are slower",
        todo: "one very busy job or owner? a table that grew fast adapts by itself; else ask for a higher table limit",
    };
    let of = |kind: &str, metric| {
        let (calls, table) = (kind.to_lowercase() + "s", stem.to_lowercase());
        Alarm {
            name: format!("{stem}Table{kind}sThrottled"),
            says: format!(
                "DynamoDB has throttled {calls} of the {table} table for fifteen minutes. Commits and requests are \
                 slower."
            ),
            means: format!("DynamoDB throttled {calls} for 15 minutes"),
            ..on("AWS/DynamoDB", metric, ("TableName", name_of(&format!("{stem}Table"))), advice)
        }
    };
    vec![of("Write", "WriteThrottleEvents"), of("Read", "ReadThrottleEvents")]
}

fn on_metric(metric: Metric, name: &str, says: &str, means: &str, advice: Advice) -> Alarm {
    Alarm {
        name: name.to_owned(),
        says: says.to_owned(),
        means: means.to_owned(),
        ..on(NAMESPACE, metric.name(), ("stack", "!Ref AWS::StackName".to_owned()), advice)
    }
}

/// The alarms that belong to no single declaration.
fn of_the_stack() -> Vec<Alarm> {
    let advice = |meanwhile, todo| Advice { meanwhile, todo };
    vec![
        Alarm {
            periods: 1,
            is_early: false,
            ..on_metric(
                Metric::MissingPermissions,
                "MissingPermissions",
                "A function was denied a call. A role, or the policy of a resource or key, lacks a permission.",
                "a function was **denied a call**: a role, or the policy of a resource or key, lacks a permission",
                advice(
                    "messages are delivered again until they are dead letters",
                    "the line `missing permission` in the logs; correct the policy",
                ),
            )
        },
        Alarm {
            name: "SweepMissing".to_owned(),
            metric: "Invocations",
            threshold: "1".to_owned(),
            wants_metric: true,
            is_early: false,
            ..on_function(
                &sweep::declaration::FUNCTION,
                "The sweep has not run for fifteen minutes. Jobs that lost a message or a process are not \
                 recovered."
                    .to_owned(),
                "the sweep does not run: its schedule or function is off. The state is **`INSUFFICIENT_DATA`**, not \
                 `ALARM`: a receiver that skips that state must let it pass for this alarm. A new stack has it \
                 without a notification until its first sweep"
                    .to_owned(),
                advice("jobs continue, but nothing lost is found", "enable it"),
            )
        },
        Alarm {
            name: "AccountConcurrencyHigh".to_owned(),
            says:
                "More than 80% of the concurrent executions that Lambda allows this account and region are in use or \
                   reserved. At 100% functions of all stacks are throttled."
                    .to_owned(),
            means:
                "for 15 minutes more than 80% of the account's quota `Concurrent executions` was in use or reserved, \
                    by this stack or others"
                    .to_owned(),
            of_quota: "ConcurrentExecutions",
            statistic: "Maximum",
            threshold: "80".to_owned(),
            ..on(
                "AWS/Lambda",
                "ClaimedAccountConcurrency",
                ("", String::new()),
                advice(
                    "nothing: nothing is throttled yet",
                    "raise the quota, or lower the concurrencies of the mappings",
                ),
            )
        },
        Alarm {
            statistic: "Maximum",
            periods: 1,
            threshold: "!Ref QueueAgeAlarmSeconds".to_owned(),
            ..on_metric(
                Metric::DispatchDelay,
                "DispatchSlow",
                "A job has waited longer than QueueAgeAlarmSeconds for its first chunk. There is more work than \
                 capacity.",
                "a job of high or normal priority waited longer than `QueueAgeAlarmSeconds` for its first chunk",
                advice(
                    "–",
                    "as for `JobsBehind` and `ItemsBehind`; jobs whose deadline passes first end with \
                     [`capacity_exceeded`](#capacity_exceeded)",
                ),
            )
        },
        Alarm {
            needs_api: true,
            statistic: "Maximum",
            periods: 1,
            threshold: "!Ref QueueAgeAlarmSeconds".to_owned(),
            ..on_metric(
                Metric::OldestTaskAge,
                "TasksBehind",
                "A task has waited longer than QueueAgeAlarmSeconds for a worker. There are too few workers, or none.",
                "a [task](workers.md) waited longer than `QueueAgeAlarmSeconds` for a worker",
                advice("they wait until the deadline of their job", "start workers; `rowmill workers` lists them"),
            )
        },
        Alarm {
            needs_api: true,
            statistic: "Minimum",
            ..on_metric(
                Metric::TasksDead,
                "WorkersDead",
                "For fifteen minutes there have been tasks whose workers have died. No other worker asks for them.",
                "for 15 minutes there were tasks whose worker has died and that no other one has taken",
                advice("what they reported counts", "start workers; `rowmill workers` names the dead ones"),
            )
        },
        on_metric(
            Metric::SystemFull,
            "SystemIsFull",
            "Jobs have been refused for fifteen minutes because the limit of active jobs of the system is reached. \
             Clients try again later.",
            "for 15 minutes jobs were refused with `system_full`",
            advice("clients try again after `Retry-After`", "raise `SystemJobCeiling` and the concurrencies, or wait"),
        ),
        on_metric(
            Metric::JobTypeFull,
            "JobTypeIsFull",
            "Jobs have been refused for fifteen minutes because the limit of active jobs of their type is reached. \
             Clients try again later.",
            "for 15 minutes jobs were refused with `job_type_full`",
            advice(
                "clients try again after `Retry-After`",
                "raise `TypeJobCeiling`, or wait; does the target of this type answer?",
            ),
        ),
        on_metric(
            Metric::RequestsFailed,
            "RequestsFailing",
            "Requests have failed for fifteen minutes. The logs of the functions of the API say why.",
            "for 15 minutes requests were answered `503 unavailable` or `500 internal_error`",
            advice(
                "clients repeat them",
                "look for `port unavailable`, `missing permission` and `invalid answer of a port` in the logs of the \
                 API's functions",
            ),
        ),
        Alarm {
            needs_api: true,
            namespace: "AWS/ApiGateway",
            metric: "5xx",
            dimension: ("ApiId", "!Ref HttpApi".to_owned()),
            statistic: "Average",
            threshold: "0.1".to_owned(),
            ..on_metric(
                Metric::RequestsFailed,
                "ApiFailing",
                "More than a tenth of the requests have been answered with a status from 500 for fifteen minutes. The \
                 access log of the HTTP API says which.",
                "for 15 minutes more than a tenth of the requests to the HTTP API were answered with a status from \
                 500, also by API Gateway itself: a function crashed, timed out or was throttled, or a \
                 [ceiling](limits.md#jobs-at-once) is reached",
                advice(
                    "clients repeat them",
                    "the status and the route in the API's [access log](#logs); with `SystemIsFull` or \
                     `JobTypeIsFull` see there, else the log of the function",
                ),
            )
        },
    ]
}
