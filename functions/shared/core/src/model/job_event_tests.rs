use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use crate::fixtures;
use crate::model::ids::{FileGuid, JobGuid, Owner, RunId};
use crate::model::job::states::{JobOutcome, Status};
use crate::model::job::{Job, Lease, Redrive, Stop, StopCode};
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
    Job { status: Status::Running, lease, started_at: Some(at(5)), moved_at: at(5), ..waiting() }
}

fn ended(status: Status) -> Job {
    let counts = Counts { succeeded: 7, failed: 2, skipped: 1 };
    Job {
        status,
        outcome: (status == Status::Completed).then_some(JobOutcome::Partial),
        lease: None,
        counts: Some(counts),
        completions: 1,
        finished_at: Some(at(60)),
        moved_at: at(60),
        ..running()
    }
}

fn redriven() -> Job {
    let before = Counts { succeeded: 7, failed: 2, skipped: 1 };
    let redrive = Redrive { by: RunId::from_bytes([2; 7]), before, base: 1, unprocessed_from: None, corrected: None };
    Job {
        status: Status::Running,
        outcome: None,
        attempt: 2,
        redrive: Some(redrive),
        moved_at: at(90),
        ..ended(Status::Completed)
    }
}

fn event_id(before: &Job, after: &Job) -> Option<String> {
    JobEvent::between(Some(before), after).map(|event| event.event_id)
}

#[test]
fn an_attempt_has_one_event_at_its_start_and_one_at_its_end() {
    let job = waiting().job_guid;
    assert_eq!(event_id(&waiting(), &running()), Some(format!("{job}/1/running")));
    assert_eq!(event_id(&ended(Status::Completed), &redriven()), Some(format!("{job}/2/running")));
    for status in [Status::Completed, Status::Failed, Status::Cancelled] {
        let expected = Some(format!("{job}/1/{}", status.as_str()));
        for before in [waiting(), running(), Job { status: Status::Cancelling, ..running() }] {
            assert_eq!(event_id(&before, &ended(status)), expected, "{:?} to {status:?}", before.status);
        }
    }
    let again = Job { status: Status::Failed, moved_at: at(120), ..redriven() };
    assert_eq!(event_id(&redriven(), &again), Some(format!("{job}/2/failed")));
}

#[test]
fn other_changes_of_a_row_have_no_event() {
    let leased_again = Job { moved_at: at(9), ..running() };
    let cancelling = Job { status: Status::Cancelling, ..running() };
    let touched = Job { expires_at: Some(at(9000)), ..ended(Status::Completed) };
    for (before, after) in [
        (running(), leased_again),
        (waiting(), waiting()),
        (waiting(), Job { status: Status::Cancelling, ..waiting() }),
        (running(), cancelling.clone()),
        (cancelling.clone(), cancelling),
        (ended(Status::Completed), touched),
        (redriven(), Job { moved_at: at(95), ..redriven() }),
        (redriven(), running()),
    ] {
        assert_eq!(event_id(&before, &after), None, "{:?} to {:?}", before.status, after.status);
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

    let completed = JobEvent::between(Some(&running()), &ended(Status::Completed)).unwrap();
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
    let stopped = |status, code| {
        let stop = Stop { row: Some(4), ..Stop::because(code, "said for people", at(50)) };
        let after = Job { stop: Some(stop), ..ended(status) };
        serde_json::to_value(JobEvent::between(Some(&running()), &after).unwrap()).unwrap()
    };
    let failed = stopped(Status::Failed, StopCode::UnterminatedQuote);
    let expected = json!({ "code": "unterminated_quote", "message": "said for people", "row": 4, "offset": null });
    assert_eq!((&failed["error"], &failed["outcome"]), (&expected, &json!(null)));
    assert_eq!(stopped(Status::Cancelled, StopCode::Cancelled)["error"], json!(null));
}
