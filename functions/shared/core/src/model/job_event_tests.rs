use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use crate::fixtures;
use crate::model::ids::{FileGuid, JobGuid, Owner, RunId};
use crate::model::job::states::{JobOutcome, Phase};
use crate::model::job::{End, Job, Lease, Redrive, Stop, StopCode};
use crate::model::job_event::JobEvent;
use crate::model::tally::Counts;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_750_000_000 + second).unwrap()
}

fn waiting() -> Job {
    Job {
        job_guid: JobGuid(Uuid::from_u128(7)),
        owner: Owner("me".into()),
        file_guid: Some(FileGuid(Uuid::from_u128(8))),
        metadata: json!({ "order": 4711 }).as_object().cloned(),
        created_at: at(0),
        moved_at: at(0),
        deadline_at: at(1000),
        wake_at: Some(at(900)),
        ..fixtures::job()
    }
}

fn running() -> Job {
    let lease = Some(Lease { holder: RunId::from_bytes([1; 7]), until: at(300) });
    Job { lease, started_at: Some(at(5)), moved_at: at(5), ..waiting() }
}

fn cancelling(job: Job) -> Job {
    Job { phase: Phase::Stopping(stop(StopCode::Cancelled)), ..job }
}

fn stop(code: StopCode) -> Stop {
    Stop { row: Some(4), ..Stop::because(code, "said for people", at(50)) }
}

fn ended(outcome: Result<JobOutcome, Stop>) -> Job {
    let counts = Counts { succeeded: 7, failed: 2, skipped: 1 };
    let phase = Phase::Ended(End { outcome, counts, results: None, finished_at: at(60), expires_at: at(9000) });
    Job { phase, lease: None, completions: 1, moved_at: at(60), ..running() }
}

fn completed() -> Job {
    ended(Ok(JobOutcome::Partial))
}

fn redriven() -> Job {
    let before = Counts { succeeded: 7, failed: 2, skipped: 1 };
    let redrive = Redrive {
        by: RunId::from_bytes([2; 7]),
        before,
        base: 1,
        unprocessed_from: None,
        corrected: None,
        selection: None,
    };
    completed().redrive(redrive, at(90), at(1000), at(900)).unwrap()
}

fn event_id(before: &Job, after: &Job) -> Option<String> {
    JobEvent::between(Some(before), after).map(|event| event.event_id)
}

#[test]
fn an_attempt_has_one_event_at_its_start_and_one_at_its_end() {
    let job = waiting().job_guid;
    assert_eq!(event_id(&waiting(), &running()), Some(format!("{job}/1/running")));
    assert_eq!(event_id(&completed(), &redriven()), Some(format!("{job}/2/running")));
    for after in [completed(), ended(Err(stop(StopCode::SourceChanged))), ended(Err(stop(StopCode::Cancelled)))] {
        let status = after.status();
        let expected = Some(format!("{job}/1/{}", status.as_str()));
        for before in [waiting(), running(), cancelling(running())] {
            assert_eq!(event_id(&before, &after), expected, "{:?} to {status:?}", before.status());
        }
    }
    let again = Job { attempt: 2, ..ended(Err(stop(StopCode::SourceChanged))) };
    assert_eq!(event_id(&redriven(), &again), Some(format!("{job}/2/failed")));
}

#[test]
fn other_changes_of_a_row_have_no_event() {
    let leased_again = Job { moved_at: at(9), ..running() };
    let touched = Job { moved_at: at(70), ..completed() };
    for (before, after) in [
        (running(), leased_again),
        (waiting(), waiting()),
        (waiting(), cancelling(waiting())),
        (running(), cancelling(running())),
        (cancelling(running()), cancelling(running())),
        (completed(), touched),
        (redriven(), Job { moved_at: at(95), ..redriven() }),
        (redriven(), running()),
    ] {
        assert_eq!(event_id(&before, &after), None, "{:?} to {:?}", before.status(), after.status());
    }
    assert_eq!(JobEvent::between(None, &waiting()), None, "created, but not started");
}

#[test]
fn the_events_have_the_documented_format() {
    let started = JobEvent::between(Some(&waiting()), &running()).unwrap();
    let expected = json!({
        "schemaVersion": 1, "eventId": "00000000-0000-0000-0000-000000000007/1/running",
        "jobGuid": "00000000-0000-0000-0000-000000000007", "jobType": "import", "owner": "me",
        "fileGuid": "00000000-0000-0000-0000-000000000008", "attempt": 1, "status": "running", "outcome": null,
        "at": "2025-06-15T15:06:45Z", "createdAt": "2025-06-15T15:06:40Z", "error": null,
        "metadata": { "order": 4711 },
    });
    assert_eq!((started.detail_type(), serde_json::to_value(&started).unwrap()), ("Rowmill Job Started", expected));

    let completed = JobEvent::between(Some(&running()), &completed()).unwrap();
    let expected = json!({
        "schemaVersion": 1, "eventId": "00000000-0000-0000-0000-000000000007/1/completed",
        "jobGuid": "00000000-0000-0000-0000-000000000007", "jobType": "import", "owner": "me",
        "fileGuid": "00000000-0000-0000-0000-000000000008", "attempt": 1, "status": "completed", "outcome": "partial",
        "at": "2025-06-15T15:07:40Z", "createdAt": "2025-06-15T15:06:40Z", "error": null,
        "itemCount": 10, "itemsSucceeded": 7, "itemsFailed": 2, "itemsSkipped": 1, "metadata": { "order": 4711 },
    });
    assert_eq!((completed.detail_type(), serde_json::to_value(&completed).unwrap()), ("Rowmill Job Ended", expected));
}

#[test]
fn the_event_of_a_failed_job_has_an_error_and_that_of_a_cancelled_one_has_none() {
    let stopped =
        |code| serde_json::to_value(JobEvent::between(Some(&running()), &ended(Err(stop(code)))).unwrap()).unwrap();
    let failed = stopped(StopCode::UnterminatedQuote);
    let expected = json!({ "code": "unterminated_quote", "message": "said for people", "row": 4, "offset": null });
    assert_eq!((&failed["error"], &failed["outcome"]), (&expected, &json!(null)));
    assert_eq!(stopped(StopCode::Cancelled)["error"], json!(null));
}
