use std::time::Duration;

use create_job::create::CreateJobError;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::job::{Job, Priority};
use rowmill_core::model::upload::UploadState;
use rowmill_core::ports::Jobs;

use crate::notes::{JobNotesError, OWNER_NOTE, REQUEST_NOTE};
use crate::notification::Dropped;
use crate::receive::{Reason, ReceiveError, Received};
use crate::test_inbox::TestInbox;

const KEY: &str = "inbox/validate/2025/a b.csv";

async fn received(inbox: &TestInbox, dropped: &Dropped) -> Job {
    match inbox.inbox.receiver.receive(dropped).await.unwrap() {
        Received::Job(job) => *job,
        Received::Nothing(reason) => panic!("{reason:?}"),
    }
}

async fn nothing(inbox: &TestInbox, dropped: &Dropped) -> Reason {
    match inbox.inbox.receiver.receive(dropped).await.unwrap() {
        Received::Job(job) => panic!("{job:?}"),
        Received::Nothing(reason) => reason,
    }
}

async fn refused(inbox: &TestInbox, dropped: &Dropped) -> ReceiveError {
    match inbox.inbox.receiver.receive(dropped).await {
        Ok(received) => panic!("{received:?}"),
        Err(error) => error,
    }
}

fn store(inbox: &TestInbox, key: &str, text: &str) {
    inbox.objects.store(key, "application/json", Default::default(), text.to_owned().into());
}

#[tokio::test]
async fn a_dropped_file_becomes_an_upload_without_a_copy_and_a_job() {
    let inbox = TestInbox::new();
    let dropped = inbox.drop_file(KEY, "a;b\n1;2\n", &[], 1);
    let job = received(&inbox, &dropped).await;
    assert_eq!((job.owner.as_str(), job.job_type.as_str()), ("nobody", "validate"));
    assert_eq!(job.file_guid, Some(dropped.file_guid()));
    let spec = inbox.jobs.spec(job.job_guid).await.unwrap();
    let file = spec.source.file().unwrap();
    assert_eq!((file.key.as_str(), &file.etag, file.size), (KEY, &dropped.etag, 8));
    assert_eq!(spec.head.columns, ["a", "b"]);
    let upload = inbox.inbox.receiver.creator.uploads.upload(dropped.file_guid(), dropped.at).await.unwrap();
    assert_eq!((upload.file_name.as_deref(), upload.content_type.as_str()), (Some("a b.csv"), "text/csv"));
    assert_eq!(upload.state, UploadState::Ready { etag: dropped.etag.clone() });
    assert_eq!(upload.expires_at, dropped.at + Duration::from_secs(7 * 86_400));
}

#[tokio::test]
async fn a_drop_creates_one_job_and_another_drop_under_its_key_a_second_one() {
    let inbox = TestInbox::new();
    let first = inbox.drop_file(KEY, "a\n1\n", &[], 1);
    let job = received(&inbox, &first).await;
    inbox.clock.advance(Duration::from_secs(60));
    assert_eq!(received(&inbox, &first).await.job_guid, job.job_guid);
    let same_bytes = inbox.drop_file(KEY, "a\n1\n", &[], 2);
    assert_ne!(received(&inbox, &same_bytes).await.job_guid, job.job_guid);
    let others = inbox.drop_file(KEY, "a\n2\n", &[], 3);
    received(&inbox, &others).await;
    assert_eq!(inbox.every_job().len(), 3);
    assert_eq!(received(&inbox, &others).await.file_guid, Some(others.file_guid()));
    assert_eq!(inbox.every_job().len(), 3);
}

#[tokio::test]
async fn job_notes_set_the_owner_and_the_request() {
    let inbox = TestInbox::new();
    let request = r#"{"params":{"delimiter":"|"},"deadlineSeconds":60,"maxConcurrency":2,"tolerance":{"count":3},
        "metadata":{"order":7}}"#;
    let dropped = inbox.drop_file(KEY, "a|b\n", &[(OWNER_NOTE, "ann"), (REQUEST_NOTE, request)], 1);
    let job = received(&inbox, &dropped).await;
    assert_eq!((job.owner.as_str(), job.metadata.as_ref().unwrap()["order"].as_u64()), ("ann", Some(7)));
    assert_eq!(job.deadline_at, job.created_at + Duration::from_secs(60));
    let spec = inbox.jobs.spec(job.job_guid).await.unwrap();
    assert_eq!((spec.params["delimiter"].as_str(), spec.max_concurrency), (Some("|"), Some(2)));
    assert_eq!(job.tolerance.unwrap().count, Some(3));
}

