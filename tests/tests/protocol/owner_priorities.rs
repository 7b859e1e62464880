//! The priority of a job: which one its owner may use, and that the job keeps it.

use acceptance::use_cases::Limits;
use acceptance::world::World;
use create_job::create::CreateJobError;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::Priority;
use rowmill_core::model::keys;
use rowmill_core::model::owner_priorities::{OwnerPriorities, PriorityNotAllowed};
use rowmill_core::ports::{Ceilings, Jobs};
use serde_json::{Value, json};

use crate::chunks_of;

/// A world in which the only owner may use this priority at most.
fn world(highest: Priority) -> World {
    let mut world = World::new(chunks_of(1));
    let owners = json!({ World::owner().as_str(): highest, "*": "high" });
    world.creator.owner_priorities = OwnerPriorities::parse(&owners.to_string()).unwrap();
    world
}

fn body(file: FileGuid, priority: Option<Priority>) -> Value {
    json!({ "jobType": "validate", "fileGuid": file, "priority": priority })
}

/// The priority in the row, in the message and in the view of a new job.
async fn priority_of(world: &World, request: Value) -> Priority {
    let job = world.request(request).await.unwrap();
    let messages = world.splits.take();
    assert_eq!((messages.len(), messages[0].priority), (1, job.priority));
    assert_eq!(world.show(job.job_guid).await.priority, job.priority);
    job.priority
}

#[tokio::test]
async fn an_owner_may_use_a_priority_up_to_the_highest_that_is_allowed() {
    // From the highest to the lowest.
    for (highest, allowed) in Priority::ALL.into_iter().zip([3, 2, 1]) {
        let world = world(highest);
        let file = world.store_csv("a\n1\n").await;
        for priority in Priority::ALL.into_iter().rev().take(allowed) {
            assert_eq!(priority_of(&world, body(file, Some(priority))).await, priority);
        }
        for priority in Priority::ALL.into_iter().take(3 - allowed) {
            let refused = world.request(body(file, Some(priority))).await.unwrap_err();
            let text = refused.to_string();
            assert!(text.contains(&format!("may use priority `{}` at most", highest.as_str())), "{text}");
            assert!(text.contains(&format!("`priority` is `{}`", priority.as_str())), "{text}");
            let CreateJobError::Priority(PriorityNotAllowed { asked, highest: said }) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!((asked, said), (priority, highest));
        }
        assert_eq!(world.jobs.every_job().len(), allowed);
    }
}

#[tokio::test]
async fn without_a_priority_a_job_has_the_normal_one_or_the_highest_that_its_owner_may_use() {
    for (highest, expected) in
        [(Priority::High, Priority::Normal), (Priority::Normal, Priority::Normal), (Priority::Low, Priority::Low)]
    {
        let world = world(highest);
        let file = world.store_csv("a\n1\n").await;
        assert_eq!(priority_of(&world, body(file, None)).await, expected);
    }
}

#[tokio::test]
async fn a_priority_that_is_not_allowed_is_refused_before_the_file_is_opened_and_a_slot_is_looked_for() {
    let none = Ceilings { owner: 0, job_type: 0, system: 0 };
    let mut world = World::new(Limits::default().but(|limits| limits.create.ceilings = none));
    world.creator.owner_priorities = OwnerPriorities::parse("{}").unwrap();
    let file = world.store_csv("a\n1\n").await;
    world.objects.delete(&keys::upload(file));
    for dedupe in [Value::Null, json!("file")] {
        let mut request = body(file, Some(Priority::High));
        request["dedupe"] = dedupe;
        let refused = world.request(request).await.unwrap_err();
        assert!(matches!(refused, CreateJobError::Priority { .. }), "{refused}");
    }
    let full = world.request(body(file, Some(Priority::Normal))).await.unwrap_err();
    assert!(matches!(full, CreateJobError::Full(_)), "{full}");
}

#[tokio::test]
async fn a_redrive_keeps_the_priority() {
    for priority in Priority::ALL {
        let world = world(Priority::High);
        let file = world.store_csv("a,b\n1\n").await;
        let job = world.request(body(file, Some(priority))).await.unwrap().job_guid;
        world.run().await;
        let redriven = world.redrive(job, None).await.unwrap();
        assert_eq!((redriven.attempt, redriven.priority), (2, priority));
        assert_eq!(world.splits.take()[0].priority, priority);
        assert_eq!(world.jobs.job(job).await.unwrap().priority, priority);
    }
}

/// The job of a request that may be found by its file or by its idempotency key.
async fn accepted(world: &World, request: &Value, key: Option<&str>) -> Result<(JobGuid, Priority), CreateJobError> {
    let request = serde_json::from_value(request.clone()).unwrap();
    let accepted = world.creator.accept(&World::owner(), &request, key).await?;
    Ok((accepted.job.job_guid, accepted.job.priority))
}

#[tokio::test]
async fn a_job_that_is_found_by_its_file_keeps_its_own_priority() {
    let world = world(Priority::High);
    let file = world.store_csv("a\n1\n").await;
    let request = |priority| {
        let mut request = body(file, priority);
        request["dedupe"] = json!("file");
        request
    };
    let first = accepted(&world, &request(Some(Priority::Low)), None).await.unwrap();
    for priority in [None, Some(Priority::High), Some(Priority::Normal)] {
        assert_eq!(accepted(&world, &request(priority), None).await.unwrap(), first);
    }
    assert_eq!((first.1, world.jobs.every_job().len()), (Priority::Low, 1));
}

#[tokio::test]
async fn a_repeated_request_finds_its_job_also_when_its_priority_is_no_longer_allowed() {
    let mut world = world(Priority::High);
    let file = world.store_csv("a\n1\n").await;
    let high = body(file, Some(Priority::High));
    let first = accepted(&world, &high, Some("key")).await.unwrap();
    world.creator.owner_priorities = OwnerPriorities::parse("{}").unwrap();
    assert_eq!(accepted(&world, &high, Some("key")).await.unwrap(), first);
    let other = accepted(&world, &body(file, None), Some("key")).await;
    assert!(matches!(other, Err(CreateJobError::KeyReused)), "another priority is another request: {other:?}");
    let refused = accepted(&world, &high, Some("another key")).await;
    assert!(matches!(refused, Err(CreateJobError::Priority { .. })), "{refused:?}");
}

#[tokio::test]
async fn the_priority_is_of_the_owner_and_not_of_the_upload() {
    let world = world(Priority::Normal);
    let theirs = Owner("somebody else".to_owned());
    let upload = world.uploads.store(&theirs, "text/csv", None, "a\n1\n".into()).await.unwrap().file_guid;
    let request = serde_json::from_value(body(upload, Some(Priority::High))).unwrap();
    let job = world.creator.create(&theirs, &request, None).await.unwrap();
    assert_eq!((job.owner, job.priority), (theirs, Priority::High));
    // A stranger learns of its own priority, and nothing of the upload.
    let refused = world.creator.create(&World::owner(), &request, None).await.unwrap_err();
    assert!(matches!(refused, CreateJobError::Priority { .. }), "{refused}");
}
