use proptest::prelude::*;
use serde_json::json;

use crate::text::{COLUMNS_MAX, Dialect, Format, Head, HeadError, TextParams, read_head};

fn params(value: serde_json::Value) -> TextParams {
    serde_json::from_value(value).expect("valid params")
}

fn csv_head(file: &[u8]) -> Result<Head, HeadError> {
    read_head(file, true, &TextParams::default(), Some("text/csv; charset=utf-8"), None)
}

fn delimiter_of(file: &[u8]) -> u8 {
    csv_head(file).expect("a readable head").dialect.delimiter
}

#[test]
fn the_header_names_the_columns_and_the_records_start_after_it() {
    let head = csv_head(b"\n\xef\xbb\xbfa,\"b \"\"x\"\"\n2\"\r\n1,2\r\n").expect("a readable head");
    assert_eq!(
        head.columns,
        ["\u{feff}a", "b \"x\"\n2"],
        "a byte-order mark that is not at the start of the file is content"
    );
    let head = csv_head(b"\xef\xbb\xbfa,b\r\n1,2\r\n").expect("a readable head");
    assert_eq!((head.columns, head.data_start), (vec!["a".to_owned(), "b".to_owned()], 8));
}

#[test]
fn without_a_header_the_columns_are_numbered_and_the_first_record_is_data() {
    let params = params(json!({"header": false, "format": "csv", "schema": {"is": "not ours"}}));
    let head = read_head(b"\xef\xbb\xbf1;2;1\n", true, &params, None, None).expect("a readable head");
    assert_eq!((head.columns, head.data_start), (["column1", "column2", "column3"].map(String::from).to_vec(), 3));
}

#[test]
fn an_empty_file_has_no_columns_and_a_file_with_only_a_header_is_valid() {
    for file in [&b""[..], b"\xef\xbb\xbf", b"\r\n\n"] {
        let head = csv_head(file).expect("a readable head");
        assert_eq!((head.columns, head.data_start), (vec![], file.len() as u64));
    }
    let head = csv_head(b"a,b").expect("a readable head");
    assert_eq!((head.columns.len(), head.data_start), (2, 3));
}

#[test]
fn the_delimiter_is_the_most_frequent_candidate_outside_quotes() {
    assert_eq!(delimiter_of(b"a,b;c;d\n"), b';');
    assert_eq!(delimiter_of(b"a\tb\n,,,,\n"), b'\t');
    assert_eq!(delimiter_of(b"\"x;;;\"|b\n"), b'|');
    assert_eq!(delimiter_of(b"\"x \"\";;;\"\" y\"|b\n"), b'|');
    assert_eq!(delimiter_of(b"5\";6\";7\",8\n"), b';', "a quote inside a cell does not open a quoted part");
    assert_eq!(delimiter_of(b"a;b,c\n"), b',', "the earlier candidate wins");
    assert_eq!(delimiter_of(b"alone\n"), b',');
}

#[test]
fn the_format_comes_from_params_then_content_type_then_file_name() {
    let format = |params: &TextParams, content_type, file_name| {
        read_head(b"a\n", true, params, content_type, file_name).map(|head| head.dialect.format)
    };
    let none = TextParams::default();
    assert_eq!(format(&params(json!({"format": "jsonl"})), Some("text/csv"), Some("a.csv")), Ok(Format::Jsonl));
    assert_eq!(format(&none, Some("Application/X-NDJSON; charset=utf-8"), Some("a.csv")), Ok(Format::Jsonl));
    assert_eq!(format(&none, Some("application/octet-stream"), Some("dir.d/A.CSV")), Ok(Format::Csv));
    assert_eq!(format(&none, None, Some("a.jsonl")), Ok(Format::Jsonl));
    assert_eq!(format(&none, Some("application/octet-stream"), Some("csv")), Err(HeadError::UnknownFormat));
}

#[test]
fn json_lines_have_no_columns_and_start_after_the_byte_order_mark() {
    let head = read_head(b"\xef\xbb\xbf{}\n", true, &params(json!({"format": "jsonl"})), None, None);
    assert_eq!(head.map(|head| (head.columns, head.data_start)), Ok((vec![], 3)));
}

