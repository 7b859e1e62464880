//! Jobs over many files: counts of each file, crashes, redrives, stops, and files that cannot be read.

use acceptance::faults::at_every_call;
use acceptance::files::gzip;
use acceptance::use_cases::{INPUT_BUCKET, Limits};
use acceptance::world::World;
use create_job::create::CreateJobError;
use rowmill_api::job::Stage;
use rowmill_core::items::files::FilesAt;
use rowmill_core::model::files::{FileCounts, FileState};
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::model::keys;
use rowmill_core::model::results::ResultKind;
use rowmill_core::model::why::ReasonCode;
use serde_json::{Value, json};

use crate::chunks_of;
use crate::results::result;

/// A file, and what a job of type `validate` counts in it.
pub(crate) struct File {
    pub(crate) name: &'static str,
    content_type: &'static str,
    pub(crate) bytes: Vec<u8>,
    rows: u64,
    failed: u64,
    /// The code of its problem.
    problem: Option<&'static str>,
}

pub(crate) fn file(
    name: &'static str,
    content_type: &'static str,
    bytes: impl Into<Vec<u8>>,
    rows: u64,
    failed: u64,
) -> File {
    File { name, content_type, bytes: bytes.into(), rows, failed, problem: None }
}

pub(crate) fn broken(
    name: &'static str,
    content_type: &'static str,
    bytes: Vec<u8>,
    rows: u64,
    problem: &'static str,
) -> File {
    File { problem: Some(problem), ..file(name, content_type, bytes, rows, 1) }
}

/// Files of many kinds: formats, delimiters, packings, empty ones and damaged ones.
pub(crate) fn all_kinds() -> Vec<File> {
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let long = "a,b\n".to_owned() + &(0..40).map(|row| format!("{row},{}\n", row * 7_919)).collect::<String>();
    vec![
        file("good.csv", "text/csv", "a,b\n1,2\n3,4\n5,6\n", 3, 0),
        file("empty.csv", "text/csv", "", 0, 0),
        file("semicolon.csv", "text/csv", "x;y;z\n1;2;3\nragged;4\n5;6;7\n8;9;10\n", 4, 1),
        file("lines.jsonl", "application/x-ndjson", "{\"a\":1}\n{\"a\":\n{\"a\":3}\n", 3, 1),
        file("header.csv", "text/csv", "a,b\n", 0, 0),
        broken("cut.csv.gz", "application/gzip", cut(gzip(long.as_bytes())), 1, "unreadable_file"),
        file("packed.csv.gz", "application/gzip", gzip(long.as_bytes()), 40, 0),
        broken("quote.csv", "text/csv", b"a,b\n1,2\n3,\"4\n5,6\n".to_vec(), 2, "unterminated_quote"),
        broken("no.parquet", "application/vnd.apache.parquet", b"PAR1 not PAR1".to_vec(), 1, "unreadable_file"),
        file("long.csv", "text/csv", long, 40, 0),
        file("empty.jsonl", "application/x-ndjson", "", 0, 0),
    ]
}

async fn stored(world: &World, files: &[File]) -> Vec<FileGuid> {
    let mut guids = Vec::new();
    for File { name, content_type, bytes, .. } in files {
        let stored = world.uploads.store(&World::owner(), content_type, Some(name), bytes.clone().into()).await;
        guids.push(stored.expect("the file is stored").file_guid);
    }
    guids
}

async fn create(world: &World, files: &[File], fields: Value) -> Result<JobGuid, CreateJobError> {
    let guids = stored(world, files).await;
    let mut request = json!({ "jobType": "validate", "source": { "files": guids } });
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    world.request(request).await.map(|job| job.job_guid)
}

/// The files of a job, read in pages of this size.
async fn listed(world: &World, job: JobGuid, page: usize) -> Vec<FileCounts> {
    let job = world.job(job).await;
    let (mut files, mut at) = (Vec::new(), FilesAt::START);
    loop {
        let page = world.items.files(&job, at, page).await.unwrap();
        files.extend(page.files);
        match page.next {
            Some(next) => at = next.parse().unwrap(),
            None => return files,
        }
    }
}

