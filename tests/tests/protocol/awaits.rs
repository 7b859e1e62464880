//! Jobs that wait: for a file that is fetched, for another job, and for the result of another job.

use std::time::Duration;

use acceptance::faults::at_every_call;
use acceptance::files;
use acceptance::world::World;
use create_job::create::CreateJobError;
use dead_letter::settle::{DeadLetterEnd, DeadMessage};
use rowmill_api::job::Stage;
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::keys;
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::model::upload::{FetchBegun, FetchFailure, Multipart, Origin, Upload, UploadState};
use rowmill_core::model::why::ReasonCode;
use rowmill_core::ports::{Ceilings, Clock, Jobs, Objects, UploadStore, Waits};
use rowmill_core::progress::waits::Waker;
use serde_json::{Value, json};
use start_job::starter::StartEnd;
use uuid::Uuid;

use crate::chunks_of;

/// An upload that is fetched.
async fn fetching(world: &World) -> FileGuid {
    let file_guid = FileGuid(Uuid::from_u128(77));
    let now = world.clock.now();
    let upload = Upload {
        file_guid,
        owner: World::owner(),
        file_name: Some("rows.csv".to_owned()),
        content_type: "application/octet-stream".to_owned(),
        size: 0,
        sha256: None,
        key: keys::upload(file_guid),
        state: UploadState::Pending { multipart: None },
        origin: Some(Origin::at("https://data.example/rows.csv")),
        created_at: now,
        expires_at: now + Duration::from_secs(7 * 24 * 3600),
    };
    world.upload_rows.create(&upload).await.unwrap();
    file_guid
}

/// `fetch-file` has stored the file, and has told nobody yet.
async fn fetched(world: &World, file: FileGuid, text: impl Into<bytes::Bytes>) {
    let (text, content_type) = (text.into(), "text/csv".to_owned());
    let size = text.len() as u64;
    let etag = world.objects.put(&keys::upload(file), &content_type, text, None).await.unwrap();
    let multipart = Multipart { id: "m".to_owned(), part_size: 9 };
    let begun = FetchBegun { size, content_type, validator: None, multipart };
    world.upload_rows.begin_fetch(file, &begun).await.unwrap();
    world.upload_rows.mark_ready(file, &etag).await.unwrap();
}

async fn wake(world: &World, awaited: Uuid) {
    Waker { jobs: world.jobs.clone(), splits: world.splits.clone() }.wake(awaited).await.unwrap();
}

async fn create(world: &World, fields: Value) -> Result<JobGuid, CreateJobError> {
    let mut request = json!({ "jobType": "validate" });
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    world.request(request).await.map(|job| job.job_guid)
}

/// A world with a job that waits for a file, for which its first message has looked.
async fn waiting() -> (World, FileGuid, JobGuid) {
    let world = World::new(chunks_of(2));
    let file = fetching(&world).await;
    let job = create(&world, json!({ "fileGuid": file })).await.unwrap();
    world.run().await;
    (world, file, job)
}

/// Delivers the messages of jobs, and no others.
async fn look(world: &World) {
    for message in world.splits.take() {
        world.splitter.split(&message, world.deadline()).await.unwrap();
    }
    for message in world.starts.take() {
        world.starter.start(&message).await.unwrap();
    }
}

/// The slots taken of the type and of the system.
fn shared(world: &World) -> [i64; 2] {
    ["type#validate", "system"].map(|scope| world.jobs.active(scope))
}

async fn ended_as(world: &World, job: JobGuid, code: StopCode, says: &str) {
    let shown = world.run_and_show(job).await;
    let error = shown.error.unwrap_or_else(|| panic!("it has failed: {:?}", shown.status));
    assert_eq!((shown.status, error.code.as_str()), (Status::Failed, code.as_str()), "{error:?}");
    assert!(error.message.contains(says), "{error:?}");
    assert_eq!(shared(world), [0, 0]);
}

#[tokio::test]
async fn a_job_on_a_file_that_is_fetched_waits_and_starts_by_itself() {
    let (world, file, job) = waiting().await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.stage, shown.file_guid), (Status::Waiting, Stage::Fetching.into(), Some(file)));
    assert_eq!(world.why(job).await[0].code, ReasonCode::FileFetching);
    assert_eq!(shared(&world), [0, 0], "others need not wait for the file");
    fetched(&world, file, files::plain_csv(9)).await;
    wake(&world, file.0).await;
    assert_eq!(world.completed(job).await, 9);
    assert_eq!(shared(&world), [0, 0]);
    assert!(world.audit(job).await.finding.is_none());
    wake(&world, file.0).await;
    assert!(world.splits.take().is_empty(), "nobody waits any more");
}

