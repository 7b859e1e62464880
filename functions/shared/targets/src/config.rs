//! The setting `ROWMILL_JOB_TARGETS`: a JSON object from job type to target.
//!
//! ```json
//! {"geocode": {"invoke": "arn:aws:lambda:eu-west-1:123456789012:function:geocode", "batchItems": 100, "outputs": true},
//!  "notify": {"webhook": "https://example.com/hook", "timeoutSeconds": 10, "concurrency": 4}}
//! ```
//!
//! | field | meaning | range | default |
//! |---|---|---|---|
//! | `invoke` | ARN of a Lambda function | | |
//! | `webhook` | URL of a web service | | |
//! | `workers` | workers outside of the stack lease the items, see `docs/workers.md`; exactly one of `invoke`, `webhook`, `workers` and `table` is required. `{}`, or with `beatSeconds` (10–3600): longest time between two beats of a worker; `items` (1–1000): maximum number of items of a task; `minimumClient`: oldest version of a client that gets tasks, such as `"1.4.0"` | | `{"beatSeconds": 60, "items": 1}` |
//! | `table` | name of a DynamoDB table of this account and region: each row becomes an item, see `docs/job-types.md`. With `key`: the attributes of the table's key, that of the partition first; and `keyPrefix`: what the partition key of a caller's items must begin with, `{owner}#` stands for the caller | | no prefix |
//! | `async` | whether the function or web service may answer later, see `docs/workers.md` | | false |
//! | `beatSeconds` | with `async`: longest time between two beats | 10–3600 | 60 |
//! | `input` | `file`: the items are rows of a file, or of the request. `none`: jobs have no input, and the target is called once, with one empty item | | `file` |
//! | `batchItems` | maximum number of items in a call | 1–1000 | 100; 1 with `async` |
//! | `concurrency` | maximum concurrent calls for one chunk; not with `async` | 1–16 | 1 |
//! | `timeoutSeconds` | timeout of a call | 1–60 | 30 for a function, 10 for a webhook |
//! | `outputs` | whether items have outputs | | false |
//! | `cancel` | whether a call in flight is dropped when its job stops, and the target is told; not with `async` | | false |
//! | `hostConcurrency` | maximum concurrent calls from one process to the webhook's host; if several types share a host, the lowest value applies | 1–16 | 10 |
//! | `allowPrivate` | whether the webhook may have a private address; this also allows `http://` on this machine | | false |
//! | `redirectHosts` | list of `host` or `host:port` that the webhook may redirect to, besides its own | 0–16 entries | none |
//!
//! A process has at most [`CALLS_MAX`] (16) calls in flight, over all targets and chunks. This setting cannot raise
//! that limit. The requests of those calls take at most 96 MB, their answers at most 96 MiB. In addition the process
//! holds the outputs of the chunks that it works on at the same time: at most ten chunks, at most 8 MiB each.
//!
//! A call that takes longer than the time that `process-items` has left is cancelled and repeated later. So keep
//! `timeoutSeconds` well below the template's `ProcessTimeoutSeconds`.

use std::ops::RangeInclusive;
use std::time::Duration;

use rowmill_core::job_types::TableKey;
use rowmill_core::job_types::target_type::TargetCalls;
use rowmill_core::model::client_version::ClientVersion;
use rowmill_core::model::entries::Entries;
use rowmill_core::model::task::TaskTerms;
use rowmill_core::ports::processor::InputKind;
use serde::Deserialize;

use crate::gate::CALLS_MAX;
use crate::webhook::{Endpoint, UrlRefused};

const REDIRECT_HOSTS_MAX: usize = 16;

const KEY_PREFIX_MAX_BYTES: usize = 200;

/// A holder that died is given up after at most twice the time between two beats. Clocks differ by seconds, so it is not
/// shorter; an order reaches a worker by its beat, so it is not longer.
const BEAT_SECONDS: RangeInclusive<u64> = 10..=3600;

/// The configuration of one job type and its target.
#[derive(Clone, PartialEq, Debug)]
pub struct TargetConfig {
    /// The name of the job type, as clients use it.
    pub name: String,
    /// Batch size, concurrency and outputs of the calls.
    pub calls: TargetCalls,
    /// Where the items come from.
    pub input: InputKind,
    pub timeout: Duration,
    /// The terms of its tasks, if it has workers, or answers later.
    pub tasks: Option<TaskTerms>,
    pub kind: TargetKind,
}

