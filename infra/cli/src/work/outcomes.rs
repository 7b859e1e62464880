//! The outcomes of a task's items, as a command prints them.
//!
//! A line is a JSON object with `itemIdentifier`. With `code`, `message`, `column` or `transient` the item has failed,
//! else it has succeeded, with its `output` if there is one. Its `files` have become `products`
//! before. Lines may come in any order. The API takes the outcomes of items in the order of the task, so those that are
//! reported are the ones up to the first item without a line.

use std::collections::HashMap;

use rowmill_api::task::{ItemFailure, OutputOfItem, ReportRequest};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Longest line of a command, in bytes.
pub const LINE_MAX_BYTES: usize = 1024 * 1024;

/// Most bytes of lines that are not reported yet. All outputs of a chunk together take at most half of it.
const WAITING_MAX_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of lines after which a report ends. A function takes 6 MB with a request, in which each quote takes two.
const REPORT_BYTES: usize = 1024 * 1024;

/// Why a line is no outcome. The line is not quoted: it may hold anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    #[error("a line is longer than {LINE_MAX_BYTES} bytes")]
    TooLong,
    #[error("a line is not UTF-8")]
    NotText,
    #[error("a line is not an outcome such as {{\"itemIdentifier\": …}}: {0}")]
    OtherForm(String),
    #[error("a line names an item that is not in the task")]
    Unknown,
    #[error("a line names an item for the second time")]
    Repeated,
    #[error("a line has an `output` that is not an object")]
    NoObject,
    #[error("a line has `files` that are not a list of paths, or names no item")]
    NoFiles,
    #[error("a file of a line is not stored: {0}")]
    File(String),
    #[error("a line has an `output` or `files`, and says that the item failed")]
    FailedWithOutput,
    #[error("the lines that cannot be reported yet take more than {WAITING_MAX_BYTES} bytes")]
    TooMuch,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line {
    item_identifier: String,
    code: Option<String>,
    message: Option<String>,
    column: Option<String>,
    transient: Option<bool>,
    output: Option<Box<RawValue>>,
    /// Names of its files, which are stored.
    #[serde(default)]
    products: Vec<String>,
}

enum Outcome {
    Succeeded,
    /// With the names of its products.
    Output(Box<RawValue>, Vec<String>),
    Failed(ItemFailure),
}

/// The items of a task, with the outcomes that are known.
pub struct Outcomes {
    names: Vec<String>,
    places: HashMap<String, usize>,
    /// Each with the bytes of its line.
    known: Vec<Option<(Outcome, usize)>>,
    /// Number of items whose outcomes the API has.
    reported: usize,
    /// Those of them that are done: all but the ones with a transient failure.
    done: usize,
    failed: usize,
    waiting_bytes: usize,
}

impl Outcomes {
    pub fn of(names: Vec<String>) -> Self {
        let places = names.iter().cloned().zip(0..).collect();
        let known = names.iter().map(|_| None).collect();
        Self { names, places, known, reported: 0, done: 0, failed: 0, waiting_bytes: 0 }
    }

