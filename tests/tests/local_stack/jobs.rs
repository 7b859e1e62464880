//! Jobs to their end: both job types, both formats, every kind of bad row; counts against the `csv` crate.

use std::fmt::Write as _;

use acceptance::local_stack::{LocalStack, Row, answer};
use acceptance::{files, oracle};
use serde_json::{Value, json};

use crate::stack::on_the_stack;

#[test]
fn an_import_writes_every_character_into_the_records_table() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", files::unicode_csv()).await;
        let (job, ended) = stack.run("import", &file, json!({ "dataset": "characters", "key": "codepoint" })).await;
        assert_eq!((&ended["status"], &ended["outcome"]), (&json!("completed"), &json!("succeeded")), "{ended}");
        assert_eq!((&ended["percent"], &ended["itemsSucceeded"]), (&json!(100), &json!(11_231)));
        assert_eq!(ended["message"], "Job complete");
        let records = stack.records("characters").await;
        assert_eq!(records.len(), 11_231);
        assert!(records.iter().any(|record| record.text("key") == "U+0022"));
        check_against_the_oracle(stack, &job, &files::unicode_csv()).await;
    });
}

#[test]
fn bad_rows_fail_by_their_number_and_code_and_the_job_goes_on() {
    on_the_stack(async |stack| {
        let mut csv = String::from("id,name,amount\r\n");
        for row in 1..=3000 {
            let _ = match row {
                7 => write!(csv, "7,too few\r\n"),
                1111 => write!(csv, "1111,\"one\r\ntwo\",not a number\r\n"),
                2000 => write!(csv, "2000,{},1\r\n", "x".repeat(1 << 20)),
                2999 => write!(csv, "2999,a,1,too many\r\n\r\n"),
                row => write!(csv, "{row},\"name \"\"{row}\"\"\",{}\r\n", row % 10),
            };
        }
        let mut bytes = csv.into_bytes();
        bytes.extend_from_slice(b"3001,\xff,1\r\n");
        let schema = json!({ "type": "object", "properties": { "amount": { "type": "integer" } } });
        // Not all of it is text, so no text type will do for a body that passes through the gateway.
        let file = stack.upload("application/octet-stream", bytes.clone()).await;
        let (job, ended) = stack.run("validate", &file, json!({ "format": "csv", "schema": schema })).await;
        assert_eq!((&ended["itemCount"], &ended["itemsFailed"]), (&json!(3001), &json!(5)), "{ended}");
        assert_eq!(ended["outcome"], "partial");
        let failed = stack.failed_items(&job).await;
        let found: Vec<_> = failed.iter().map(|item| (item["row"].as_u64(), item["code"].as_str())).collect();
        let expected = [
            (7, "ragged_row"),
            (1111, "schema_violation"),
            (2000, "row_too_long"),
            (2999, "ragged_row"),
            (3001, "invalid_utf8"),
        ];
        assert_eq!(found, expected.map(|(row, code)| (Some(row), Some(code))));
        assert_eq!((&failed[1]["column"], &failed[0]["raw"]), (&json!("amount"), &json!("7,too few")));
        assert_eq!(oracle::ragged_rows(&bytes), [7, 2999]);
        check_against_the_oracle(stack, &job, &bytes).await;
    });
}

#[test]
fn a_job_with_low_max_concurrency_and_several_tallies_is_counted_exactly() {
    on_the_stack(async |stack| {
        let file = files::plain_csv(40_000);
        let upload = stack.upload("text/csv", file.clone()).await;
        let body = json!({ "jobType": "validate", "fileGuid": upload, "maxConcurrency": 3 });
        let (job, ended) = stack.run_from(&body).await;
        assert_eq!((&ended["outcome"], &ended["itemsSucceeded"]), (&json!("succeeded"), &json!(40_000)), "{ended}");
        assert_eq!(stack.job_row(&job).await.recoveries(), 0, "each chunk was sent by the one before it");
        check_against_the_oracle(stack, &job, &file).await;
    });
}