/// The function or web service to call, or the workers.
#[derive(Clone, PartialEq, Debug)]
pub enum TargetKind {
    /// The Lambda function with this ARN.
    Function(String),
    /// A table, into which the rows are imported.
    Table { name: String, key: TableKey },
    /// No target: workers outside of the stack lease the items.
    Workers,
    Webhook {
        endpoint: Endpoint,
        /// Maximum concurrent calls from one process to its host.
        host_concurrency: usize,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("ROWMILL_JOB_TARGETS is not a JSON object from job type to target: {0}")]
    NotJson(serde_json::Error),
    #[error("ROWMILL_JOB_TARGETS: `{name}` {problem}")]
    Target { name: String, problem: Problem },
}

/// An error in a target. The text completes a sentence that begins with the name of the job type.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The name is not a valid job type name.
    #[error("must be a name of 1 to 64 lowercase letters, digits and `-`, starting with a letter")]
    Name,
    #[error("is the name of a built-in job type; choose another name")]
    BuiltIn,
    #[error("appears twice; give each target a unique name")]
    Repeated,
    /// A field is unknown or has the wrong type.
    #[error("is invalid: {0}")]
    Field(serde_json::Error),
    #[error("must have `invoke` (the ARN of a Lambda function), `webhook` (a URL), `workers` or `table`")]
    NoTarget,
    #[error("has more than one of `invoke`, `webhook`, `workers` and `table`; configure a job type for each")]
    TwoTargets,
    /// `invoke` is not the ARN of a function.
    #[error("has an `invoke` that is not the ARN of a Lambda function (`arn:aws:lambda:REGION:ACCOUNT:function:NAME`)")]
    NotFunctionArn,
    #[error("has a `webhook` that is not allowed: {0}")]
    Url(UrlRefused),
    #[error("must have `redirectHosts` that are public hosts, each as `host` or `host:port`: {0}")]
    RedirectHost(UrlRefused),
    #[error("has more than {REDIRECT_HOSTS_MAX} `redirectHosts`")]
    ManyRedirectHosts,
    #[error("must have a `{field}` from {min} to {max}")]
    OutOfBounds { field: &'static str, min: u64, max: u64 },
    /// A field does not apply to a function.
    #[error("has `{0}`, which is only valid with `webhook`")]
    WebhookOnly(&'static str),
    #[error("has `beatSeconds`, which is only valid with `\"async\": true`")]
    BeatsOfSync,
    #[error("has `concurrency`, which is not valid with `async`: each chunk is one call")]
    ConcurrencyOfAsync,
    #[error("has `cancel`, which is not valid with `async`: the answer to its next beat says that the job stops")]
    CancelOfAsync,
    /// A field does not apply to workers, which nobody calls.
    #[error("has `{0}`, which is not valid with `workers`: Rowmill does not call them")]
    NotForWorkers(&'static str),
    #[error("has a `table` that is not the name of a DynamoDB table: 3 to 255 letters, digits, `-`, `_` or `.`")]
    TableName,
    #[error("must have a `key`: the one or two attributes of its table's key, that of the partition first")]
    TableKey,
    #[error(
        "must have a `keyPrefix` of at most {KEY_PREFIX_MAX_BYTES} bytes, in which `{{owner}}` is followed by `#`, which no owner has in its name"
    )]
    KeyPrefix,
    /// A field applies to a table only.
    #[error("has `{0}`, which is only valid with `table`")]
    TableOnly(&'static str),
    /// A field does not apply to a table, which is not called.
    #[error("has `{0}`, which is not valid with `table`")]
    NotForTable(&'static str),
    #[error("must have a `workers.minimumClient` of three numbers, such as \"1.4.0\"")]
    MinimumClient,
}

/// The fields of a target, as they appear in the JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Fields {
    workers: Option<WorkerFields>,
    r#async: Option<bool>,
    beat_seconds: Option<u64>,
    invoke: Option<String>,
    webhook: Option<String>,
    table: Option<String>,
    key: Option<Vec<String>>,
    key_prefix: Option<String>,
    input: Option<Input>,
    batch_items: Option<u64>,
    concurrency: Option<u64>,
    timeout_seconds: Option<u64>,
    outputs: Option<bool>,
    cancel: Option<bool>,
    host_concurrency: Option<u64>,
    allow_private: Option<bool>,
    redirect_hosts: Option<Vec<String>>,
}

/// The fields of `workers`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WorkerFields {
    beat_seconds: Option<u64>,
    items: Option<u64>,
    minimum_client: Option<String>,
}

