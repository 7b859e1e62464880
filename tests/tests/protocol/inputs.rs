//! Jobs without a file: items in the request, and job types without any input.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acceptance::faults::at_every_call;
use acceptance::use_cases::Limits;
use acceptance::world::World;
use async_trait::async_trait;
use create_job::create::CreateJobError;
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::processor::{InputKind, Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use rowmill_core::ports::{Admission, Ceilings, Jobs};
use rowmill_core::text::Record;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::chunks_of;

const NO_FILE: FileGuid = FileGuid(Uuid::nil());

/// Rows 2 and 4 have no number.
fn items() -> Value {
    json!([{ "id": 1, "n": 1.10 }, { "id": 2, "n": "a" }, { "id": 3, "n": 3 }, { "id": 4 }, { "id": 5, "n": 5 }])
}

async fn import(world: &World) -> JobGuid {
    let schema = json!({ "properties": { "n": { "type": "number" } }, "required": ["n"] });
    let params = json!({ "dataset": "d", "key": "id", "schema": schema });
    let job = world.request(json!({ "jobType": "import", "items": items(), "params": params })).await.unwrap();
    assert_eq!(job.file_guid, None);
    job.job_guid
}

#[tokio::test]
async fn items_of_a_request_are_processed_like_rows_of_a_file() {
    for chunk in [1, 2, 500] {
        let world = World::new(chunks_of(chunk));
        let job = import(&world).await;
        let shown = world.run_and_show(job).await;
        assert_eq!((shown.status, shown.outcome, shown.percent), (Status::Completed, Some(JobOutcome::Partial), 100));
        assert_eq!((shown.items_succeeded, shown.items_failed, shown.item_count), (3, 2, 5));
        let failed = world.all_failed(job).await;
        assert_eq!(failed.iter().map(|item| item.row).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(failed[0].raw.as_deref(), Some(r#"{"id":2,"n":"a"}"#));
        assert_eq!(world.records.dataset("local/d").len(), 3);
        assert!(world.audit(job).await.finding.is_none());

        // A corrected file replaces them by their row numbers.
        let lines =
            "{\"row\": 4, \"record\": {\"id\": 4, \"n\": 4}}\n{\"row\": 2, \"record\": {\"id\": 2, \"n\": 2}}\n";
        let corrected = world.store("application/x-ndjson", lines).await;
        world.redrive(job, Some(corrected)).await.unwrap();
        let shown = world.run_and_show(job).await;
        assert_eq!((shown.outcome, shown.items_succeeded), (Some(JobOutcome::Succeeded), 5));
        assert!(world.audit(job).await.finding.is_none());
    }
}

#[tokio::test]
async fn items_that_a_stopped_job_did_not_process_are_a_file_for_another_job() {
    let world = World::new(chunks_of(1));
    let job = import(&world).await;
    world.split().await;
    let chunks = world.process_first(2).await;
    world.cancel(job).await;
    world.process_all(&chunks[2..]).await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_skipped), (Status::Cancelled, 3));
    let rest = world.result_file(&world.jobs.job(job).await.unwrap(), "unprocessed-rows.jsonl").await;
    assert_eq!(rest, b"{\"id\":3,\"n\":3}\n{\"id\":4}\n{\"id\":5,\"n\":5}\n");
}

#[tokio::test]
async fn a_crash_while_a_job_is_created_leaves_a_whole_job_or_an_object_that_nothing_names() {
    let request = serde_json::from_value(json!({ "jobType": "validate", "items": items() })).unwrap();
    let (mut without_job, mut with_job) = (0, 0);
    at_every_call(async |call, death| {
        let world = World::new(chunks_of(2));
        let create = async || world.mortal_creator.create(&World::owner(), &request, Some("key")).await;
        world.faults.plan(call, death);
        let created = create().await;
        if world.faults.is_pending() {
            return false;
        }
        let there = world.jobs.every_job();
        if created.is_err() {
            *(if there.is_empty() { &mut without_job } else { &mut with_job }) += 1;
        }
        world.faults.revive();
        // The client repeats its request, and the process is another one.
        let job = create().await.unwrap_or_else(|error| panic!("{death:?} call {call}: {error}"));
        assert_eq!(world.jobs.every_job().len(), 1);
        assert!(there.iter().all(|first| first.job_guid == job.job_guid));
        assert_eq!(world.run_and_show(job.job_guid).await.items_succeeded, 5);
        true
    })
    .await;
    assert!(without_job >= 6 && with_job >= 1, "{without_job} and {with_job}");
}

#[tokio::test]
async fn a_refused_request_stores_no_items() {
    let ceilings = Ceilings { owner: 1, job_type: 9, system: 9 };
    let world = World::new(Limits::default().but(|limits| limits.create.ceilings = ceilings));
    let refused = async |request: Value| {
        let error = world.request(request).await.unwrap_err();
        assert!(world.objects.keys().is_empty(), "{error}");
        error
    };
    let field = |error: CreateJobError| match error {
        CreateJobError::Field(wrong) => wrong.field,
        CreateJobError::Params(wrong) => wrong.field,
        error => panic!("{error:?}"),
    };
    let neither = refused(json!({ "jobType": "validate" })).await;
    assert!(neither.to_string().contains("`items`"), "{neither}");
    assert_eq!(field(neither), "fileGuid");
    let both = json!({ "jobType": "validate", "fileGuid": NO_FILE, "items": items() });
    assert_eq!(field(refused(both).await), "items");
    assert_eq!(field(refused(json!({ "jobType": "validate", "items": [] })).await), "items");
    let dataset = json!({ "jobType": "export", "items": items(), "params": { "dataset": "d" } });
    assert_eq!(field(refused(dataset).await), "items");
    let reading = json!({ "jobType": "validate", "items": items(), "params": { "format": "csv" } });
    assert_eq!(field(refused(reading).await), "params.format");
    let params = json!({ "jobType": "validate", "items": items(), "params": { "schema": 7 } });
    assert_eq!(field(refused(params).await), "params.schema");

    world.request(json!({ "jobType": "validate", "items": items() })).await.unwrap();
    let stored = world.objects.keys().len();
    let full = world.request(json!({ "jobType": "validate", "items": items() })).await.unwrap_err();
    assert!(matches!(full, CreateJobError::Full(full) if full.admission == Admission::OwnerFull));
    assert_eq!(world.objects.keys().len(), stored, "a refusal costs as little as the request");
}

/// A job type without input. It fails the first time.
struct Report(Mutex<Vec<Item>>);

struct Once(Arc<Report>);

impl JobType for Once {
    fn name(&self) -> &str {
        "report"
    }

    fn params(&self) -> &'static [&'static str] {
        &["month"]
    }

    fn input(&self) -> InputKind {
        InputKind::None
    }

    fn prepare(&self, _spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        Ok(self.0.clone())
    }
}

#[async_trait]
impl ItemProcessor for Report {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let mut seen = self.0.lock().unwrap();
        seen.push(item.clone());
        match seen.len() {
            1 => Err(ItemError::permanent("no_data", "there are no figures yet")),
            _ => Ok(ItemOutcome::Succeeded),
        }
    }
}

