//! Decoding of Parquet files.

mod support;

use parquet::basic::Encoding;
use parquet::data_type::Int96;
use parquet::schema::types::ColumnPath;
use proptest::prelude::*;
use rowmill_core::model::packing::Packing;
use rowmill_formats::{DecodeError, Limits};
use serde_json::{Value, json};
use support::file_text;
use support::parquet::{Column, Values, codecs, file, optional, required, texts, v1, v2};

fn lines_of(bytes: Vec<u8>) -> Result<Vec<String>, DecodeError> {
    Ok(file_text(&Packing::Parquet, bytes, &Limits::default())?.lines().map(str::to_owned).collect())
}

fn rows_of(bytes: Vec<u8>) -> Vec<Value> {
    lines_of(bytes).unwrap().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_row_is_an_object_with_the_columns_in_file_order() {
    let schema = "message rows { required int64 id; optional binary name (UTF8); required double share; required boolean paid; }";
    let first = vec![
        required(Values::Int64(vec![i64::MAX, -1])),
        optional(texts(&["Zoë \"Z\"\n"]), vec![1, 0]),
        required(Values::Double(vec![0.1, 3.0])),
        required(Values::Boolean(vec![true, false])),
    ];
    let second = vec![
        required(Values::Int64(vec![7])),
        optional(texts(&["x"]), vec![1]),
        required(Values::Double(vec![1e-9])),
        required(Values::Boolean(vec![true])),
    ];
    for codec in codecs() {
        for properties in [v1(), v2()] {
            let bytes = file(schema, properties.set_compression(codec), &[first.clone(), second.clone()]);
            assert_eq!(
                lines_of(bytes).unwrap(),
                [
                    r#"{"id":9223372036854775807,"name":"Zoë \"Z\"\n","share":0.1,"paid":true}"#,
                    r#"{"id":-1,"name":null,"share":3.0,"paid":false}"#,
                    r#"{"id":7,"name":"x","share":1e-9,"paid":true}"#,
                ],
                "{codec:?}"
            );
        }
    }
}

#[test]
fn every_type_is_converted_by_its_logical_type() {
    let schema = "message rows {
        required int32 i8 (INTEGER(8, true)); required int32 u32 (INTEGER(32, false)); required int64 u64 (INTEGER(64, false));
        required int32 day (DATE); required int32 ms (TIME(MILLIS, true)); required int64 ns (TIME(NANOS, false));
        required int64 at_ms (TIMESTAMP(MILLIS, true)); required int64 at_us (TIMESTAMP(MICROS, false));
        required int64 at_ns (TIMESTAMP(NANOS, true)); required int64 old_us (TIMESTAMP_MICROS); required int96 older;
        required int32 d32 (DECIMAL(9, 2)); required int64 d64 (DECIMAL(18, 0));
        required fixed_len_byte_array(16) d128 (DECIMAL(38, 10)); required binary dn (DECIMAL(5, 1));
        required float f; required binary raw; required fixed_len_byte_array(3) raw3; required binary j (JSON);
        required fixed_len_byte_array(16) uuid (UUID); required fixed_len_byte_array(2) f16 (FLOAT16);
        required fixed_len_byte_array(12) wait (INTERVAL);
    }";
    let mut int96 = Int96::new();
    int96.set_data(500_000_000, 0, 2_440_589);
    let columns = [
        Values::Int32(vec![-8]),
        Values::Int32(vec![-1]),
        Values::Int64(vec![-1]),
        Values::Int32(vec![20_484]),
        Values::Int32(vec![3_723_004]),
        Values::Int64(vec![86_399_999_999_999]),
        Values::Int64(vec![1_769_862_600_500]),
        Values::Int64(vec![-1]),
        Values::Int64(vec![1_769_862_600_000_000_007]),
        Values::Int64(vec![0]),
        Values::Int96(vec![int96]),
        Values::Int32(vec![-1234]),
        Values::Int64(vec![i64::MIN]),
        Values::FixedBytes(vec![i128::MAX.to_be_bytes().to_vec()]),
        Values::Bytes(vec![vec![0xFF, 0x00]]),
        Values::Float(vec![0.1]),
        Values::Bytes(vec![b"\0\xff".to_vec()]),
        Values::FixedBytes(vec![b"abc".to_vec()]),
        texts(&["{\"a\": 1}"]),
        Values::FixedBytes(vec![(0..16).collect()]),
        Values::FixedBytes(vec![vec![0x00, 0xC0]]),
        Values::FixedBytes(vec![vec![1, 0, 0, 0, 0, 0, 0, 0, 250, 0, 0, 0]]),
    ];
    let row = rows_of(file(schema, v1(), &[columns.map(required).to_vec()])).pop().unwrap();
    let expected = json!({
        "i8": -8, "u32": u32::MAX, "u64": u64::MAX, "day": "2026-01-31", "ms": "01:02:03.004", "ns": "23:59:59.999999999",
        "at_ms": "2026-01-31T12:30:00.500Z", "at_us": "1969-12-31T23:59:59.999999", "at_ns": "2026-01-31T12:30:00.000000007Z",
        "old_us": "1970-01-01T00:00:00Z", "older": "1970-01-02T00:00:00.500000000", "d32": "-12.34",
        "d64": "-9223372036854775808", "d128": "17014118346046923173168730371.5884105727", "dn": "-25.6", "f": 0.1,
        "raw": "AP8=", "raw3": "YWJj", "j": "{\"a\": 1}", "uuid": "00010203-0405-0607-0809-0a0b0c0d0e0f", "f16": -2.0,
        "wait": "P1M0DT0.250S",
    });
    assert_eq!(row, expected);
}

