//! Results that are copied into an external bucket.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use acceptance::faults::at_every_call;
use acceptance::use_cases::OUTPUT_BUCKET;
use acceptance::world::World;
use async_trait::async_trait;
use bytes::Bytes;
use complete_job::complete::CompletionEnd;
use create_job::create::CreateJobError;
use dead_letter::settle::DeadMessage;
use rowmill_api::results::CopyView;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::results::CopyState;
use rowmill_core::ports::{ObjectHead, Objects, PortError, PortResult};
use serde_json::json;

use crate::chunks_of;

/// The results of its job take several parts.
fn bad_rows() -> String {
    let mut csv = "id,name\n".to_owned();
    for row in 1..=40 {
        let _ = writeln!(csv, "{row}");
    }
    csv
}

async fn create(world: &World) -> JobGuid {
    let file = world.store_csv(bad_rows()).await;
    let fields = json!({ "resultsTo": { "bucket": OUTPUT_BUCKET, "prefix": "all/" } });
    world.create_with(file, fields).await.job_guid
}

/// The state of the copy as the API shows it.
async fn shown(world: &World, job: JobGuid) -> CopyView {
    let job = world.job(job).await;
    world.results.of(&job).await.expect("results").copy.expect("they are copied")
}

/// The copies below this place: names and bytes.
async fn stored(world: &World, place: &str) -> BTreeMap<String, Bytes> {
    let mut found = BTreeMap::new();
    for key in world.objects.keys() {
        if let Some(name) = key.strip_prefix(place) {
            found.insert(name.to_owned(), world.objects.read(&key).await.expect("it is there"));
        }
    }
    found
}

/// Checks that the results of this attempt are copied, byte for byte.
async fn check(world: &World, job: JobGuid, attempt: u32) {
    let row = world.job(job).await;
    let place = format!("s3://{OUTPUT_BUCKET}/all/validate-{job}/{attempt}/");
    assert_eq!(shown(world, job).await, CopyView { to: place.clone(), state: CopyState::Stored, problem: None });
    let manifest = world.manifest(&row).await;
    let mut expected = BTreeMap::new();
    for file in &manifest.files {
        let name = file.file.name.clone();
        expected.insert(name.clone(), Bytes::from(world.result_file(&row, &name).await));
    }
    let results = row.end().and_then(|end| end.results.as_ref()).expect("results");
    let json = world.objects.read(&results.manifest_key(job)).await.expect("the manifest");
    expected.insert("manifest.json".to_owned(), json);
    assert_eq!(stored(world, &place).await, expected);
}

#[tokio::test]
async fn results_are_copied_byte_for_byte_whatever_call_fails() {
    // An invocation has time for all, or for a file or a part at a time.
    for time in [Duration::from_secs(300), Duration::from_millis(1)] {
        let deaths = at_every_call(async |call, death| {
            let world = World::new(chunks_of(10));
            let job = create(&world).await;
            world.faults.plan(call, death);
            world.run_through_crashes_and_sweeps(time).await;
            check(&world, job, 1).await;
            !world.faults.is_pending()
        })
        .await;
        assert!(deaths > 80, "{deaths} calls failed");
    }
}

/// As the simulation found (seed 1200002886): a run that is at a part when another one has joined the parts must not take
/// the results for gone.
#[tokio::test]
async fn a_run_that_another_one_overtakes_at_any_call_leaves_the_copy_whole() {
    for call in 0.. {
        let world = Arc::new(World::new(chunks_of(10)));
        let job = create(&world).await;
        let message = world.run_to_completion_message().await;
        world.faults.freeze(call, {
            let (world, message) = (Arc::clone(&world), message.clone());
            async move {
                world.clock.advance(Duration::from_secs(3600));
                world.completer.complete(&message, world.deadline()).await.unwrap();
            }
        });
        world.completer.complete(&message, world.deadline_in(Duration::from_secs(7200))).await.ok();
        if world.faults.thaw() {
            assert!(call > 40, "{call} calls");
            break;
        }
        world.run().await;
        check(&world, job, 1).await;
    }
}