/// Checks that a job of type `validate` has counted each row of each file once, and can prove it.
pub(crate) async fn check(world: &World, job: JobGuid, files: &[File]) {
    let shown = world.show(job).await;
    let (rows, failed) = (files.iter().map(|file| file.rows).sum(), files.iter().map(|file| file.failed).sum());
    assert_eq!((shown.status, shown.item_count, shown.items_failed), (Status::Completed, rows, failed));
    let listed = listed(world, job, 3).await;
    for (file, counts) in files.iter().zip(&listed) {
        let found = (counts.name.as_str(), counts.rows, counts.failed, counts.skipped, counts.pending);
        assert_eq!(found, (file.name, file.rows, file.failed, 0, 0));
        assert_eq!((counts.state, counts.succeeded), (FileState::Done, file.rows - file.failed), "{}", file.name);
        assert_eq!(counts.problem.as_ref().map(|problem| problem.code.as_str()), file.problem, "{}", file.name);
    }
    assert_eq!(listed.len(), files.len());
    let lines: Vec<FileCounts> = lines(&result(world, job, "files.jsonl").await);
    assert_eq!(lines, listed, "the result says the same");
    let named: Vec<String> =
        world.all_failed(job).await.iter().map(|item| item.file.as_ref().unwrap().name.clone()).collect();
    let expected = files.iter().flat_map(|file| (0..file.failed).map(|_| file.name.to_owned()));
    assert_eq!(named, expected.collect::<Vec<_>>());
    assert_eq!(world.audit(job).await.finding, None);
}

fn lines<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn files_of_many_kinds_are_counted_each_by_its_own_head() {
    for max_items in [1, 2, 7, 1000] {
        let world = World::new(chunks_of(max_items));
        let files = all_kinds();
        let job = create(&world, &files, json!({})).await.unwrap();
        world.run().await;
        check(&world, job, &files).await;
    }
}

#[tokio::test]
async fn a_failed_row_names_its_file_and_its_row_there() {
    let world = World::new(chunks_of(2));
    let job = create(&world, &all_kinds(), json!({})).await.unwrap();
    world.run().await;
    let failed = world.all_failed(job).await;
    let semicolon = &failed[0];
    let place = semicolon.file.as_ref().unwrap();
    assert_eq!((semicolon.row, place.row, semicolon.offset, semicolon.raw.as_deref()), (5, 2, 12, Some("ragged;4")));
    let quote = failed.iter().find(|item| item.code == "unterminated_quote").unwrap();
    assert_eq!(quote.file.as_ref().map(|place| place.row), Some(2));
    assert!(quote.message.contains("row 2 (byte 10)"), "{}", quote.message);
    let rows = result(&world, job, "failed-rows.jsonl").await;
    let first: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!((&first["file"]["name"], &first["raw"]), (&json!("semicolon.csv"), &json!("ragged;4")));
}

#[tokio::test]
async fn each_row_counts_once_whatever_call_fails() {
    let deaths = at_every_call(async |call, death| {
        let world = World::new(chunks_of(3));
        let files = all_kinds();
        let job = create(&world, &files, json!({})).await.unwrap();
        world.faults.plan(call, death);
        // A split hands over after each tally.
        world.run_through_crashes(world.limits.split.margin).await;
        check(&world, job, &files).await;
        !world.faults.is_pending()
    })
    .await;
    assert!(deaths > 100, "{deaths} calls failed");
}

