//! What a job leaves: each item in it once and in order, whatever dies on the way and however often time runs out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write as _};
use std::time::Duration;

use acceptance::faults::Death;
use acceptance::files;
use acceptance::world::{World, WorldLimits};
use complete_job::complete::CompletionEnd;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::messages::CompletionMessage;
use rowmill_core::model::records::{RecordVersion, Upsert, Upserted};
use rowmill_core::model::results::Manifest;
use rowmill_core::model::states::{JobOutcome, Status};
use rowmill_core::ports::{Clock, Jobs, Objects, Queue, RecordStore, Tallies};
use rowmill_core::text::ChunkLimits;
use serde_json::{Value, json};

use crate::chunks_of;

/// Time for everything; and so little that a splitter hands over after a tally and a completer after a step.
const TIMES: [Duration; 2] = [Duration::from_secs(300), Duration::from_secs(10)];

/// A job's manifest and its files.
async fn results(world: &World, job: JobGuid) -> (Manifest, BTreeMap<String, Vec<u8>>) {
    let job = world.jobs.job(job).await.unwrap();
    let results = job.results.expect("results");
    let manifest = world.objects.read(&results.manifest_key(job.job_guid)).await.unwrap();
    let manifest: Manifest = serde_json::from_slice(&manifest).unwrap();
    let mut files = BTreeMap::new();
    for file in &manifest.files {
        let bytes = world.objects.read(&results.file_key(job.job_guid, &file.name)).await.unwrap();
        assert_eq!(bytes.len() as u64, file.bytes, "{}", file.name);
        files.insert(file.name.clone(), bytes.to_vec());
    }
    (manifest, files)
}

/// One of a job's files, as text.
async fn result(world: &World, job: JobGuid, name: &str) -> String {
    let (manifest, mut files) = results(world, job).await;
    let file = files.remove(name).unwrap_or_else(|| panic!("no {name} in {:?}", manifest.files));
    String::from_utf8(file).unwrap()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    gzip_by(text, Compression::default())
}

fn gzip_by(text: &[u8], compression: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), compression);
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// 68 good rows and three that fail: 71 chunks of one item in two tallies.
fn partly_bad() -> Vec<u8> {
    let mut csv = String::from("id,name\n");
    for row in 1..=71 {
        csv += &if row % 23 == 0 { format!("{row}\n") } else { format!("{row},\"name\n{row}\"\n") };
    }
    csv.into_bytes()
}

async fn create(world: &World, wish: Value) -> Job {
    world.creator.create(&World::owner(), &serde_json::from_value(wish).unwrap(), None).await.unwrap()
}

