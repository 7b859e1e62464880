//! Events of jobs, from the jobs table's stream.

use rowmill_core::fixtures;
use rowmill_core::model::job::Job;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job_event::JobEvent;
use serde_json::json;

use crate::{DAY_SECONDS, passes, properties, target, template};

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
    assert_eq!(source["EventSourceArn"], json!({ "Fn::GetAtt": ["JobsTable", "StreamArn"] }));
    assert_eq!(target(&source["FunctionName"]), "AnnounceJobFunction");
    assert_eq!(source["StartingPosition"], "TRIM_HORIZON", "nothing is lost if the mapping is created again");
    assert_eq!(source["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]));
    assert_eq!((&source["BisectBatchOnFunctionError"], &source["MaximumRetryAttempts"]), (&json!(true), &json!(-1)));
    let age = source["MaximumRecordAgeInSeconds"].as_u64().unwrap();
    assert!((DAY_SECONDS - 2 * 60 * 60..DAY_SECONDS).contains(&age), "a stream keeps its records for a day");
    assert_eq!(target(&source["DestinationConfig"]["OnFailure"]["Destination"]), "AnnouncementsDeadLetterQueue");
}