/// Many files of one row: many tallies, and a split that is handed over within them.
#[tokio::test]
async fn many_small_files_are_split_over_many_invocations() {
    let names: Vec<String> = (0..300).map(|number| format!("{number}.csv")).collect();
    let world = World::new(chunks_of(10));
    let mut guids = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let text = if number % 3 == 0 { "a\n1\n" } else { "a\n1\n2\n" };
        let stored = world.uploads.store(&World::owner(), "text/csv", Some(name), text.into()).await;
        guids.push(stored.unwrap().file_guid);
    }
    let request = json!({ "jobType": "validate", "source": { "files": guids } });
    let job = world.request(request).await.unwrap().job_guid;
    assert!(matches!(world.split_within(world.limits.split.margin).await, split_job::plan::SplitEnd::Continued));
    let some = listed(&world, job, 1000).await;
    assert_eq!([&some[0], &some[299]].map(|file| file.state), [FileState::Running, FileState::Waiting]);
    assert_eq!((some[0].rows, some[0].pending), (1, 1));
    world.run().await;
    let all = listed(&world, job, 7).await;
    let rows = |number| if number % 3 == 0 { 1 } else { 2 };
    for (number, file) in (0..).zip(&all) {
        assert_eq!((file.name.as_str(), file.number, file.succeeded), (&*names[number], number as u64, rows(number)));
    }
    assert_eq!(all.len(), 300);
    assert!(world.audit(job).await.finding.is_none());
}

#[tokio::test]
async fn rows_of_different_files_are_corrected_and_redriven() {
    let world = World::new(chunks_of(2));
    let files = [
        file("a.csv", "text/csv", "a,b\n1,2\n3\n5,6\n7\n", 4, 2),
        file("b.csv", "text/csv", "x;y\n1;2\nragged\n", 2, 1),
        broken("c.csv", "text/csv", b"\"".to_vec(), 1, "unreadable_file"),
        file("d.jsonl", "application/x-ndjson", "{\n{}\n", 2, 1),
    ];
    let job = create(&world, &files, json!({})).await.unwrap();
    world.run().await;
    check(&world, job, &files).await;
    // Once without corrections: the same rows fail.
    world.redrive(job, None).await.unwrap();
    world.run().await;
    check(&world, job, &files).await;
    let corrected = r#"{"row":2,"raw":"3,4"}
{"row":4,"raw":"7,8"}
{"row":6,"raw":"3;4"}
{"row":7,"record":{"none":"a file that could not be read has no rows to correct"}}
{"row":8,"record":{"d":1}}
"#;
    let corrected = world.store("application/x-ndjson", corrected).await;
    world.redrive(job, Some(corrected)).await.unwrap();
    world.run().await;
    let counts: Vec<_> = listed(&world, job, 2).await.iter().map(|file| (file.succeeded, file.failed)).collect();
    assert_eq!(counts, [(4, 0), (2, 0), (0, 1), (2, 0)]);
    assert_eq!(lines::<FileCounts>(&result(&world, job, "files.jsonl").await), listed(&world, job, 9).await);
    assert!(world.audit(job).await.finding.is_none());
}

#[tokio::test]
async fn the_rows_that_a_stopped_job_leaves_are_records_of_one_form() {
    let world = World::new(chunks_of(2));
    let files = [
        file("a.csv", "text/csv", "a,b\n1,2\n3,4\n5,6\n", 3, 0),
        file("b.jsonl", "application/x-ndjson", "{\"n\": 1.10}\nbad\n", 2, 1),
        file("c.csv", "text/csv", "x\n9\n", 1, 0),
    ];
    let job = create(&world, &files, json!({})).await.unwrap();
    world.split().await;
    let rest = world.process_first(1).await;
    world.cancel(job).await;
    world.process_all(&rest).await;
    world.run().await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_skipped), (Status::Cancelled, 2, 4));
    let rows = result(&world, job, "unprocessed-rows.jsonl").await;
    assert_eq!(rows, "{\"a\":\"5\",\"b\":\"6\"}\n{\"n\": 1.10}\n{\"x\":\"9\"}\n");
    let left_out = world.manifest(&world.job(job).await).await.left_out;
    assert!(left_out.iter().any(|left_out| left_out.message == "1 rows that cannot be read"), "{left_out:?}");
    let counts: Vec<_> = listed(&world, job, 9).await.iter().map(|file| (file.succeeded, file.skipped)).collect();
    assert_eq!(counts, [(2, 1), (0, 2), (0, 1)]);
    let page = world.items.skipped(&world.job(job).await, 0, 9).await.unwrap();
    let places: Vec<_> =
        page.items.iter().map(|item| item.file.as_ref().map(|file| (file.name.clone(), file.row))).collect();
    let place = |name: &str, row| Some((name.to_owned(), row));
    assert_eq!(places, [place("a.csv", 3), place("b.jsonl", 1), place("b.jsonl", 2), place("c.csv", 1)]);
    assert!(world.audit(job).await.finding.is_none());
}