/// The words of `input`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Input {
    File,
    Files,
    None,
}

/// Parses the setting. An empty setting means no targets. `built_in` lists the job type names that are already taken.
pub fn parse(json: &str, built_in: &[&str]) -> Result<Vec<TargetConfig>, ConfigError> {
    if json.trim().is_empty() {
        return Ok(Vec::new());
    }
    let Entries(entries) = serde_json::from_str(json).map_err(ConfigError::NotJson)?;
    let mut configs: Vec<TargetConfig> = Vec::with_capacity(entries.len());
    for (name, fields) in entries {
        let taken = configs.iter().any(|config| config.name == name);
        let config = check_name(&name, taken, built_in).and_then(|()| config(name.clone(), fields));
        configs.push(config.map_err(|problem| ConfigError::Target { name: name.chars().take(64).collect(), problem })?);
    }
    Ok(configs)
}

fn check_name(name: &str, taken: bool, built_in: &[&str]) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=64).contains(&name.len())
        || !name.starts_with(|c: char| c.is_ascii_lowercase())
        || !name.chars().all(allowed)
    {
        return Err(Problem::Name);
    }
    match (built_in.contains(&name), taken) {
        (true, _) => Err(Problem::BuiltIn),
        (false, true) => Err(Problem::Repeated),
        (false, false) => Ok(()),
    }
}

