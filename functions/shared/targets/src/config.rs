//! The setting `ROWMILL_JOB_TARGETS`: JSON that gives each job type its target.
//!
//! ```json
//! {"geocode": {"invoke": "arn:aws:lambda:eu-west-1:123456789012:function:geocode", "batchItems": 100, "outputs": true},
//!  "notify": {"webhook": "https://example.com/hook", "timeoutSeconds": 10, "concurrency": 4}}
//! ```
//!
//! | field | means | from, to | default |
//! |---|---|---|---|
//! | `invoke` | the ARN of a Lambda function | | |
//! | `webhook` | the URL of a web service; one of the two there must be | | |
//! | `batchItems` | items in a call | 1, 1000 | 100 |
//! | `concurrency` | calls at once of one chunk | 1, 16 | 1 |
//! | `timeoutSeconds` | how long a call may take | 1, 60 | 30 of a function, 10 of a web service |
//! | `outputs` | whether items have outputs | | false |
//! | `hostConcurrency` | calls at once to the webhook's host, from one process; of several types at one host the lowest counts | 1, 16 | 10 |
//! | `allowPrivate` | whether the webhook may be in a private network; then `http://` will do on this machine | | false |
//!
//! Of all targets and chunks together a process has at most [`CALLS_MAX`] (16) calls out at once, whatever stands here:
//! their requests take 96 MB at most, their answers 96 MiB. Beside those it holds the outputs of the chunks that it
//! works on side by side, ten at most: at most 8 MiB of each.
//!
//! A call that takes longer than `process-items` has left is given up and made again; so `timeoutSeconds` stays well below
//! the template's `ProcessTimeoutSeconds`.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use rowmill_core::job_types::target_type::TargetCalls;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::gate::CALLS_MAX;
use crate::webhook::{Endpoint, UrlRefused};

/// A job type and its target.
#[derive(Clone, PartialEq, Debug)]
pub struct TargetConfig {
    /// What clients call the job type.
    pub name: String,
    /// How its target is called.
    pub calls: TargetCalls,
    /// How long a call may take.
    pub timeout: Duration,
    /// What the target is.
    pub reach: Reach,
}

/// What a target is.
#[derive(Clone, PartialEq, Debug)]
pub enum Reach {
    /// The Lambda function of this ARN.
    Function(String),
    /// A web service.
    Webhook {
        /// Where it is.
        endpoint: Endpoint,
        /// How many calls its host bears at once.
        host_concurrency: usize,
    },
}

/// Why the setting cannot be worked with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is no JSON object.
    #[error("ROWMILL_JOB_TARGETS is not a JSON object of targets by the names of their job types: {0}")]
    NotJson(serde_json::Error),
    /// One of the targets is not right.
    #[error("ROWMILL_JOB_TARGETS: `{name}` {problem}")]
    Target {
        /// The job type.
        name: String,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// What is wrong with a target.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It cannot be a job type's name.
    #[error("must be a name of 1 to 64 small letters, digits and `-`, with a letter first")]
    Name,
    /// A type of Rowmill's own has that name.
    #[error("is the name of a built-in job type; give it another one")]
    BuiltIn,
    /// It is there twice.
    #[error("is there twice; give each a name of its own")]
    Repeated,
    /// A field is unknown or of another type.
    #[error("is not right: {0}")]
    Field(serde_json::Error),
    /// It has no target.
    #[error("must have `invoke`, the ARN of a Lambda function, or `webhook`, a URL")]
    NoTarget,
    /// It has two targets.
    #[error("has both `invoke` and `webhook`; make it two job types")]
    TwoTargets,
    /// It names no function.
    #[error("has an `invoke` that is not the ARN of a Lambda function (`arn:aws:lambda:REGION:ACCOUNT:function:NAME`)")]
    NoFunction,
    /// Its URL will not do.
    #[error("has a `webhook` that will not do: {0}")]
    Url(UrlRefused),
    /// A number is out of its bounds.
    #[error("must have a `{field}` from {min} to {max}")]
    OutOfBounds {
        /// The field.
        field: &'static str,
        /// Its lowest value.
        min: u64,
        /// Its highest value.
        max: u64,
    },
    /// A field means nothing to a function.
    #[error("has `{0}`, which only a `webhook` has")]
    OnlyOfWebhooks(&'static str),
}

/// The fields, as they are written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Fields {
    invoke: Option<String>,
    webhook: Option<String>,
    batch_items: Option<u64>,
    concurrency: Option<u64>,
    timeout_seconds: Option<u64>,
    outputs: Option<bool>,
    host_concurrency: Option<u64>,
    allow_private: Option<bool>,
}

/// Reads the setting; of an empty one there are no targets. `built_in` are the names that are taken.
///
/// # Errors
/// See [`ConfigError`].
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
    let calls = TargetCalls {
        batch_items: count("batchItems", fields.batch_items, 100, 1000)?,
        concurrency: count("concurrency", fields.concurrency, 1, CALLS_MAX as u64)?,
        outputs: fields.outputs.unwrap_or(false),
    };
    let seconds =
        number("timeoutSeconds", fields.timeout_seconds, if fields.invoke.is_some() { 30 } else { 10 }, 1..=60)?;
    let reach = match (fields.invoke, fields.webhook) {
        (None, None) => return Err(Problem::NoTarget),
        (Some(_), Some(_)) => return Err(Problem::TwoTargets),
        (Some(_), None) if fields.host_concurrency.is_some() => return Err(Problem::OnlyOfWebhooks("hostConcurrency")),
        (Some(_), None) if fields.allow_private.is_some() => return Err(Problem::OnlyOfWebhooks("allowPrivate")),
        (Some(arn), None) if is_function_arn(&arn) => Reach::Function(arn),
        (Some(_), None) => return Err(Problem::NoFunction),
        (None, Some(url)) => Reach::Webhook {
            endpoint: Endpoint::new(&url, fields.allow_private.unwrap_or(false)).map_err(Problem::Url)?,
            host_concurrency: count("hostConcurrency", fields.host_concurrency, 10, CALLS_MAX as u64)?,
        },
    };
    Ok(TargetConfig { name, calls, timeout: Duration::from_secs(seconds), reach })
}

/// `arn:aws:lambda:REGION:ACCOUNT:function:NAME`, with an alias or a version or without.
fn is_function_arn(arn: &str) -> bool {
    let parts: Vec<&str> = arn.split(':').collect();
    let named = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic() && c != '*');
    matches!(parts.as_slice(), ["arn", partition, "lambda", _, _, "function", _] | ["arn", partition, "lambda", _, _, "function", _, _]
        if partition.starts_with("aws") && parts.iter().all(named))
}

/// The members of an object, in their order, repeated ones too.
struct Entries(Vec<(String, serde_json::Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
