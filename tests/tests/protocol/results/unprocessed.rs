//! The unprocessed-rows files: the part of an upload that a stopped job did not process.

use std::time::Duration;

use acceptance::faults::Death;
use acceptance::files::{self, gzip};
use acceptance::use_cases::Limits;
use acceptance::world::World;
use complete_job::complete::CompletionEnd;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::keys;
use rowmill_core::ports::Queue;
use rowmill_core::text::ChunkLimits;
use serde_json::json;

use super::{TIMES, composition_state, partly_bad, result, results};
use crate::chunks_of;

#[tokio::test]
async fn the_unprocessed_rows_of_a_stopped_job_are_a_file_for_another_job() {
    for (content_type, file) in [("text/csv", partly_bad()), ("application/gzip", gzip(&partly_bad()))] {
        let world = World::new(chunks_of(3));
        let file = world.store(content_type, file).await;
        let job = world.create("import", file, json!({ "format": "csv", "dataset": "d", "key": "id" })).await.unwrap();
        // Some of the 24 chunks are done, one is stopped midway, and the others are skipped.
        world.split().await;
        let chunks = world.process_first(10).await;
        world.cancel(job.job_guid).await;
        world.process_all(&chunks[10..]).await;
        world.run_through_crashes(TIMES[1]).await;
        let shown = world.show(job.job_guid).await;
        assert_eq!((shown.status, shown.items_failed, shown.items_skipped), (Status::Cancelled, 1, 41));
        let rest = result(&world, job.job_guid, "unprocessed-rows.csv").await;
        let expected = String::from_utf8(partly_bad()).unwrap();
        let (header, from) = ("id,name\n", expected.find("31,").unwrap());
        assert_eq!(rest, format!("{header}{}", &expected[from..]));

        let rest = world.store_csv(rest).await;
        let second = world.create("import", rest, json!({ "dataset": "d", "key": "id" })).await.unwrap();
        assert_eq!(world.run_and_show(second.job_guid).await.item_count, 41);
        assert_eq!(world.records.dataset("local/d").len(), 68, "every good row, by one job or the other");
    }
}

#[tokio::test]
async fn skipped_chunks_that_follow_each_other_are_read_together() {
    let world = World::new(chunks_of(1));
    let text = files::plain_csv(320);
    let job = world.validate_csv(text.clone()).await;
    world.split().await;
    world.cancel(job).await;
    world.process_queued().await;
    world.faults.plan(u64::MAX, Death::Before);
    world.run().await;
    assert!(world.faults.calls() < 100, "{} calls for 320 chunks", world.faults.calls());
    assert_eq!(result(&world, job, "unprocessed-rows.csv").await.as_bytes(), text);
}

#[tokio::test]
async fn undispatched_rows_are_copied_up_to_the_limit_and_while_the_upload_exists() {
    for (limit, is_gone) in [(1 << 20, false), (40, false), (1 << 20, true)] {
        let world = World::new(chunks_of(1).but(|limits| limits.complete.unprocessed_max_bytes = limit));
        let file = world.store_csv(files::plain_csv(100)).await;
        let job = world.create("validate", file, json!({})).await.unwrap().job_guid;
        // The job is cancelled after one tally is dispatched.
        world.split_within(TIMES[1]).await;
        world.process_queued().await;
        world.cancel(job).await;
        if is_gone {
            world.objects.delete(&keys::upload(file));
        }
        world.run_through_crashes(TIMES[1]).await;
        assert_eq!(world.show(job).await.items_succeeded, 64);
        let (manifest, files) = results(&world, job).await;
        let copied = files.get("unprocessed-rows.csv").map(|file| String::from_utf8_lossy(file).into_owned());
        let left_out = super::left_out(&manifest);
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
async fn rows_of_a_packed_upload_that_cannot_be_copied_are_reported() {
    let mut csv = format!("a,b\n{},1\n", "x".repeat(20_000));
    (1..100).for_each(|row| csv += &format!("{row},{}\n", "y".repeat(9000)));
    let whole = gzip(csv.as_bytes());
    // The rows are copied if there is enough time, even if only at the step that copies them. They are left out if
    // there is no time to decode the split part once more.
    let too_long = Some("takes too long");
    for (until_its_turn, time, lines, left_out) in
        [(TIMES[0], TIMES[0], 37, None), (TIMES[1], TIMES[0], 37, None), (TIMES[1], TIMES[1], 1, too_long)]
    {
        let chunks = ChunkLimits { max_items: 1, max_bytes: 10_000, max_record_bytes: 10_000 };
        let world = World::new(Limits::default().but(|limits| limits.create.chunks = chunks));
        let file = world.store("application/gzip", whole.clone()).await;
        let job = world.create("validate", file, json!({ "format": "csv" })).await.unwrap().job_guid;
        // The job is cancelled after one tally is split. Its first row is too long.
        world.split_within(TIMES[1]).await;
        let chunks = world.chunks.take();
        world.process_all(&chunks[1..]).await;
        world.cancel(job).await;
        world.process(&chunks[0], false).await;
        if until_its_turn != TIMES[0] {
            world.split().await;
            let mut message = world.take_completion();
            loop {
                let end = world.completer.complete(&message, world.deadline_in(until_its_turn)).await.unwrap();
                assert_eq!(end, CompletionEnd::Continued);
                message = world.take_completion();
                if composition_state(&world, job).await["step"]["undispatched"].is_object() {
                    break;
                }
            }
            world.completions.send(&[message]).await.unwrap();
        }
        world.run_through_crashes(time).await;
        assert_eq!(world.show(job).await.items_skipped, 1);
        let (manifest, files) = results(&world, job).await;
        let copied = String::from_utf8(files["unprocessed-rows.csv"].clone()).unwrap();
        assert_eq!(copied.lines().count(), lines, "the header, and the rows after the tally");
        let messages = super::left_out(&manifest);
        assert_eq!(messages[0], "1 rows that are too long to be read");
        assert_eq!(messages.len(), 1 + usize::from(left_out.is_some()), "{messages:?}");
        assert!(left_out.is_none_or(|left_out| messages[1].contains(left_out)), "{messages:?}");
    }
}

#[tokio::test]
async fn a_packed_upload_that_is_truncated_is_reported_in_the_results() {
    let csv: String =
        (0..60_000).fold("a,b\n".to_owned(), |csv, row| csv + &format!("{row},{}\n", row * 7919 % 10_007));
    let mut file = gzip(csv.as_bytes());
    file.truncate(file.len() / 2);
    let world = World::new(chunks_of(50));
    let file = world.store("application/gzip", file).await;
    let job = world.create("validate", file, json!({ "format": "csv" })).await.unwrap().job_guid;
    world.take_up(job, Duration::ZERO).await;
    world.cancel(job).await;
    world.run().await;
    let (manifest, files) = results(&world, job).await;
    assert!(files["unprocessed-rows.csv"].starts_with(b"a,b\n0,0\n1,7919\n"));
    assert!(manifest.left_out[0].message.contains("gzip"), "{:?}", manifest.left_out);
}