#[tokio::test]
async fn the_rows_of_all_files_have_one_output() {
    let world = World::new(chunks_of(2));
    let files = [
        file("a.csv", "text/csv", "a,b\n1,2\n3,4\n", 2, 0),
        file("b.jsonl", "application/x-ndjson", "{\"a\":5,\"c\":[1]}\n", 1, 0),
        file("c.csv", "text/csv", "b,a\n6,7\n", 1, 0),
    ];
    let job = create(&world, &files, json!({ "jobType": "transform" })).await.unwrap();
    world.run().await;
    let expected =
        "{\"a\":\"1\",\"b\":\"2\"}\n{\"a\":\"3\",\"b\":\"4\"}\n{\"a\":5,\"c\":[1]}\n{\"a\":\"7\",\"b\":\"6\"}\n";
    assert_eq!(result(&world, job, "transformed.jsonl").await, expected);
    let params = json!({ "outputFormat": "csv", "columns": ["b", "a"] });
    let job = create(&world, &files, json!({ "jobType": "transform", "params": params })).await.unwrap();
    world.run().await;
    assert_eq!(result(&world, job, "transformed.csv").await, "b,a\n2,1\n4,3\n,5\n6,7\n");
}

#[tokio::test]
async fn rows_of_a_file_whose_columns_do_not_fit_fail_and_the_others_go_on() {
    let world = World::new(chunks_of(2));
    let files = [
        file("a.csv", "text/csv", "id,b\n1,2\n3,4\n", 2, 0),
        file("b.csv", "text/csv", "other\n1\n2\n3\n", 3, 3),
        file("c.csv", "text/csv", "b,id\n1,5\n", 1, 0),
    ];
    let params = json!({ "dataset": "d", "key": "id" });
    let job = create(&world, &files, json!({ "jobType": "import", "params": params })).await.unwrap();
    world.run().await;
    check(&world, job, &files).await;
    assert!(world.all_failed(job).await.iter().all(|item| item.code == "file_does_not_fit"));
}

#[tokio::test]
async fn a_file_that_is_replaced_or_removed_fails_alone_or_stops_the_job() {
    let replace = async |world: &World, file: FileGuid| {
        world.objects.store(&keys::upload(file), "text/csv", Default::default(), "other\n1\n".into());
    };
    for (stops, split_first) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = World::new(chunks_of(2));
        let files = [
            file("a.csv", "text/csv", "a\n1\n2\n3\n", 3, 0),
            file("b.csv", "text/csv", "a\n1\n2\n3\n", 3, 3),
            file("c.csv", "text/csv", "a\n1\n", 1, 0),
        ];
        let guids = stored(&world, &files).await;
        let params = if stops { json!({ "unreadableFiles": "stop" }) } else { json!({}) };
        let request = json!({ "jobType": "validate", "source": { "files": guids }, "params": params });
        let job = world.request(request).await.unwrap().job_guid;
        if split_first {
            world.split().await;
        }
        replace(&world, guids[1]).await;
        world.run_with_dead_letters().await;
        let shown = world.show(job).await;
        if stops {
            let code = if split_first { StopCode::SourceChanged } else { StopCode::UnreadableFile };
            assert_eq!(shown.error.map(|error| error.code.as_str().to_owned()), Some(code.as_str().to_owned()));
        } else {
            assert_eq!(
                (shown.outcome, shown.items_failed),
                (Some(JobOutcome::Partial), if split_first { 3 } else { 1 })
            );
            let failed = world.all_failed(job).await;
            assert!(
                failed.iter().all(|item| item.code == "source_changed" && item.file.as_ref().unwrap().name == "b.csv")
            );
        }
        assert!(world.audit(job).await.finding.is_none());
    }
}

