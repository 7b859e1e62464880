//! Files as people have them, through the whole pipeline in one process: headers, title rows, charsets, long numbers.

use std::time::Duration;

use acceptance::files::{gzip, workbook};
use acceptance::use_cases::Limits;
use acceptance::world::World;
use encoding_rs::Encoding;
use proptest::prelude::*;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::JobOutcome;
use rowmill_core::text::ChunkLimits;
use serde_json::{Value, json};

use crate::results::result;

fn small_chunks() -> Limits {
    Limits::default().but(|limits| {
        limits.create.chunks = ChunkLimits { max_items: 2, max_bytes: 100, max_record_bytes: 300 };
        limits.split.range_bytes = 31;
    })
}

/// The codes of the job's warnings.
async fn warnings(world: &World, job: JobGuid) -> Vec<String> {
    world.show(job).await.warnings.iter().map(|warning| warning.code.as_str().to_owned()).collect()
}

#[tokio::test]
async fn columns_without_a_name_and_doubled_names_are_read_and_results_keep_the_header_of_the_file() {
    let world = World::new(small_chunks());
    let file = world.store_csv("amount,,amount\n1,a,2\n3,b,x\n5,c\n").await;
    let schema = json!({ "properties": { "amount_2": { "type": "integer" } }, "required": ["column2"] });
    let job = world.create("validate", file, json!({ "schema": schema })).await.unwrap().job_guid;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.items_succeeded, shown.items_failed), (1, 2));
    assert_eq!(warnings(&world, job).await, ["unnamed_columns", "duplicate_columns"]);
    assert!(shown.warnings[1].message.contains("column 3 (`amount`) as `amount_2`"), "{:?}", shown.warnings);
    let failed = world.all_failed(job).await;
    assert_eq!(failed[0].column.as_deref(), Some("amount_2"));
    let rows = result(&world, job, "failed-rows.csv").await;
    assert!(rows.starts_with("amount,,amount,row,code,message,column\n3,b,x,2,schema_violation"), "{rows}");

    world.correct(job, rows.replace("3,b,x,2", "3,b,4,2").replace("5,c,,3", "5,c,6,3")).await;
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.outcome, shown.warnings.len()), (Some(JobOutcome::Succeeded), 2));
}

#[tokio::test]
async fn a_transformed_file_keeps_the_own_header_of_the_columns_that_no_step_names() {
    let world = World::new(small_chunks());
    let file = world.store_csv("a,,a,\n1,2,3,4\n").await;
    let mapping = json!([{ "rename": "column2", "to": "b" }, { "set": "column4", "value": "x" }]);
    for (params, expected) in [
        (json!({}), "a,,a,\n1,2,3,4\n"),
        (json!({ "mapping": mapping }), "a,b,a,column4\n1,2,3,x\n"),
        (json!({ "columns": ["a_2", "column2"] }), "a_2,column2\n3,2\n"),
    ] {
        let job = world.create("transform", file, params).await.unwrap().job_guid;
        world.run().await;
        assert_eq!(result(&world, job, "transformed.csv").await, expected);
    }
}

/// Title rows, a blank line, the header, ten rows of which the third is ragged.
fn titled() -> String {
    let mut file = String::from("\"Report, of\n2026\"\n\nall rows\nid;name\n");
    for row in 1..=10 {
        file += &if row == 3 { "3\n".to_owned() } else { format!("{row};name {row}\n") };
    }
    file
}

#[tokio::test]
async fn a_file_with_title_rows_is_cut_and_redriven_by_the_rows_behind_its_header() {
    let text = titled();
    let oracle = csv::ReaderBuilder::new().delimiter(b';').flexible(true).from_reader(text.as_bytes());
    let records = oracle.into_byte_records().count() as u64;
    for (bytes, content_type) in [(titled().into_bytes(), "text/csv"), (gzip(titled().as_bytes()), "application/gzip")]
    {
        for place in [json!({ "skipRows": 2 }), json!({ "headerRow": 3 }), json!({ "skipRows": 1, "headerRow": 2 })] {
            let world = World::new(small_chunks());
            let file = world.store(content_type, bytes.clone()).await;
            let mut params = json!({ "format": "csv", "dataset": "d", "key": "id" });
            params.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
            let job = world.create("import", file, params).await.unwrap().job_guid;
            let shown = world.run_and_show(job).await;
            // The oracle reads the title in the first record as the header, so it counts the second title and the
            // header.
            assert_eq!((shown.item_count, shown.items_succeeded), (records - 2, 9), "{place}");
            assert_eq!(world.failed_rows(job).await, [3]);
            let rows = result(&world, job, "failed-rows.csv").await;
            assert!(rows.starts_with("id;name;row;code;message;column\n3;;3;ragged_row"), "{rows}");
            world.correct(job, rows.replace("3;;3;", "3;three;3;")).await;
            assert_eq!(world.run_and_show(job).await.items_succeeded, 10);
            assert_eq!(world.records.dataset("local/d").len(), 10);
        }
    }
}

