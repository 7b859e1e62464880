//! Estimates are near what a job comes to, and create nothing.

use acceptance::files;
use acceptance::use_cases::Limits;
use acceptance::world::World;
use create_job::create::CreateJobError;
use rowmill_api::estimate::EstimateView;
use rowmill_core::model::ids::FileGuid;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::records::{Dataset, Writer, dataset_of};
use rowmill_core::ports::{JobFilter, Jobs as _, RecordStore as _};
use serde_json::{Value, json};

const WRITER: Writer = Writer { job_created_ms: 0, job_guid: JobGuid(uuid::Uuid::nil()) };

async fn try_estimate(world: &World, request: Value) -> Result<EstimateView, CreateJobError> {
    Ok(try_check(world, request).await?.expect("all of the input is known"))
}

/// The estimate, or none if the file is to come.
async fn try_check(world: &World, request: Value) -> Result<Option<EstimateView>, CreateJobError> {
    let request = serde_json::from_value(request).expect("a request");
    let estimate = world.creator.estimate(&World::owner(), &request).await?;
    let filter = JobFilter { limit: 10, ..JobFilter::default() };
    let created = world.jobs.jobs(&World::owner(), &filter, world.creator.clock.now()).await.unwrap();
    assert_eq!(created.jobs, [], "an estimate creates nothing");
    Ok(estimate)
}

async fn estimate_of(content_type: &str, bytes: impl Into<bytes::Bytes>) -> EstimateView {
    let world = World::new(Limits::default());
    let file = world.store(content_type, bytes).await;
    try_estimate(&world, json!({ "jobType": "validate", "fileGuid": file })).await.unwrap()
}

/// So many rows. Every third one has a line break in a cell, and all are of different lengths.
fn rows(count: usize) -> String {
    let row =
        |n: usize| format!("{n},\"{}{}\"\n", if n.is_multiple_of(3) { "a\nb" } else { "c" }, "x".repeat(n * 7 % 23));
    "id,text\n".to_owned() + &(1..=count).map(row).collect::<String>()
}

#[tokio::test]
async fn the_items_of_a_short_input_are_counted() {
    let estimate = estimate_of("text/csv", rows(700)).await;
    assert_eq!((estimate.items, estimate.items_final, estimate.chunks), (Some(700), true, Some(2)));
    let world = World::new(Limits::default());
    let of_items = try_estimate(&world, json!({ "jobType": "validate", "items": [{"a": 1}, {"a": 2}] })).await.unwrap();
    assert_eq!((of_items.items, of_items.items_final, of_items.chunks), (Some(2), true, Some(1)));
    let none = estimate_of("text/csv", "id\n").await;
    assert_eq!((none.items, none.chunks), (Some(0), Some(0)));
    assert!(none.cost.is_some_and(|cost| cost.usd > 0.0), "a job without items costs its rows");
}