/// Runs a job with a process dying at every call there is, at every fourth where time is short and calls are many; its end
/// must be the same each time. How many crashes there were.
async fn the_same_through_every_crash(times: &[Duration], start: impl AsyncFn(&World) -> JobGuid) -> u64 {
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
            let end = (row.status, row.counts, manifest.files, manifest.left_out, files);
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

#[tokio::test]
async fn a_crash_at_any_call_changes_no_byte_of_the_results() {
    let (plain, packed) = (partly_bad(), gzip(&partly_bad()));
    for (content_type, file, times) in [("text/csv", plain, &TIMES[1..]), ("application/gzip", packed, &TIMES)] {
        let crashes = the_same_through_every_crash(times, async |world| {
            let file = world.store(content_type, file.clone()).await;
            let params = json!({ "format": "csv", "mapping": [{ "drop": "name" }] });
            world.create("transform", file, params).await.unwrap().job_guid
        });
        let crashes = crashes.await;
        assert!(crashes > 400 * times.len() as u64, "only {crashes} crashes");
    }
}

/// A `transform` job whose items are all done, and the message to end it.
async fn done(world: &World) -> (JobGuid, CompletionMessage) {
    let file = world.store("text/csv", partly_bad()).await;
    let params = json!({ "format": "csv", "mapping": [{ "drop": "name" }] });
    let job = world.create("transform", file, params).await.unwrap().job_guid;
    world.splitter.split(&world.splits.take()[0], world.deadline()).await.unwrap();
    for message in world.chunks.take() {
        world.process(&message, false).await;
    }
    (job, world.completions.take().remove(0))
}

#[tokio::test]
async fn a_store_that_fails_at_any_one_call_costs_the_end_of_a_job_no_delivery() {
    let (mut undisturbed, mut failures) = (None, 0);
    for death in [Death::Before, Death::After] {
        for call in 0.. {
            let world = World::new(chunks_of(1));
            let (job, message) = done(&world).await;
            if undisturbed.is_some() {
                world.faults.plan_failure(call, death);
            }
            let end = world.completer.complete(&message, world.deadline()).await;
            end.unwrap_or_else(|error| panic!("{death:?} call {call}: {error}"));
            let row = world.jobs.job(job).await.unwrap();
            assert_eq!((row.status, row.completions), (Status::Completed, 1), "{death:?} call {call}");
            let (manifest, files) = results(&world, job).await;
            let end = (row.counts, manifest.files, files);
            assert_eq!(&end, undisturbed.get_or_insert_with(|| end.clone()), "{death:?} call {call}");
            if world.faults.is_pending() {
                break;
            }
            failures += 1;
        }
    }
    assert!(failures > 100, "only {failures} failures");
}

#[tokio::test]
async fn a_store_that_fails_while_a_composition_is_handed_over_costs_no_delivery() {
    // The state and its tail, the job's row, the message.
    for call_from_last in 1..=4 {
        for death in [Death::Before, Death::After] {
            let mut calls = 0;
            for is_disturbed in [false, true] {
                let world = World::new(chunks_of(1));
                let (job, message) = done(&world).await;
                let call = if is_disturbed { calls - call_from_last } else { u64::MAX };
                world.faults.plan_failure(call, death);
                // No time to compose, and half of the margin to hand over.
                let deadline = world.clock.now() + Duration::from_secs(15);
                let end = world.completer.complete(&message, deadline).await.unwrap();
                assert_eq!((end, world.faults.is_pending()), (CompletionEnd::Continued, !is_disturbed));
                calls = world.faults.calls();
                let next = world.completions.take().remove(0);
                assert_eq!(next.composing, world.jobs.job(job).await.unwrap().composing);
                assert!(next.composing.is_some());
                let end = world.completer.complete(&next, world.deadline()).await.unwrap();
                assert_eq!(end, CompletionEnd::Ended(Status::Completed));
            }
        }
    }
}

/// The state of a composition that another invocation is to go on with.
async fn state(world: &World, job: JobGuid) -> Value {
    let name = world.jobs.job(job).await.unwrap().composing.expect("a composition");
    let state = world.objects.read(&format!("results/{job}/1/composition/{name}.json")).await.unwrap();
    serde_json::from_slice(&state).unwrap()
}

/// If each try began anew where the one before had finished a file, those of a job that cannot be ended had no end.
#[tokio::test]
async fn a_try_goes_on_from_where_the_one_before_did_though_that_has_finished_the_file() {
    let mut calls = 0;
    for is_disturbed in [false, true] {
        let world = World::new(WorldLimits { part_bytes: 64, ..chunks_of(1) });
        let (job, mut message) = done(&world).await;
        let composed = loop {
            let too_soon = world.clock.now() + Duration::from_secs(10);
            assert_eq!(world.completer.complete(&message, too_soon).await.unwrap(), CompletionEnd::Continued);
            message = world.completions.take().remove(0);
            let composed = state(&world, job).await;
            if composed["open"]["multipart"].is_string() {
                break composed;
            }
        };
        // All files are whole by then: the last call is the transaction that ends the job.
        world.faults.plan_failure(if is_disturbed { calls - 1 } else { u64::MAX }, Death::Before);
        let end = world.completer.complete(&message, world.deadline()).await.unwrap();
        assert_eq!((end, world.faults.is_pending()), (CompletionEnd::Ended(Status::Completed), !is_disturbed));
        calls = world.faults.calls();
        let row = world.jobs.job(job).await.unwrap();
        assert_eq!(json!(row.results.unwrap().files), composed["filesOf"], "begun once");
        assert_eq!(result(&world, job, "failed-rows.csv").await.lines().count(), 4, "a header and three rows");
    }
}

#[tokio::test]
async fn a_crash_at_any_call_changes_no_byte_of_an_export() {
    let crashes = the_same_through_every_crash(&TIMES, async |world| {
        import(world, "people", 100).await;
        create(world, json!({ "jobType": "export", "params": { "dataset": "people" } })).await.job_guid
    });
    let crashes = crashes.await;
    assert!(crashes > 1000, "only {crashes} crashes");
}

async fn import(world: &World, dataset: &str, rows: u64) {
    let file = world.store("text/csv", files::plain_csv(rows)).await;
    world.create("import", file, json!({ "dataset": dataset, "key": "id" })).await.unwrap();
    world.run().await;
}

#[tokio::test]
async fn an_export_is_every_record_once_and_what_is_filtered_out_counts_as_done() {
    let world = World::new(chunks_of(7));
    import(&world, "people", 300).await;
    let params = json!({ "dataset": "people", "filter": { "amount": "7" } });
    let slip = serde_json::from_value(json!({ "jobType": "export", "params": params })).unwrap();
    let refused = world.creator.create(&World::owner(), &slip, None).await.unwrap_err();
    assert!(refused.to_string().contains("`amount`"), "{refused}");
    let params = json!({
        "dataset": "people", "format": "csv", "columns": ["amount", "id"], "compress": "gzip", "filter": { "properties": { "amount": { "const": "7" } } },
    });
    let job = create(&world, json!({ "jobType": "export", "params": params })).await.job_guid;
    world.run_through_crashes(TIMES[1]).await;
    let shown = world.show(job).await;
    assert_eq!((shown.item_count, shown.items_succeeded, shown.outcome), (300, 300, Some(JobOutcome::Succeeded)));
    let (manifest, files) = results(&world, job).await;
    let mut text = String::new();
    MultiGzDecoder::new(&*files["people.csv.gz"]).read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), manifest.files[0].items), ("amount,id\n7,1\n", Some(1)));

    let job = create(&world, json!({ "jobType": "export", "params": { "dataset": "people" } })).await.job_guid;
    world.run_through_crashes(TIMES[1]).await;
    let text = result(&world, job, "people.jsonl").await;
    let mut ids: Vec<u64> = text.lines().map(|line| id(&serde_json::from_str(line).unwrap())).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=300).collect::<Vec<_>>());
}