/// A sheet with a title, an empty row, which does not count, another title, the header, and three rows. The name in the
/// second of these is too short.
fn titled_workbook() -> Vec<u8> {
    let cell = |text: &str| format!(r#"<c t="inlineStr"><is><t>{text}</t></is></c>"#);
    let rows = [
        vec!["Report, 2026"],
        vec![],
        vec!["In euro"],
        vec!["id", "name"],
        vec!["1", "one"],
        vec!["2", "x"],
        vec!["3", "three"],
    ];
    workbook(rows.into_iter().map(|cells| format!("<row>{}</row>", cells.into_iter().map(cell).collect::<String>())))
}

#[tokio::test]
async fn a_sheet_with_title_rows_is_read_and_redriven_by_the_rows_behind_its_header() {
    const WORKBOOK: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    for place in [json!({ "skipRows": 2 }), json!({ "headerRow": 3 }), json!({ "skipRows": 1, "headerRow": 2 })] {
        let world = World::new(small_chunks());
        let file = world.store(WORKBOOK, titled_workbook()).await;
        let schema = json!({ "properties": { "name": { "minLength": 3 } } });
        let mut params = json!({ "dataset": "d", "key": "id", "schema": schema });
        params.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        let job = world.create("import", file, params).await.unwrap().job_guid;
        let shown = world.run_and_show(job).await;
        assert_eq!((shown.item_count, shown.items_succeeded, shown.items_failed), (3, 2, 1), "{place}");
        assert_eq!(world.failed_rows(job).await, [2]);
        let rows = result(&world, job, "failed-rows.csv").await;
        assert!(rows.starts_with("id,name,row,code,message,column\n2,x,2,schema_violation"), "{rows}");
        world.correct(job, "id,name,row\n2,two,2\n").await;
        assert_eq!(world.run_and_show(job).await.outcome, Some(JobOutcome::Succeeded));
        let mut keys: Vec<_> = world.records.dataset("local/d").iter().map(|record| record.key.clone()).collect();
        keys.sort();
        assert_eq!(keys, ["1", "2", "3"]);
    }
    // Without the params, the title is the header.
    let world = World::new(small_chunks());
    let file = world.store(WORKBOOK, titled_workbook()).await;
    let job = world.create("validate", file, json!({})).await.unwrap().job_guid;
    world.run().await;
    assert_ne!(world.show(job).await.items_succeeded, 3);
}

#[tokio::test]
async fn the_unprocessed_rows_of_a_file_with_title_rows_can_be_run_with_the_same_params() {
    let world = World::new(small_chunks());
    let file = world.store_csv(titled()).await;
    let job = world.create("validate", file, json!({ "skipRows": 2 })).await.unwrap().job_guid;
    world.take_up(job, Duration::ZERO).await;
    world.cancel(job).await;
    world.run().await;
    let rest = result(&world, job, "unprocessed-rows.csv").await;
    assert_eq!(rest, titled());
}

#[tokio::test]
async fn text_of_any_charset_becomes_the_same_records_wherever_chunks_are_cut() {
    // The second bytes of 表, ポ and 能 in Shift_JIS, and of many characters in GB18030, are a backslash, a bar, or
    // digits.
    let texts = [
        ("shift_jis", "番号|名前\n1|表,ソ能\n2|\"ポ|\n大\"\n3|予定表\n"),
        ("gb18030", "编号,名称\n1,中国\n2,\"上海\n北京\"\n3,㐀😀\n"),
        ("windows-1250", "id;imię\n1;Zażółć\n2;\"gęślą\njaźń\"\n3;łódź\n"),
        ("iso-2022-jp", "a,b\n1,日本\n2,東京\n"),
        ("koi8-u", "ід,імя\n1,Їжак\n"),
        ("euc-kr", "번호,이름\n1,한국어\n"),
        ("utf-16be", "a,b\n1,é\n"),
    ];
    for (charset, text) in texts {
        let encoding = Encoding::for_label(charset.as_bytes()).unwrap();
        let bytes = match charset {
            "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            _ => encoding.encode(text).0.into_owned(),
        };
        for bytes in [bytes.clone(), gzip(&bytes)] {
            let world = World::new(small_chunks());
            let file = world.store("application/octet-stream", bytes).await;
            let params = json!({ "format": "csv", "encoding": charset, "outputFormat": "csv" });
            let job = world.create("transform", file, params).await.unwrap().job_guid;
            assert_eq!(world.run_and_show(job).await.outcome, Some(JobOutcome::Succeeded), "{charset}");
            let written = result(&world, job, "transformed.csv").await;
            let delimiter = text.bytes().find(|byte| b",;|".contains(byte)).unwrap();
            let read = |text: &str, delimiter| -> Vec<csv::StringRecord> {
                let mut reader =
                    csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).from_reader(text.as_bytes());
                reader.records().map(Result::unwrap).collect()
            };
            assert_eq!(read(&written, b','), read(text, delimiter), "{charset}");
        }
    }
}

