//! The first rows of a file: read as a job reads them, and bounded for every file.

use acceptance::files::{self, gzip};
use acceptance::use_cases::Limits;
use acceptance::world::World;
use create_job::create::CreateJobError;
use rowmill_api::preview::{PreviewRow, PreviewView};
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::keys;
use rowmill_core::text::ChunkLimits;
use serde_json::{Value, json};

/// The bound of an answer, with the parts of it that are no column and no row.
const ANSWER_MAX_BYTES: usize = 257 * 1024;

async fn try_preview(world: &World, file: FileGuid, request: Value) -> Result<PreviewView, CreateJobError> {
    let request = serde_json::from_value(request).expect("a request");
    let view = world.creator.preview(&World::owner(), file, &request).await?;
    let bytes = serde_json::to_vec(&view).unwrap().len();
    assert!(bytes <= ANSWER_MAX_BYTES, "{bytes} bytes");
    Ok(view)
}

async fn preview_of(content_type: &str, bytes: impl Into<bytes::Bytes>, params: Value) -> PreviewView {
    let world = World::new(Limits::default());
    let file = world.store(content_type, bytes).await;
    try_preview(&world, file, json!({ "params": params })).await.unwrap()
}

fn cells(row: &PreviewRow) -> Vec<&str> {
    row.cells.as_ref().unwrap_or_else(|| panic!("{row:?}")).iter().map(String::as_str).collect()
}