/// A run of the splitter that goes on finds records before, among and behind those that another one found.
#[tokio::test]
async fn records_that_come_while_an_export_is_cut_take_no_others_place() {
    for (time, death) in TIMES.iter().flat_map(|time| [(*time, Death::Before), (*time, Death::After)]) {
        for call in 0.. {
            let world = World::new(chunks_of(1));
            import(&world, "people", 100).await;
            let job = create(&world, json!({ "jobType": "export", "params": { "dataset": "people" } })).await.job_guid;
            let message = world.splits.take().remove(0);
            world.faults.plan(call, death);
            let has_died = world.splitter.split(&message, world.clock.now() + time).await.is_err();
            if has_died {
                world.faults.revive();
                world.clock.advance(Duration::from_secs(600));
                add_records(&world, "local/people", 101..=150, "").await;
                world.splitter.split(&message, world.clock.now() + time).await.unwrap();
            }
            world.run_through_crashes(time).await;
            let text = result(&world, job, "people.jsonl").await;
            let ids: Vec<u64> = text.lines().map(|line| id(&serde_json::from_str(line).unwrap())).collect();
            let each: BTreeSet<u64> = ids.iter().copied().collect();
            let when = format!("{death:?} call {call} with {time:?}");
            assert_eq!(each.len(), ids.len(), "none is there twice: {when}");
            assert_eq!(each.range(..=100).count(), 100, "none is left out that was there all the time: {when}");
            let shown = world.show(job).await;
            assert_eq!((shown.item_count, shown.items_succeeded), (each.len() as u64, each.len() as u64), "{when}");
            if !has_died {
                break;
            }
        }
    }
}

async fn add_records(world: &World, dataset: &str, ids: impl Iterator<Item = u64>, text: &str) {
    let version = RecordVersion { job_created_ms: 0, job_guid: JobGuid(uuid::Uuid::nil()), row: 1 };
    let fields = |id: u64| json!({ "id": id.to_string(), "text": text }).as_object().unwrap().clone();
    let upserts: Vec<_> = ids.map(|id| Upsert { key: id.to_string(), version, fields: fields(id) }).collect();
    for upserted in world.records.upsert(dataset, &upserts).await {
        assert_eq!(upserted.unwrap(), Upserted::Written);
    }
}

fn id(record: &Value) -> u64 {
    record["id"].as_str().expect("an id").parse().unwrap()
}