    /// Takes a line of the command.
    ///
    /// # Errors
    /// [`BadLine`]: nothing more that this command prints can be trusted.
    pub fn add(&mut self, line: &str) -> Result<(), BadLine> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let parsed: Line = serde_json::from_str(line).map_err(|error| BadLine::OtherForm(place_of(&error)))?;
        let place = *self.places.get(&parsed.item_identifier).ok_or(BadLine::Unknown)?;
        if place < self.reported || self.known[place].is_some() {
            return Err(BadLine::Repeated);
        }
        if self.waiting_bytes + line.len() > WAITING_MAX_BYTES {
            return Err(BadLine::TooMuch);
        }
        self.known[place] = Some((parsed.outcome()?, line.len()));
        self.waiting_bytes += line.len();
        Ok(())
    }

    /// All items without a line have succeeded: the command says so by its exit code.
    pub fn complete(&mut self) {
        for known in self.known.iter_mut().skip(self.reported) {
            known.get_or_insert((Outcome::Succeeded, 0));
        }
    }

    /// Number of items that are done as the API knows, and how many of them failed.
    pub fn done(&self) -> (usize, usize) {
        (self.done, self.failed)
    }

    /// True if a beat would report a transient failure. It gives back the task, so no item may be at work then.
    pub fn give_back(&self) -> bool {
        self.ready(self.before_last()).any(|(outcome, _)| outcome.is_transient())
    }

    /// True if what a beat can report fills a report.
    pub fn overflow(&self) -> bool {
        self.next(self.before_last()).1 >= REPORT_BYTES
    }

    /// The next report, and how many items it is about. `last` says whether it may be about the last item of the task:
    /// with that the API no longer waits for the worker.
    pub fn report(&self, token: &str, last: bool) -> (ReportRequest, usize) {
        let (count, _) = self.next(if last { self.names.len() } else { self.before_last() });
        let items = self.reported..self.reported + count;
        let mut report = ReportRequest { token: token.to_owned(), ..ReportRequest::default() };
        report.item_identifiers = (count > 0).then(|| self.names[items.clone()].to_vec());
        for place in items {
            match &self.known[place] {
                Some((Outcome::Failed(failure), _)) => report.batch_item_failures.push(failure.clone()),
                Some((Outcome::Output(output, products), _)) => report.outputs.push(OutputOfItem {
                    item_identifier: self.names[place].clone(),
                    output: output.clone(),
                    products: products.clone(),
                }),
                Some((Outcome::Succeeded, _)) | None => {}
            }
        }
        (report, count)
    }

    /// The API has taken a report about so many items.
    pub fn taken(&mut self, count: usize) {
        for place in self.reported..self.reported + count {
            let (outcome, bytes) = self.known[place].take().expect("only known outcomes are reported");
            self.waiting_bytes -= bytes;
            if !outcome.is_transient() {
                self.done += 1;
                self.failed += usize::from(matches!(outcome, Outcome::Failed(_)));
            }
        }
        self.reported += count;
    }

    /// True if the API has all outcomes.
    pub fn are_reported(&self) -> bool {
        self.reported == self.names.len()
    }

    /// True if no item is left to another worker.
    pub fn are_done(&self) -> bool {
        self.done == self.names.len()
    }

    fn before_last(&self) -> usize {
        self.names.len().saturating_sub(1)
    }

    /// What can be reported of the items before `end`: the outcomes up to the first item without one.
    fn ready(&self, end: usize) -> impl Iterator<Item = &(Outcome, usize)> {
        self.known[self.reported..end.max(self.reported)].iter().map_while(Option::as_ref)
    }

    /// Number of items of the next report, of those before `end`, and the bytes of their lines.
    fn next(&self, end: usize) -> (usize, usize) {
        let (mut count, mut total) = (0, 0);
        for (_, bytes) in self.ready(end) {
            if total >= REPORT_BYTES {
                break;
            }
            (count, total) = (count + 1, total + bytes);
        }
        (count, total)
    }
}

impl Outcome {
    /// True if the item is tried again.
    fn is_transient(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.transient == Some(true))
    }
}

impl Line {
    fn outcome(self) -> Result<Outcome, BadLine> {
        let Self { item_identifier, code, message, column, transient, output, products } = self;
        let has_failed = code.is_some() || message.is_some() || column.is_some() || transient.is_some();
        match output {
            Some(_) if has_failed => Err(BadLine::FailedWithOutput),
            None if has_failed && !products.is_empty() => Err(BadLine::FailedWithOutput),
            Some(output) if output.get().starts_with('{') => Ok(Outcome::Output(output, products)),
            Some(_) => Err(BadLine::NoObject),
            None if !products.is_empty() => Ok(Outcome::Output(empty_object(), products)),
            None if has_failed => {
                Ok(Outcome::Failed(ItemFailure { item_identifier, code, message, column, transient }))
            }
            None => Ok(Outcome::Succeeded),
        }
    }
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("it is JSON")
}