fn config(name: String, fields: serde_json::Value) -> Result<TargetConfig, Problem> {
    let fields: Fields = serde_json::from_value(fields).map_err(Problem::Field)?;
    let number = |field, value: Option<u64>, default, bounds: RangeInclusive<u64>| match value.unwrap_or(default) {
        value if bounds.contains(&value) => Ok(value),
        _ => Err(Problem::OutOfBounds { field, min: *bounds.start(), max: *bounds.end() }),
    };
    let count = |field, value, default, max| number(field, value, default, 1..=max).map(|count| count as usize);
    let is_async = fields.r#async == Some(true);
    if fields.beat_seconds.is_some() && !is_async && fields.workers.is_none() {
        return Err(Problem::BeatsOfSync);
    }
    if fields.concurrency.is_some() && is_async {
        return Err(Problem::ConcurrencyOfAsync);
    }
    if fields.cancel.is_some() && is_async {
        return Err(Problem::CancelOfAsync);
    }
    let calls = TargetCalls {
        batch_items: count("batchItems", fields.batch_items, if is_async { 1 } else { 100 }, 1000)?,
        concurrency: count("concurrency", fields.concurrency, 1, CALLS_MAX as u64)?,
        outputs: fields.outputs.unwrap_or(false),
        cancel: fields.cancel.unwrap_or(false),
    };
    let input = match fields.input {
        None | Some(Input::File) => InputKind::File,
        Some(Input::Files) => InputKind::Files,
        Some(Input::None) => InputKind::None,
    };
    let seconds =
        number("timeoutSeconds", fields.timeout_seconds, if fields.invoke.is_some() { 30 } else { 10 }, 1..=60)?;
    let webhook_only = [
        ("hostConcurrency", fields.host_concurrency.is_some()),
        ("allowPrivate", fields.allow_private.is_some()),
        ("redirectHosts", fields.redirect_hosts.is_some()),
    ];
    let misplaced = webhook_only.into_iter().find(|(_, is_there)| *is_there).map(|(field, _)| field);
    let of_calls = [
        ("async", fields.r#async.is_some()),
        ("beatSeconds", fields.beat_seconds.is_some()),
        ("batchItems", fields.batch_items.is_some()),
        ("cancel", fields.cancel.is_some()),
        ("concurrency", fields.concurrency.is_some()),
        ("timeoutSeconds", fields.timeout_seconds.is_some()),
    ];
    let given = |(field, is_there): (&'static str, bool)| is_there.then_some(field);
    let of_calls = of_calls.into_iter().chain(webhook_only).find_map(given);
    let of_table = [("key", fields.key.is_some()), ("keyPrefix", fields.key_prefix.is_some())];
    if let (None, Some(field)) = (&fields.table, of_table.into_iter().find_map(given)) {
        return Err(Problem::TableOnly(field));
    }
    let mut tasks = None;
    if is_async {
        let beat = number("beatSeconds", fields.beat_seconds, 60, BEAT_SECONDS)?;
        let items = calls.batch_items as u32;
        tasks = Some(TaskTerms { beat: Duration::from_secs(beat), items, called: true, minimum_client: None });
    }
    let kind = match (fields.invoke, fields.webhook, fields.workers, fields.table) {
        (None, None, None, None) => return Err(Problem::NoTarget),
        (None, None, None, Some(name)) => {
            let of_items = [("input", fields.input.is_some()), ("outputs", fields.outputs.is_some())];
            if let Some(field) = of_calls.or_else(|| of_items.into_iter().find_map(given)) {
                return Err(Problem::NotForTable(field));
            }
            let (attributes, prefix) = (fields.key.unwrap_or_default(), fields.key_prefix.unwrap_or_default());
            table(name, TableKey { attributes, prefix })?
        }
        (Some(arn), None, None, None) => match misplaced {
            Some(field) => return Err(Problem::WebhookOnly(field)),
            None if is_function_arn(&arn) => TargetKind::Function(arn),
            None => return Err(Problem::NotFunctionArn),
        },
        (None, Some(url), None, None) => TargetKind::Webhook {
            endpoint: endpoint(&url, fields.allow_private.unwrap_or(false), fields.redirect_hosts.unwrap_or_default())?,
            host_concurrency: count("hostConcurrency", fields.host_concurrency, 10, CALLS_MAX as u64)?,
        },
        (None, None, Some(workers), None) => {
            if let Some(field) = of_calls {
                return Err(Problem::NotForWorkers(field));
            }
            let beat = number("workers.beatSeconds", workers.beat_seconds, 60, BEAT_SECONDS)?;
            let items = number("workers.items", workers.items, 1, 1..=1000)?;
            let version =
                |text: &String| text.parse().ok().filter(|version: &ClientVersion| version.to_string() == *text);
            let minimum_client =
                workers.minimum_client.as_ref().map(|text| version(text).ok_or(Problem::MinimumClient));
            let minimum_client = minimum_client.transpose()?;
            let beat = Duration::from_secs(beat);
            tasks = Some(TaskTerms { beat, items: items as u32, called: false, minimum_client });
            TargetKind::Workers
        }
        _ => return Err(Problem::TwoTargets),
    };
    Ok(TargetConfig { name, calls, input, timeout: Duration::from_secs(seconds), tasks, kind })
}

fn table(name: String, key: TableKey) -> Result<TargetKind, Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !(3..=255).contains(&name.len()) || !name.chars().all(allowed) {
        return Err(Problem::TableName);
    }
    match key.attributes.as_slice() {
        [one] if !one.is_empty() => {}
        [one, other] if !one.is_empty() && !other.is_empty() && one != other => {}
        _ => return Err(Problem::TableKey),
    }
    // Else the keys of one owner could begin like those of another.
    let is_delimited = key.prefix.split("{owner}").skip(1).all(|rest| rest.starts_with('#'));
    if key.prefix.len() > KEY_PREFIX_MAX_BYTES || !is_delimited {
        return Err(Problem::KeyPrefix);
    }
    Ok(TargetKind::Table { name, key })
}

fn endpoint(url: &str, allow_private: bool, redirect_hosts: Vec<String>) -> Result<Endpoint, Problem> {
    if redirect_hosts.len() > REDIRECT_HOSTS_MAX {
        return Err(Problem::ManyRedirectHosts);
    }
    let endpoint = Endpoint::new(url, allow_private).map_err(Problem::Url)?;
    endpoint.with_redirect_hosts(&redirect_hosts).map_err(Problem::RedirectHost)
}

/// Matches `arn:aws:lambda:REGION:ACCOUNT:function:NAME`, with an optional alias or version.
fn is_function_arn(arn: &str) -> bool {
    let parts: Vec<&str> = arn.split(':').collect();
    let named = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic() && c != '*');
    matches!(parts.as_slice(), ["arn", partition, "lambda", _, _, "function", _] | ["arn", partition, "lambda", _, _, "function", _, _]
        if partition.starts_with("aws") && parts.iter().all(named))
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