#[tokio::test]
async fn a_tally_of_stored_chunks_ends_before_it_outgrows_the_memory() {
    let limits = ChunkLimits { max_items: 16, max_bytes: 16 << 20, max_record_bytes: 1 << 20 };
    let world = World::new(WorldLimits { chunks: limits, ..WorldLimits::default() });
    // 18 chunks of 16 records of 256 KiB: more than the 64 MiB that a tally may hold, though far less than 64 chunks.
    let text = "x".repeat(1 << 18);
    add_records(&world, "local/big", 1..=288, &text).await;
    let export = create(&world, json!({ "jobType": "export", "params": { "dataset": "big" } })).await.job_guid;
    let lines = (1..=288).map(|id| json!({ "id": id.to_string(), "text": text }).to_string() + "\n");
    // Compressed, all those letters would be taken for a bomb.
    let file = gzip_by(lines.collect::<String>().as_bytes(), Compression::none());
    let file = world.store("application/gzip", file).await;
    let packed = world.create("validate", file, json!({ "format": "jsonl" })).await.unwrap().job_guid;
    for message in world.splits.take() {
        world.splitter.split(&message, world.deadline()).await.unwrap();
    }
    for job in [export, packed] {
        assert_eq!(world.show(job).await.item_count, 288);
        let tallies = world.jobs.tallies(job, 1, 0..2).await.unwrap();
        let chunks: Vec<_> = tallies.iter().map(|tally| tally.expected).collect();
        assert_eq!(chunks, [16, 2]);
    }
}

#[tokio::test]
async fn what_a_stopped_job_did_not_process_is_a_file_that_can_be_run() {
    for (content_type, file) in [("text/csv", partly_bad()), ("application/gzip", gzip(&partly_bad()))] {
        let world = World::new(chunks_of(3));
        let file = world.store(content_type, file).await;
        let job = world.create("import", file, json!({ "format": "csv", "dataset": "d", "key": "id" })).await.unwrap();
        // Of the 24 chunks some are done, one is stopped on its way, and the others are skipped.
        world.splitter.split(&world.splits.take()[0], world.deadline()).await.unwrap();
        let chunks = world.chunks.take();
        for message in &chunks[..10] {
            world.process(message, false).await;
        }
        world.canceller.cancel(&World::owner(), job.job_guid).await.unwrap();
        for message in &chunks[10..] {
            world.process(message, false).await;
        }
        world.run_through_crashes(TIMES[1]).await;
        let shown = world.show(job.job_guid).await;
        assert_eq!((shown.status, shown.items_failed, shown.items_skipped), (Status::Cancelled, 1, 41));
        let rest = result(&world, job.job_guid, "unprocessed-rows.csv").await;
        let expected = String::from_utf8(partly_bad()).unwrap();
        let (header, from) = ("id,name\n", expected.find("31,").unwrap());
        assert_eq!(rest, format!("{header}{}", &expected[from..]));

        let rest = world.store("text/csv", rest).await;
        let second = world.create("import", rest, json!({ "dataset": "d", "key": "id" })).await.unwrap();
        world.run().await;
        assert_eq!(world.show(second.job_guid).await.item_count, 41);
        assert_eq!(world.records.dataset("local/d").len(), 68, "every good row, by one job or the other");
    }
}

#[tokio::test]
async fn what_was_never_dispatched_is_copied_as_far_as_is_allowed_and_as_long_as_it_is_there() {
    for (limit, is_gone) in [(1 << 20, false), (40, false), (1 << 20, true)] {
        let world = World::new(WorldLimits { unprocessed_max_bytes: limit, ..chunks_of(1) });
        let file = world.store("text/csv", files::plain_csv(100)).await;
        let job = world.create("validate", file, json!({})).await.unwrap().job_guid;
        // A tally is dispatched, then it is cancelled.
        let message = world.splits.take().remove(0);
        world.splitter.split(&message, world.clock.now() + TIMES[1]).await.unwrap();
        for message in world.chunks.take() {
            world.process(&message, false).await;
        }
        world.canceller.cancel(&World::owner(), job).await.unwrap();
        if is_gone {
            world.objects.delete(&rowmill_core::model::keys::upload(file));
        }
        world.run_through_crashes(TIMES[1]).await;
        assert_eq!(world.show(job).await.items_succeeded, 64);
        let (manifest, files) = results(&world, job).await;
        let copied = files.get("unprocessed-rows.csv").map(|file| String::from_utf8_lossy(file).into_owned());
        let left_out: Vec<&str> = manifest.left_out.iter().map(|left_out| left_out.message.as_str()).collect();
        match (limit, is_gone) {
            (40, _) => {
                assert!(left_out[0].contains("more than 40 bytes"), "{left_out:?}");
                assert_eq!(copied.unwrap().len(), "id,name,amount\n".len() + 40);
            }
            (_, true) => assert!(left_out[0].contains("gone"), "{left_out:?}"),
            _ => {
                let rows: Vec<String> = copied.unwrap().lines().map(str::to_owned).collect();
                assert_eq!((rows.len(), rows[1].split(',').next(), left_out), (37, Some("65"), Vec::new()));
            }
        }
    }
}