#[test]
fn lists_maps_and_groups_become_json() {
    let schema = "message rows {
        optional group tags (LIST) { repeated group list { optional binary element (UTF8); } }
        required group prices (MAP) { repeated group key_value { required int32 key; optional double value; } }
        optional group address { required binary city (UTF8); optional group lines (LIST) { repeated group list { required binary element (UTF8); } } }
        repeated int32 old;
        optional group pairs (LIST) { repeated group array { required int32 a; required int32 b; } }
        optional group grid (LIST) { repeated group list { optional group element (LIST) { repeated group list { required int32 element; } } } }
    }";
    let columns = |parts: [(Values, &[i16], &[i16]); 9]| -> Vec<Column> {
        parts.map(|(values, def, rep)| Column { values, def: def.to_vec(), rep: rep.to_vec() }).to_vec()
    };
    // Three rows: one full, one with everything empty, one with everything null that can be null.
    let rows = columns([
        (texts(&["a", "b"]), &[3, 2, 3, 1, 0], &[0, 1, 1, 0, 0]),
        (Values::Int32(vec![1, 2]), &[1, 1, 0, 0], &[0, 1, 0, 0]),
        (Values::Double(vec![9.5]), &[2, 1, 0, 0], &[0, 1, 0, 0]),
        (texts(&["Bonn", "Kiel"]), &[1, 1, 0], &[]),
        (texts(&["x", "y"]), &[3, 3, 2, 0], &[0, 1, 0, 0]),
        (Values::Int32(vec![1, 2, 3]), &[1, 1, 1, 0, 0], &[0, 1, 1, 0, 0]),
        (Values::Int32(vec![1, 3]), &[2, 2, 1, 0], &[0, 1, 0, 0]),
        (Values::Int32(vec![2, 4]), &[2, 2, 1, 0], &[0, 1, 0, 0]),
        (Values::Int32(vec![1, 2, 3]), &[4, 4, 3, 2, 4, 1, 0], &[0, 2, 1, 1, 1, 0, 0]),
    ]);
    let expected = vec![
        json!({
            "tags": ["a", null, "b"], "prices": {"1": 9.5, "2": null}, "address": {"city": "Bonn", "lines": ["x", "y"]},
            "old": [1, 2, 3], "pairs": [{"a": 1, "b": 2}, {"a": 3, "b": 4}], "grid": [[1, 2], [], null, [3]],
        }),
        json!({ "tags": [], "prices": {}, "address": {"city": "Kiel", "lines": []}, "old": [], "pairs": [], "grid": [] }),
        json!({ "tags": null, "prices": {}, "address": null, "old": [], "pairs": null, "grid": null }),
    ];
    for properties in [v1(), v2(), v1().set_data_page_row_count_limit(1).set_write_batch_size(1)] {
        assert_eq!(rows_of(file(schema, properties, std::slice::from_ref(&rows))), expected);
    }
}

#[test]
fn all_encodings_are_read_over_many_pages() {
    let schema = "message rows { optional int64 number; required binary text (UTF8); required fixed_len_byte_array(4) four; required double share; }";
    let count = 20_000_i64;
    let numbers: Vec<Option<i64>> = (0..count).map(|row| (row % 7 != 0).then_some(row * 31 - 5)).collect();
    let words: Vec<Vec<u8>> = (0..count).map(|row| format!("word {}", row / 3).into_bytes()).collect();
    let columns = vec![
        optional(
            Values::Int64(numbers.iter().flatten().copied().collect()),
            numbers.iter().map(|number| number.is_some().into()).collect(),
        ),
        required(Values::Bytes(words.clone())),
        required(Values::FixedBytes((0..count as u32).map(|row| row.to_be_bytes().to_vec()).collect())),
        required(Values::Double((0..count).map(|row| row as f64 / 8.0).collect())),
    ];
    let path = |name: &str| ColumnPath::from(name);
    for text_encoding in [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        for with_dictionary in [true, false] {
            for properties in [v1(), v2()] {
                let properties = properties
                    .set_dictionary_enabled(with_dictionary)
                    .set_column_encoding(path("number"), Encoding::DELTA_BINARY_PACKED)
                    .set_column_encoding(path("text"), text_encoding)
                    .set_column_encoding(path("four"), Encoding::DELTA_BYTE_ARRAY)
                    .set_column_encoding(path("share"), Encoding::BYTE_STREAM_SPLIT)
                    .set_dictionary_page_size_limit(16 * 1024)
                    .set_data_page_size_limit(8 * 1024)
                    .set_compression(codecs()[1]);
                let rows = rows_of(file(schema, properties, std::slice::from_ref(&columns)));
                assert_eq!(rows.len(), count as usize);
                for (row, found) in rows.iter().enumerate().step_by(97) {
                    assert_eq!(found["number"], json!(numbers[row]), "{row}");
                    assert_eq!(found["text"].as_str().unwrap().as_bytes(), words[row]);
                    assert_eq!(found["share"], json!(row as f64 / 8.0));
                }
            }
        }
    }
}