#[tokio::test]
async fn a_job_that_nobody_tells_of_its_file_is_started_by_the_sweep() {
    let (world, file, job) = waiting().await;
    fetched(&world, file, files::plain_csv(3)).await;
    world.clock.advance(world.limits.sweep.recovery.stale);
    world.sweep().await;
    assert_eq!(world.completed(job).await, 3);
}

#[tokio::test]
async fn a_job_fails_if_its_file_is_not_fetched_or_cannot_be_read() {
    let (world, file, job) = waiting().await;
    let detail = "The source answered with status 404.".to_owned();
    world.upload_rows.fail(file, &FetchFailure { code: "source_refused".to_owned(), detail }).await.unwrap();
    wake(&world, file.0).await;
    ended_as(&world, job, StopCode::SourceFailed, "status 404").await;

    let (world, file, job) = waiting().await;
    fetched(&world, file, &b"\x1f\x8bno gzip"[..]).await;
    wake(&world, file.0).await;
    ended_as(&world, job, StopCode::SourceFailed, "gzip").await;

    let (world, file, job) = waiting().await;
    world.upload_rows.remove(file).await.unwrap();
    wake(&world, file.0).await;
    ended_as(&world, job, StopCode::SourceFailed, "There is no upload").await;
}

#[tokio::test]
async fn params_that_the_file_does_not_fit_are_refused_when_it_is_there() {
    let world = World::new(chunks_of(2));
    let file = fetching(&world).await;
    let wrong = create(&world, json!({ "fileGuid": file, "params": { "delimiter": 7 } })).await;
    assert!(wrong.is_err(), "wrong for every file");
    let schema = json!({ "properties": { "missing": {} }, "required": ["missing"] });
    let job = create(&world, json!({ "fileGuid": file, "params": { "schema": schema } })).await.unwrap();
    fetched(&world, file, files::plain_csv(3)).await;
    ended_as(&world, job, StopCode::SourceFailed, "missing").await;
}

#[tokio::test]
async fn a_job_that_waits_is_paused_resumed_cancelled_and_stopped_like_any_other() {
    let (world, file, job) = waiting().await;
    world.pause(job).await;
    fetched(&world, file, files::plain_csv(5)).await;
    wake(&world, file.0).await;
    world.run().await;
    assert_eq!(world.show(job).await.status, Status::Paused);
    world.resume(job).await;
    assert_eq!(world.completed(job).await, 5);

    let (world, _, job) = waiting().await;
    assert_eq!(world.cancel(job).await.status(), Status::Cancelled);
    assert_eq!((shared(&world), world.jobs.active("owner#local")), ([0, 0], 0));

    let (world, file, _) = waiting().await;
    let late = create(&world, json!({ "fileGuid": file, "startWithinSeconds": 100 })).await.unwrap();
    world.run().await;
    world.clock.advance(Duration::from_secs(101));
    world.sweep_and_run().await;
    ended_as(&world, late, StopCode::DeadlineExceeded, "was not there in time").await;
}

#[tokio::test]
async fn a_job_whose_file_comes_when_no_slot_is_free_waits_for_one() {
    let ceilings = Ceilings { owner: 9, job_type: 9, system: 1 };
    let world = World::new(chunks_of(2).but(|limits| limits.create.ceilings = ceilings));
    let file = fetching(&world).await;
    let job = create(&world, json!({ "fileGuid": file })).await.unwrap();
    world.run().await;
    let other = world.validate_csv(files::plain_csv(3)).await;
    fetched(&world, file, files::plain_csv(4)).await;
    wake(&world, file.0).await;
    look(&world).await;
    assert_eq!(world.show(job).await.stage, Stage::WaitingForSlot);
    assert_eq!(world.completed(other).await, 3);
    world.clock.advance(2 * world.limits.sweep.recovery.stale);
    world.sweep().await;
    assert_eq!(world.completed(job).await, 4);
    assert_eq!(shared(&world), [0, 0]);
}

#[tokio::test]
async fn a_job_may_follow_one_that_has_the_only_slot() {
    let ceilings = Ceilings { owner: 9, job_type: 1, system: 1 };
    let world = World::new(chunks_of(2).but(|limits| limits.create.ceilings = ceilings));
    let file = world.store_csv(files::plain_csv(3)).await;
    let first = create(&world, json!({ "fileGuid": file })).await.unwrap();
    let then = create(&world, json!({ "fileGuid": file, "after": first })).await.unwrap();
    let other = create(&world, json!({ "fileGuid": file })).await.unwrap_err();
    assert!(matches!(other, CreateJobError::Full(_)), "{other:?}");
    assert_eq!(world.completed(first).await, 3);
    wake(&world, first.0).await;
    assert_eq!(world.completed(then).await, 3);
}