#[tokio::test]
async fn bytes_that_are_no_character_of_the_charset_fail_their_row_only() {
    let world = World::new(small_chunks());
    let file = world.store_csv(b"a,b\n1,\x95\x5c\n2,\xa0\n3,x\n".to_vec()).await;
    let job = world.create("validate", file, json!({ "encoding": "Shift_JIS" })).await.unwrap().job_guid;
    world.run().await;
    let failed = world.all_failed(job).await;
    assert_eq!(failed.iter().map(|item| (item.row, item.code.as_str())).collect::<Vec<_>>(), [(2, "invalid_utf8")]);
    assert!(failed[0].message.contains("read as Shift_JIS"), "{}", failed[0].message);
    assert_eq!(warnings(&world, job).await, Vec::<String>::new());
}

#[tokio::test]
async fn text_that_is_not_utf_8_is_warned_about_wherever_it_begins_and_however_often_the_split_is_interrupted() {
    let (german, ..) = encoding_rs::WINDOWS_1252.encode("7,Straße und Größe für Fußgänger\n8,Käse\n");
    for (rows, packed) in [(0, false), (3, false), (6000, false), (6000, true)] {
        let mut bytes = b"id,text\n".to_vec();
        bytes.extend((0..rows).flat_map(|row| format!("{row},plain text\n").into_bytes()));
        bytes.extend_from_slice(&german);
        bytes.extend((0..300).flat_map(|row| format!("{row},behind it\n").into_bytes()));
        let bytes = if packed { gzip(&bytes) } else { bytes };
        let chunks = ChunkLimits { max_items: 4, max_bytes: 100, max_record_bytes: 300 };
        let world = World::new(Limits::default().but(|limits| limits.create.chunks = chunks));
        let file = world.store(if packed { "application/gzip" } else { "text/csv" }, bytes).await;
        let job = world.create("validate", file, json!({ "format": "csv" })).await.unwrap().job_guid;
        let shown = world.run_and_show(job).await;
        assert_eq!((shown.item_count, shown.items_failed), (rows + 302, 2));
        assert_eq!(warnings(&world, job).await, ["not_utf8"], "{rows} {packed}");
        let message = &shown.warnings[0].message;
        assert!(message.contains("param `encoding` set to `windows-1252`"), "{message}");
        let failed = world.all_failed(job).await;
        assert!(failed[0].message.contains("set the param `encoding` to `windows-1252`"), "{}", failed[0].message);
    }
}

#[tokio::test]
async fn a_byte_behind_the_last_gzip_member_is_a_warning() {
    for rest in [&b"\n"[..], &[0; 700], b"garbage"] {
        let world = World::new(small_chunks());
        let packed = gzip(b"a,b\n1,2\n3,4\n");
        let file = world.store("application/gzip", [&packed, rest].concat()).await;
        let job = world.create("validate", file, json!({ "format": "csv" })).await.unwrap().job_guid;
        let shown = world.run_and_show(job).await;
        assert_eq!((shown.outcome, shown.items_succeeded), (Some(JobOutcome::Succeeded), 2));
        assert_eq!(warnings(&world, job).await, ["trailing_bytes"]);
        assert!(shown.warnings[0].message.contains(&format!("from byte {} ", packed.len())), "{:?}", shown.warnings);
    }
}

