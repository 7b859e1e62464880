//! Jobs over the files in a zip archive.

use acceptance::faults::at_every_call;
use acceptance::files::gzip;
use acceptance::world::World;
use create_job::create::CreateJobError;
use rowmill_api::job::Stage;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::{JobOutcome, Status};
use serde_json::{Value, json};

use crate::chunks_of;
use crate::many_files::{File, all_kinds, broken, check, file};

#[path = "../../../functions/shared/formats/tests/support/zip.rs"]
#[allow(dead_code)]
mod zip;

use zip::{Part, archive};

/// Files that an archive may hold, and others.
fn members() -> Vec<File> {
    let plain = all_kinds().into_iter().filter(|file| !file.name.ends_with(".gz") && !file.name.ends_with(".parquet"));
    let latin = b"name\nK\xf6ln\n".to_vec();
    plain
        .chain([
            file("folder/array.json", "", "[{\"a\":1},\n {\"a\":},\n {\"a\":3}]", 3, 1),
            broken("folder/cut.json", "", b"[{\"a\":1},".to_vec(), 1, "unreadable_file"),
            file("latin.csv", "", latin, 1, 1),
            broken("packed.csv.gz", "", gzip(b"a\n1\n"), 1, "unreadable_file"),
            broken("no.parquet", "", b"PAR1\x15\x04".to_vec(), 1, "unreadable_file"),
        ])
        .collect()
}

/// An archive of these files, in turn deflated and stored, between what is no file of the user's.
fn packed(files: &[File]) -> Vec<u8> {
    let mut parts = vec![Part::stored("folder/", b""), Part::stored("__MACOSX/._good.csv", b"x")];
    parts.extend(files.iter().enumerate().map(|(number, File { name, bytes, .. })| match number % 2 {
        0 => Part::deflated(name, bytes),
        _ => Part::stored(name, bytes),
    }));
    archive(&parts)
}

async fn over(world: &World, archive: Vec<u8>) -> Result<JobGuid, CreateJobError> {
    over_with(world, archive, json!({})).await
}

async fn over_with(world: &World, archive: Vec<u8>, params: Value) -> Result<JobGuid, CreateJobError> {
    let stored = world.uploads.store(&World::owner(), "application/zip", Some("all.zip"), archive.into()).await;
    let file = stored.expect("the file is stored").file_guid;
    world.create("validate", file, params).await.map(|job| job.job_guid)
}

#[tokio::test]
async fn the_files_in_an_archive_are_the_files_of_the_job() {
    for max_items in [1, 3, 1000] {
        let world = World::new(chunks_of(max_items));
        let job = over(&world, packed(&members())).await.unwrap();
        let shown = world.show(job).await;
        assert_eq!((shown.status, shown.stage), (Status::Waiting, Stage::Listing.into()));
        world.run().await;
        check(&world, job, &members()).await;
    }
}

#[tokio::test]
async fn each_row_of_an_archive_counts_once_whatever_call_fails() {
    let deaths = at_every_call(async |call, death| {
        let world = World::new(chunks_of(4));
        let job = over(&world, packed(&members())).await.unwrap();
        world.faults.plan(call, death);
        world.run_through_crashes_and_sweeps(world.limits.split.margin).await;
        check(&world, job, &members()).await;
        !world.faults.is_pending()
    })
    .await;
    assert!(deaths > 100, "{deaths} calls failed");
}