#[tokio::test]
async fn a_waiting_job_that_is_resumed_needs_no_slot_yet() {
    let ceilings = Ceilings { owner: 9, job_type: 9, system: 1 };
    let world = World::new(chunks_of(2).but(|limits| limits.create.ceilings = ceilings));
    let (file, other) = (fetching(&world).await, world.store_csv(files::plain_csv(3)).await);
    create(&world, json!({ "fileGuid": other })).await.unwrap();
    let job = create(&world, json!({ "fileGuid": file })).await.unwrap();
    world.pause(job).await;
    world.resume(job).await;
    look(&world).await;
    assert_eq!((world.show(job).await.stage, shared(&world)), (Stage::Fetching.into(), [1, 1]));
}

#[tokio::test]
async fn a_dead_letter_of_a_job_that_waits_or_waited_does_not_stop_it() {
    let (world, file, job) = waiting().await;
    let early = DeadMessage::Split(SplitMessage::of(&world.jobs.job(job).await.unwrap()));
    assert_eq!(world.dead_letters.settle("early", &early).await.unwrap(), DeadLetterEnd::Obsolete);
    fetched(&world, file, files::plain_csv(3)).await;
    wake(&world, file.0).await;
    look(&world).await;
    // It is sent to be split, and nobody has taken it up.
    assert!(!world.jobs.job(job).await.unwrap().is_awaiting());
    assert_eq!(world.dead_letters.settle("late", &early).await.unwrap(), DeadLetterEnd::Obsolete);
    assert_eq!(world.completed(job).await, 3);
}

#[tokio::test]
async fn the_failed_rows_of_a_job_can_be_waited_for_however_it_ends() {
    let world = World::new(chunks_of(2));
    let schema = json!({ "properties": { "id": { "type": "integer", "maximum": 0 } } });
    let file = world.store_csv(files::plain_csv(4)).await;
    let first = create(&world, json!({ "fileGuid": file, "params": { "schema": schema } })).await.unwrap();
    let failed = create(&world, json!({ "source": { "jobGuid": first, "file": "failedRows" } })).await.unwrap();
    let output = create(&world, output_of(first)).await.unwrap();
    assert_eq!(world.completed(first).await, 0);
    wake(&world, first.0).await;
    assert_eq!(world.completed(failed).await, 4);
    ended_as(&world, output, StopCode::PrecedingFailed, "did not end well").await;
    let late = create(&world, output_of(first)).await.unwrap_err();
    assert!(late.to_string().contains("has not ended well"), "{late}");
}

#[tokio::test]
async fn an_export_may_follow_the_import_that_makes_its_dataset() {
    let world = World::new(chunks_of(3));
    let file = world.store_csv(files::plain_csv(5)).await;
    let params = json!({ "dataset": "new", "key": "id" });
    let import = world.create("import", file, params).await.unwrap().job_guid;
    let export = |dataset: &str| {
        let params = json!({ "dataset": dataset, "format": "jsonl" });
        world.request(json!({ "jobType": "export", "after": import, "params": params }))
    };
    let (good, bad) = (export("new").await.unwrap().job_guid, export("other").await.unwrap().job_guid);
    assert_eq!(world.completed(import).await, 5);
    wake(&world, import.0).await;
    assert_eq!(world.completed(good).await, 5);
    ended_as(&world, bad, StopCode::SourceFailed, "there is none").await;
}

#[tokio::test]
async fn a_job_after_another_one_starts_when_that_has_ended_well() {
    let world = World::new(chunks_of(2));
    let file = world.store_csv(files::plain_csv(5)).await;
    let first = create(&world, json!({ "fileGuid": file })).await.unwrap();
    let then = create(&world, json!({ "fileGuid": file, "after": first })).await.unwrap();
    look(&world).await;
    let shown = world.show(then).await;
    assert_eq!((shown.status, shown.stage), (Status::Waiting, Stage::After.into()));
    let why = world.why(then).await.remove(0);
    assert_eq!((why.code, why.jobs), (ReasonCode::AfterJob.into(), vec![first]));
    assert_eq!(world.completed(first).await, 5);
    assert_eq!(world.show(then).await.stage, Stage::After, "nobody has told it");
    wake(&world, first.0).await;
    assert_eq!(world.completed(then).await, 5);

    // One that has ended well already is not waited for.
    let late = create(&world, json!({ "fileGuid": file, "after": first })).await.unwrap();
    assert_eq!(world.completed(late).await, 5);
}

#[tokio::test]
async fn a_job_after_one_that_did_not_end_well_fails() {
    let world = World::new(chunks_of(2));
    let file = world.store_csv(files::plain_csv(5)).await;
    let first = create(&world, json!({ "fileGuid": file })).await.unwrap();
    let then = create(&world, json!({ "fileGuid": file, "after": first })).await.unwrap();
    world.cancel(first).await;
    ended_as(&world, then, StopCode::PrecedingFailed, &first.to_string()).await;
    let refused = create(&world, json!({ "fileGuid": file, "after": first })).await.unwrap_err().to_string();
    assert!(refused.contains("has not ended well") && refused.contains("cancelled"), "{refused}");
    let unknown = create(&world, json!({ "fileGuid": file, "after": Uuid::nil() })).await.unwrap_err();
    assert!(matches!(unknown, CreateJobError::UnknownJob { field: "after", .. }), "{unknown:?}");
}

