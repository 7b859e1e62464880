//! Events of jobs, as other systems hear of them.

use acceptance::files;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

/// The detail of an event, once its envelope is found to be right.
fn detail<'a>(event: &'a Value, detail_type: &str) -> &'a Value {
    assert_eq!((&event["source"], &event["detail-type"]), (&json!("rowmill"), &json!(detail_type)), "{event}");
    &event["detail"]
}

#[test]
fn each_attempt_publishes_an_event_at_its_start_and_at_its_end() {
    on_the_stack(async |stack| {
        let event_listener = stack.listen().await;
        let upload = stack.upload("text/csv", "id,n\n1,1\n2,x\n3,3\n").await;
        let schema = json!({ "properties": { "n": { "type": "integer" } } });
        let body = json!({
            "jobType": "validate", "fileGuid": upload, "params": { "schema": schema }, "metadata": { "order": "4711" },
        });
        let (job, ended) = stack.run_from(&body).await;
        stack.act(&job, "redrive").await;
        let again = stack.ended(&job).await;

        let events = event_listener.heard(&job, 4).await;
        let names: Vec<_> = events.keys().map(|name| name.trim_start_matches(&job)).collect();
        assert_eq!(names, ["/1/completed", "/1/running", "/2/completed", "/2/running"]);
        let of = |name: &str, detail_type: &str| detail(&events[&format!("{job}/{name}")], detail_type).clone();
        let started = of("1/running", "Rowmill Job Started");
        assert_eq!((&started["jobType"], &started["fileGuid"]), (&json!("validate"), &json!(upload)));
        assert_eq!((&started["owner"], &started["metadata"]["order"]), (&json!("local"), &json!("4711")));
        assert_eq!(started["at"], ended["startedAt"]);
        for (name, shown) in [("1/completed", ended), ("2/completed", again)] {
            let event = of(name, "Rowmill Job Ended");
            for field in [
                "jobGuid",
                "status",
                "outcome",
                "attempt",
                "itemCount",
                "itemsSucceeded",
                "itemsFailed",
                "itemsSkipped",
            ] {
                assert_eq!(event[field], shown[field], "{field} of {name}: {event}");
            }
            assert_eq!((&event["at"], &event["outcome"]), (&shown["finishedAt"], &json!("partial")));
        }
        assert_eq!(of("2/running", "Rowmill Job Started")["attempt"], 2);
    });
}

#[test]
fn events_of_failed_and_cancelled_jobs_give_the_reason() {
    on_the_stack(async |stack| {
        let event_listener = stack.listen().await;
        let upload = stack.upload("text/csv", "a,b\n1,2\n3,\"4\n").await;
        let failing = stack.create("validate", &upload, json!({})).await;
        let upload = stack.upload("text/csv", files::plain_csv(40_000)).await;
        let cancelled = stack.create("import", &upload, json!({ "dataset": "told", "key": "id" })).await;
        stack.act(&cancelled, "cancel").await;

        let events = event_listener.heard(&failing, 2).await;
        let failed = detail(&events[&format!("{failing}/1/failed")], "Rowmill Job Ended");
        assert_eq!((&failed["error"]["code"], &failed["outcome"]), (&json!("unterminated_quote"), &json!(null)));
        stack.ended_with_sweeps(&cancelled).await;
        let name = format!("{cancelled}/1/cancelled");
        // It may have been cancelled before anybody took it up, and then it never began.
        let mut events = event_listener.heard(&cancelled, 1).await;
        if !events.contains_key(&name) {
            events = event_listener.heard(&cancelled, 2).await;
        }
        assert_eq!(detail(&events[&name], "Rowmill Job Ended")["error"], json!(null));
    });
}

#[test]
fn no_event_is_lost_when_announce_job_is_killed() {
    on_the_stack(async |stack| {
        let event_listener = stack.listen().await;
        let upload = stack.upload("text/csv", "a\n1\n").await;
        let (mut jobs, mut killed) = (Vec::new(), 0);
        for _ in 0..10 {
            jobs.push(stack.create("validate", &upload, json!({})).await);
            killed += stack.kill_processes_of("announce-job");
        }
        for job in &jobs {
            stack.ended(job).await;
            killed += stack.kill_processes_of("announce-job");
        }
        assert!(killed > 0, "there was nobody to kill");
        for job in &jobs {
            let events = event_listener.heard(job, 2).await;
            assert!(events.contains_key(&format!("{job}/1/running")), "{events:?}");
            assert!(events.contains_key(&format!("{job}/1/completed")), "{events:?}");
        }
    });
}
