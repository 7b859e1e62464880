use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use super::bad_record::{INVALID_JSON, INVALID_UTF8, RAGGED_ROW, ROW_TOO_LONG};
use super::test_files::*;
use super::{CharsetHint, Chunk, ChunkMode, Dialect, RawItem, Record, TextParams, read_head, read_items};

/// Reads all items of a file, chunk by chunk.
fn items_of<'a>(file: &'a [u8], chunks: &[Chunk], dialect: &Dialect, columns: &Arc<[String]>) -> Vec<RawItem<'a>> {
    let mut all = Vec::new();
    for chunk in chunks {
        let bytes = &file[chunk.offset as usize..(chunk.offset + chunk.length) as usize];
        let items: Vec<_> = read_items(chunk, bytes, dialect, columns).collect();
        assert_eq!(items.len(), chunk.items as usize, "one item for each item that was cut");
        all.extend(items);
    }
    all
}

fn one_chunk(bytes: &[u8]) -> Chunk {
    Chunk { offset: 1000, length: bytes.len() as u64, first_row: 7, items: 1, mode: ChunkMode::Items }
}

fn read<'a>(bytes: &'a [u8], dialect: &Dialect, names: &[&str]) -> Vec<RawItem<'a>> {
    read_items(&one_chunk(bytes), bytes, dialect, &columns(names)).collect()
}

fn code_and_message(item: &RawItem<'_>) -> (&'static str, String) {
    let bad = item.record.as_ref().expect_err("the record is bad");
    (bad.code, bad.message.clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn cells_are_the_same_as_those_of_the_csv_crate(
        file in hostile_csv(), limits in any_limits(), width in 1_usize..5,
    ) {
        let limits = super::ChunkLimits { max_record_bytes: u64::MAX, ..limits };
        let names = columns(&["one", "two", "three", "four"][..width]);
        let (chunks, end) = cut(&file, &csv(b','), limits, START, &[]);
        let items = items_of(&file, &chunks, &csv(b','), &names);
        let slow = slow_csv_records(&file, b',');
        let expected = csv_crate_records(&file, b',');
        prop_assert_eq!(items.len() + usize::from(end.is_err()), expected.len());
        for (index, item) in items.iter().enumerate() {
            prop_assert_eq!(item.row, index as u64 + 1);
            prop_assert_eq!(item.offset, slow[index].start as u64);
            prop_assert_eq!(item.raw, &file[slow[index].start..slow[index].content_end]);
            let cells = &expected[index];
            match &item.record {
                Ok(Record::Cells(read)) => {
                    let read: Vec<_> = read.iter().map(|(_, cell)| cell.as_bytes().to_vec()).collect();
                    prop_assert_eq!(&read, cells);
                }
                Ok(Record::Json(_)) => prop_assert!(false, "a CSV record is not JSON"),
                Err(bad) if bad.code == RAGGED_ROW => prop_assert_ne!(cells.len(), width),
                Err(bad) => {
                    prop_assert_eq!(bad.code, INVALID_UTF8);
                    let at_fault = cells.iter().position(|cell| std::str::from_utf8(cell).is_err());
                    prop_assert_eq!(bad.column.as_ref(), at_fault.map(|index| &names[index]));
                    prop_assert_eq!(cells.len(), width);
                }
            }
        }
    }

    #[test]
    fn json_items_are_the_lines_that_are_not_blank(file in hostile_jsonl(), limits in any_limits()) {
        let limits = super::ChunkLimits { max_record_bytes: u64::MAX, ..limits };
        let (chunks, _) = cut(&file, &jsonl(), limits, START, &[]);
        let items = items_of(&file, &chunks, &jsonl(), &columns(&[]));
        let mut lines = Vec::new();
        let mut offset = 0;
        for line in file.split_inclusive(|&byte| byte == b'\n') {
            let raw = line.strip_suffix(b"\r\n").or(line.strip_suffix(b"\n")).unwrap_or(line);
            if raw.iter().any(|byte| !b" \t\r".contains(byte)) {
                lines.push((offset, raw));
            }
            offset += line.len() as u64;
        }
        prop_assert_eq!(items.iter().map(|item| (item.offset, item.raw)).collect::<Vec<_>>(), lines);
        for (index, item) in items.iter().enumerate() {
            prop_assert_eq!(item.row, index as u64 + 1);
            match (&item.record, serde_json::from_slice::<Value>(item.raw)) {
                (Ok(Record::Json(read)), Ok(value)) => prop_assert_eq!(read, &value),
                (Err(bad), _) if std::str::from_utf8(item.raw).is_err() => prop_assert_eq!(bad.code, INVALID_UTF8),
                (Err(bad), Ok(value)) => {
                    prop_assert_eq!(bad.code, INVALID_JSON);
                    prop_assert!(!value.is_object() || item.raw.len() > 30);
                }
                (Err(bad), Err(_)) => prop_assert_eq!(bad.code, INVALID_JSON),
                (Ok(_), _) => prop_assert!(false, "an invalid line was accepted"),
            }
        }
    }

    #[test]
    fn any_bytes_are_read_as_a_chunk_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300), lines in any::<bool>(), length in any::<u64>(),
        mode in prop::sample::select(vec![ChunkMode::Items, ChunkMode::TooLong]),
    ) {
        let chunk = Chunk { offset: 5, length, first_row: 3, items: 9, mode };
        let dialect = if lines { jsonl() } else { csv(b',') };
        let items: Vec<_> = read_items(&chunk, &bytes, &dialect, &columns(&["a", "b"])).collect();
        prop_assert!(items.iter().zip(3..).all(|(item, row)| item.row == row));
    }
}