#[tokio::test]
async fn a_file_without_a_telling_type_or_name_is_read_by_its_content() {
    for bytes in [b"a\tb\n1\t2\n".to_vec(), b"{\"a\":1}\n".to_vec(), gzip(b"a;b\n1;2\n")] {
        let world = World::new(small_chunks());
        let file = world.store("text/plain", bytes).await;
        let job = world.create("validate", file, json!({})).await.unwrap().job_guid;
        assert_eq!(world.run_and_show(job).await.items_succeeded, 1);
    }
    let world = World::new(small_chunks());
    let prose = world.store("text/plain", "Dear Sir,\nthe file is lost.\n").await;
    let refused = world.create("validate", prose, json!({})).await.unwrap_err();
    assert!(refused.to_string().contains("Set the param `format`"), "{refused}");
}

#[tokio::test]
async fn numbers_keep_every_digit_from_json_lines_to_the_dataset_and_out_again() {
    const LINES: &str = "{\"id\":123456789012345678901234567890,\"n\":0.12345678901234567890123}\n\
                         {\"id\":-9223372036854775809,\"n\":[1e+400,18446744073709551617,1.10]}\n";
    let world = World::new(small_chunks());
    let file = world.store("application/x-ndjson", LINES).await;
    let import = world.create("import", file, json!({ "dataset": "d", "key": "id" })).await.unwrap().job_guid;
    assert_eq!(world.run_and_show(import).await.items_succeeded, 2);
    let expected: Vec<Value> = LINES.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let export = json!({ "jobType": "export", "params": { "dataset": "d" } });
    let export = world.request(export).await.unwrap().job_guid;
    let schema = json!({ "properties": { "id": { "type": "integer" } } });
    let transform = json!({ "mapping": [{ "set": "t", "template": "{id}" }] });
    let transform = world.create("transform", file, transform).await.unwrap().job_guid;
    let validate = world.create("validate", file, json!({ "schema": schema })).await.unwrap().job_guid;
    assert_eq!(world.run_and_show(validate).await.items_succeeded, 2);
    let exported = result(&world, export, "d.jsonl").await;
    let mut lines: Vec<&str> = exported.lines().collect();
    lines.sort_by_key(|line| line.len());
    let mut sorted: Vec<String> = expected.iter().map(Value::to_string).collect();
    sorted.sort_by_key(String::len);
    assert_eq!(lines, sorted);
    let transformed = result(&world, transform, "transformed.jsonl").await;
    assert!(transformed.contains("\"t\":\"123456789012345678901234567890\""), "{transformed}");
    assert!(transformed.contains("[1e+400,18446744073709551617,1.10]"), "{transformed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_row_behind_the_header_counts_as_the_csv_crate_counts_it(
        titles in prop::collection::vec("[a-z ;\"]{1,8}", 0..4),
        rows in prop::collection::vec("[a-z]{1,3};[a-z\"\n]{0,3}", 0..9),
        has_header in any::<bool>(),
    ) {
        // A title with an open quote would run on into the rows, for the oracle as well.
        let titles: Vec<String> = titles.iter().map(|title| format!("t{}", title.replace('"', "'"))).collect();
        let quoted = rows.iter().map(|row| {
            let (key, text) = row.split_once(';').unwrap_or((row, ""));
            format!("{key};\"{}\"\n", text.replace('"', "\"\""))
        });
        let body: String = quoted.collect();
        let header = if has_header { "k;v\n" } else { "" };
        let file = titles.iter().map(|title| format!("{title}\n\n")).collect::<String>() + header + &body;
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let counted = runtime.block_on(async {
            let world = World::new(small_chunks());
            let stored = world.store_csv(file).await;
            let params = json!({
                "skipRows": titles.len(), "headerRow": u32::from(has_header), "delimiter": ";",
            });
            let job = world.create("validate", stored, params).await.expect("a job").job_guid;
            world.run().await;
            world.show(job).await
        });
        let mut oracle = csv::ReaderBuilder::new().delimiter(b';').has_headers(false).from_reader(body.as_bytes());
        let records = oracle.byte_records().count() as u64;
        prop_assert_eq!((counted.item_count, counted.items_succeeded), (records, records));
    }
}