#[tokio::test]
async fn the_items_of_a_long_file_are_judged_by_its_beginning() {
    let near = |estimate: &EstimateView, actual: u64, percent: u64| {
        let items = estimate.items.expect("known");
        assert!(items.abs_diff(actual) * 100 <= actual * percent, "{items} of {actual}");
        assert!(!estimate.items_final);
    };
    let plain = rows(100_000);
    let estimate = estimate_of("text/csv", plain.clone()).await;
    near(&estimate, 100_000, 8);
    let less = estimate_of("text/csv", rows(10_000)).await;
    near(&less, 10_000, 8);
    let cost = |estimate: &EstimateView| estimate.cost.as_ref().expect("known").usd;
    assert!(cost(&estimate) > cost(&less) && cost(&estimate) < 10.0 * cost(&less));
    near(&estimate_of("application/gzip", files::gzip(plain.as_bytes())).await, 100_000, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_of_unknown_length_has_no_estimate() {
    let workbook = estimate_of("application/octet-stream", files::data("unicode.xlsx")).await;
    let unknown = EstimateView { items: None, items_final: false, chunks: None, cost: None, seconds_at_least: None };
    assert!(workbook.items_final || workbook == unknown, "{workbook:?}");
    let world = World::new(Limits::default());
    world.records.open(&Dataset::lasting(dataset_of(&World::owner(), "d"), 1), WRITER).await.unwrap();
    let export = try_estimate(&world, json!({ "jobType": "export", "params": { "dataset": "d" } })).await.unwrap();
    assert_eq!(export, unknown);
}

#[tokio::test]
async fn a_bomb_is_judged_within_bounds() {
    let mut bomb = b"a,b\n".to_vec();
    bomb.resize(64 << 20, b'\n');
    let bomb = estimate_of("application/gzip", files::gzip(&bomb)).await;
    assert!(!bomb.items_final, "{bomb:?}");
}

#[tokio::test]
async fn what_a_job_is_refused_for_its_estimate_is_refused_for() {
    let world = World::new(Limits::default());
    let unknown = try_estimate(&world, json!({ "jobType": "nothing" })).await;
    assert!(matches!(unknown, Err(CreateJobError::UnknownJobType { .. })));
    let file = "00000000-0000-4000-8000-000000000000";
    let of_nobody = try_estimate(&world, json!({ "jobType": "validate", "fileGuid": file })).await;
    assert!(matches!(of_nobody, Err(CreateJobError::UnknownUpload(_))));
    let file = world.store("text/csv", "a\n1\n").await;
    let params = json!({ "schema": { "type": 7 } });
    let wrong = try_estimate(&world, json!({ "jobType": "validate", "fileGuid": file, "params": params })).await;
    assert!(matches!(wrong, Err(CreateJobError::Params(_))));
}

#[tokio::test]
async fn without_its_file_all_the_rest_of_a_request_is_checked() {
    let world = World::new(Limits::default());
    for good in [
        json!({ "jobType": "validate" }),
        json!({ "jobType": "validate", "params": { "schema": { "required": ["id"] } }, "dedupe": "file" }),
        json!({ "jobType": "import", "params": { "dataset": "d", "key": ["id"], "delimiter": ";", "headerRow": 3 } }),
        json!({ "jobType": "transform", "params": { "mapping": [{ "drop": "notes" }], "columns": ["id"] } }),
        json!({ "jobType": "transform", "params": { "outputFormat": "csv", "format": "jsonl", "columns": ["id"] } }),
        json!({ "jobType": "validate", "params": { "format": "xlsx", "sheet": "Data" } }),
        json!({ "jobType": "validate", "params": { "format": "csv", "encoding": "latin1", "compression": "gzip" } }),
    ] {
        assert_eq!(try_check(&world, good.clone()).await.unwrap(), None, "{good}");
    }
    for (wrong, named) in [
        (json!({ "jobType": "nothing" }), "nothing"),
        (json!({ "jobType": "import" }), "params.dataset"),
        (json!({ "jobType": "import", "params": { "dataset": "d", "keys": "id" } }), "params.keys"),
        (json!({ "jobType": "validate", "params": { "schema": { "type": "numbr" } } }), "`numbr`"),
        (json!({ "jobType": "transform", "params": { "mapping": [{ "dorp": "notes" }] } }), "params.mapping[0]"),
        (json!({ "jobType": "validate", "params": { "format": "cvs" } }), "cvs"),
        (json!({ "jobType": "validate", "params": { "encoding": "utf-80" } }), "utf-80"),
        (json!({ "jobType": "validate", "params": { "delimiter": "ab" } }), "ab"),
        (json!({ "jobType": "validate", "params": { "header": false, "headerRow": 2 } }), "headerRow"),
        (json!({ "jobType": "validate", "params": { "headerRow": "two" } }), "params.headerRow"),
        (json!({ "jobType": "validate", "tolerance": {} }), "tolerance"),
        (json!({ "jobType": "validate", "deadlineSeconds": 0 }), "deadlineSeconds"),
    ] {
        let error = try_check(&world, wrong.clone()).await.expect_err(named);
        assert!(error.to_string().contains(named), "{wrong}: {error}");
    }
}

#[tokio::test]
async fn a_job_over_a_dataset_that_does_not_exist_is_refused() {
    let world = World::new(Limits::default());
    let request = json!({ "jobType": "export", "params": { "dataset": "customers" } });
    let refused = |error: CreateJobError| match error {
        CreateJobError::Params(error) => error,
        error => panic!("{error}"),
    };
    let error = refused(try_check(&world, request.clone()).await.unwrap_err());
    assert_eq!(error.field, "params.dataset");
    assert!(error.message.contains("`customers`"), "{error}");
    let body = serde_json::from_value(request.clone()).unwrap();
    let error = refused(world.creator.create(&World::owner(), &body, None).await.unwrap_err());
    assert_eq!(error.field, "params.dataset");
    assert_eq!(world.jobs.every_job(), [], "nothing is created");

    world.records.open(&Dataset::lasting("somebody/customers", 1), WRITER).await.unwrap();
    refused(world.creator.create(&World::owner(), &body, None).await.unwrap_err());
    world.records.open(&Dataset::lasting(dataset_of(&World::owner(), "customers"), 1), WRITER).await.unwrap();
    world.creator.create(&World::owner(), &body, None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_files_are_judged_by_some_of_them() {
    let world = World::new(Limits::default());
    let over = async |files: Vec<FileGuid>| {
        try_estimate(&world, json!({ "jobType": "validate", "source": { "files": files } })).await.unwrap()
    };
    let few = over(vec![
        world.store_csv(rows(700)).await,
        world.store("application/x-ndjson", "{}\n{}\n").await,
        world.store("application/gzip", files::gzip(rows(10).as_bytes())).await,
        // It is one item, which fails.
        world.store("application/gzip", &b"\x1f\x8b"[..]).await,
    ]);
    let few = few.await;
    assert_eq!((few.items, few.items_final, few.chunks), (Some(713), true, Some(4)));

    let mut many = Vec::new();
    for number in 0..100 {
        many.push(world.store_csv(rows(50 + number % 10)).await);
    }
    let many = over(many).await;
    let items = many.items.expect("known");
    assert!(items.abs_diff(5450) < 545 && !many.items_final, "{items}");
    assert_eq!(many.chunks, Some(100), "a chunk never crosses files");
    let workbook = world.store("application/octet-stream", files::data("unicode.xlsx")).await;
    let source = json!({ "files": [workbook] });
    let request = json!({ "jobType": "validate", "source": source, "params": { "sheet": "characters" } });
    assert_eq!(try_estimate(&world, request).await.unwrap().items, None, "a sheet does not tell how long it is");
}