#[tokio::test]
async fn requests_for_many_files_that_cannot_be_are_refused() {
    let world = World::new(chunks_of(2));
    let [one, other] = [world.store_csv("a\n1\n").await, world.store_csv("a\n1\n").await];
    let refused = async |fields: Value| {
        let mut request = json!({ "jobType": "validate" });
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        world.request(request).await.unwrap_err().to_string()
    };
    let job = world.validate_csv("a\n1\n").await;
    for (source, expected) in [
        (json!({}), "`source` must have either"),
        (json!({ "s3": { "bucket": "other" } }), "`source.s3.bucket` is not a bucket that this stack may read"),
        (json!({ "s3": { "bucket": INPUT_BUCKET }, "files": [one] }), "`source` must have either"),
        (json!({ "files": [] }), "`source.files` must have 1 to 1000 uploads"),
        (json!({ "files": [one, other, one] }), "`source.files` names an upload twice"),
        (json!({ "files": [one], "jobGuid": job }), "`source` must have either"),
        (json!({ "jobGuid": job }), "`source` must have either"),
        (json!({ "files": [one, "00000000-0000-4000-8000-000000000009"] }), "There is no upload"),
    ] {
        let said = refused(json!({ "source": source })).await;
        assert!(said.starts_with(expected), "{source}: {said}");
    }
    let said = refused(json!({ "source": { "files": [one] }, "fileGuid": other })).await;
    assert!(said.starts_with("`fileGuid` must be left out"), "{said}");
    let said = refused(json!({ "source": { "files": [one] }, "params": { "unreadableFiles": "ignore" } })).await;
    assert!(said.starts_with("`params.unreadableFiles` must be `fail` or `stop`"), "{said}");
    let said = refused(json!({ "items": [{}], "params": { "unreadableFiles": "stop" } })).await;
    assert!(said.starts_with("`params.unreadableFiles` is not a param"), "{said}");
    let said = refused(json!({ "source": { "s3": { "bucket": INPUT_BUCKET } }, "dedupe": "file" })).await;
    assert!(said.starts_with("`dedupe` finds jobs by their files"), "{said}");
}

#[tokio::test]
async fn a_job_may_read_the_files_result_of_another() {
    let world = World::new(Limits::default());
    let job = create(&world, &all_kinds(), json!({})).await.unwrap();
    world.run().await;
    let source = json!({ "jobGuid": job, "file": ResultKind::Files });
    let next = world.request(json!({ "jobType": "validate", "source": source })).await.unwrap().job_guid;
    world.run().await;
    assert_eq!(world.show(next).await.items_succeeded, all_kinds().len() as u64);
}

#[tokio::test]
async fn one_upload_in_the_list_is_a_job_over_many_files_too() {
    let world = World::new(Limits::default());
    let files = [file("a.csv", "text/csv", "a\n1\nx,y\n", 2, 1)];
    let job = create(&world, &files, json!({})).await.unwrap();
    world.run().await;
    check(&world, job, &files).await;
}

/// Puts these files into the external bucket, below `in/`.
fn lay_down(world: &World, files: &[File]) {
    for File { name, content_type, bytes, .. } in files {
        let key = keys::in_bucket(INPUT_BUCKET, &format!("in/{name}"));
        world.objects.store(&key, content_type, Default::default(), bytes.clone().into());
    }
}

async fn over_objects(world: &World, fields: Value) -> JobGuid {
    let mut source = json!({ "bucket": INPUT_BUCKET, "prefix": "in/" });
    source.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let request = json!({ "jobType": "validate", "source": { "s3": source } });
    world.request(request).await.unwrap().job_guid
}