#[tokio::test]
async fn a_job_on_a_file_that_is_fetched_after_another_job_waits_for_both() {
    let (world, file, _) = waiting().await;
    let other = world.store_csv(files::plain_csv(2)).await;
    let first = create(&world, json!({ "fileGuid": other })).await.unwrap();
    let then = create(&world, json!({ "fileGuid": file, "after": first })).await.unwrap();
    assert_eq!(world.jobs.awaiting(first.0).await.unwrap(), [then]);
    assert_eq!(world.completed(first).await, 2);
    wake(&world, first.0).await;
    world.run().await;
    assert_eq!(world.show(then).await.stage, Stage::Fetching);
    fetched(&world, file, files::plain_csv(7)).await;
    wake(&world, file.0).await;
    assert_eq!(world.completed(then).await, 7);
}

/// The request for the output of a job as the input of the next one.
fn output_of(job: JobGuid) -> Value {
    json!({ "source": { "jobGuid": job, "file": "output" } })
}

#[tokio::test]
async fn the_output_of_a_job_is_the_input_of_the_next_one() {
    let world = World::new(chunks_of(3));
    let file = world.store_csv(files::plain_csv(8)).await;
    let params = json!({ "columns": ["id", "name"] });
    let transform = world.create("transform", file, params).await.unwrap().job_guid;
    let then = create(&world, output_of(transform)).await.unwrap();
    assert_eq!(world.completed(transform).await, 8);
    wake(&world, transform.0).await;
    assert_eq!(world.completed(then).await, 8);
    assert!(world.audit(then).await.finding.is_none());
    // Again, now that it is there.
    let later = create(&world, output_of(transform)).await.unwrap();
    let row = world.jobs.job(later).await.unwrap();
    assert!(!row.is_awaiting() && row.data_bytes > 0);
    assert_eq!(world.completed(later).await, 8);
    let none = create(&world, json!({ "source": { "jobGuid": transform, "file": "failedRows" } })).await.unwrap_err();
    assert!(none.to_string().contains("has no file of kind `failedRows`"), "{none}");
}

#[tokio::test]
async fn a_request_names_one_input_and_waits_for_what_it_can() {
    let (world, file, job) = waiting().await;
    for (fields, field) in [
        (json!({ "fileGuid": file, "source": { "jobGuid": job, "file": "output" } }), "fileGuid"),
        (json!({ "after": job, "source": { "jobGuid": job, "file": "output" } }), "after"),
        (json!({ "fileGuid": file, "dedupe": "file" }), "dedupe"),
    ] {
        let refused = create(&world, fields).await.unwrap_err();
        let CreateJobError::Field(wrong) = refused else { panic!("{refused:?}") };
        assert_eq!(wrong.field, field);
    }
}

#[tokio::test]
async fn a_job_that_waits_is_processed_once_whatever_call_fails() {
    let deaths = at_every_call(async |call, death| {
        let (world, file, job) = waiting().await;
        fetched(&world, file, files::plain_csv(5)).await;
        wake(&world, file.0).await;
        world.faults.plan(call, death);
        world.run_through_crashes_and_sweeps(world.limits.split.lease()).await;
        let shown = world.show(job).await;
        assert_eq!((shown.status, shown.items_succeeded), (Status::Completed, 5));
        assert_eq!(shared(&world), [0, 0]);
        assert!(world.audit(job).await.finding.is_none());
        !world.faults.is_pending()
    })
    .await;
    assert!(deaths > 30, "{deaths} calls failed");
}

/// Two runs find the file at once, and one of them is frozen at each call.
#[tokio::test]
async fn of_two_runs_that_find_a_file_at_once_one_starts_the_job() {
    for call in 0.. {
        let (world, file, job) = waiting().await;
        fetched(&world, file, files::plain_csv(5)).await;
        let world = std::sync::Arc::new(world);
        wake(&world, file.0).await;
        let message = world.splits.take().remove(0);
        let (other, same) = (world.clone(), message.clone());
        world.faults.freeze(call, async move {
            other.starter.start(&same).await.unwrap();
        });
        let end = world.starter.start(&message).await.unwrap();
        if world.faults.thaw() {
            assert!(call > 5 && end == StartEnd::Started, "{call} calls");
            return;
        }
        assert_eq!(world.completed(job).await, 5);
        assert_eq!(shared(&world), [0, 0]);
        assert!(world.audit(job).await.finding.is_none());
    }
}