#[tokio::test]
async fn failed_rows_of_an_archive_are_redriven_without_it() {
    let world = World::new(chunks_of(2));
    let job = over(&world, packed(&[file("a.csv", "", "a,b\n1,2\n3\n", 2, 1)])).await.unwrap();
    world.run().await;
    let corrected = world.store("application/x-ndjson", r#"{"row":2,"raw":"3,4"}"#).await;
    world.redrive(job, Some(corrected)).await.unwrap();
    world.run().await;
    assert_eq!(world.show(job).await.outcome, Some(JobOutcome::Succeeded));
    assert_eq!(world.audit(job).await.finding, None);
}

#[tokio::test]
async fn a_damaged_file_in_an_archive_fails_alone() {
    let world = World::new(chunks_of(1000));
    let rows = "a,b\n".to_owned() + &"1,2\n".repeat(100_000);
    // Those of the whole chunks in its first block of text.
    let good_rows = 65_500;
    let (mut wrong, mut short) = (Part::deflated("wrong.csv", rows.as_bytes()), Part::deflated("short.csv", b"a\n1\n"));
    wrong.crc32 ^= 1;
    short.compressed.truncate(3);
    let secret = Part { method: 99, ..Part::stored("secret.csv", b"a\n1\n") };
    let long = Part { size: 3, ..Part::deflated("long.csv", b"a\n1\n") };
    let good = Part::deflated("good.csv", b"a\n1\n");
    let job = over(&world, archive(&[wrong, short, secret, long, good])).await.unwrap();
    world.run().await;
    let files = [
        broken("wrong.csv", "", Vec::new(), good_rows + 1, "unreadable_file"),
        broken("short.csv", "", Vec::new(), 1, "unreadable_file"),
        broken("secret.csv", "", Vec::new(), 1, "unreadable_file"),
        broken("long.csv", "", Vec::new(), 1, "unreadable_file"),
        file("good.csv", "", "", 1, 0),
    ];
    check(&world, job, &files).await;
    let messages: Vec<String> = world.all_failed(job).await.into_iter().map(|item| item.message).collect();
    let parts = ["checksum is wrong", "data is missing", "other than deflate", "length or checksum is wrong"];
    for (message, part) in messages.iter().zip(parts) {
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn an_archive_that_is_hostile_or_empty_fails_its_job_and_says_why() {
    let folder = archive(&[Part::stored("folder/", b"")]);
    // Both entries of the directory point at the same data.
    let two = archive(&[Part::stored("a.csv", b"a\n1\n"), Part::stored("b.csv", b"a\n1\n")]);
    let second = 30 + 5 + 4;
    let mut shared = two.clone();
    let at = shared.windows(4).rposition(|bytes| bytes == [second, 0, 0, 0]).unwrap();
    shared[at] = 0;
    // The last file is longer than the archive, by its directory.
    let mut beyond = two.clone();
    let last = beyond.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
    beyond[last + 20..last + 24].copy_from_slice(&0x7FFF_FFFF_u32.to_le_bytes());
    // Its directory is damaged behind the first file.
    let mut short = two.clone();
    short[last] = b'Q';
    let bomb: Vec<Part> =
        (0..10).map(|number| Part::deflated(&format!("{number}.csv"), &vec![b'a'; 8 << 20])).collect();
    let many: Vec<Part> = (0..10_001).map(|number| Part::stored(&format!("{number}.csv"), b"")).collect();
    let long = archive(&[Part::stored(&"x".repeat(1025), b"")]);
    for (bytes, problem) in [
        (folder, "has no file in it"),
        (shared, "two of its files share bytes"),
        (beyond, "a file in it goes beyond its end"),
        (short, "does not list all of its files"),
        (archive(&bomb), "more than 250 times its size"),
        (archive(&many), "more than the maximum of 10000 files"),
        (long, "longer than 1024 bytes"),
        (two[..two.len() - 22].to_vec(), "the end of its directory is missing"),
    ] {
        let world = World::new(chunks_of(2));
        let job = over(&world, bytes).await.unwrap();
        world.run().await;
        let shown = world.show(job).await;
        let error = shown.error.unwrap();
        assert_eq!((shown.status, error.code), (Status::Failed, StopCode::SourceFailed.into()));
        assert!(error.message.contains(problem), "{}", error.message);
    }
}

#[tokio::test]
async fn a_damaged_file_in_an_archive_stops_the_job_that_asks_for_it() {
    let world = World::new(chunks_of(2));
    let job = over_with(&world, packed(&members()), json!({ "unreadableFiles": "stop" })).await.unwrap();
    world.run().await;
    let error = world.show(job).await.error.unwrap();
    assert_eq!(error.code, StopCode::UnreadableFile);
    assert!(error.message.starts_with("quote.csv: "), "{}", error.message);
    assert_eq!(world.audit(job).await.finding, None);
}

#[tokio::test]
async fn an_archive_among_other_files_fails_alone() {
    let world = World::new(chunks_of(2));
    let bytes = packed(&members());
    let stored = world.uploads.store(&World::owner(), "application/zip", Some("all.zip"), bytes.into()).await.unwrap();
    let request = json!({ "jobType": "validate", "source": { "files": [stored.file_guid] } });
    let job = world.request(request).await.unwrap().job_guid;
    world.run().await;
    check(&world, job, &[broken("all.zip", "", Vec::new(), 1, "unreadable_file")]).await;
    assert!(world.all_failed(job).await[0].message.contains("is a zip archive"));
}