/// The files in the order of their keys, by which they are named.
fn by_key(mut files: Vec<File>) -> Vec<File> {
    files.sort_by_key(|file| file.name);
    for file in &mut files {
        file.name = format!("in/{}", file.name).leak();
    }
    files
}

#[tokio::test]
async fn objects_of_a_bucket_are_listed_and_read_where_they_lie() {
    let world = World::new(chunks_of(2));
    lay_down(&world, &all_kinds());
    for other in ["out/x.csv", "in/folder/"] {
        world.objects.store(&keys::in_bucket(INPUT_BUCKET, other), "text/csv", Default::default(), "".into());
    }
    let job = over_objects(&world, json!({})).await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.stage), (Status::Waiting, Stage::Listing.into()));
    assert_eq!(world.why(job).await[0].code, ReasonCode::FilesListing);
    world.run().await;
    check(&world, job, &by_key(all_kinds())).await;
    let job = over_objects(&world, json!({ "suffix": ".gz" })).await;
    world.run().await;
    let packed = all_kinds().into_iter().filter(|file| file.name.ends_with(".gz")).collect();
    check(&world, job, &by_key(packed)).await;
}

#[tokio::test]
async fn objects_are_listed_once_whatever_call_fails() {
    let deaths = at_every_call(async |call, death| {
        let world = World::new(chunks_of(5));
        lay_down(&world, &all_kinds());
        let job = over_objects(&world, json!({})).await;
        world.faults.plan(call, death);
        world.run_through_crashes_and_sweeps(world.limits.split.margin).await;
        check(&world, job, &by_key(all_kinds())).await;
        !world.faults.is_pending()
    })
    .await;
    assert!(deaths > 100, "{deaths} calls failed");
}

#[tokio::test]
async fn a_job_over_no_objects_fails_and_says_why() {
    let world = World::new(chunks_of(2));
    lay_down(&world, &[file("a.csv", "text/csv", "a\n1\n", 1, 0)]);
    let job = over_objects(&world, json!({ "suffix": ".parquet" })).await;
    world.run().await;
    let shown = world.show(job).await;
    let error = shown.error.unwrap();
    assert_eq!((shown.status, error.code), (Status::Failed, StopCode::SourceFailed.into()));
    assert!(error.message.starts_with("`source.s3.prefix` names no object"), "{}", error.message);
}

