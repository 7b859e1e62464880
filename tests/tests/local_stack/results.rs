//! Results of jobs, by the links of `GET …/results`.

use std::fmt::Write as _;
use std::io::Read;

use acceptance::files::gzip;
use acceptance::local_stack::{LocalStack, answer};
use crc_fast::{CrcAlgorithm, checksum};
use flate2::read::MultiGzDecoder;
use rowmill_core::model::results::crc64_text;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

/// The results of a job, each file held against its length and checksum.
pub async fn results(stack: &LocalStack, job: &str) -> (Value, Vec<(String, Vec<u8>)>) {
    let (status, results) = answer(stack.get(&format!("/api/jobs/{job}/results"))).await;
    assert_eq!(status, 200, "{results}");
    let mut files = Vec::new();
    for file in results["files"].as_array().expect("files") {
        let link = file["url"].as_str().expect("a link");
        let response = stack.presigned("GET", link).send().await.expect("an answer");
        assert!(response.status().is_success(), "{link}");
        let bytes = response.bytes().await.expect("a body").to_vec();
        assert_eq!(file["bytes"], json!(bytes.len()), "{file}");
        assert_eq!(file["crc64Nvme"], json!(crc64_text(checksum(CrcAlgorithm::Crc64Nvme, &bytes))), "{file}");
        files.push((file["name"].as_str().expect("a name").to_owned(), bytes));
    }
    (results, files)
}

/// The text of one file of a job's results.
pub async fn result(stack: &LocalStack, job: &str, name: &str) -> String {
    let (shown, files) = results(stack, job).await;
    let file = files.into_iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("no {name} in {shown}"));
    String::from_utf8(file.1).expect("text")
}

#[test]
fn five_thousand_failed_rows_of_two_hundred_thousand_are_in_the_file_once_and_in_order() {
    on_the_stack(async |stack| {
        let mut csv = String::from("n,=v\n");
        for row in 1..=200_000 {
            let _ = if row % 40 == 0 { writeln!(csv, "{row}") } else { writeln!(csv, "{row},a") };
        }
        let file = stack.upload("application/octet-stream", gzip(csv.as_bytes())).await;
        let (job, ended) = stack.run("validate", &file, json!({ "format": "csv" })).await;
        assert_eq!((&ended["itemCount"], &ended["itemsFailed"]), (&json!(200_000), &json!(5000)), "{ended}");
        let (all, files) = results(stack, &job).await;
        assert_eq!((files.len(), files[0].0.as_str()), (1, "failed-rows.csv"));
        assert_eq!(all["files"][0]["items"], json!(5000));
        let mut reader = csv::Reader::from_reader(&*files[0].1);
        assert_eq!(reader.headers().unwrap(), vec!["n", "'=v", "row", "code", "message", "column"]);
        let rows: Vec<u64> = reader.records().map(|row| row.unwrap()[2].parse().unwrap()).collect();
        assert_eq!(rows, (1..=5000).map(|row| row * 40).collect::<Vec<u64>>());
        stack.memory_has_been_enough();
    });
}

#[test]
fn records_imported_exported_and_imported_again_are_the_same() {
    on_the_stack(async |stack| {
        let mut lines = String::new();
        for row in 0..3000 {
            let record = json!({ "id": format!("k{row}"), "n": row, "nested": { "list": [row, null, "x\"\n"] } });
            let _ = writeln!(lines, "{record}");
        }
        let file = stack.upload("application/x-ndjson", lines).await;
        let import = stack.create("import", &file, json!({ "dataset": "first", "key": "id" })).await;
        assert_eq!(stack.ended(&import).await["itemsSucceeded"], json!(3000));
        let body = json!({ "jobType": "export", "params": { "dataset": "first", "compress": "gzip" } });
        let export = stack.create_from(&body).await;
        let ended = stack.ended(&export).await;
        assert_eq!((&ended["itemCount"], &ended["itemProgress"]), (&json!(3000), &json!(3000)), "{ended}");
        let (_, files) = results(stack, &export).await;
        assert_eq!(files[0].0, "first.jsonl.gz");
        let mut text = String::new();
        MultiGzDecoder::new(&*files[0].1).read_to_string(&mut text).unwrap();
        assert_eq!(text.lines().count(), 3000);
        let file = stack.upload("application/gzip", files[0].1.clone()).await;
        let params = json!({ "dataset": "second", "key": "id", "format": "jsonl" });
        let import = stack.create("import", &file, params).await;
        assert_eq!(stack.ended(&import).await["itemsSucceeded"], json!(3000));
        let records = stack.record_fields("first").await;
        assert_eq!((records.len(), &records["k7"]["nested"]["list"]), (3000, &json!([7, null, "x\"\n"])));
        assert!(stack.record_fields("second").await == records);
    });
}

#[test]
fn a_transformed_file_keeps_the_row_order_in_every_charset() {
    on_the_stack(async |stack| {
        let mut csv = String::from("first;last\n");
        for row in 1..=1500 {
            let _ = writeln!(csv, "Jürgen {row};Müller");
        }
        let utf16: Vec<u8> = "\u{feff}".encode_utf16().chain(csv.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let file = stack.upload("application/octet-stream", utf16).await;
        let mapping = json!([{ "set": "name", "template": "{last}, {first}" }, { "drop": "last" }]);
        let (job, ended) = stack.run("transform", &file, json!({ "format": "csv", "mapping": mapping })).await;
        assert_eq!(ended["outcome"], "succeeded", "{ended}");
        let (_, files) = results(stack, &job).await;
        let text = str::from_utf8(&files[0].1).unwrap();
        let mut expected = String::from("first,name\n");
        for row in 1..=1500 {
            let _ = writeln!(expected, "Jürgen {row},\"Müller, Jürgen {row}\"");
        }
        assert!(text == expected, "{}", &text[..200]);
    });
}