#[test]
fn blank_lines_do_not_count_as_rows() {
    let items = read(b"a,b\r\n\r\n\nc,d\re,f", &csv(b','), &["x", "y"]);
    let seen: Vec<_> = items.iter().map(|item| (item.row, item.offset, item.raw)).collect();
    assert_eq!(seen, [(7, 1000, &b"a,b"[..]), (8, 1008, b"c,d"), (9, 1012, b"e,f")]);
}

#[test]
fn cells_are_found_by_column_name() {
    let items = read(b"1,\"say \"\"hi\"\"\",", &csv(b','), &["id", "text", "rest"]);
    let Ok(Record::Cells(cells)) = &items[0].record else { panic!("the record is good") };
    assert_eq!((cells.get("id"), cells.get("text"), cells.get("rest")), (Some("1"), Some("say \"hi\""), Some("")));
    assert_eq!((cells.get("none"), cells.at(3), cells.len()), (None, None, 3));
    assert_eq!(cells.iter().collect::<Vec<_>>(), [("id", "1"), ("text", "say \"hi\""), ("rest", "")]);
}

#[test]
fn byte_order_mark_bytes_in_the_middle_of_a_file_are_content() {
    let items = read(b"\xef\xbb\xbfa,b\n\xef\xbb\xbfc,d\n", &csv(b','), &["x", "y"]);
    let firsts: Vec<_> = items
        .iter()
        .map(|item| match &item.record {
            Ok(Record::Cells(cells)) => cells.get("x").map(str::to_owned),
            _ => None,
        })
        .collect();
    assert_eq!(firsts, [Some("\u{feff}a".to_owned()), Some("\u{feff}c".to_owned())]);
}

#[test]
fn a_ragged_row_says_how_many_cells_it_has() {
    let items = read(b"1\n1,2,3\n", &csv(b','), &["x", "y"]);
    assert_eq!(
        items.iter().map(code_and_message).collect::<Vec<_>>(),
        [
            (RAGGED_ROW, "The row has 1 cell, but the file has 2 columns.".to_owned()),
            (RAGGED_ROW, "The row has 3 cells, but the file has 2 columns.".to_owned()),
        ]
    );
}

#[test]
fn a_cell_that_is_not_utf8_names_its_column_and_byte() {
    // The second row is valid UTF-8 as a whole, but its cells are not: the bytes of one character lie in both cells.
    let items = read(b"ok,\"\"\"b\xffd\"\n\xc3,\xa9\n\xc3\"\n", &csv(b','), &["x", "y"]);
    let seen: Vec<_> = items.iter().map(code_and_message).collect();
    let text =
        |column, byte| format!("The cell in column `{column}` is not valid UTF-8: byte {byte} of the cell is invalid.");
    assert_eq!(seen[0], (INVALID_UTF8, text("y", 3)));
    assert_eq!(seen[1], (INVALID_UTF8, text("x", 1)));
    assert_eq!(seen[2].0, RAGGED_ROW);
}

#[test]
fn a_bad_json_line_says_what_is_wrong_and_where() {
    let lines = b"{\"a\":}\n[1]\n\"secret\"\n{\"a\":1} x\n{\"a\":\"\xff\"}\n{\"a\"\n\
        {\"a\":{\"$serde_json::private::RawValue\":\"[[1]]\"}}\n";
    let seen: Vec<_> = read(lines, &jsonl(), &[]).iter().map(code_and_message).collect();
    let expected = [
        (INVALID_JSON, "The line is not valid JSON: expected value, at byte 6 of the line."),
        (INVALID_JSON, "The line must be a JSON object, but it is an array."),
        (INVALID_JSON, "The line must be a JSON object, but it is a string."),
        (INVALID_JSON, "The line is not valid JSON: trailing characters, at byte 9 of the line."),
        (INVALID_UTF8, "The line is not valid UTF-8: byte 7 is invalid."),
        (INVALID_JSON, "The line is not valid JSON: EOF while parsing an object, at byte 4 of the line."),
        (INVALID_JSON, "The line has a name that begins with `$serde_json::private::`. Rename that field."),
    ];
    assert_eq!(seen, expected.map(|(code, message)| (code, message.to_owned())));
}

