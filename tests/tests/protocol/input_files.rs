//! Job types that take files as they are: one item lists them, with links.

use std::sync::{Arc, Mutex};

use acceptance::faults::at_every_call;
use acceptance::world::World;
use async_trait::async_trait;
use rowmill_core::job_types::TargetType;
use rowmill_core::job_types::target_type::TargetCalls;
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::Objects;
use rowmill_core::ports::processor::{InputKind, Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use rowmill_core::progress::waits::Waker;
use rowmill_core::text::Record;
use serde_json::{Value, json};

use crate::chunks_of;
use crate::tasks::{TERMS, begun, finish};

/// Fails the first time.
#[derive(Clone, Default)]
struct Merge(Arc<Mutex<Vec<Value>>>);

impl JobType for Merge {
    fn name(&self) -> &str {
        "merge"
    }

    fn input(&self) -> InputKind {
        InputKind::Files
    }

    fn prepare(&self, _spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl ItemProcessor for Merge {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let Record::Json(record) = &item.record else { panic!("{item:?}") };
        let mut seen = self.0.lock().unwrap();
        seen.push(record.clone());
        match seen.len() {
            1 => Err(ItemError::permanent("no_luck", "not yet")),
            _ => Ok(ItemOutcome::Succeeded),
        }
    }
}

fn world(merge: &Merge) -> World {
    World::with_job_type(chunks_of(2), |_| Some(Arc::new(merge.clone())))
}

/// A file whose bytes nobody reads.
async fn stored(world: &World, name: &str) -> FileGuid {
    let bytes = format!("PK\x03\x04{name}");
    let upload = world.uploads.store(&World::owner(), "image/tiff", Some(name), bytes.into()).await;
    upload.unwrap().file_guid
}

/// An upload in the item.
async fn uploaded(world: &World, guid: FileGuid, name: &str) -> Value {
    let key = format!("uploads/{guid}");
    let etag = world.objects.head(&key).await.unwrap().etag;
    let url = format!("memory:{key}?as={name}");
    json!({ "name": name, "bytes": 4 + name.len(), "contentType": "image/tiff", "etag": etag, "url": url })
}

/// An object of another bucket in the item.
async fn object(world: &World, name: &str) -> Value {
    let key = format!("s3://data/{name}");
    let head = world.objects.head(&key).await.unwrap();
    let url = format!("memory:{key}?as={}", name.rsplit('/').next().unwrap());
    json!({ "name": name, "bytes": head.size, "etag": head.etag, "url": url })
}

async fn create(world: &World, input: Value) -> JobGuid {
    let mut request = json!({ "jobType": "merge", "params": { } });
    request.as_object_mut().unwrap().extend(input.as_object().unwrap().clone());
    world.request(request).await.unwrap().job_guid
}

/// Runs a job, redrives its one item, and compares what that listed.
async fn check(world: &World, merge: &Merge, job: JobGuid, files: Value) {
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.outcome, shown.items_failed, shown.item_count), (Some(JobOutcome::Failed), 1, 1));
    world.redrive(job, None).await.unwrap();
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.outcome, shown.items_succeeded, shown.item_count), (Some(JobOutcome::Succeeded), 1, 1));
    assert_eq!(world.audit(job).await.finding, None);
    let expected = json!({ "files": files });
    assert_eq!(*merge.0.lock().unwrap(), [expected.clone(), expected]);
}

#[tokio::test]
async fn one_item_lists_an_upload_or_many() {
    let merge = Merge::default();
    let world = world(&merge);
    let file = stored(&world, "a b.tif").await;
    let job = create(&world, json!({ "fileGuid": file })).await;
    check(&world, &merge, job, json!([uploaded(&world, file, "a b.tif").await])).await;

    merge.0.lock().unwrap().clear();
    let files = [stored(&world, "b.tif").await, file];
    let job = create(&world, json!({ "source": { "files": files } })).await;
    let listed = json!([uploaded(&world, files[0], "b.tif").await, uploaded(&world, file, "a b.tif").await]);
    check(&world, &merge, job, listed).await;
}

#[tokio::test]
async fn one_item_lists_the_objects_of_a_bucket_or_of_a_manifest() {
    let merge = Merge::default();
    let world = world(&merge);
    for name in ["in/a.tif", "in/b.tif", "in/c.tif", "in/d.tif", "in/e.txt"] {
        world.objects.store(&format!("s3://data/{name}"), "image/tiff", Default::default(), name.into());
    }
    let input = json!({ "source": { "s3": { "bucket": "data", "prefix": "in/", "suffix": ".tif" } } });
    let job = create(&world, input).await;
    let mut listed = Vec::new();
    for name in ["in/a.tif", "in/b.tif", "in/c.tif", "in/d.tif"] {
        listed.push(object(&world, name).await);
    }
    check(&world, &merge, job, json!(listed)).await;

    merge.0.lock().unwrap().clear();
    let manifest = world.store("text/csv", "data,in/b.tif\ndata,in/gone.tif\n").await;
    let job = create(&world, json!({ "source": { "manifest": manifest } })).await;
    world.run().await;
    let seen = merge.0.lock().unwrap()[0].clone();
    assert_eq!(seen["files"][0]["url"], "memory:s3://data/in/b.tif?as=b.tif");
    let gone = &seen["files"][1];
    assert_eq!((&gone["problem"]["code"], gone.get("url")), (&json!("file_not_allowed"), None), "{gone}");
    assert_eq!(world.show(job).await.item_count, 1);
}

