//! Files of every format: what other programs wrote comes to the same records, and hostile files end their own job
//! only.

use acceptance::files::{self, gzip};
use acceptance::local_stack::{LocalStack, answer, refused};
use reqwest::StatusCode;
use serde_json::json;

use crate::results::results;
use crate::stack::on_the_stack;
use crate::uploads::announce;

#[test]
fn the_same_characters_come_out_of_every_format() {
    on_the_stack(async |stack| {
        let csv = files::unicode_csv();
        let header = csv.split(|byte| *byte == b'\r').next().unwrap();
        let columns: Vec<&str> = std::str::from_utf8(header).unwrap().split(',').collect();
        let packed = gzip(&csv);
        let utf16 = String::from_utf8(csv.clone()).unwrap().encode_utf16().flat_map(u16::to_be_bytes).collect();
        let every = [
            ("plain", csv.clone(), json!({ "format": "csv" })),
            ("gzip", packed, json!({ "format": "csv" })),
            ("zstd", files::data("unicode.csv.zst"), json!({ "format": "csv" })),
            ("utf16", utf16, json!({ "format": "csv", "encoding": "utf-16be" })),
            ("xlsx", files::data("unicode.xlsx"), json!({ "sheet": "characters" })),
            ("parquet", files::data("unicode.parquet"), json!({})),
            ("brotli", files::data("brotli.parquet"), json!({})),
            ("json", files::unicode_json(), json!({})),
        ];
        let mut jobs = Vec::new();
        for (name, bytes, mut params) in every {
            (params["outputFormat"], params["columns"]) = (json!("csv"), json!(columns));
            let file = stack.upload("application/octet-stream", bytes).await;
            jobs.push((name, stack.create("transform", &file, params).await));
        }
        let mut expected = None;
        for (name, job) in jobs {
            let ended = stack.ended(&job).await;
            assert_eq!((&ended["outcome"], &ended["itemCount"]), (&json!("succeeded"), &json!(11_231)), "{ended}");
            assert_eq!(ended["percent"], 100);
            let (_, mut files) = results(stack, &job).await;
            let records: Vec<csv::StringRecord> =
                csv::Reader::from_reader(&*files.remove(0).1).into_records().map(Result::unwrap).collect();
            assert_eq!(records.len(), 11_231, "{name}");
            let expected = expected.get_or_insert_with(|| records.clone());
            for (found, expected) in records.iter().zip(&*expected) {
                assert_eq!(found, expected, "out of {name}");
            }
        }
        let plain = csv::Reader::from_reader(&*files::unicode_csv()).into_records().map(Result::unwrap).collect();
        assert_eq!(expected, Some(plain), "as they went in");
    });
}

#[test]
fn the_first_rows_of_every_format_are_shown_and_hostile_files_are_refused() {
    on_the_stack(async |stack| {
        let preview = async |bytes: Vec<u8>, params: serde_json::Value| {
            let file = stack.upload("application/octet-stream", bytes).await;
            let path = format!("/api/uploads/{file}/preview");
            answer(stack.post(&path).json(&json!({ "params": params, "rows": 3 }))).await
        };
        let csv = files::unicode_csv();
        for (format, bytes, params) in [
            ("csv", csv.clone(), json!({ "format": "csv" })),
            ("csv", gzip(&csv), json!({ "format": "csv" })),
            ("csv", files::data("unicode.csv.zst"), json!({ "format": "csv" })),
            ("xlsx", files::data("unicode.xlsx"), json!({ "sheet": "characters" })),
            ("parquet", files::data("unicode.parquet"), json!({})),
            ("json", files::unicode_json(), json!({})),
        ] {
            let (status, view) = preview(bytes, params).await;
            assert_eq!((status, &view["format"]), (StatusCode::OK, &json!(format)), "{view}");
            assert_eq!((view["rows"].as_array().map(Vec::len), &view["complete"]), (Some(3), &json!(false)));
        }
        let text = b"id,city\n1,K\xf6ln\n".to_vec();
        let (_, view) = preview(text, json!({ "format": "csv", "encoding": "windows-1252" })).await;
        assert_eq!((&view["rows"][0]["cells"], &view["complete"]), (&json!(["1", "Köln"]), &json!(true)));
        let mut bomb = b"a,b\n1,2\n".to_vec();
        bomb.resize(200 << 20, b'x');
        let (_, view) = preview(gzip(&bomb), json!({ "format": "csv" })).await;
        assert_eq!(view["rows"].as_array().map(Vec::len), Some(1), "{view}");
        let mut workbook = files::data("unicode.xlsx");
        workbook.truncate(workbook.len() / 2);
        let (status, problem) = preview(workbook, json!({})).await;
        assert_eq!((status, &problem["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("unreadable_file")));
        let announced = announce(stack, "later.csv", 100, None).await;
        let path = format!("/api/uploads/{}/preview", announced["fileGuid"].as_str().expect("a guid"));
        refused(stack.post(&path), StatusCode::CONFLICT, "upload_incomplete").await;
        let nobody = "/api/uploads/00000000-0000-4000-8000-000000000000/preview";
        refused(stack.post(nobody), StatusCode::NOT_FOUND, "not_found").await;
        stack.memory_has_been_enough();
    });
}

#[test]
fn a_sheet_of_ten_million_cells_is_a_million_items() {
    on_the_stack(async |stack| {
        let workbook = files::workbook_of_numbers(1_000_000, 10);
        let upload = announce(stack, "cells.xlsx", workbook.len(), None).await;
        assert_eq!(stack.send_signed(&upload["upload"], workbook).await, StatusCode::OK);
        let job = stack.create("validate", upload["fileGuid"].as_str().expect("a guid"), json!({})).await;
        beside_it_goes_on(stack).await;
        let ended = stack.ended(&job).await;
        assert_eq!((&ended["outcome"], &ended["itemsSucceeded"]), (&json!("succeeded"), &json!(1_000_000)), "{ended}");
        stack.memory_has_been_enough();
    });
}

#[test]
fn a_decompression_bomb_ends_its_own_job_only() {
    on_the_stack(async |stack| {
        let mut bomb = b"a,b\n".to_vec();
        bomb.resize(200 << 20, b'x');
        let file = stack.upload("application/gzip", gzip(&bomb)).await;
        let job = stack.create("validate", &file, json!({ "format": "csv" })).await;
        beside_it_goes_on(stack).await;
        let ended = stack.ended(&job).await;
        let code = &ended["error"]["code"];
        assert_eq!((&ended["status"], code), (&json!("failed"), &json!("unreadable_file")), "{ended}");
        assert!(ended["error"]["message"].as_str().unwrap().contains("bomb"), "{ended}");
    });
}

async fn beside_it_goes_on(stack: &LocalStack) {
    let good = stack.upload("text/csv", "a,b\n1,2\n").await;
    let good = stack.create("validate", &good, json!({})).await;
    assert_eq!(stack.ended(&good).await["outcome"], "succeeded");
}