#[test]
fn the_delimiter_param_is_one_ascii_character() {
    let with = |delimiter: &str| {
        let params = params(json!({"delimiter": delimiter}));
        read_head(b"a~b,c\td", true, &params, Some("text/csv"), None).map(|head| head.columns.len())
    };
    assert_eq!([with("~"), with("\t"), with("\\t"), with("|")], [Ok(2), Ok(2), Ok(2), Ok(1)]);
    for bad in ["", ",,", "\"", "\n", "\r", "§"] {
        assert_eq!(with(bad), Err(HeadError::BadDelimiter { delimiter: bad.to_owned() }));
    }
}

#[test]
fn the_mark_of_another_encoding_than_utf_8_is_rejected() {
    assert_eq!(csv_head(b"\xef\xbb\xbfa").map(|head| head.columns.len()), Ok(1));
    let marks: [(&[u8], _); 4] = [
        (b"\xff\xfea\0", "UTF-16"),
        (b"\xfe\xff\0a", "UTF-16"),
        (b"\xff\xfe\0\0a\0\0\0", "UTF-32"),
        (b"\0\0\xfe\xff\0\0\0a", "UTF-32"),
    ];
    for (file, encoding) in marks {
        assert_eq!(csv_head(file), Err(HeadError::ForeignByteOrderMark { encoding }));
    }
}

#[test]
fn columns_without_a_name_and_doubled_names_get_names_and_the_head_keeps_the_header_of_the_file() {
    let head = csv_head(b"a,,a,a_2\n").expect("a readable head");
    assert_eq!(head.columns, ["a", "column2", "a_3", "a_2"]);
    assert_eq!(head.own_header(), ["a", "", "a", "a_2"]);
    let good = csv_head(b"a,b\n").expect("a readable head");
    assert_eq!((good.own_header(), good.header.is_none()), (good.columns.as_slice(), true));
}

#[test]
fn a_header_with_unreadable_column_names_is_rejected() {
    assert_eq!(csv_head(b"a,\xff\n"), Err(HeadError::InvalidUtf8 { column: 2, likely: Some("windows-1252") }));
    assert_eq!(csv_head(b"a\0,\0b\0\n"), Err(HeadError::NulInColumn { column: 1 }));
    assert_eq!(csv_head(b"a,\"b\nc\n"), Err(HeadError::UnterminatedQuote { offset: 2 }));
    let many = [b",".repeat(COLUMNS_MAX), b"\n".to_vec()].concat();
    assert_eq!(csv_head(&many), Err(HeadError::TooManyColumns { columns: COLUMNS_MAX + 1 }));
    assert_eq!(csv_head(&many[1..]).map(|head| head.columns.len()), Ok(COLUMNS_MAX));
}

#[test]
fn a_header_that_does_not_end_within_the_examined_bytes_is_too_long() {
    for prefix in [&b"a,b"[..], b"a,\"b\n", b""] {
        let head = read_head(prefix, false, &TextParams::default(), Some("text/csv"), None);
        assert_eq!(head, Err(HeadError::HeaderTooLong { limit: prefix.len() as u64 }));
    }
    assert!(read_head(b"a,b\n", false, &TextParams::default(), Some("text/csv"), None).is_ok());
}

#[test]
fn a_file_that_begins_with_nothing_is_not_called_one_with_a_long_header() {
    let head = |prefix: &[u8], content_type| read_head(prefix, false, &TextParams::default(), content_type, None);
    for content_type in [Some("text/csv"), None] {
        assert_eq!(head(b"\n\r\n\n", content_type), Err(HeadError::OnlyBlankLines { examined: 4 }));
        assert_eq!(head(b"\xef\xbb\xbf\n", content_type), Err(HeadError::OnlyBlankLines { examined: 4 }));
        for nul in [&b"\0\0\0"[..], b"\n\0\0\0\n"] {
            assert_eq!(head(nul, content_type), Err(HeadError::NulBytes));
        }
    }
    let titled = read_head(b"a\n\n\n", false, &params(json!({"skipRows": 1})), Some("text/csv"), None);
    assert_eq!(titled, Err(HeadError::OnlyBlankLines { examined: 4 }));
    assert_eq!(csv_head(b"\0\0\n"), Err(HeadError::NulBytes));
    assert!(csv_head(b"\n\n").is_ok(), "a whole file of blank lines has no items");
}

const TITLES: &[u8] = b"\xef\xbb\xbfReport, 2026\n\n\"as of\ntoday\"\r\nid;name\r\n1;x\n2;y\n";

/// The columns and the text from the first item on.
fn read_at(file: &[u8], value: serde_json::Value) -> Result<(Vec<String>, String), HeadError> {
    let head = read_head(file, true, &params(value), Some("text/csv"), None)?;
    Ok((head.columns, String::from_utf8_lossy(&file[head.data_start as usize..]).into_owned()))
}

