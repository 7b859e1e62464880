//! The failed-rows files, their correction in a redrive, and outputs that expired before the redrive.

use acceptance::world::World;
use rowmill_core::model::job::states::JobOutcome;
use serde_json::json;

use super::{TIMES, left_out, partly_bad, result, results, transform};
use crate::chunks_of;

#[tokio::test]
async fn failed_rows_are_listed_as_far_as_they_can_be_read() {
    let world = World::new(chunks_of(2));
    let long = "x".repeat(400);
    let mut csv = format!("row,=v\n=1+1\n2,b,c,d\n+3\n5,{long}\n\"6\"\"\n\",'=x,\n").into_bytes();
    csv.extend_from_slice(b"\xff,7\n8\n");
    let job = world.validate_csv(csv).await;
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
async fn a_failed_rows_file_can_be_uploaded_unchanged_as_a_correction() {
    let world = World::new(chunks_of(2));
    let file = world.store_csv("a,b\n=1\n2,3,4\n5,6\n").await;
    let job = world.create("transform", file, json!({ "mapping": [{ "drop": "b" }] })).await.unwrap().job_guid;
    world.run().await;
    let failed = result(&world, job, "failed-rows.csv").await;
    world.correct(job, failed).await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.outcome, shown.items_succeeded), (Some(JobOutcome::Succeeded), 3));
    // In the order of the input, although the first rows were processed in the second attempt.
    assert_eq!(result(&world, job, "transformed.csv").await, "a\n=1\n2\n5\n");
}

#[tokio::test]
async fn expired_outputs_are_reported_once_over_many_invocations() {
    for (expired, kept) in [("run-outputs/", 0), ("run-outputs/00000001/", 64)] {
        let world = World::new(chunks_of(1));
        let job = transform(&world, "text/csv", partly_bad()).await;
        world.run().await;
        let failed = result(&world, job, "failed-rows.csv").await;
        world.correct(job, failed).await;
        world.split().await;
        world.process_queued().await;
        world.objects.expire(&format!("results/{job}/1/{expired}"));
        world.run_through_crashes(TIMES[1]).await;

        let rows = (1..=71).filter(|row| *row <= kept || row % 23 == 0);
        let expected: String = rows.map(|row| format!("{row}\n")).collect();
        assert_eq!(result(&world, job, "transformed.csv").await, format!("id\n{expected}"));
        let (manifest, _) = results(&world, job).await;
        assert_eq!(left_out(&manifest), ["outputs of attempt 1: they have expired"]);
    }
}

#[tokio::test]
async fn failed_json_lines_can_be_corrected_in_their_file() {
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
    world.redrive(job, Some(corrected)).await.unwrap();
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.outcome, shown.items_succeeded), (Some(JobOutcome::Succeeded), 4));
    let (manifest, _) = results(&world, job).await;
    assert!(manifest.files.is_empty(), "{:?}", manifest.files);
}