#[test]
fn a_json_number_keeps_every_digit_and_the_way_it_is_written() {
    let numbers = [
        "18446744073709551615",
        "18446744073709551617",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "0.1234567890123456789012345678901",
        "1.10",
        "1e+400",
        "1e-7",
        "-0",
    ];
    for number in numbers {
        let line = format!("{{\"m\":[{{\"n\":{number}}}],\"n\":{number}}}");
        let items = read(line.as_bytes(), &jsonl(), &[]);
        let Ok(Record::Json(value)) = &items[0].record else { panic!("{number} is valid") };
        assert_eq!(value.to_string(), line);
    }
    let items = read(b"{\"n\":01}\n{\"n\":1.}\n{\"n\":+1}\n{\"n\":NaN}\n", &jsonl(), &[]);
    assert!(items.iter().all(|item| code_and_message(item).0 == INVALID_JSON));
}

#[test]
fn the_message_of_an_item_that_is_not_utf_8_names_the_likely_charset_or_the_declared_one() {
    let (text, _, _) = encoding_rs::WINDOWS_1252.encode("1,Straße und Größe\n2,Fußgänger\n3,plain\n");
    let chunk = Chunk { offset: 0, length: text.len() as u64, first_row: 1, items: 3, mode: ChunkMode::Items };
    let columns: Arc<[String]> = ["id".to_owned(), "text".to_owned()].into();
    let messages = |hint| -> Vec<String> {
        let items = read_items(&chunk, &text, &csv(b','), &columns).with_hint(hint);
        items.filter_map(|item| item.record.err()).map(|bad| bad.message).collect()
    };
    let likely = messages(CharsetHint::Likely);
    assert_eq!(likely.len(), 2);
    assert_eq!(
        likely[0],
        "The cell in column `text` is not valid UTF-8: byte 5 of the cell is invalid. The text around it looks like \
         windows-1252; if it is, set the param `encoding` to `windows-1252`."
    );
    assert!(
        messages(CharsetHint::Declared("Shift_JIS"))[1]
            .ends_with("read as Shift_JIS, and these bytes are no text of it.")
    );
    assert!(messages(CharsetHint::None)[0].ends_with("invalid."));
}

#[test]
fn a_json_line_that_is_nested_too_deeply_is_a_failed_item() {
    let line = b"{\"a\":".repeat(100_000);
    let items = read(&line, &jsonl(), &[]);
    assert_eq!(code_and_message(&items[0]).0, INVALID_JSON);
}

#[test]
fn a_record_that_is_too_long_is_one_failed_item_with_its_first_bytes() {
    let chunk = Chunk { offset: 40, length: 5_000_000, first_row: 9, items: 1, mode: ChunkMode::TooLong };
    for dialect in [csv(b','), jsonl()] {
        let items: Vec<_> = read_items(&chunk, b"its \"beginning", &dialect, &columns(&["a"])).collect();
        assert_eq!(items.len(), 1);
        assert_eq!((items[0].row, items[0].offset, items[0].raw), (9, 40, &b"its \"beginning"[..]));
        assert_eq!(code_and_message(&items[0]).0, ROW_TOO_LONG);
    }
}

#[test]
fn every_row_of_the_unicode_file_has_its_original_content() {
    let file = unicode_csv();
    let head =
        read_head(&file[..4096], false, &TextParams::default(), Some("text/csv"), None).expect("it has a header");
    let names: Arc<[String]> = head.columns.into();
    let from = super::Position { offset: head.data_start, row: 1 };
    let (chunks, _) = cut(&file, &head.dialect, limits(500, 1 << 20, 1 << 20), from, &[65_536; 9]);
    let items = items_of(&file, &chunks, &head.dialect, &names);
    assert_eq!(items.len(), 11_231);
    for (item, row) in items.iter().zip(1..) {
        let Ok(Record::Cells(cells)) = &item.record else { panic!("row {row} is good") };
        let hex = cells.get("codepoint").and_then(|text| text.strip_prefix("U+")).expect("U+ and digits");
        let code = u32::from_str_radix(hex, 16).expect("hexadecimal");
        assert_eq!(cells.get("character").map(str::to_owned), char::from_u32(code).map(String::from));
        assert_eq!(item.row, row);
    }
}