/// Where and what is wrong, without the text that is wrong.
fn place_of(error: &serde_json::Error) -> String {
    let what = if error.is_data() { "other fields" } else { "no JSON" };
    format!("{what} at column {}", error.column())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcomes(count: usize) -> Outcomes {
        Outcomes::of((1..=count).map(|row| format!("j/{row}")).collect())
    }

    fn line(row: usize) -> String {
        json!({ "itemIdentifier": format!("j/{row}") }).to_string()
    }

    fn named(outcomes: &Outcomes, last: bool) -> Vec<String> {
        outcomes.report("t", last).0.item_identifiers.unwrap_or_default()
    }

    #[test]
    fn the_outcomes_up_to_the_first_item_without_a_line_are_reported() {
        let mut outcomes = outcomes(4);
        outcomes.add(&line(3)).unwrap();
        assert!(named(&outcomes, true).is_empty(), "the first item is open");
        outcomes.add(&line(1)).unwrap();
        assert_eq!(named(&outcomes, true), ["j/1"]);
        outcomes.taken(1);
        outcomes.add(&line(2)).unwrap();
        assert_eq!(named(&outcomes, true), ["j/2", "j/3"]);
        outcomes.add("\n").unwrap();
        outcomes.add(&line(4)).unwrap();
        assert_eq!(named(&outcomes, false), ["j/2", "j/3"], "the command still runs");
        assert_eq!(named(&outcomes, true), ["j/2", "j/3", "j/4"]);
        assert!(!outcomes.are_reported());
        outcomes.taken(3);
        assert!(outcomes.are_reported());
        assert_eq!(outcomes.waiting_bytes, 0);
    }

    #[test]
    fn a_report_has_failures_and_outputs_as_the_command_printed_them() {
        let mut outcomes = outcomes(3);
        outcomes.add(r#"{"itemIdentifier": "j/1", "output": {"a": 1.10}}"#).unwrap();
        outcomes.add(r#"{"itemIdentifier": "j/2", "code": "bad", "column": "c"}"#).unwrap();
        outcomes.complete();
        let (report, count) = outcomes.report("t", true);
        let expected = json!({
            "token": "t",
            "itemIdentifiers": ["j/1", "j/2", "j/3"],
            "batchItemFailures": [{ "itemIdentifier": "j/2", "code": "bad", "column": "c" }],
            "outputs": [{ "itemIdentifier": "j/1", "output": { "a": 1 } }],
        });
        let mut sent = serde_json::to_value(report).unwrap();
        assert_eq!(sent["outputs"][0]["output"]["a"].to_string(), "1.10", "every digit");
        sent["outputs"][0]["output"]["a"] = json!(1);
        assert_eq!((sent, count), (expected, 3));
        outcomes.taken(3);
        assert_eq!(outcomes.done(), (3, 1));
    }

    #[test]
    fn a_transient_failure_gives_back_the_task_once_it_can_be_reported() {
        let mut outcomes = outcomes(3);
        outcomes.add(r#"{"itemIdentifier": "j/2", "transient": true}"#).unwrap();
        assert!(!outcomes.give_back(), "the first item is at work");
        outcomes.add(r#"{"itemIdentifier": "j/1", "transient": false}"#).unwrap();
        assert!(outcomes.give_back());
        outcomes.taken(2);
        assert_eq!((outcomes.done(), outcomes.give_back()), ((1, 1), false), "the second is tried again");
        outcomes.add(r#"{"itemIdentifier": "j/3", "transient": true}"#).unwrap();
        assert!(!outcomes.give_back(), "a beat does not report the last item");
        outcomes.taken(1);
        assert!(outcomes.are_reported() && !outcomes.are_done());
    }

    #[test]
    fn an_output_of_many_levels_is_reported_as_it_is() {
        let mut outcomes = outcomes(1);
        let output = format!("{}1{}", "{\"a\":".repeat(1000), "}".repeat(1000));
        outcomes.add(&format!(r#"{{"itemIdentifier": "j/1", "output": {output}}}"#)).unwrap();
        assert_eq!(outcomes.report("t", true).0.outputs[0].output.get(), output);
    }

    #[test]
    fn a_line_that_is_no_outcome_is_refused_and_not_quoted() {
        let refused = |line: &str| {
            let mut outcomes = outcomes(2);
            outcomes.add(r#"{"itemIdentifier": "j/1"}"#).unwrap();
            let error = outcomes.add(line).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
            error
        };
        for text in ["secret", "[]", "{}", r#"{"itemIdentifier": "j/2", "mesage": "secret"}"#, r#"{"secret": 1"#] {
            assert!(matches!(refused(text), BadLine::OtherForm(_)), "{text}");
        }
        assert_eq!(refused(r#"{"itemIdentifier": "secret"}"#), BadLine::Unknown);
        assert_eq!(refused(&line(1)), BadLine::Repeated);
        assert_eq!(refused(r#"{"itemIdentifier": "j/2", "output": []}"#), BadLine::NoObject);
        let both = r#"{"itemIdentifier": "j/2", "output": {}, "code": "c"}"#;
        assert_eq!(refused(both), BadLine::FailedWithOutput);
        let mut reported = outcomes(2);
        reported.add(&line(1)).unwrap();
        reported.taken(1);
        assert_eq!(reported.add(&line(1)), Err(BadLine::Repeated));
    }

    #[test]
    fn long_outcomes_are_reported_in_pieces_and_bounded() {
        let mut outcomes = outcomes(20);
        let long = |row: usize| {
            let text = "x".repeat(600_000);
            json!({ "itemIdentifier": format!("j/{row}"), "output": { "text": text } }).to_string()
        };
        for row in 1..=3 {
            outcomes.add(&long(row)).unwrap();
        }
        assert_eq!(named(&outcomes, true), ["j/1", "j/2"]);
        assert!(outcomes.overflow());
        outcomes.taken(2);
        assert!(!outcomes.overflow());
        // Nothing can be reported any more: item 4 has no line.
        let refused = (5..=20).find_map(|row| outcomes.add(&long(row)).err());
        assert_eq!(refused, Some(BadLine::TooMuch));
        let mut last = Outcomes::of(vec!["j/1".to_owned()]);
        let line = json!({ "itemIdentifier": "j/1", "message": "x".repeat(REPORT_BYTES) }).to_string();
        last.add(&line).unwrap();
        assert!(!last.overflow(), "a beat does not report the last item");
    }
}