#[test]
fn rows_longer_than_a_block_are_split() {
    let text = "0123456789\"\n".repeat(50_000);
    let raw: Vec<u8> = (0..500_000_u32).map(|byte| (byte * 7) as u8).collect();
    let schema = "message rows { required binary text (UTF8); required binary raw; }";
    let columns = vec![required(texts(&[&text, "short"])), required(Values::Bytes(vec![raw.clone(), vec![1]]))];
    let rows = rows_of(file(schema, v1(), &[columns]));
    use base64::Engine;
    assert_eq!(rows[0], json!({"text": text, "raw": base64::engine::general_purpose::STANDARD.encode(raw)}));
    assert_eq!(rows[1], json!({"text": "short", "raw": "AQ=="}));
}

#[test]
fn text_that_is_not_utf_8_spoils_its_own_row_only() {
    let schema = "message rows { required binary text (UTF8); }";
    let bytes = file(schema, v1(), &[vec![required(Values::Bytes(vec![b"a\xffb".to_vec(), b"fine".to_vec()]))]]);
    let mut text = Vec::new();
    rowmill_formats::decode_file(&Packing::Parquet, std::io::Cursor::new(bytes), &Limits::default(), |block| {
        text.extend_from_slice(block.bytes);
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(text, b"{\"text\":\"a\xffb\"}\n{\"text\":\"fine\"}\n");
}

#[test]
fn a_file_without_rows_is_an_empty_text() {
    let schema = "message rows { required int32 a; }";
    assert_eq!(lines_of(file(schema, v1(), &[])).unwrap(), Vec::<String>::new());
    assert_eq!(lines_of(file(schema, v1(), &[vec![required(Values::Int32(vec![]))]])).unwrap(), Vec::<String>::new());
}

#[test]
fn columns_with_the_same_name_are_rejected() {
    let schema = "message rows { required int32 a; required int32 a; }";
    let column = required(Values::Int32(vec![1]));
    let error = lines_of(file(schema, v1(), &[vec![column.clone(), column]])).unwrap_err();
    assert_eq!(error.code(), "unsupported_parquet");
    assert!(error.to_string().contains("two columns named `a`"), "{error}");
}

#[test]
fn the_error_says_that_a_file_is_cut_off() {
    let bytes = file("message rows { required int32 a; }", v1(), &[vec![required(Values::Int32(vec![1]))]]);
    for end in 0..bytes.len() {
        let error = lines_of(bytes[..end].to_vec()).expect_err("the file is cut short");
        assert_eq!(error.code(), "corrupt_file", "{end}");
    }
    let error = lines_of(bytes[..bytes.len() - 1].to_vec()).unwrap_err();
    assert!(error.to_string().contains("the end of the footer is missing"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn lists_of_any_shape_are_decoded_as_they_were_written(
        rows in proptest::collection::vec(
            proptest::option::weighted(0.9, proptest::collection::vec(
                proptest::option::weighted(0.8, proptest::collection::vec(any::<i32>(), 0..4)), 0..5)), 0..40),
        page_rows in 1..20_usize,
    ) {
        let schema = "message rows { optional group grid (LIST) { repeated group list { optional group element (LIST) { repeated group list { required int32 element; } } } } }";
        let (mut values, mut def, mut rep) = (Vec::new(), Vec::new(), Vec::new());
        let mut level = |rep_level, def_level| {
            rep.push(rep_level);
            def.push(def_level);
        };
        for row in &rows {
            match row {
                None => level(0, 0),
                Some(lists) if lists.is_empty() => level(0, 1),
                Some(lists) => for (outer, list) in lists.iter().enumerate() {
                    let first = i16::from(outer > 0);
                    match list {
                        None => level(first, 2),
                        Some(list) if list.is_empty() => level(first, 3),
                        Some(list) => for (inner, value) in list.iter().enumerate() {
                            level(if inner > 0 { 2 } else { first }, 4);
                            values.push(*value);
                        },
                    }
                },
            }
        }
        let column = Column { values: Values::Int32(values), def, rep };
        for properties in [v1(), v2()] {
            let properties = properties.set_data_page_row_count_limit(page_rows).set_write_batch_size(1);
            let found = rows_of(file(schema, properties, &[vec![column.clone()]]));
            let expected: Vec<Value> = rows.iter().map(|row| json!({ "grid": row })).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