#[tokio::test]
async fn job_notes_and_a_sidecar_set_the_priority_that_the_owner_may_use() {
    let inbox = TestInbox::new();
    let usual = inbox.drop_file(KEY, "a\n", &[], 1);
    assert_eq!(received(&inbox, &usual).await.priority, Priority::Normal);
    let low = inbox.drop_file(KEY, "a\n", &[(REQUEST_NOTE, r#"{"priority":"low"}"#)], 2);
    assert_eq!(received(&inbox, &low).await.priority, Priority::Low);
    store(&inbox, &format!("{KEY}.job.json"), r#"{"owner":"local","priority":"high"}"#);
    let high = inbox.drop_file(KEY, "a\n", &[], 3);
    assert_eq!(received(&inbox, &high).await.priority, Priority::High);
    // The note names the owner, the sidecar the priority.
    let of_ann = inbox.drop_file(KEY, "a\n", &[(OWNER_NOTE, "ann")], 4);
    let error = refused(&inbox, &of_ann).await;
    assert!(matches!(error, ReceiveError::Create(CreateJobError::Priority { .. })), "{error:?}");
}

#[tokio::test]
async fn notes_on_the_object_have_precedence_over_a_sidecar() {
    let inbox = TestInbox::new();
    store(&inbox, &format!("{KEY}.job.json"), r#"{"owner":"größe","metadata":{"from":"sidecar"}}"#);
    let plain = inbox.drop_file(KEY, "a\n", &[], 1);
    let job = received(&inbox, &plain).await;
    assert_eq!((job.owner.as_str(), &job.metadata.unwrap()["from"]), ("größe", &"sidecar".into()));
    let with_owner = inbox.drop_file(KEY, "a\n", &[(OWNER_NOTE, "ann")], 2);
    let job = received(&inbox, &with_owner).await;
    assert_eq!((job.owner.as_str(), &job.metadata.unwrap()["from"]), ("ann", &"sidecar".into()));
    let with_request = inbox.drop_file(KEY, "a\n", &[(REQUEST_NOTE, r#"{"metadata":{"from":"note"}}"#)], 3);
    let job = received(&inbox, &with_request).await;
    assert_eq!((job.owner.as_str(), &job.metadata.unwrap()["from"]), ("größe", &"note".into()));
}

#[tokio::test]
async fn a_later_change_of_the_sidecar_creates_no_second_job() {
    let inbox = TestInbox::new();
    let dropped = inbox.drop_file(KEY, "a\n", &[], 1);
    received(&inbox, &dropped).await;
    store(&inbox, &format!("{KEY}.job.json"), r#"{"metadata":{"late":true}}"#);
    assert_eq!(nothing(&inbox, &dropped).await, Reason::Before);
    store(&inbox, &format!("{KEY}.job.json"), r#"{"owner":"ann"}"#);
    assert_eq!(received(&inbox, &dropped).await.owner, Owner("nobody".into()), "the owner of the upload stays");
    assert_eq!(inbox.every_job().len(), 1);
}

#[tokio::test]
async fn a_drop_refused_at_a_ceiling_keeps_its_first_owner() {
    let mut inbox = TestInbox::with_ceiling(0);
    let dropped = inbox.drop_file(KEY, "a\n", &[], 1);
    assert!(matches!(refused(&inbox, &dropped).await, ReceiveError::Create(CreateJobError::Full(_))));
    store(&inbox, &format!("{KEY}.job.json"), r#"{"owner":"ann","metadata":{"late":true}}"#);
    inbox.inbox.receiver.creator.limits.ceilings.owner = 1;
    let job = received(&inbox, &dropped).await;
    assert_eq!((job.owner.as_str(), job.file_guid), ("nobody", Some(dropped.file_guid())));
    assert_eq!(job.metadata.unwrap()["late"], true, "the rest of the sidecar counts");
}

#[tokio::test]
async fn no_sidecar_is_read_if_its_key_would_be_too_long() {
    let inbox = TestInbox::new();
    let mut owners = Vec::new();
    for (sequence, bytes) in [(1, 1015), (2, 1016), (3, 1024)] {
        let key = format!("inbox/validate/{}", "x".repeat(bytes - "inbox/validate/".len()));
        store(&inbox, &format!("{key}.job.json"), r#"{"owner":"ann"}"#);
        owners.push(received(&inbox, &inbox.drop_file(&key, "a\n", &[], sequence)).await.owner.0);
    }
    assert_eq!(owners, ["ann", "nobody", "nobody"]);
}

#[tokio::test]
async fn sidecars_folders_and_replaced_files_are_ignored() {
    let inbox = TestInbox::new();
    let sidecar = inbox.drop_file("inbox/validate/a.csv.job.json", "{}", &[], 1);
    assert_eq!(nothing(&inbox, &sidecar).await, Reason::Sidecar);
    let folder = inbox.drop_file("inbox/validate/", "", &[], 2);
    assert_eq!(nothing(&inbox, &folder).await, Reason::Folder);
    let earlier = inbox.drop_file(KEY, "a\n1\n", &[], 3);
    let later = inbox.drop_file(KEY, "a\n2\n", &[], 4);
    assert_eq!(nothing(&inbox, &earlier).await, Reason::Replaced);
    received(&inbox, &later).await;
    inbox.objects.delete(KEY);
    assert_eq!(nothing(&inbox, &Dropped { sequence: "5".into(), ..later }).await, Reason::Gone);
    assert_eq!(inbox.every_job().len(), 1);
}

#[tokio::test]
async fn an_empty_file_becomes_a_job() {
    let inbox = TestInbox::new();
    let job = received(&inbox, &inbox.drop_file(KEY, "", &[], 1)).await;
    assert_eq!(job.data_bytes, 0);
}

#[tokio::test]
async fn the_error_says_why_a_file_cannot_become_a_job() {
    let inbox = TestInbox::new();
    let nowhere = inbox.drop_file("inbox/a.csv", "a\n", &[], 1);
    assert!(matches!(refused(&inbox, &nowhere).await, ReceiveError::NoJobType));
    let unheard_of = inbox.drop_file("inbox/unheard-of/a.csv", "a\n", &[], 2);
    let error = refused(&inbox, &unheard_of).await;
    assert!(matches!(error, ReceiveError::Create(CreateJobError::UnknownJobType { .. })), "{error:?}");
    let unreadable = inbox.drop_file("inbox/validate/a.csv", "a\0,b\0\n\0", &[], 3);
    let error = refused(&inbox, &unreadable).await;
    assert!(matches!(error, ReceiveError::Create(CreateJobError::Head(_))), "{error:?}");
    let large = inbox.drop_file("inbox/validate/a.csv", &"x".repeat(1001), &[], 4);
    assert!(matches!(refused(&inbox, &large).await, ReceiveError::TooLarge { size: 1001, limit: 1000 }));
    let late = inbox.drop_file(KEY, "a\n", &[], 5);
    inbox.clock.advance(Duration::from_secs(8 * 86_400));
    assert!(matches!(refused(&inbox, &late).await, ReceiveError::Expired));
    assert!(inbox.every_job().is_empty());
}

#[tokio::test]
async fn the_error_for_invalid_job_notes_names_their_place() {
    let inbox = TestInbox::new();
    let refused_for = async |note: &str, text: &str| {
        let error = refused(&inbox, &inbox.drop_file(KEY, "a\n", &[(note, text)], 1)).await;
        let ReceiveError::JobNotes(notes) = error else { panic!("{error:?}") };
        assert!(notes.to_string().contains(note), "{notes}");
        notes
    };
    assert!(matches!(refused_for(REQUEST_NOTE, "{").await, JobNotesError::Syntax { .. }));
    for (text, wrong) in [
        ("[]", "."),
        (r#"{"jobType":"validate"}"#, "jobType"),
        (r#"{"fileGuid":"x"}"#, "fileGuid"),
        (r#"{"owner":"x"}"#, "owner"),
        (r#"{"deadlineSeconds":"soon"}"#, "deadlineSeconds"),
        (r#"{"priority":"High"}"#, "priority"),
        (r#"{"priority":1}"#, "priority"),
        (r#"{"priority":{"high":null}}"#, "priority"),
    ] {
        let notes = refused_for(REQUEST_NOTE, text).await;
        assert!(matches!(&notes, JobNotesError::Shape { field, .. } if field == wrong), "{notes:?}");
    }
    for name in ["", "a#b", "=?UTF-8?B?Z3LDtsOfZQ==?="] {
        assert!(matches!(refused_for(OWNER_NOTE, name).await, JobNotesError::Owner { .. }), "{name}");
    }
    assert!(inbox.every_job().is_empty());
}

#[tokio::test]
async fn the_error_for_an_invalid_sidecar_names_it() {
    let inbox = TestInbox::new();
    let sidecar = format!("{KEY}.job.json");
    let long = format!("{{\"metadata\":{{\"x\":\"{}\"}}}}", "x".repeat(256 * 1024));
    for text in ["", "{\"owner\":", "null", r#"{"owner":7}"#, r#"{"more":7}"#, &long] {
        store(&inbox, &sidecar, text);
        let error = refused(&inbox, &inbox.drop_file(KEY, "a\n", &[], 1)).await;
        assert!(matches!(error, ReceiveError::JobNotes(_)) && error.to_string().contains(&sidecar), "{error:?}");
    }
}

#[tokio::test]
async fn a_job_takes_a_slot_of_the_owner_in_its_notes() {
    let inbox = TestInbox::with_ceiling(1);
    received(&inbox, &inbox.drop_file("inbox/validate/1.csv", "a\n", &[(OWNER_NOTE, "ann")], 1)).await;
    let second = inbox.drop_file("inbox/validate/2.csv", "a\n", &[(OWNER_NOTE, "ann")], 2);
    assert!(matches!(refused(&inbox, &second).await, ReceiveError::Create(CreateJobError::Full(_))));
    let bob = received(&inbox, &inbox.drop_file("inbox/validate/3.csv", "a\n", &[(OWNER_NOTE, "bob")], 3)).await;
    assert_eq!(bob.owner, Owner("bob".into()));
}
