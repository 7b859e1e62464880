//! The results of a job hold each item once and in order, after any crash and any number of timeouts.

mod causes;
mod crashes;
mod exports;
mod failed_rows;
mod unprocessed;
mod what_ifs;

use std::collections::BTreeMap;
use std::time::Duration;

use acceptance::faults::Death;
use acceptance::files;
use acceptance::world::World;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::results::{Manifest, ManifestFile, ResultFile};
use rowmill_core::ports::{Jobs, Objects};
use serde_json::{Value, json};

use crate::chunks_of;

/// Enough time for everything, and so little time that a splitter hands over after each tally and a completer after
/// each step.
const TIMES: [Duration; 2] = [Duration::from_secs(300), Duration::from_secs(10)];

/// A job's manifest and its files.
async fn results(world: &World, job: JobGuid) -> (Manifest, BTreeMap<String, Vec<u8>>) {
    let job = world.jobs.job(job).await.unwrap();
    let manifest = world.manifest(&job).await;
    let mut files = BTreeMap::new();
    for ManifestFile { file, .. } in &manifest.files {
        let bytes = world.result_file(&job, &file.name).await;
        assert_eq!(bytes.len() as u64, file.bytes, "{}", file.name);
        files.insert(file.name.clone(), bytes);
    }
    (manifest, files)
}

/// The files of a manifest. Their runs, which differ from try to try, are left out.
fn described(manifest: &Manifest) -> Vec<ResultFile> {
    manifest.files.iter().map(|stored| stored.file.clone()).collect()
}

/// One of a job's files, as text.
pub async fn result(world: &World, job: JobGuid, name: &str) -> String {
    let (manifest, mut files) = results(world, job).await;
    let file = files.remove(name).unwrap_or_else(|| panic!("no {name} in {:?}", manifest.files));
    String::from_utf8(file).unwrap()
}

/// The messages about parts that are left out of the results.
fn left_out(manifest: &Manifest) -> Vec<&str> {
    manifest.left_out.iter().map(|left_out| left_out.message.as_str()).collect()
}

/// 68 good rows and three that fail: 71 chunks of one item in two tallies.
fn partly_bad() -> Vec<u8> {
    let mut csv = String::from("id,name\n");
    for row in 1..=71 {
        csv += &if row % 23 == 0 { format!("{row}\n") } else { format!("{row},\"name\n{row}\"\n") };
    }
    csv.into_bytes()
}

/// A `transform` job over this file, which leaves out the column `name`.
async fn transform(world: &World, content_type: &str, file: Vec<u8>) -> JobGuid {
    let file = world.store(content_type, file).await;
    let params = json!({ "format": "csv", "mapping": [{ "drop": "name" }] });
    world.create("transform", file, params).await.unwrap().job_guid
}

async fn import(world: &World, dataset: &str, rows: u64) {
    let file = world.store_csv(files::plain_csv(rows)).await;
    world.create("import", file, json!({ "dataset": dataset, "key": "id" })).await.unwrap();
    world.run().await;
}

/// Creates an export.
pub async fn export(world: &World, params: Value) -> JobGuid {
    world.request(json!({ "jobType": "export", "params": params })).await.unwrap().job_guid
}

/// Runs a job again and again. Each time a process crashes at the next port call, or at every fourth one if time is
/// short and calls are many. The results must be the same each time. Returns the number of crashes.
async fn same_results_after_crashes(times: &[Duration], start: impl AsyncFn(&World) -> JobGuid) -> u64 {
    let (mut undisturbed, mut crashes) = (None, 0);
    for (time, death) in times.iter().flat_map(|time| [(*time, Death::Before), (*time, Death::After)]) {
        for call in (0..).step_by(if time == TIMES[0] { 1 } else { 4 }) {
            let world = World::new(chunks_of(1));
            let job = start(&world).await;
            if undisturbed.is_some() {
                world.faults.plan(call, death);
            }
            world.run_through_crashes(time).await;
            let row = world.jobs.job(job).await.unwrap();
            let when = format!("{death:?} call {call} with {time:?}");
            assert_eq!((row.completions, world.jobs.active("system")), (1, 0), "{when}");
            let (manifest, files) = results(&world, job).await;
            let counts = row.end().map(|end| (end.counts, manifest.causes.clone(), manifest.changes.clone()));
            let end = (row.status(), counts, described(&manifest), manifest.left_out, files);
            match &undisturbed {
                Some(undisturbed) => assert_eq!(&end, undisturbed, "{when}"),
                None => undisturbed = Some(end),
            }
            if world.faults.is_pending() {
                break;
            }
            crashes += 1;
        }
    }
    crashes
}

/// The state of a composition that was handed over to the next invocation.
async fn composition_state(world: &World, job: JobGuid) -> Value {
    let name = world.jobs.job(job).await.unwrap().composing.expect("a composition");
    let state = world.objects.read(&format!("results/{job}/1/composition/{name}.json")).await.unwrap();
    serde_json::from_slice(&state).unwrap()
}