#[tokio::test]
async fn one_item_lists_the_result_of_a_job_that_it_waited_for() {
    let merge = Merge::default();
    let world = world(&merge);
    let first = world.validate_csv("a,b\n1\n2,3\n").await;
    let job = create(&world, json!({ "source": { "jobGuid": first, "file": "failedRows" } })).await;
    assert_eq!(world.show(job).await.status, Status::Waiting);
    world.run().await;
    Waker { jobs: world.jobs.clone(), splits: world.splits.clone() }.wake(first.0).await.unwrap();
    world.run().await;
    let seen = merge.0.lock().unwrap()[0].clone();
    let file = &seen["files"][0];
    assert_eq!((&file["name"], &file["contentType"]), (&json!("failed-rows.csv"), &json!("text/csv")), "{file}");
}

#[tokio::test]
async fn the_item_is_processed_once_whatever_call_fails() {
    let deaths = at_every_call(async |call, death| {
        let merge = Merge::default();
        merge.0.lock().unwrap().push(Value::Null);
        let world = world(&merge);
        world.objects.store("s3://data/in/a", "image/tiff", Default::default(), "a".into());
        let job = create(&world, json!({ "source": { "s3": { "bucket": "data", "prefix": "in/" } } })).await;
        world.faults.plan(call, death);
        world.run_through_crashes_and_sweeps(world.limits.split.margin).await;
        assert_eq!((world.completed(job).await, world.audit(job).await.finding), (1, None));
        let listed = json!({ "files": [object(&world, "in/a").await] });
        assert!(merge.0.lock().unwrap()[1..].iter().all(|seen| *seen == listed));
        !world.faults.is_pending()
    })
    .await;
    assert!(deaths > 30, "{deaths} calls failed");
}

#[tokio::test]
async fn a_corrected_row_cannot_name_other_files() {
    let merge = Merge::default();
    let world = world(&merge);
    let file = stored(&world, "a.tif").await;
    let job = create(&world, json!({ "fileGuid": file })).await;
    world.run().await;
    let other = r#"{"row":1,"record":{"files":[{"key":"uploads/of-another","etag":"e","size":1,"name":"x"}]}}"#;
    let corrected = world.store("application/x-ndjson", other).await;
    world.redrive(job, Some(corrected)).await.unwrap();
    world.run().await;
    let files = json!({ "files": [uploaded(&world, file, "a.tif").await] });
    assert_eq!(merge.0.lock().unwrap()[1], files);
}

#[tokio::test]
async fn what_cannot_be_listed_is_refused() {
    let world = world(&Merge::default());
    let file = stored(&world, "a.tif").await;
    for (input, field) in [
        (json!({}), "fileGuid"),
        (json!({ "items": [{ "a": 1 }] }), "items"),
        (json!({ "fileGuid": file, "dedupe": "file" }), "dedupe"),
    ] {
        let mut request = json!({ "jobType": "merge" });
        request.as_object_mut().unwrap().extend(input.as_object().unwrap().clone());
        let error = world.request(request).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{field}` ")), "{error}");
    }
    for number in 0..1001 {
        world.objects.store(&format!("s3://data/many/{number}"), "image/tiff", Default::default(), "x".into());
    }
    let job = create(&world, json!({ "source": { "s3": { "bucket": "data", "prefix": "many/" } } })).await;
    let error = world.run_and_show(job).await.error.unwrap();
    assert_eq!(error.code.as_str(), "source_failed");
    assert!(error.message.contains("one item cannot list them: at most 1000"), "{}", error.message);
}

#[tokio::test]
async fn a_worker_gets_the_files_with_its_lease() {
    let calls = TargetCalls { batch_items: 1, concurrency: 1, outputs: true, cancel: false };
    let render = TargetType::new("render", calls, None).with_input(InputKind::Files).with_tasks(TERMS);
    let world = World::with_job_type(chunks_of(2), |_| Some(Arc::new(render)));
    let file = stored(&world, "a.tif").await;
    let job = world.request(json!({ "jobType": "render", "fileGuid": file })).await.unwrap().job_guid;
    world.run().await;
    let lent = begun(&world).await;
    let files = json!({ "files": [uploaded(&world, file, "a.tif").await] });
    assert_eq!(lent.items[0].record, Record::Json(files));
    finish(&world, &lent).await.unwrap();
    assert_eq!(world.run_and_show(job).await.items_succeeded, 1);
}