#[test]
fn a_job_has_the_priority_of_its_request_and_a_redrive_keeps_it() {
    on_the_stack(async |stack| {
        for (given, expected) in [("high", "high"), ("low", "low"), ("normal", "normal"), ("", "normal")] {
            let file = stack.upload("text/csv", "a,b\n1,1\n2\n").await;
            let priority = if given.is_empty() { Value::Null } else { json!(given) };
            let (job, ended) =
                stack.run_from(&json!({ "jobType": "validate", "fileGuid": file, "priority": priority })).await;
            assert_eq!((&ended["priority"], &ended["itemsFailed"]), (&json!(expected), &json!(1)), "{ended}");
            assert_eq!(stack.act(&job, "redrive").await["priority"], expected);
            let ended = stack.ended(&job).await;
            assert_eq!((&ended["attempt"], &ended["priority"]), (&json!(2), &json!(expected)), "{ended}");
        }
    });
}

#[test]
fn an_empty_file_and_a_header_alone_complete() {
    on_the_stack(async |stack| {
        for bytes in ["", "a,b,c\n"] {
            let file = stack.upload("text/csv", bytes).await;
            let (job, ended) = stack.run("validate", &file, json!({})).await;
            let shown = [&ended["status"], &ended["outcome"], &ended["itemCount"]];
            assert_eq!(shown, [&json!("completed"), &json!("empty"), &json!(0)], "{ended}");
            let (_, page) = answer(stack.get("/api/jobs?outcome=empty&limit=100")).await;
            let listed = page["jobs"].as_array().expect("jobs").iter();
            assert!(listed.clone().any(|listed| listed["jobGuid"] == job), "{page}");
            assert!(listed.clone().all(|listed| listed["outcome"] == "empty"), "{page}");
            let (_, none) = answer(stack.get("/api/jobs?outcome=empty&status=failed")).await;
            assert_eq!(none["jobs"], json!([]), "only completed jobs have an outcome");
        }
    });
}

#[test]
fn jobs_are_listed_newest_first_page_by_page() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", "a\n1\n").await;
        let mut created = Vec::new();
        for _ in 0..5 {
            created.push(stack.create("validate", &file, json!({})).await);
        }
        for job in &created {
            stack.ended(job).await;
        }
        let (mut listed, mut after) = (Vec::new(), String::new());
        while !created.iter().all(|job| listed.contains(job)) {
            let path = format!("/api/jobs?limit=2&status=completed&jobType=validate{after}");
            let (_, page) = answer(stack.get(&path)).await;
            let jobs = page["jobs"].as_array().expect("jobs");
            assert!(jobs.iter().all(|job| job["status"] == "completed" && job["jobType"] == "validate"));
            listed.extend(jobs.iter().map(|job| job["jobGuid"].as_str().expect("a guid").to_owned()));
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        assert!(created.iter().all(|job| listed.contains(job)));
        assert!(listed.is_sorted_by(|a, b| a > b), "newest first, each once: {listed:?}");
    });
}

/// The job's counters against the `csv` crate over the bytes of the committed chunks, tally by tally.
async fn check_against_the_oracle(stack: &LocalStack, job: &str, file: &[u8]) {
    let rows = stack.job_rows(job).await;
    let job_row = &rows["job"];
    assert_eq!((job_row.text("status"), job_row.number("completions")), ("completed", 1));
    let tallies: Vec<&Row> = rows.iter().filter(|(key, _)| key.starts_with("tally#1#")).map(|(_, row)| row).collect();
    assert_eq!(tallies.len() as u64, job_row.number("tallies"));
    let starts = tallies.iter().map(|tally| (tally.number("startOffset"), tally.number("startRow")));
    let starts: Vec<_> = starts.chain([(job_row.number("cursorOffset"), job_row.number("cursorRow"))]).collect();
    let mut row = 1;
    for (tally, border) in tallies.iter().zip(starts.windows(2)) {
        let [(offset, first_row), (next_offset, _)] = *border else { unreachable!("windows of two") };
        assert_eq!(first_row, row);
        let records = oracle::csv_records(oracle::range(file, offset..next_offset));
        let committed = tally.number("succeeded") + tally.number("failed") + tally.number("skipped");
        assert_eq!((records, committed), (tally.number("items"), records));
        row += records;
    }
    assert_eq!(oracle::csv_records(oracle::range(file, starts[starts.len() - 1].0..file.len() as u64)), 0);
    let shown: Value = stack.job(job).await;
    assert_eq!(shown["itemCount"], row - 1);
}