#[test]
fn title_rows_are_skipped_before_the_header_and_the_delimiter_is_that_of_the_header() {
    let expected = Ok((vec!["id".to_owned(), "name".to_owned()], "1;x\n2;y\n".to_owned()));
    for place in [json!({"skipRows": 2}), json!({"headerRow": 3}), json!({"skipRows": 1, "headerRow": 2})] {
        assert_eq!(read_at(TITLES, place.clone()), expected, "{place}");
    }
    let columns = vec!["column1".to_owned(), "column2".to_owned()];
    let no_header = Ok((columns.clone(), "1;x\n2;y\n".to_owned()));
    assert_eq!(read_at(TITLES, json!({"skipRows": 3, "headerRow": 0})), no_header);
    assert_eq!(read_at(TITLES, json!({"skipRows": 3, "header": false})), no_header);
    let from_the_start = read_at(b"1;2\n3;4\n", json!({"headerRow": 0}));
    assert_eq!(from_the_start, Ok((columns, "1;2\n3;4\n".to_owned())));
}

#[test]
fn a_header_behind_the_end_of_the_file_or_contradicting_params_are_rejected() {
    let error = |value| read_at(b"a\nb\n", value).expect_err("no header");
    assert_eq!(error(json!({"skipRows": 2})), HeadError::TooFewRows { rows: 2, title_rows: 2 });
    assert_eq!(error(json!({"skipRows": 9, "headerRow": 0})), HeadError::TooFewRows { rows: 2, title_rows: 9 });
    let all_skipped = read_at(b"a\nb\n", json!({"skipRows": 2, "headerRow": 0}));
    assert_eq!(all_skipped, Ok((vec![], String::new())), "a file with nothing but titles has no items");
    assert_eq!(error(json!({"headerRow": 1001})), HeadError::TooManyTitleRows { param: "headerRow" });
    assert_eq!(error(json!({"headerRow": 2, "header": false})), HeadError::HeaderContradiction);
    assert_eq!(error(json!({"headerRow": 0, "header": true})), HeadError::HeaderContradiction);
    let jsonl = error(json!({"skipRows": 1, "format": "jsonl"}));
    assert_eq!(jsonl, HeadError::NoHeaderInJsonLines { param: "skipRows" });
    let far = read_head(b"a\nb\n", false, &params(json!({"skipRows": 2})), Some("text/csv"), None);
    assert_eq!(far, Err(HeadError::HeaderTooLong { limit: 4 }));
}

#[test]
fn the_content_determines_the_format_where_neither_type_nor_name_does() {
    let sniffed = |file: &[u8], value| read_head(file, true, &params(value), Some("text/plain"), Some("data.txt"));
    assert_eq!(sniffed(b"a\tb\n1\t2\n", json!({})).map(|head| head.dialect.delimiter), Ok(b'\t'));
    assert_eq!(sniffed(b"{\"a\":1}\n", json!({})).map(|head| head.dialect.format), Ok(Format::Jsonl));
    assert_eq!(sniffed(TITLES, json!({"skipRows": 2})).map(|head| head.columns.len()), Ok(2));
    assert_eq!(sniffed(b"just a text\n", json!({})), Err(HeadError::UnknownFormat));
}

#[test]
fn a_dialect_is_serialized_as_its_format_and_one_character() {
    let dialect = Dialect { format: Format::Csv, delimiter: b'\t' };
    let written = json!({"format": "csv", "delimiter": "\t"});
    assert_eq!(serde_json::to_value(dialect).expect("it can be written"), written);
    assert_eq!(serde_json::from_value::<Dialect>(written).expect("it can be read"), dialect);
    assert!(serde_json::from_value::<Dialect>(json!({"format": "csv", "delimiter": "§"})).is_err());
}

proptest! {
    #[test]
    fn any_first_bytes_are_handled_without_a_panic(
        prefix in prop::collection::vec(any::<u8>(), 0..200), whole in any::<bool>(), header in any::<Option<bool>>(),
        skip_rows in prop::option::of(0..3_u32), is_csv in any::<bool>(),
    ) {
        let params = TextParams { header, skip_rows, ..TextParams::default() };
        if let Ok(head) = read_head(&prefix, whole, &params, is_csv.then_some("text/csv"), None) {
            prop_assert!(head.data_start <= prefix.len() as u64);
        }
    }
}
