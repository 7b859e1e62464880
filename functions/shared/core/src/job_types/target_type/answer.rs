//! Parses the answer of a target: which items failed, and the outputs of the other items.
//!
//! The format is that of a partial batch response of Lambda to SQS, plus `outputs`. The check is strict: an answer that
//! names an item twice, or an item that was not sent, may belong to another call. Then the whole answer is rejected.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::ports::ANSWER_MAX_BYTES;
use crate::ports::processor::{ItemError, ItemOutcome};

/// The maximum length of a code, message and column name from a target, in characters. Longer texts are cut.
const CODE_MAX_CHARS: usize = 64;
const MESSAGE_MAX_CHARS: usize = 500;
const COLUMN_MAX_CHARS: usize = 200;

/// Maximum number of lists and objects in one another in an output. Parsers stop at some depth, serde_json at 128.
const DEPTH_MAX: usize = 100;

/// The results of a call: one for each item, in the order of the items.
pub type Results = Vec<Result<ItemOutcome, ItemError>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    #[serde(borrow)]
    batch_item_failures: Vec<Failure<'a>>,
    #[serde(borrow, default)]
    outputs: Option<Vec<ItemOutput<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    #[serde(borrow)]
    item_identifier: Cow<'a, str>,
    code: Option<String>,
    message: Option<String>,
    column: Option<String>,
    transient: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemOutput<'a> {
    #[serde(borrow)]
    item_identifier: Cow<'a, str>,
    #[serde(borrow)]
    output: &'a RawValue,
}

/// The fault of an answer. Does not quote the answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadAnswer {
    /// It exceeds [`ANSWER_MAX_BYTES`].
    #[error("it is longer than {ANSWER_MAX_BYTES} bytes")]
    TooLarge,
    #[error("it is not valid JSON, see its line {line}, column {column}")]
    NotJson { line: usize, column: usize },
    #[error(
        "it must have the form {{\"batchItemFailures\": [{{\"itemIdentifier\": …}}], \"outputs\": [{{\"itemIdentifier\": …, \
         \"output\": {{…}}}}]}}, see its line {line}, column {column}"
    )]
    OtherForm { line: usize, column: usize },
    /// It names an item that was not sent.
    #[error("`{list}[{place}]` names an item that was not in the call")]
    Unknown { list: &'static str, place: usize },
    #[error("`{list}[{place}]` names an item for the second time")]
    Repeated { list: &'static str, place: usize },
    /// It has an output for a failed item.
    #[error("`outputs[{place}]` belongs to an item that is listed as failed")]
    FailedWithOutput { place: usize },
    /// It has outputs, but the job type has none.
    #[error("it has outputs, but the job type is not configured with `\"outputs\": true`")]
    UnexpectedOutputs,
    #[error("`outputs[{place}].output` is not an object")]
    NoObject { place: usize },
    #[error("`outputs[{place}].output` has more than {DEPTH_MAX} lists and objects in one another")]
    TooDeep { place: usize },
}

/// True if the target says that it answers later.
pub(super) fn is_accepted(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Accepted {
        accepted: bool,
    }
    serde_json::from_slice::<Accepted>(bytes).is_ok_and(|answer| answer.accepted)
}

/// Reads the answer to a call with these items. `outputs` says whether the job type has outputs.
pub fn read_answer(bytes: &[u8], identifiers: &[&str], outputs: bool) -> Result<Results, BadAnswer> {
    if bytes.len() > ANSWER_MAX_BYTES {
        return Err(BadAnswer::TooLarge);
    }
    let answer: Answer<'_> = serde_json::from_slice(bytes).map_err(|error| BadAnswer::from(&error))?;
    let given = answer.outputs.unwrap_or_default();
    if !outputs && !given.is_empty() {
        return Err(BadAnswer::UnexpectedOutputs);
    }
    let places: HashMap<&str, usize> = identifiers.iter().copied().zip(0..).collect();
    let place_of = |identifier: &str| places.get(identifier).copied();
    let mut results: Results = vec![Ok(ItemOutcome::Succeeded); identifiers.len()];
    for (place, failure) in answer.batch_item_failures.into_iter().enumerate() {
        let list = "batchItemFailures";
        let of = place_of(&failure.item_identifier).ok_or(BadAnswer::Unknown { list, place })?;
        if results[of].is_err() {
            return Err(BadAnswer::Repeated { list, place });
        }
        results[of] = Err(failure.into());
    }
    let mut named = vec![false; identifiers.len()];
    for (place, given) in given.into_iter().enumerate() {
        let list = "outputs";
        let of = place_of(&given.item_identifier).ok_or(BadAnswer::Unknown { list, place })?;
        if std::mem::replace(&mut named[of], true) {
            return Err(BadAnswer::Repeated { list, place });
        }
        if results[of].is_err() {
            return Err(BadAnswer::FailedWithOutput { place });
        }
        if !given.output.get().starts_with('{') {
            return Err(BadAnswer::NoObject { place });
        }
        let output = one_line(given.output.get()).ok_or(BadAnswer::TooDeep { place })?;
        results[of] = Ok(ItemOutcome::Output(output));
    }
    Ok(results)
}

impl From<&serde_json::Error> for BadAnswer {
    fn from(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Data => Self::OtherForm { line, column },
            Category::Io | Category::Syntax | Category::Eof => Self::NotJson { line, column },
        }
    }
}

impl From<Failure<'_>> for ItemError {
    fn from(failure: Failure<'_>) -> Self {
        let safe = |text: Option<String>, max| text.map(|text| safe_text(&text, max)).filter(|text| !text.is_empty());
        Self {
            code: safe(failure.code, CODE_MAX_CHARS).unwrap_or_else(|| "failed".into()),
            message: safe(failure.message, MESSAGE_MAX_CHARS)
                .unwrap_or_else(|| "the target lists the item as failed and gives no message".into()),
            column: safe(failure.column, COLUMN_MAX_CHARS),
            rule: None,
            transient: failure.transient.unwrap_or(false),
        }
    }
}

/// Makes a text from outside safe to display: a single line, no control characters (terminal) and no characters that
/// change the writing direction, cut to `max_chars`.
fn safe_text(text: &str, max_chars: usize) -> String {
    let is_unsafe = |c: char| matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') || c.is_control();
    let safe = text.trim().chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_unsafe(*c));
    safe.take(max_chars).collect()
}

/// Removes the white space between JSON tokens, including line ends. Everything else stays as it was written, so that
/// no number loses digits. None if more than [`DEPTH_MAX`] lists and objects are in one another.
fn one_line(json: &str) -> Option<String> {
    let (mut in_string, mut escaped, mut depth, mut deepest) = (false, false, 0_usize, 0);
    let keep = |c: &char| {
        let blank = !in_string && matches!(c, ' ' | '\t' | '\r' | '\n');
        match c {
            '"' if !escaped => in_string = !in_string,
            '{' | '[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            '}' | ']' if !in_string => depth -= 1,
            _ => {}
        }
        escaped = *c == '\\' && !escaped;
        !blank
    };
    let line = json.chars().filter(keep).collect();
    (deepest <= DEPTH_MAX).then_some(line)
}