fn columns(view: &PreviewView) -> Vec<(&str, &str)> {
    view.columns.iter().map(|column| (column.name.as_str(), column.r#type.as_str())).collect()
}

fn code(row: &PreviewRow) -> &str {
    &row.problem.as_ref().unwrap_or_else(|| panic!("{row:?}")).code
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_rows_of_every_format_are_those_of_the_file() {
    let plain = files::unicode_csv();
    let mut reader = csv::Reader::from_reader(&*plain);
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let expected: Vec<csv::StringRecord> = reader.into_records().take(20).map(Result::unwrap).collect();
    let every = [
        ("csv", None, plain.clone(), json!({ "format": "csv" })),
        ("csv", Some("gzip"), gzip(&plain), json!({ "format": "csv" })),
        ("csv", Some("zstd"), files::data("unicode.csv.zst"), json!({ "format": "csv" })),
        ("xlsx", None, files::data("unicode.xlsx"), json!({ "sheet": "characters" })),
        ("parquet", None, files::data("unicode.parquet"), json!({})),
        ("parquet", None, files::data("brotli.parquet"), json!({})),
        ("json", None, files::unicode_json(), json!({})),
        ("json", Some("gzip"), gzip(&files::unicode_json()), json!({ "format": "json" })),
    ];
    for (format, packing, bytes, params) in every {
        let view = preview_of("application/octet-stream", bytes, params).await;
        assert_eq!((view.format.as_str(), view.packing.as_ref().map(|it| it.as_str())), (format, packing));
        assert_eq!((view.rows.len(), view.complete), (20, false), "{format}");
        assert_eq!(view.column_count, header.len() as u64);
        for (row, (number, expected)) in view.rows.iter().zip((1..).zip(&expected)) {
            assert_eq!(row.row, number);
            match &row.value {
                None => assert_eq!(cells(row), expected.iter().collect::<Vec<_>>(), "{format}"),
                Some(value) => {
                    for (name, cell) in header.iter().zip(expected) {
                        let text = match &value[name] {
                            Value::String(text) => text.clone(),
                            other => other.to_string(),
                        };
                        assert_eq!(text, cell, "{format}, {name}");
                    }
                }
            }
        }
        assert_eq!(view.delimiter.as_deref(), (format == "csv").then_some(","));
        assert_eq!(view.encoding.as_deref(), ["csv", "json"].contains(&format).then_some("utf-8"));
        assert_eq!(view.header_row, ["csv", "xlsx"].contains(&format).then_some(1));
    }
}

#[tokio::test]
async fn columns_have_the_types_of_their_values() {
    let csv = "id;zip;amount;paid;note;empty\n1;01069;9,5;true;a;\n2;10115;12;FALSE;;\n";
    let view = preview_of("text/csv", csv, json!({})).await;
    let expected = [
        ("id", "integer"),
        ("zip", "string"),
        ("amount", "string"),
        ("paid", "boolean"),
        ("note", "string"),
        ("empty", "null"),
    ];
    assert_eq!(columns(&view), expected);
    assert_eq!((view.delimiter.as_deref(), view.complete), (Some(";"), true));

    let lines = "{\"b\":1,\"a\":\"x\"}\n{\"b\":2.5,\"c\":[1],\"d\":{}}\n{\"b\":null,\"a\":7}\n";
    let view = preview_of("application/x-ndjson", lines, json!({})).await;
    assert_eq!(columns(&view), [("a", "string"), ("b", "number"), ("c", "array"), ("d", "object")]);
    assert_eq!((view.format.as_str(), view.header_row, view.complete), ("jsonl", None, true));
    assert_eq!(view.rows[1].value.as_ref().unwrap()["b"].to_string(), "2.5");
}

#[tokio::test]
async fn the_charset_is_found_or_advised() {
    let text = b"id,city\n1,K\xf6ln\n2,\x80 5 in Orl\xe9ans\n";
    let declared = preview_of("text/csv", &text[..], json!({ "encoding": "windows-1252" })).await;
    assert_eq!(declared.encoding.as_deref(), Some("windows-1252"));
    assert_eq!(cells(&declared.rows[1]), ["2", "€ 5 in Orléans"]);
    let unknown = preview_of("text/csv", &text[..], json!({})).await;
    assert_eq!(unknown.warnings[0].code.as_str(), "not_utf8");
    assert_eq!(code(&unknown.rows[0]), "invalid_utf8");
    assert!(unknown.rows[0].problem.as_ref().unwrap().message.contains("windows-1252"));
}

#[tokio::test]
async fn a_row_that_would_fail_says_so_in_its_place() {
    let view = preview_of("text/csv", "a,b\n1,2\n3\n4,5\n6,\"7\n", json!({})).await;
    assert_eq!(cells(&view.rows[0]), ["1", "2"]);
    assert_eq!(code(&view.rows[1]), "ragged_row");
    assert_eq!(cells(&view.rows[2]), ["4", "5"]);
    assert_eq!((view.rows[3].row, code(&view.rows[3]), view.complete), (4, "unterminated_quote", false));
    let chunks = ChunkLimits { max_items: 9, max_bytes: 100, max_record_bytes: 10 };
    let world = World::new(Limits::default().but(|limits| limits.create.chunks = chunks));
    let file = world.store_csv(format!("a\n1\n{}\n2\n", "x".repeat(50))).await;
    let view = try_preview(&world, file, json!({})).await.unwrap();
    assert_eq!((code(&view.rows[1]), cells(&view.rows[2])), ("row_too_long", vec!["2"]));
}

#[tokio::test]
async fn the_params_decide_what_is_a_header_and_how_many_rows_are_shown() {
    let csv = "Report\n\nid,n\n1,a\n2,b\n3,c\n";
    let world = World::new(Limits::default());
    let file = world.store_csv(csv).await;
    let with = async |params: Value, rows: u32| {
        try_preview(&world, file, json!({ "params": params, "rows": rows })).await.unwrap()
    };
    let view = with(json!({ "headerRow": 2 }), 2).await;
    assert_eq!((columns(&view)[0].0, view.rows.len(), view.complete, view.header_row), ("id", 2, false, Some(2)));
    let view = with(json!({ "skipRows": 1, "headerRow": 0 }), 4).await;
    assert_eq!((columns(&view)[0].0, view.header_row, view.complete), ("column1", Some(0), true));
    assert_eq!(cells(&view.rows[0]), ["id", "n"]);
    for rows in [0, 101] {
        let error = try_preview(&world, file, json!({ "rows": rows })).await.unwrap_err();
        assert!(matches!(&error, CreateJobError::Field(wrong) if wrong.field == "rows"), "{error}");
    }
}

#[tokio::test]
async fn a_preview_refuses_what_a_job_would_refuse() {
    let world = World::new(Limits::default());
    let file = world.store_csv("id,n\n1,a\n").await;
    let error = async |request: Value| try_preview(&world, file, request).await.unwrap_err();
    assert!(matches!(error(json!({ "jobType": "nope" })).await, CreateJobError::UnknownJobType { .. }));
    assert!(matches!(error(json!({ "jobType": "export" })).await, CreateJobError::Field(_)));
    let misspelled = json!({ "jobType": "import", "params": { "delimeter": ";" } });
    assert!(matches!(error(misspelled).await, CreateJobError::Params(_)));
    assert!(matches!(error(json!({ "params": { "dataset": "d" } })).await, CreateJobError::Params(_)));
    assert!(matches!(error(json!({ "params": { "format": "xlsx" } })).await, CreateJobError::Packing(_)));
    let stranger = world.creator.preview(&Owner("them".to_owned()), file, &Default::default()).await;
    assert!(matches!(stranger, Err(CreateJobError::UnknownUpload(_))));
    // What is still to be chosen does not keep anyone from seeing the rows.
    let choosing = json!({ "jobType": "import", "params": { "dataset": "d", "key": "nope" } });
    let view = try_preview(&world, file, choosing).await.unwrap();
    assert_eq!(view.params_problem.unwrap().field, "params.key");
    let chosen = json!({ "jobType": "import", "params": { "dataset": "d", "key": "id" } });
    assert_eq!(try_preview(&world, file, chosen).await.unwrap().params_problem, None);
    assert!(world.splits.take().is_empty(), "no job is created");
    world.objects.delete(&keys::upload(file));
    assert!(matches!(error(json!({})).await, CreateJobError::UnknownUpload(_)));
}

#[tokio::test]
async fn rows_behind_the_first_bytes_are_found() {
    let row = |number: usize| format!("{number},{}\n", "x".repeat(30_000));
    let csv = format!("id,text\n{}", (1..=30).map(row).collect::<String>());
    for (content_type, bytes) in [("text/csv", csv.clone().into_bytes()), ("application/gzip", gzip(csv.as_bytes()))] {
        let view = preview_of(content_type, bytes, json!({ "format": "csv" })).await;
        assert_eq!((view.rows.len(), view.complete), (20, false));
        assert!(view.rows.iter().all(|row| row.shortened && cells(row)[1].chars().count() == 1001));
    }
}

#[tokio::test]
async fn the_answer_is_bounded_for_every_width_and_depth() {
    let wide = |cell: &str| (0..16_000).map(|_| cell).collect::<Vec<_>>().join(",");
    let csv = format!("{}\n{}\n{}\n", wide("a"), wide("1"), wide("2"));
    let view = preview_of("text/csv", csv, json!({ "headerRow": 0 })).await;
    assert_eq!((view.column_count, view.columns.len()), (16_000, 1000));
    assert!(view.rows.iter().all(|row| row.shortened && cells(row).len() == 1000));

    let long = (0..900).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
    let row = (0..900).map(|_| "\u{1}".repeat(1100)).collect::<Vec<_>>().join(",");
    let view = preview_of("text/csv", format!("{long}\n{row}\n{row}\n"), json!({})).await;
    assert!(view.rows.iter().all(|row| row.shortened), "a row of many long cells is cut off more");
    assert_eq!(view.rows.len(), 2);

    let name = "n".repeat(5000);
    let object = format!("{{\"{name}\":\"{}\"}}\n", "é".repeat(5000));
    let many = format!("{{\"a\":[{}]}}\n", vec!["[1]"; 100_000].join(","));
    let view = preview_of("application/x-ndjson", format!("{object}{object}{many}{{\"a\":1}}\n"), json!({})).await;
    assert_eq!((view.column_count, view.columns[1].name.chars().count()), (2, 1001));
    assert_eq!(code(&view.rows[2]), "not_shown");
    assert_eq!((view.rows[3].row, view.complete), (4, true));

    let line = format!("{{\"a\":\"{}\"}}\n", "x".repeat(990)).repeat(2000);
    let world = World::new(Limits::default());
    let file = world.store("application/x-ndjson", line).await;
    let view = try_preview(&world, file, json!({ "rows": 100 })).await.unwrap();
    assert_eq!((view.rows.len(), view.complete), (100, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_ends_in_rows_or_a_refusal_within_the_bounds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/data/fuzz");
    let (mut shown, mut refused) = (0, 0);
    for format in std::fs::read_dir(folder).unwrap() {
        for file in std::fs::read_dir(format.unwrap().path()).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            let world = World::new(Limits::default());
            let file = world.store("application/octet-stream", bytes).await;
            for params in [json!({}), json!({ "format": "csv" })] {
                match try_preview(&world, file, json!({ "params": params })).await {
                    Ok(_) => shown += 1,
                    Err(CreateJobError::Port(error)) => panic!("{error}"),
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(shown > 0 && refused > 0, "{shown} shown, {refused} refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_begins_with_nothing_is_named_for_what_it_is() {
    for (byte, said) in [(b'\n', "are blank lines"), (0, "NUL bytes")] {
        for size in [70_000, 1 << 20] {
            let plain = vec![byte; size];
            for packed in [gzip(&plain), zstd::encode_all(&*plain, 3).unwrap(), plain] {
                let world = World::new(Limits::default());
                let file = world.store("text/csv", packed).await;
                match try_preview(&world, file, json!({})).await {
                    Err(CreateJobError::Head(error)) => {
                        assert_eq!(error.code(), "no_header");
                        assert!(error.to_string().contains(said), "{error}");
                    }
                    other => panic!("{byte}, {size}: {other:?}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_header_row_beyond_every_number_is_refused_with_its_limit() {
    for number in [1001, u64::from(u32::MAX), 1 << 32, u64::MAX] {
        for param in ["headerRow", "skipRows"] {
            let world = World::new(Limits::default());
            let file = world.store("text/csv", "a\n1\n").await;
            match try_preview(&world, file, json!({ "params": { param: number } })).await {
                Err(CreateJobError::Head(error)) => {
                    assert!(error.to_string().contains(&format!("`{param}` may be at most 1000")), "{error}");
                }
                other => panic!("{param}, {number}: {other:?}"),
            }
        }
    }
}

/// A block of zstd may be longer than what is read of a file at first.
#[tokio::test(flavor = "multi_thread")]
async fn a_packed_file_that_hardly_packs_is_read_to_its_header() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut text = "id,name\n".to_owned();
    for row in 0..4000 {
        text += &format!("{row},{}\n", (0..100).map(|_| random.alphanumeric()).collect::<String>());
    }
    for packed in [gzip(text.as_bytes()), zstd::encode_all(text.as_bytes(), 3).unwrap()] {
        let view = preview_of("text/csv", packed, json!({})).await;
        assert_eq!((view.rows.len(), view.column_count, view.complete), (20, 2, false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_is_read_no_further_than_its_first_rows() {
    let mut bomb = b"a,b\n1,2\n".to_vec();
    bomb.resize(50 << 20, b'x');
    let view = preview_of("application/gzip", gzip(&bomb), json!({ "format": "csv" })).await;
    assert_eq!((view.rows.len(), view.complete), (1, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_archive_the_first_file_is_shown() {
    let archive = files::zip(&[("folder/b.json", b"[{\"a\": 1}, {\"a\": 2}]".to_vec()), ("a.csv", b"x\n1\n".to_vec())]);
    let view = preview_of("application/zip", archive, json!({})).await;
    assert_eq!((view.member.as_deref(), view.format.as_str()), (Some("folder/b.json"), "json"));
    assert_eq!((columns(&view), view.rows.len(), view.complete), (vec![("a", "integer")], 2, true));
    assert_eq!(preview_of("text/csv", "a\n1\n", json!({})).await.member, None);

    let world = World::new(Limits::default());
    let packed = world.store("application/zip", files::zip(&[("a.csv.gz", gzip(b"a\n1\n"))])).await;
    let error = try_preview(&world, packed, json!({})).await.unwrap_err().to_string();
    assert!(error.contains("packed"), "{error}");
}

#[tokio::test]
async fn a_job_type_shows_what_it_would_make_of_the_rows() {
    let world = World::new(Limits::default());
    let file = world.store("text/csv", "id,name\n1,Ada\n2\nx,Bob\n").await;
    let preview = async |job_type: &str, params: Value| {
        let view = try_preview(&world, file, json!({ "jobType": job_type, "params": params })).await.unwrap();
        assert_eq!((view.params_problem, view.rows.len()), (None, 3));
        view.rows
    };
    let mapping = json!([{ "set": "name", "template": "{id}: {name}" }, { "drop": "id" }]);
    let rows = preview("transform", json!({ "mapping": mapping, "outputFormat": "jsonl" })).await;
    let outputs: Vec<_> = rows.iter().map(|row| row.output.as_deref()).collect();
    assert_eq!(outputs, [Some(r#"{"name":"1: Ada"}"#), None, Some(r#"{"name":"x: Bob"}"#)]);
    assert_eq!((cells(&rows[0]), code(&rows[1])), (vec!["1", "Ada"], "ragged_row"));

    let schema = json!({ "properties": { "id": { "type": "integer" } } });
    for (job_type, params) in [
        ("validate", json!({ "schema": schema })),
        ("import", json!({ "schema": schema, "dataset": "d", "key": "id" })),
    ] {
        let rows = preview(job_type, params).await;
        assert_eq!((&rows[0].problem, code(&rows[1]), code(&rows[2])), (&None, "ragged_row", "schema_violation"));
        assert!(rows.iter().all(|row| row.output.is_none()), "{job_type}: {rows:?}");
        assert_eq!(cells(&rows[2]), ["x", "Bob"]);
    }
    assert!(world.records.dataset("local/d").is_empty(), "nothing is written");
    let refused = json!({ "jobType": "transform", "params": { "mapping": [{ "drop": "nothing" }] } });
    let view = try_preview(&world, file, refused).await.unwrap();
    assert!(view.params_problem.is_some() && view.rows.iter().all(|row| row.output.is_none()));
}

#[tokio::test]
async fn long_outputs_are_cut_off_and_the_answer_stays_bounded() {
    let world = World::new(Limits::default());
    let rows: String = (0..100).map(|row| format!("{row},{}\n", "x".repeat(900))).collect();
    let file = world.store("text/csv", format!("id,text\n{rows}")).await;
    let mapping = json!([{ "set": "text", "template": "{text}{text}{text}{text}" }]);
    let request = json!({ "jobType": "transform", "params": { "mapping": mapping }, "rows": 100 });
    let view = try_preview(&world, file, request).await.unwrap();
    let outputs = view.rows.iter().filter_map(|row| row.output.as_ref());
    assert_eq!(view.rows.len(), 100);
    assert!(outputs.clone().count() > 50 && outputs.clone().all(|output| output.chars().count() == 1001));
}
