//! Same file, same job: a request with `dedupe` finds the owner's job that does the same.

use std::sync::Arc;
use std::time::Duration;

use acceptance::faults::at_every_call;
use acceptance::use_cases::Limits;
use acceptance::world::World;
use create_job::create::{Accepted, CreateJobError};
use create_job::request::CreateJobRequest;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::states::Status;
use rowmill_core::ports::{Ceilings, Jobs};
use serde_json::{Value, json};

use crate::chunks_of;

const FILE: &str = "a,b\n1,1\n2\n";

fn request(file: FileGuid) -> CreateJobRequest {
    with(file, json!({}))
}

/// A request with these further fields.
fn with(file: FileGuid, fields: Value) -> CreateJobRequest {
    let mut request = json!({ "jobType": "validate", "fileGuid": file, "dedupe": "file" });
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(request).unwrap()
}

async fn accept(world: &World, request: &CreateJobRequest) -> Accepted {
    world.creator.accept(&World::owner(), request, None).await.unwrap()
}

/// The job of a request, which must be new.
async fn new(world: &World, request: &CreateJobRequest) -> JobGuid {
    let Accepted { job, is_same } = accept(world, request).await;
    assert!(!is_same, "{job:?}");
    job.job_guid
}

async fn is_found(world: &World, request: &CreateJobRequest, expected: JobGuid) {
    let Accepted { job, is_same } = accept(world, request).await;
    assert_eq!((job.job_guid, is_same), (expected, true));
}

#[tokio::test]
async fn a_request_finds_the_job_that_is_active_or_completed() {
    let world = World::new(chunks_of(1));
    let (first, again) = (world.store_csv(FILE).await, world.store_csv(FILE).await);
    let job = new(&world, &request(first)).await;
    is_found(&world, &request(first), job).await;
    is_found(&world, &request(again), job).await;
    world.split().await;
    is_found(&world, &request(again), job).await;
    assert_eq!(world.run_and_show(job).await.status, Status::Completed);
    is_found(&world, &request(again), job).await;
    // Each of its failed rows counts as it is.
    world.redrive(job, None).await.unwrap();
    is_found(&world, &request(again), job).await;
    world.run().await;
    is_found(&world, &with(again, json!({ "metadata": { "note": 2 } })), job).await;
    assert_eq!(world.jobs.every_job().len(), 1);
}

#[tokio::test]
async fn a_request_over_many_files_finds_the_job_over_the_same_bytes_in_the_same_order() {
    let world = World::new(chunks_of(1));
    let (one, again, other) =
        (world.store_csv(FILE).await, world.store_csv(FILE).await, world.store_csv(format!("{FILE}3,3\n")).await);
    let over = |files: &[FileGuid]| -> CreateJobRequest {
        let request = json!({ "jobType": "validate", "source": { "files": files }, "dedupe": "file" });
        serde_json::from_value(request).unwrap()
    };
    let job = new(&world, &over(&[one, other])).await;
    is_found(&world, &over(&[again, other]), job).await;
    world.run().await;
    is_found(&world, &over(&[one, other]), job).await;
    let as_long = world.store_csv(FILE.replace('1', "7")).await;
    for files in [&[other, one][..], &[one], &[one, again, other], &[as_long, other]] {
        assert_ne!(new(&world, &over(files)).await, job);
    }
}

#[tokio::test]
async fn a_request_for_something_else_creates_a_job() {
    let world = World::new(chunks_of(1));
    let file = world.store_csv(FILE).await;
    let mut jobs = vec![new(&world, &request(file)).await];
    for other in [
        with(file, json!({ "params": { "skipRows": 0 } })),
        with(file, json!({ "params": { "delimiter": ";" } })),
        with(file, json!({ "tolerance": { "count": 1 } })),
        with(file, json!({ "maxConcurrency": 1 })),
        with(file, json!({ "deadlineSeconds": 60 })),
        with(file, json!({ "jobType": "transform" })),
        request(world.store_csv(format!("{FILE}3,3\n")).await),
        // The same bytes, read in another way.
        request(world.store("text/csv; charset=windows-1252", FILE).await),
    ] {
        jobs.push(new(&world, &other).await);
    }
    let without = CreateJobRequest { dedupe: None, ..request(file) };
    jobs.push(new(&world, &without).await);
    assert_eq!(world.jobs.every_job().len(), jobs.len());
    let theirs = Owner("somebody else".to_owned());
    let refused = world.creator.accept(&theirs, &request(file), None).await;
    assert!(matches!(refused, Err(CreateJobError::UnknownUpload(_))));
    let upload = world.uploads.store(&theirs, "text/csv", None, FILE.into()).await.unwrap().file_guid;
    let Accepted { job, is_same } = world.creator.accept(&theirs, &request(upload), None).await.unwrap();
    assert!(!is_same && job.owner == theirs, "a job of another owner is not found");
}