#[tokio::test]
async fn failed_rows_are_shown_as_far_as_they_can_be_and_come_back_as_they_were() {
    let world = World::new(chunks_of(2));
    let long = "x".repeat(400);
    let mut csv = format!("row,=v\n=1+1\n2,b,c,d\n+3\n5,{long}\n\"6\"\"\n\",'=x,\n").into_bytes();
    csv.extend_from_slice(b"\xff,7\n8\n");
    let file = world.store("text/csv", csv).await;
    let job = world.create("validate", file, json!({})).await.unwrap().job_guid;
    world.run().await;
    let failed = result(&world, job, "failed-rows.csv").await;
    let mut reader = csv::Reader::from_reader(failed.as_bytes());
    let ours = ["rowmill_row", "rowmill_code", "rowmill_message", "rowmill_column"];
    assert_eq!(reader.headers().unwrap(), [&["row", "'=v"], &ours[..]].concat());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let shown: Vec<[&str; 4]> = rows.iter().map(|row| [&row[0], &row[1], &row[2], &row[3]]).collect();
    assert_eq!(
        shown,
        [
            ["'=1+1", "", "1", "ragged_row"],
            ["2", "b,c,d", "2", "ragged_row"],
            ["+3", "", "3", "ragged_row"],
            ["", "", "4", "row_too_long"],
            ["6\"\n", "''=x,", "5", "ragged_row"],
            ["\u{fffd}", "7", "6", "invalid_utf8"],
            ["8", "", "7", "ragged_row"],
        ]
    );
}

#[tokio::test]
async fn a_failed_rows_file_that_is_handed_back_as_it_is_corrects_what_it_fills_up() {
    let world = World::new(chunks_of(2));
    let file = world.store("text/csv", "a,b\n=1\n2,3,4\n5,6\n").await;
    let job = world.create("transform", file, json!({ "mapping": [{ "drop": "b" }] })).await.unwrap().job_guid;
    world.run().await;
    let failed = result(&world, job, "failed-rows.csv").await;
    let corrected = world.store("text/csv", failed).await;
    let wish = serde_json::from_value(json!({ "fileGuid": corrected })).unwrap();
    world.redriver.redrive(&World::owner(), job, &wish).await.unwrap();
    world.run().await;
    let shown = world.show(job).await;
    assert_eq!((shown.outcome, shown.items_succeeded), (Some(JobOutcome::Succeeded), 3));
    // In the order of the input, though its first rows are of the second attempt.
    assert_eq!(result(&world, job, "transformed.csv").await, "a\n=1\n2\n5\n");
}

#[tokio::test]
async fn outputs_that_have_expired_are_told_of_once_however_often_time_runs_out() {
    for (expired, kept) in [("segments/", 0), ("segments/00000001/", 64)] {
        let world = World::new(chunks_of(1));
        let file = world.store("text/csv", partly_bad()).await;
        let params = json!({ "mapping": [{ "drop": "name" }] });
        let job = world.create("transform", file, params).await.unwrap().job_guid;
        world.run().await;
        let failed = result(&world, job, "failed-rows.csv").await;
        let corrected = world.store("text/csv", failed).await;
        let wish = serde_json::from_value(json!({ "fileGuid": corrected })).unwrap();
        world.redriver.redrive(&World::owner(), job, &wish).await.unwrap();
        world.splitter.split(&world.splits.take()[0], world.deadline()).await.unwrap();
        for message in world.chunks.take() {
            world.process(&message, false).await;
        }
        world.objects.expire(&format!("results/{job}/1/{expired}"));
        world.run_through_crashes(TIMES[1]).await;

        let rows = (1..=71).filter(|row| *row <= kept || row % 23 == 0);
        let expected: String = rows.map(|row| format!("{row}\n")).collect();
        assert_eq!(result(&world, job, "transformed.csv").await, format!("id\n{expected}"));
        let (manifest, _) = results(&world, job).await;
        let told: Vec<_> = manifest.left_out.iter().map(|left_out| left_out.message.as_str()).collect();
        assert_eq!(told, ["outputs of attempt 1: they are not kept any more"]);
    }
}

