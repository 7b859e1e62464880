use std::time::Duration;

use jiff::Timestamp;
use rowmill_aws::{Batch, Delivery};
use rowmill_core::model::blocks::Principal;
use rowmill_core::model::ids::Owner;
use rowmill_core::ports::{Block, Objects, PortError};
use serde_json::json;

use crate::handler::handle;
use crate::notes::{OWNER_NOTE, REQUEST_NOTE};
use crate::notification::Notification;
use crate::receive::problem_key;
use crate::test_inbox::TestInbox;

/// Delivers messages with this receive count. Returns the ids of the messages to deliver again.
async fn deliver(inbox: &TestInbox, messages: Vec<Notification>, receive_count: u32) -> Vec<String> {
    let delivery = |(number, message)| Delivery {
        message_id: format!("m{number}"),
        message,
        receive_count,
        receipt: format!("r{number}"),
    };
    let deliveries = messages.into_iter().enumerate().map(delivery).collect();
    handle(&inbox.inbox, Batch { deliveries, deadline: Timestamp::MAX }).await
}

#[tokio::test]
async fn a_repeated_notification_creates_one_job_and_is_acknowledged() {
    let inbox = TestInbox::new();
    let dropped = inbox.drop_file("inbox/validate/a.csv", "a\n1\n", &[], 1);
    let messages = vec![inbox.notification(&dropped), inbox.notification(&dropped)];
    assert!(deliver(&inbox, messages.clone(), 1).await.is_empty());
    assert!(deliver(&inbox, messages, 2).await.is_empty());
    assert_eq!(inbox.every_job().len(), 1);
    assert!(matches!(inbox.objects.head(&problem_key("inbox/validate/a.csv")).await, Err(PortError::NotFound)));
}

#[tokio::test]
async fn the_test_event_and_notifications_of_other_buckets_are_acknowledged() {
    let inbox = TestInbox::new();
    let test = serde_json::from_value(json!({ "Service": "Amazon S3", "Event": "s3:TestEvent" })).unwrap();
    let dropped = inbox.drop_file("inbox/validate/a.csv", "a\n1\n", &[], 1);
    let mut other = TestInbox::new();
    other.inbox.bucket = "others".into();
    assert!(deliver(&other, vec![test, inbox.notification(&dropped)], 1).await.is_empty());
    assert!(other.every_job().is_empty());
}

#[tokio::test]
async fn an_unusable_file_gets_the_problem_of_the_api_and_is_acknowledged() {
    let inbox = TestInbox::new();
    let notes = [(REQUEST_NOTE, r#"{"params":{"delimeter":"|"}}"#)];
    let high = [(REQUEST_NOTE, r#"{"priority":"high"}"#)];
    for (key, bytes, notes, status, code) in [
        ("inbox/a.csv", "a\n", &[][..], 422, "unknown_job_type"),
        ("inbox/unheard-of/a.csv", "a\n", &[][..], 422, "unknown_job_type"),
        ("inbox/validate/utf16.csv", "a\0,b\0\n\0", &[][..], 422, "unreadable_file"),
        ("inbox/validate/large.csv", &"x".repeat(1001), &[][..], 413, "body_too_large"),
        ("inbox/validate/params.csv", "a\n", &notes[..], 422, "invalid_params"),
        ("inbox/validate/high.csv", "a\n", &high[..], 403, "priority_not_allowed"),
        ("inbox/validate/note.csv", "a\n", &[(REQUEST_NOTE, "{")][..], 400, "invalid_json"),
        ("inbox/validate/shape.csv", "a\n", &[(REQUEST_NOTE, r#"{"x":1}"#)][..], 400, "invalid_body"),
        ("inbox/validate/owner.csv", "a\n", &[("rowmill-owner", "#")][..], 422, "invalid_request"),
    ] {
        let dropped = inbox.drop_file(key, bytes, notes, 1);
        assert!(deliver(&inbox, vec![inbox.notification(&dropped)], 1).await.is_empty(), "{key}");
        let problem = inbox.problem(key).await;
        assert_eq!((&problem["status"], &problem["code"]), (&json!(status), &json!(code)), "{problem}");
        assert_eq!((&problem["file"], &problem["droppedAt"]), (&json!(key), &json!(dropped.at)), "{problem}");
        assert!(problem["detail"].as_str().unwrap().len() > 10, "{problem}");
        let head = inbox.objects.head(&problem_key(key)).await.unwrap();
        assert_eq!(head.content_type.as_deref(), Some("application/problem+json"));
    }
    let refused = inbox.problem("inbox/validate/params.csv").await;
    assert!(refused["fileGuid"].is_string(), "the upload is there, a job can be created on it: {refused}");
    assert!(inbox.problem("inbox/a.csv").await["fileGuid"].is_null());
    let refused = inbox.problem("inbox/validate/high.csv").await;
    assert_eq!(refused["field"], "priority");
    assert!(refused["detail"].as_str().unwrap().contains("may use priority `normal` at most"), "{refused}");
    assert!(inbox.every_job().is_empty() && inbox.deliveries.take().is_empty());
}

#[tokio::test]
async fn at_a_ceiling_the_message_is_retried_less_and_less_often_until_a_slot_is_free() {
    let inbox = TestInbox::with_ceiling(0);
    let dropped = inbox.drop_file("inbox/validate/a.csv", "a\n1\n", &[], 1);
    let message = inbox.notification(&dropped);
    for (receive_count, seconds) in [(1, 10), (2, 20), (27, 270), (91, 900), (1000, 900)] {
        assert_eq!(deliver(&inbox, vec![message.clone()], receive_count).await, ["m0"]);
        assert_eq!(inbox.deliveries.take(), [("r0".to_owned(), Duration::from_secs(seconds))], "{receive_count}");
    }
    let mut roomier = inbox;
    roomier.inbox.receiver.creator.limits.ceilings.owner = 1;
    assert!(deliver(&roomier, vec![message], 1001).await.is_empty());
    assert_eq!(roomier.every_job().len(), 1);
}

#[tokio::test]
async fn a_file_of_a_blocked_owner_is_refused_with_a_report() {
    let inbox = TestInbox::new();
    let block = Block { at: Timestamp::UNIX_EPOCH, reason: Some("internal".into()) };
    inbox.quotas.set_block(Principal::Owner(Owner("mallory".into())), Some(block));
    let key = "inbox/validate/a.csv";
    let dropped = inbox.drop_file(key, "a\n1\n", &[(OWNER_NOTE, "mallory")], 1);
    assert!(deliver(&inbox, vec![inbox.notification(&dropped)], 1).await.is_empty(), "it is acknowledged");
    assert!(inbox.every_job().is_empty());
    let problem = inbox.problem(key).await;
    assert_eq!((&problem["code"], &problem["status"]), (&json!("owner_blocked"), &json!(403)));
    assert!(!problem.to_string().contains("internal"), "the reason is for operators");
    let dropped = inbox.drop_file("inbox/validate/b.csv", "a\n1\n", &[(OWNER_NOTE, "alice")], 2);
    assert!(deliver(&inbox, vec![inbox.notification(&dropped)], 1).await.is_empty());
    assert_eq!(inbox.every_job().len(), 1);
}