#[tokio::test]
async fn a_job_type_without_input_has_one_item_per_job() {
    let report = Arc::new(Report(Mutex::default()));
    let world = World::with_job_type(chunks_of(2), |_| Some(Arc::new(Once(report.clone()))));
    for (request, field) in [
        (json!({ "jobType": "report", "fileGuid": NO_FILE }), "fileGuid"),
        (json!({ "jobType": "report", "items": items() }), "items"),
        (json!({ "jobType": "report", "dedupe": "file" }), "dedupe"),
        (json!({ "jobType": "report", "params": { "format": "csv" } }), "params.format"),
    ] {
        let error = world.request(request).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{field}` ")), "{error}");
    }
    let job = world.request(json!({ "jobType": "report", "params": { "month": 7 } })).await.unwrap().job_guid;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.outcome, shown.items_failed, shown.item_count), (Some(JobOutcome::Failed), 1, 1));
    assert!(world.objects.keys().iter().any(|key| key.starts_with(&format!("results/{job}/inputs/"))));
    world.redrive(job, None).await.unwrap();
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.outcome, shown.items_succeeded, shown.item_count), (Some(JobOutcome::Succeeded), 1, 1));
    assert!(world.audit(job).await.finding.is_none());
    let seen = report.0.lock().unwrap();
    assert_eq!(seen.len(), 2);
    for item in &*seen {
        assert_eq!((item.row, &item.record), (1, &Record::Json(json!({}))));
    }
}

#[tokio::test]
async fn a_job_over_items_ends_after_any_crash() {
    let world = World::new(chunks_of(1));
    let job = import(&world).await;
    world.run_through_crashes(Duration::from_secs(60)).await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 3, 2));
}
