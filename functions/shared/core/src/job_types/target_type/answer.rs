//! What a target answers: which of the items it was sent have failed, and the outputs of the others.
//!
//! The shape is that of a partial batch answer to SQS, with outputs beside it. Nothing is guessed: an answer that names an
//! item which was not sent, or one twice, may be another call's, and then says nothing about any item.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::ports::ANSWER_MAX_BYTES;
use crate::ports::processor::{ItemError, ItemOutcome};

/// The longest code, message and column name taken from a target, in characters.
const CODE_MAX_CHARS: usize = 64;
const MESSAGE_MAX_CHARS: usize = 500;
const COLUMN_MAX_CHARS: usize = 200;

/// How a call ended for each of its items, in their order.
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

/// What is wrong with an answer. Quotes nothing of it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadAnswer {
    /// More than is read.
    #[error("it is longer than {ANSWER_MAX_BYTES} bytes")]
    TooLarge,
    /// No JSON.
    #[error("it is not JSON, or not all of it: see its line {line}, column {column}")]
    NotJson {
        /// Where it goes wrong, the first line being 1.
        line: usize,
        /// Where it goes wrong, the first column being 1.
        column: usize,
    },
    /// JSON of another form.
    #[error(
        "it is not of the form {{\"batchItemFailures\": [{{\"itemIdentifier\": …}}], \"outputs\": [{{\"itemIdentifier\": …, \
         \"output\": {{…}}}}]}}: see its line {line}, column {column}"
    )]
    OtherForm {
        /// Where it goes wrong, the first line being 1.
        line: usize,
        /// Where it goes wrong, the first column being 1.
        column: usize,
    },
    /// An item that was not sent.
    #[error("`{list}[{place}]` names an item that was not in the call")]
    Unknown {
        /// The list in the answer.
        list: &'static str,
        /// The place in it, the first one being 0.
        place: usize,
    },
    /// An item named twice.
    #[error("`{list}[{place}]` names an item that the list has named before")]
    Repeated {
        /// The list in the answer.
        list: &'static str,
        /// The place in it, the first one being 0.
        place: usize,
    },
    /// An item that has failed and has an output.
    #[error("`outputs[{place}]` is of an item that is among the failures")]
    FailedWithOutput {
        /// The place among the outputs, the first one being 0.
        place: usize,
    },
    /// Outputs that nobody expects.
    #[error("it has outputs, but the job type is not configured with `\"outputs\": true`")]
    UnexpectedOutputs,
    /// An output that is no object.
    #[error("`outputs[{place}].output` is not an object")]
    NoObject {
        /// The place among the outputs, the first one being 0.
        place: usize,
    },
}

/// Reads the answer to a call with these items.
///
/// # Errors
/// Where it says nothing certain about every one of them.
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
        results[of] = Ok(ItemOutcome::Output(one_line(given.output.get())));
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
        let told = |text: Option<String>, max| text.map(|text| told(&text, max)).filter(|text| !text.is_empty());
        Self {
            code: told(failure.code, CODE_MAX_CHARS).unwrap_or_else(|| "failed".into()),
            message: told(failure.message, MESSAGE_MAX_CHARS)
                .unwrap_or_else(|| "the target lists the item as failed and says no more".into()),
            column: told(failure.column, COLUMN_MAX_CHARS),
            transient: failure.transient.unwrap_or(false),
        }
    }
}

/// A text from outside, fit to be shown: on one line, without characters that control a terminal or the direction of
/// writing, and not longer than that.
fn told(text: &str, max_chars: usize) -> String {
    let unfit = |c: char| matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') || c.is_control();
    let shown = text.trim().chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !unfit(*c));
    shown.take(max_chars).collect()
}

/// JSON without the blanks between its tokens, line ends among them. All else stays as it was written, so that no number
/// loses a digit on its way.
fn one_line(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let keep = |c: &char| {
        let blank = !in_string && matches!(c, ' ' | '\t' | '\r' | '\n');
        match c {
            '"' if !escaped => in_string = !in_string,
            _ => {}
        }
        escaped = *c == '\\' && !escaped;
        !blank
    };
    json.chars().filter(keep).collect()
}