#[tokio::test]
async fn each_attempt_has_a_copy_of_its_own() {
    let world = World::new(chunks_of(10));
    let job = create(&world).await;
    world.run().await;
    check(&world, job, 1).await;
    let before = stored(&world, &shown(&world, job).await.to).await;
    world.correct(job, "id,name,row\n7,x,7\n").await;
    world.run().await;
    check(&world, job, 2).await;
    let first = format!("s3://{OUTPUT_BUCKET}/all/validate-{job}/1/");
    assert_eq!(stored(&world, &first).await, before, "a late copy of the first attempt changes nothing of the second");
}

/// An external bucket that takes nothing, for this reason.
struct Closed {
    objects: Arc<dyn Objects>,
    error: fn() -> PortError,
}

#[async_trait]
impl Objects for Closed {
    async fn head(&self, key: &str) -> Result<ObjectHead, PortError> {
        self.objects.head(key).await
    }

    async fn read_range(&self, key: &str, etag: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        self.objects.read_range(key, etag, range).await
    }

    async fn read(&self, key: &str) -> Result<Bytes, PortError> {
        self.objects.read(key).await
    }

    async fn put(&self, key: &str, content_type: &str, bytes: Bytes, sha256: Option<[u8; 32]>) -> PortResult<String> {
        match key.starts_with("s3://") {
            true => Err((self.error)()),
            false => self.objects.put(key, content_type, bytes, sha256).await,
        }
    }
}

#[tokio::test]
async fn a_bucket_that_takes_nothing_fails_the_copy_and_not_the_job() {
    let denied = || PortError::denied("storing", "no");
    let mut world = World::new(chunks_of(10));
    let job = create(&world).await;
    let message = world.run_to_completion_message().await;
    world.completer.copier.objects = Arc::new(Closed { objects: world.objects.clone(), error: denied });
    let end = world.completer.complete(&message, world.deadline()).await.unwrap();
    assert_eq!(end, CompletionEnd::Ended(Status::Completed));
    let CopyView { state, problem, .. } = shown(&world, job).await;
    assert_eq!(
        (state, problem.as_deref()),
        (CopyState::Failed, Some("The policy of the bucket, or of its key, denies it."))
    );
}

#[tokio::test]
async fn a_copy_is_given_up_with_its_message() {
    let busy = || PortError::unavailable("storing", "not now");
    let mut world = World::new(chunks_of(10));
    let job = create(&world).await;
    let message = world.run_to_completion_message().await;
    world.completer.copier.objects = Arc::new(Closed { objects: world.objects.clone(), error: busy });
    for _ in 0..3 {
        world.completer.complete(&message, world.deadline()).await.unwrap_err();
        assert_eq!(world.show(job).await.status, Status::Completed, "the job has ended all the same");
        assert_eq!(shown(&world, job).await.state, CopyState::Pending);
    }
    world.dead_letters.settle("m", &DeadMessage::Completion(message)).await.unwrap();
    let CopyView { state, problem, .. } = shown(&world, job).await;
    assert_eq!((state, problem.is_some()), (CopyState::Failed, true));
}

#[tokio::test]
async fn results_are_copied_only_to_the_buckets_of_the_settings() {
    let world = World::new(chunks_of(10));
    let file = world.store_csv("a\n1\n").await;
    for (to, field) in [
        (json!({ "bucket": "other" }), "resultsTo.bucket"),
        (json!({ "bucket": OUTPUT_BUCKET, "prefix": "x".repeat(513) }), "resultsTo.prefix"),
    ] {
        let request = json!({ "jobType": "validate", "fileGuid": file, "resultsTo": to });
        let refused = world.request(request).await.unwrap_err();
        assert!(matches!(&refused, CreateJobError::Field(invalid) if invalid.field == field), "{refused}");
    }
}
