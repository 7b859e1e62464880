use proptest::prelude::*;
use serde_json::json;

use super::{Dialect, Format, Head, HeadError, TextParams, read_head};

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
fn only_utf8_is_supported_and_its_mark_takes_precedence_over_the_param() {
    let with = |file: &[u8], encoding: &str| {
        let params = params(json!({"encoding": encoding}));
        read_head(file, true, &params, Some("text/csv"), None).map(|head| head.columns.len())
    };
    assert_eq!([with(b"a", "UTF-8"), with(b"a", "us-ascii"), with(b"\xef\xbb\xbfa", "latin1")], [Ok(1), Ok(1), Ok(1)]);
    assert_eq!(with(b"a", "latin1"), Err(HeadError::UnsupportedEncoding { encoding: "latin1".to_owned() }));
    let marks: [(&[u8], _); 4] = [
        (b"\xff\xfea\0", "UTF-16"),
        (b"\xfe\xff\0a", "UTF-16"),
        (b"\xff\xfe\0\0a\0\0\0", "UTF-32"),
        (b"\0\0\xfe\xff\0\0\0a", "UTF-32"),
    ];
    for (file, encoding) in marks {
        assert_eq!(with(file, "utf-8"), Err(HeadError::ForeignByteOrderMark { encoding }));
    }
}

#[test]
fn a_header_with_invalid_column_names_is_rejected() {
    assert_eq!(csv_head(b"a,b,a\n"), Err(HeadError::DuplicateColumn { name: "a".to_owned(), first: 1, second: 3 }));
    assert_eq!(csv_head(b"a,,c\n"), Err(HeadError::EmptyColumn { column: 2 }));
    assert_eq!(csv_head(b"a,\xff\n"), Err(HeadError::InvalidUtf8 { column: 2 }));
    assert_eq!(csv_head(b"a,\"b\nc\n"), Err(HeadError::UnterminatedQuote { offset: 2 }));
}

#[test]
fn a_header_that_does_not_end_within_the_examined_bytes_is_too_long() {
    for prefix in [&b"a,b"[..], b"a,\"b\n", b"", b"\n\n"] {
        let head = read_head(prefix, false, &TextParams::default(), Some("text/csv"), None);
        assert_eq!(head, Err(HeadError::HeaderTooLong { limit: prefix.len() as u64 }));
    }
    assert!(read_head(b"a,b\n", false, &TextParams::default(), Some("text/csv"), None).is_ok());
}

#[test]
fn a_message_says_what_to_do_and_quotes_little_of_the_file() {
    let name = "n".repeat(10_000);
    let error = csv_head(format!("{name},{name}\n").as_bytes()).expect_err("the same name twice");
    assert_eq!(
        error.to_string(),
        format!("Columns 1 and 2 of the header are both named `{}…`. Give each column a unique name.", &name[..60])
    );
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
    ) {
        let params = TextParams { header, ..TextParams::default() };
        if let Ok(head) = read_head(&prefix, whole, &params, Some("text/csv"), None) {
            prop_assert!(head.data_start <= prefix.len() as u64);
        }
    }
}