#[tokio::test]
async fn failed_json_lines_are_corrected_in_their_file_and_handed_back() {
    let world = World::new(chunks_of(2));
    let lines = "{\"n\":\"one\"}\n{\"n\":2}\n{\"n\": 12345678901234567890123}\n{\"n\":\n";
    let file = world.store("application/x-ndjson", lines).await;
    let schema = json!({ "properties": { "n": { "type": "integer", "maximum": 9 } } });
    let job = world.create("validate", file, json!({ "schema": schema })).await.unwrap().job_guid;
    world.run().await;
    let failed = result(&world, job, "failed-rows.jsonl").await;
    assert!(failed.contains("\"record\":{\"n\": 12345678901234567890123}"), "no digit is lost: {failed}");
    assert!(failed.lines().nth(2).unwrap().contains("\"raw\":\"{\\\"n\\\":\""), "{failed}");
    let corrected = failed.replace("\"one\"", "1").replace("12345678901234567890123", "3");
    let corrected = world.store("application/x-ndjson", corrected.replace("{\\\"n\\\":", "{\\\"n\\\":4}")).await;
    let wish = serde_json::from_value(json!({ "fileGuid": corrected })).unwrap();
    world.redriver.redrive(&World::owner(), job, &wish).await.unwrap();
    world.run().await;
    let shown = world.show(job).await;
    assert_eq!((shown.outcome, shown.items_succeeded), (Some(JobOutcome::Succeeded), 4));
    let (manifest, _) = results(&world, job).await;
    assert!(manifest.files.is_empty(), "{:?}", manifest.files);
}

#[tokio::test]
async fn a_crash_at_any_call_changes_no_byte_of_what_was_not_processed() {
    let crashes = the_same_through_every_crash(&TIMES[1..], async |world| {
        let file = world.store("text/csv", partly_bad()).await;
        let job = world.create("validate", file, json!({})).await.unwrap().job_guid;
        world.splitter.split(&world.splits.take()[0], world.clock.now() + TIMES[1]).await.unwrap();
        world.canceller.cancel(&World::owner(), job).await.unwrap();
        for message in world.chunks.take() {
            world.process(&message, false).await;
        }
        job
    });
    let crashes = crashes.await;
    assert!(crashes > 100, "only {crashes} crashes");
}

/// A run that goes on where another one, which had all the time, ended the file and died.
#[tokio::test]
async fn a_file_that_is_there_before_anybody_could_say_so_is_not_given_up() {
    for death in [Death::Before, Death::After] {
        for call in 0.. {
            let world = World::new(WorldLimits { part_bytes: 100, ..chunks_of(1) });
            let file = world.store("text/csv", partly_bad()).await;
            let job = world.create("validate", file, json!({})).await.unwrap().job_guid;
            world.splitter.split(&world.splits.take()[0], world.deadline()).await.unwrap();
            world.canceller.cancel(&World::owner(), job).await.unwrap();
            for message in world.chunks.take() {
                world.process(&message, false).await;
            }
            // More than a part is stored of the file, and as much is to come.
            let mut message = world.completions.take().remove(0);
            for _ in 0..45 {
                world.completer.complete(&message, world.clock.now() + TIMES[1]).await.unwrap();
                message = world.completions.take().remove(0);
            }
            world.completions.send(&[message]).await.unwrap();
            world.faults.plan(call, death);
            world.run_through_crashes(TIMES[0]).await;
            let (manifest, files) = results(&world, job).await;
            assert_eq!(manifest.left_out, [], "{death:?} call {call}");
            assert_eq!(files["unprocessed-rows.csv"], partly_bad(), "{death:?} call {call}");
            if world.faults.is_pending() {
                assert!(call > 20, "only {call} calls");
                break;
            }
        }
    }
}