#[tokio::test]
async fn a_redrive_of_objects_needs_them_no_more() {
    let world = World::new(chunks_of(2));
    let files = vec![file("a.csv", "text/csv", "a,b\n1,2\n3\n", 2, 1), file("b.csv", "text/csv", "a\n1\n", 1, 0)];
    lay_down(&world, &files);
    let job = over_objects(&world, json!({})).await;
    world.run().await;
    check(&world, job, &by_key(files)).await;
    world.objects.delete(&keys::in_bucket(INPUT_BUCKET, "in/a.csv"));
    let corrected = world.store("application/x-ndjson", r#"{"row":2,"raw":"3,4"}"#).await;
    world.redrive(job, Some(corrected)).await.unwrap();
    world.run().await;
    assert_eq!(world.show(job).await.outcome, Some(JobOutcome::Succeeded));
    assert!(world.audit(job).await.finding.is_none());
}

/// Of tallies that lie within one file, the chunk indexes are not read.
#[tokio::test]
async fn a_file_of_many_tallies_is_counted_at_any_time() {
    let world = World::new(chunks_of(1));
    let rows = |row: u64| if row.is_multiple_of(9) { "ragged\n".to_owned() } else { format!("{row},x\n") };
    let long = "a,b\n".to_owned() + &(1..=400).map(rows).collect::<String>();
    let files = [
        file("a.csv", "text/csv", "a,b\n1,2\n3,4\n", 2, 0),
        file("long.csv", "text/csv", long, 400, 44),
        file("b.csv", "text/csv", "a,b\n1,2\n", 1, 0),
    ];
    let job = create(&world, &files, json!({})).await.unwrap();
    for _ in 0..3 {
        world.split_within(world.limits.split.margin).await;
    }
    let rest = world.process_first(100).await;
    let counts = &listed(&world, job, 9).await;
    let [first, long, last] = &counts[..] else { panic!("{counts:?}") };
    assert_eq!((first.succeeded, first.state), (2, FileState::Done));
    assert_eq!((long.rows, long.succeeded + long.failed, long.state), (190, 98, FileState::Running));
    assert_eq!((long.failed, long.pending, last.state), (98 / 9, 92, FileState::Waiting));
    world.process_all(&rest).await;
    world.run().await;
    check(&world, job, &files).await;
}

#[tokio::test]
async fn a_bad_file_stops_the_job_that_asks_for_it_whatever_call_fails() {
    let deaths = at_every_call(async |call, death| {
        let world = World::new(chunks_of(1));
        let long = "a\n".to_owned() + &"1\n".repeat(70);
        let files = [
            file("a.csv", "text/csv", long.clone(), 70, 0),
            broken("bad.csv", "text/csv", b"a\n1\n\"2\n".to_vec(), 1, "unterminated_quote"),
            file("b.csv", "text/csv", long, 70, 0),
        ];
        let job = create(&world, &files, json!({ "params": { "unreadableFiles": "stop" } })).await.unwrap();
        world.faults.plan(call, death);
        // A split hands over after each tally, also after the one that ends before the stop.
        world.run_through_crashes_and_sweeps(world.limits.split.margin).await;
        let shown = world.show(job).await;
        let code = shown.error.as_ref().map(|error| error.code.as_str().to_owned());
        assert_eq!((shown.status, code.as_deref()), (Status::Failed, Some("unreadable_file")), "{shown:?}");
        assert_eq!(shown.item_count, 71, "the rows before the bad one");
        let states: Vec<_> = listed(&world, job, 9).await.iter().map(|file| file.state).collect();
        assert_eq!(states, [FileState::Done, FileState::CutShort, FileState::Skipped]);
        !world.faults.is_pending()
    })
    .await;
    assert!(deaths > 50, "{deaths} calls failed");
}

/// A redrive lives longer than the objects of the attempt before. Its rows are read by layouts that it stores again.
#[tokio::test]
async fn a_redrive_without_the_layouts_of_its_rows_says_that_they_expired() {
    let world = World::new(chunks_of(2));
    let files = [file("a.csv", "text/csv", "a,b\n1,2\n3\n", 2, 1)];
    let job = create(&world, &files, json!({})).await.unwrap();
    world.run().await;
    world.redrive(job, None).await.unwrap();
    world.run().await;
    check(&world, job, &files).await;
    world.objects.expire(&format!("results/{job}/layouts/"));
    world.redrive(job, None).await.unwrap();
    world.run_with_dead_letters().await;
    let error = world.show(job).await.error.unwrap();
    assert_eq!(error.code, StopCode::SourceChanged, "{}", error.message);
}

/// Between two pages, files before the second one get more rows.
#[tokio::test]
async fn a_page_counts_no_rows_of_files_before_it() {
    let world = World::new(chunks_of(1));
    let long = "a\n".to_owned() + &"1\n".repeat(100);
    let files = [
        file("a.csv", "text/csv", long, 100, 0),
        file("b.csv", "text/csv", "a\n1\n", 1, 0),
        file("c.csv", "text/csv", "a\n1\n2\n", 2, 0),
    ];
    let job = create(&world, &files, json!({})).await.unwrap();
    world.split_within(world.limits.split.margin).await;
    let page = world.items.files(&world.job(job).await, FilesAt::START, 2).await.unwrap();
    assert_eq!(page.files.iter().map(|file| file.rows).collect::<Vec<_>>(), [64, 0]);
    world.run().await;
    let next = page.next.unwrap().parse().unwrap();
    let page = world.items.files(&world.job(job).await, next, 2).await.unwrap();
    assert_eq!(page.files.iter().map(|file| (file.rows, file.succeeded)).collect::<Vec<_>>(), [(2, 2)]);
}