#[tokio::test]
async fn a_stopped_job_is_replaced_unless_it_was_redriven() {
    let world = World::new(chunks_of(1));
    let file = world.store_csv(FILE).await;
    let first = new(&world, &request(file)).await;
    world.split().await;
    world.process_queued().await;
    assert_eq!(world.cancel(first).await.status(), Status::Cancelling);
    let second = new(&world, &request(file)).await;
    is_found(&world, &request(file), second).await;
    world.cancel(second).await;
    assert_eq!(world.run_and_show(second).await.status, Status::Cancelled);
    // A job that is redriven before anybody replaced it is found again.
    let third = new(&world, &request(file)).await;
    world.split().await;
    world.process_queued().await;
    world.cancel(third).await;
    world.run().await;
    assert_eq!((world.show(third).await.status, world.show(third).await.items_failed), (Status::Cancelled, 1));
    world.redrive(third, None).await.unwrap();
    is_found(&world, &request(file), third).await;
    // The redrive of one that was replaced changes nothing for the key.
    world.redrive(first, None).await.unwrap();
    is_found(&world, &request(file), third).await;
}

#[tokio::test]
async fn a_key_has_the_job_that_it_was_answered_with_also_after_that_has_failed() {
    let world = World::new(chunks_of(1));
    let file = world.store_csv(FILE).await;
    let job = new(&world, &request(file)).await;
    let keyed = async |request: &CreateJobRequest| world.creator.accept(&World::owner(), request, Some("key")).await;
    let first = keyed(&request(file)).await.unwrap();
    assert_eq!((first.job.job_guid, first.is_same), (job, true));
    world.cancel(job).await;
    assert_eq!(keyed(&request(file)).await.unwrap().job.job_guid, job);
    let other = with(file, json!({ "maxConcurrency": 1 }));
    assert!(matches!(keyed(&other).await, Err(CreateJobError::KeyReused)));
    let second = new(&world, &request(file)).await;
    world.clock.advance(world.limits.create.idempotency);
    assert_eq!(keyed(&request(file)).await.unwrap().job.job_guid, second, "the key is forgotten");
}

#[tokio::test]
async fn a_job_is_found_for_as_long_as_it_is_kept_from_its_creation() {
    let world = World::new(chunks_of(1));
    let retention = world.limits.jobs.retention;
    let file = world.store_csv(FILE).await;
    let job = new(&world, &request(file)).await;
    world.run().await;
    world.clock.advance(retention - Duration::from_secs(1));
    let file = world.store_csv(FILE).await;
    is_found(&world, &request(file), job).await;
    world.clock.advance(Duration::from_secs(1));
    assert!(world.jobs.job(job).await.unwrap().end().unwrap().expires_at >= world.deadline_in(Duration::ZERO));
    new(&world, &request(file)).await;
}

#[tokio::test]
async fn a_job_is_found_also_when_the_limit_is_reached() {
    let ceilings = Ceilings { owner: 1, job_type: 9, system: 9 };
    let world = World::new(Limits::default().but(|limits| limits.create.ceilings = ceilings));
    let file = world.store_csv(FILE).await;
    let job = new(&world, &request(file)).await;
    is_found(&world, &request(file), job).await;
    let other = with(file, json!({ "maxConcurrency": 1 }));
    let full = world.creator.accept(&World::owner(), &other, None).await;
    assert!(matches!(full, Err(CreateJobError::Full(_))));
}

#[tokio::test]
async fn two_requests_at_the_same_time_create_one_job() {
    let mut interleavings = 0;
    for is_replaced in [false, true] {
        for call in 0.. {
            let world = Arc::new(World::new(chunks_of(1)));
            let file = world.store_csv(FILE).await;
            if is_replaced {
                let job = new(&world, &request(file)).await;
                world.cancel(job).await;
            }
            let other = Arc::clone(&world);
            // One is frozen at each of its calls while the other is carried out.
            world.faults.freeze(call, async move {
                accept(&other, &request(file)).await;
            });
            let owner = World::owner();
            let accepted = world.mortal_creator.accept(&owner, &request(file), None).await.unwrap();
            if world.faults.thaw() {
                break;
            }
            interleavings += 1;
            let jobs = world.jobs.every_job();
            let active: Vec<_> = jobs.iter().filter(|job| !job.is_ended()).collect();
            assert_eq!(active.len(), 1, "call {call}");
            assert_eq!(active[0].job_guid, accepted.job.job_guid, "call {call}");
            assert_eq!((jobs.len(), world.jobs.active("system")), (1 + usize::from(is_replaced), 1), "call {call}");
            is_found(&world, &request(file), accepted.job.job_guid).await;
        }
    }
    assert!(interleavings > 10, "only {interleavings} interleavings");
}

#[tokio::test]
async fn a_crash_at_any_call_is_mended_by_a_repeated_request() {
    let mut crashes = 0;
    at_every_call(async |call, death| {
        let world = World::new(chunks_of(1));
        let file = world.store_csv(FILE).await;
        world.faults.plan(call, death);
        let first = world.mortal_creator.accept(&World::owner(), &request(file), None).await;
        if world.faults.is_pending() {
            return false;
        }
        crashes += u32::from(first.is_err());
        world.faults.revive();
        world.splits.take();
        let job = accept(&world, &request(file)).await.job.job_guid;
        assert_eq!(world.jobs.every_job().len(), 1);
        // The message of the first request may be lost.
        assert_eq!(world.run_and_show(job).await.status, Status::Completed);
        true
    })
    .await;
    assert!(crashes > 8, "only {crashes} crashes");
}