#[tokio::test]
async fn what_cannot_be_copied_of_a_packed_upload_is_told() {
    let mut csv = format!("a,b\n{},1\n", "x".repeat(20_000));
    (1..100).for_each(|row| csv += &format!("{row},{}\n", "y".repeat(9000)));
    let whole = gzip(csv.as_bytes());
    // With time for everything it is copied, were it only once its turn has come; with none for decoding once more what was
    // cut, it is not.
    let too_long = Some("takes too long");
    for (until_its_turn, time, lines, left_out) in
        [(TIMES[0], TIMES[0], 37, None), (TIMES[1], TIMES[0], 37, None), (TIMES[1], TIMES[1], 1, too_long)]
    {
        let chunks = ChunkLimits { max_items: 1, max_bytes: 10_000, max_record_bytes: 10_000 };
        let world = World::new(WorldLimits { chunks, ..WorldLimits::default() });
        let file = world.store("application/gzip", whole.clone()).await;
        let job = world.create("validate", file, json!({ "format": "csv" })).await.unwrap().job_guid;
        // A tally is cut, whose first row is too long, then the job is cancelled.
        world.splitter.split(&world.splits.take()[0], world.clock.now() + TIMES[1]).await.unwrap();
        let chunks = world.chunks.take();
        for message in &chunks[1..] {
            world.process(message, false).await;
        }
        world.canceller.cancel(&World::owner(), job).await.unwrap();
        world.process(&chunks[0], false).await;
        if until_its_turn != TIMES[0] {
            world.splitter.split(&world.splits.take()[0], world.deadline()).await.unwrap();
            let mut message = world.completions.take().remove(0);
            loop {
                let end = world.completer.complete(&message, world.clock.now() + until_its_turn).await.unwrap();
                assert_eq!(end, CompletionEnd::Continued);
                message = world.completions.take().remove(0);
                if state(&world, job).await["step"]["undispatched"].is_object() {
                    break;
                }
            }
            world.completions.send(&[message]).await.unwrap();
        }
        world.run_through_crashes(time).await;
        assert_eq!(world.show(job).await.items_skipped, 1);
        let (manifest, files) = results(&world, job).await;
        let copied = String::from_utf8(files["unprocessed-rows.csv"].clone()).unwrap();
        assert_eq!(copied.lines().count(), lines, "the header, and the rows behind the tally");
        let messages: Vec<&str> = manifest.left_out.iter().map(|left_out| left_out.message.as_str()).collect();
        assert_eq!(messages[0], "1 rows that are too long to be read");
        assert_eq!(messages.len(), 1 + usize::from(left_out.is_some()), "{messages:?}");
        assert!(left_out.is_none_or(|left_out| messages[1].contains(left_out)), "{messages:?}");
    }
}

#[tokio::test]
async fn a_packed_upload_that_cannot_be_read_on_says_so_in_what_is_left() {
    let csv: String =
        (0..60_000).fold("a,b\n".to_owned(), |csv, row| csv + &format!("{row},{}\n", row * 7919 % 10_007));
    let mut file = gzip(csv.as_bytes());
    file.truncate(file.len() / 2);
    let world = World::new(chunks_of(50));
    let file = world.store("application/gzip", file).await;
    let job = world.create("validate", file, json!({ "format": "csv" })).await.unwrap().job_guid;
    world.canceller.cancel(&World::owner(), job).await.unwrap();
    world.run().await;
    let (manifest, files) = results(&world, job).await;
    assert!(files["unprocessed-rows.csv"].starts_with(b"a,b\n0,0\n1,7919\n"));
    assert!(manifest.left_out[0].message.contains("gzip"), "{:?}", manifest.left_out);
}

#[tokio::test]
async fn a_dataset_is_its_owners() {
    let world = World::new(chunks_of(7));
    import(&world, "people", 9).await;
    let wish = serde_json::from_value(json!({ "jobType": "export", "params": { "dataset": "people" } })).unwrap();
    let stranger = Owner("somebody else".to_owned());
    let theirs = world.creator.create(&stranger, &wish, None).await.unwrap().job_guid;
    let mine = world.creator.create(&World::owner(), &wish, None).await.unwrap().job_guid;
    world.run().await;
    assert_eq!((world.show(theirs).await.item_count, world.show(mine).await.item_count), (0, 9));
}
