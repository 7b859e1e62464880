//! The readers of the jobs table's stream.

use rowmill_core::model::job::Job;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job_event::JobEvent;
use rowmill_core::model::live::CONNECTION_LIFETIME;
use rowmill_testing::fixtures;
use serde_json::{Value, json};

use crate::{DAY_SECONDS, properties, target, template};

/// True if a record passes a filter of the mapping of a stream. Each value of a pattern is a list of allowed values, or
/// of beginnings.
fn passes(mapping: &Value, record: &Value) -> bool {
    fn fits(pattern: &Value, record: &Value) -> bool {
        match pattern {
            Value::Object(fields) => fields.iter().all(|(name, pattern)| fits(pattern, &record[name])),
            Value::Array(allowed) => allowed.iter().any(|allowed| match allowed["prefix"].as_str() {
                Some(prefix) => record.as_str().is_some_and(|text| text.starts_with(prefix)),
                None => allowed == record,
            }),
            other => panic!("{other} in a pattern"),
        }
    }
    let filters = mapping["FilterCriteria"]["Filters"].as_array().expect("filters");
    filters.iter().any(|filter| {
        let pattern = serde_json::from_str(filter["Pattern"].as_str().expect("a text")).expect("JSON");
        fits(&pattern, record)
    })
}

fn job(status: Status, attempt: u32) -> Job {
    Job { attempt, ..fixtures::job_in(status) }
}

#[test]
fn only_transitions_with_an_event_invoke_the_function() {
    let template = template();
    let source = properties(&template, "AnnouncementsEventSource");
    let passes = |row: &str, from: Status, to: Status| {
        let image = |status: Status| json!({ "status": { "S": status.as_str() } });
        let record =
            json!({ "dynamodb": { "Keys": { "row": { "S": row } }, "OldImage": image(from), "NewImage": image(to) } });
        passes(source, &record)
    };
    let mut events = 0;
    for from in Status::ALL {
        assert!(!passes("job", from, from), "{from:?} does not change");
        for to in Status::ALL.into_iter().filter(|to| from != *to) {
            // An ended job moves only by a redrive, into the next attempt.
            if from.is_terminal() && to != Status::Running {
                continue;
            }
            let attempt = if from.is_terminal() { 2 } else { 1 };
            let event = JobEvent::between(Some(&job(from, 1)), &job(to, attempt));
            assert_eq!(passes("job", from, to), event.is_some(), "{from:?} to {to:?}");
            events += usize::from(event.is_some());
            assert!(!passes("tally#1#0", from, to));
        }
    }
    assert_eq!(events, 16, "the start, twelve ends, three redrives");
}

#[test]
fn a_failed_publication_is_retried_until_the_stream_expires_and_then_recorded() {
    let template = template();
    let source = properties(&template, "AnnouncementsEventSource");
    assert_eq!(source["StartingPosition"], "TRIM_HORIZON", "nothing is lost if the mapping is created again");
    assert_eq!(source["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]));
    assert_eq!((&source["BisectBatchOnFunctionError"], &source["MaximumRetryAttempts"]), (&json!(true), &json!(-1)));
    let age = source["MaximumRecordAgeInSeconds"].as_u64().unwrap();
    assert!((DAY_SECONDS - 2 * 60 * 60..DAY_SECONDS).contains(&age), "a stream keeps its records for a day");
    assert_eq!(target(&source["DestinationConfig"]["OnFailure"]["Destination"]), "AnnouncementsDeadLetterQueue");
}

#[test]
fn the_rows_that_a_view_is_made_of_invoke_push_progress() {
    let template = template();
    let source = properties(&template, "PushesEventSource");
    let passes = |event: &str, row: &str| {
        passes(source, &json!({ "eventName": event, "dynamodb": { "Keys": { "row": { "S": row } } } }))
    };
    for (event, row) in [("INSERT", "job"), ("MODIFY", "job"), ("MODIFY", "tally#1#0")] {
        assert!(passes(event, row), "{event} {row}");
    }
    // A job counts the tally before it shows in its view; totals repeat what tallies said.
    for (event, row) in [
        ("REMOVE", "job"),
        ("INSERT", "tally#1#0"),
        ("REMOVE", "tally#1#0"),
        ("INSERT", "spec"),
        ("MODIFY", "totals#1"),
        ("MODIFY", "checkpoint#1#0#0"),
    ] {
        assert!(!passes(event, row), "{event} {row}");
    }
}

#[test]
fn a_message_is_tried_as_long_as_a_connection_can_live() {
    let template = template();
    let source = properties(&template, "PushesEventSource");
    assert_eq!(source["MaximumRecordAgeInSeconds"], CONNECTION_LIFETIME.as_secs());
}
