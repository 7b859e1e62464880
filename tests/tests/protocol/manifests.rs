//! Jobs over the objects that a manifest lists.

use acceptance::faults::at_every_call;
use acceptance::files::gzip;
use acceptance::use_cases::INPUT_BUCKET;
use acceptance::world::World;
use rowmill_api::job::Stage;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::keys;
use serde_json::json;

use crate::chunks_of;
use crate::many_files::{File, broken, check, file};

/// The objects that the manifests of these tests list.
fn listed() -> Vec<File> {
    vec![
        file("s3://data/in/b c+d.csv", "text/csv", "a,b\n1,2\n3\n", 2, 1),
        broken("s3://data/in/gone.csv", "text/csv", Vec::new(), 1, "file_not_allowed"),
        file("s3://data/in/ä.jsonl", "application/x-ndjson", "{\"a\":1}\n", 1, 0),
    ]
}

fn lay_down(world: &World) {
    for File { name, bytes, .. } in listed().into_iter().filter(|file| !file.bytes.is_empty()) {
        world.objects.store(name, "binary/octet-stream", Default::default(), bytes.into());
    }
}

async fn over(world: &World, content_type: &str, manifest: impl Into<Vec<u8>>) -> JobGuid {
    let manifest = world.store(content_type, manifest.into()).await;
    let request = json!({ "jobType": "validate", "source": { "manifest": manifest } });
    world.request(request).await.unwrap().job_guid
}

const BATCH: &str = "data,in/b+c%2Bd.csv,v1\ndata,in/gone.csv,\ndata,in/%C3%A4.jsonl,v2\n";
const NAMED: &str = "size;Key;BUCKET\n7;in/b c+d.csv;data\n8;in/gone.csv;data\n9;in/ä.jsonl;data\n";
const LINES: &str = "{\"bucket\":\"data\",\"key\":\"in/b c+d.csv\"}\n{\"Bucket\":\"data\",\"Key\":\"in/gone.csv\"}\n\
                     {\"key\":\"in/ä.jsonl\",\"bucket\":\"data\",\"size\":9}\n";

#[tokio::test]
async fn the_objects_of_a_manifest_are_the_files_of_the_job() {
    for (content_type, manifest) in [
        ("text/csv", BATCH.as_bytes().to_vec()),
        ("application/gzip", gzip(BATCH.as_bytes())),
        ("text/csv", NAMED.as_bytes().to_vec()),
        ("application/x-ndjson", LINES.as_bytes().to_vec()),
        ("application/json", format!("[{}]", LINES.trim_end().replace('\n', ",")).into_bytes()),
    ] {
        let world = World::new(chunks_of(1));
        lay_down(&world);
        let job = over(&world, content_type, manifest).await;
        let shown = world.show(job).await;
        assert_eq!((shown.status, shown.stage), (Status::Waiting, Stage::Listing.into()));
        world.run().await;
        check(&world, job, &listed()).await;
    }
}

#[tokio::test]
async fn the_objects_of_a_manifest_are_listed_once_whatever_call_fails() {
    let deaths = at_every_call(async |call, death| {
        let world = World::new(chunks_of(5));
        lay_down(&world);
        let job = over(&world, "text/csv", NAMED).await;
        world.faults.plan(call, death);
        world.run_through_crashes_and_sweeps(world.limits.split.margin).await;
        check(&world, job, &listed()).await;
        !world.faults.is_pending()
    })
    .await;
    assert!(deaths > 40, "{deaths} calls failed");
}

#[tokio::test]
async fn what_is_no_manifest_fails_its_job_and_says_where() {
    for (manifest, problem) in [
        (
            "bucket,key\ndata,a\nother,b\n",
            "row 2 names the bucket `other`, which is not a bucket that this stack may read",
        ),
        ("bucket,key\ndata,a\ndata,\n", "row 2 names no object"),
        ("id,key\n1,a\n", "row 1 names no object"),
        ("data\n", "row 1 names no object"),
        ("data,%FF\n", "row 1 names no object"),
        ("bucket,key\ndata,a,b\n", "row 1 is damaged"),
        ("bucket,key\ndata,\"a\n", "is damaged"),
        ("bucket,key\n", "lists no object"),
    ] {
        let world = World::new(chunks_of(2));
        let job = over(&world, "text/csv", manifest).await;
        world.run().await;
        let shown = world.show(job).await;
        let error = shown.error.unwrap_or_else(|| panic!("{manifest:?}: {:?}", shown.status));
        assert_eq!((shown.status, error.code), (Status::Failed, StopCode::SourceFailed.into()));
        assert!(error.message.starts_with("`source.manifest`") && error.message.contains(problem), "{}", error.message);
    }
    assert_eq!(keys::in_bucket(INPUT_BUCKET, "in/gone.csv"), listed()[1].name);
}
