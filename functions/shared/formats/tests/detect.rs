//! Detection of how a file is packed.

mod support;

use rowmill_core::model::packing::{Charset, Compression, Packing, TextPacking};
use rowmill_formats::{FormatError, Hints, detect};
use support::{gzip, packed, utf16, zstd};

const CSV: &[u8] = b"a,b\n1,2\n";

fn text(compression: Option<Compression>, charset: Option<Charset>) -> Option<Packing> {
    Some(Packing::Text(packed(compression, charset)))
}

fn code(bytes: &[u8], hints: &Hints<'_>) -> &'static str {
    detect(bytes, hints).expect_err("the file is not readable").code()
}

#[test]
fn plain_text_has_no_packing() {
    let none = Hints::default();
    for bytes in [CSV, b"", b"a", b"PAR1,b\n1,2\n", b"PK\n1\n", b"\xef\xbb\xbfa,b\n", b"BZ\n"] {
        assert_eq!(detect(bytes, &none), Ok(None), "{bytes:?}");
    }
    for encoding in ["utf-8", "UTF8", " ascii "] {
        assert_eq!(detect(CSV, &Hints { encoding: Some(encoding), ..none }), Ok(None));
    }
    let said = Hints { format: Some("csv"), compression: Some("none"), ..none };
    assert_eq!(detect(CSV, &said), Ok(None));
}

#[test]
fn the_first_bytes_determine_the_compression_and_the_byte_order_mark_the_charset() {
    let none = Hints::default();
    let utf16le = utf16("\u{feff}a,b\n", Charset::UTF_16LE);
    assert_eq!(detect(&gzip(CSV), &none), Ok(text(Some(Compression::Gzip), None)));
    assert_eq!(detect(&zstd(CSV), &none), Ok(text(Some(Compression::Zstd), None)));
    assert_eq!(detect(&utf16le, &none), Ok(text(None, Some(Charset::UTF_16LE))));
    assert_eq!(detect(&gzip(&utf16le), &none), Ok(text(Some(Compression::Gzip), Some(Charset::UTF_16LE))));
    let utf16be = utf16("\u{feff}a,b\n", Charset::UTF_16BE);
    assert_eq!(detect(&zstd(&utf16be), &none), Ok(text(Some(Compression::Zstd), Some(Charset::UTF_16BE))));
    let prefix = &gzip(&CSV.repeat(100_000))[..100];
    assert_eq!(detect(prefix, &none), Ok(text(Some(Compression::Gzip), None)), "a prefix is enough");
}

#[test]
fn a_byte_order_mark_beats_the_param_encoding_which_beats_the_content_type() {
    let none = Hints::default();
    for label in ["latin1", "Latin-1", "ISO-8859-1", "windows-1252", "cp1252"] {
        let hints = Hints { encoding: Some(label), ..none };
        assert_eq!(detect(CSV, &hints), Ok(text(None, Some(Charset::WINDOWS_1252))), "{label}");
        assert_eq!(detect(b"\xef\xbb\xbfa,b\n", &hints), Ok(None));
        assert_eq!(detect(&utf16("\u{feff}a", Charset::UTF_16BE), &hints), Ok(text(None, Some(Charset::UTF_16BE))));
    }
    let utf16 = Hints { encoding: Some("utf-16"), ..none };
    assert_eq!(detect(b"a\0,\0", &utf16), Ok(text(None, Some(Charset::UTF_16LE))));
    let latin1 = Hints { content_type: Some("text/csv; Charset=\"latin1\""), ..none };
    assert_eq!(detect(CSV, &latin1), Ok(text(None, Some(Charset::WINDOWS_1252))));
    assert_eq!(detect(CSV, &Hints { encoding: Some("utf-8"), ..latin1 }), Ok(None));
    let binary = Hints { content_type: Some("application/gzip; charset=binary"), ..none };
    assert_eq!(detect(&gzip(CSV), &binary), Ok(text(Some(Compression::Gzip), None)));
    for label in ["utf-32", "utf-7", "hz-gb-2312", "klingon"] {
        let unknown = detect(CSV, &Hints { encoding: Some(label), ..none }).unwrap_err();
        assert_eq!(unknown.code(), "unsupported_encoding");
        assert!(unknown.to_string().contains("`windows-1252`"), "{unknown}");
    }
    for (label, name) in [("sjis", "Shift_JIS"), ("GB2312", "GBK"), ("gb18030", "gb18030"), ("cp1250", "windows-1250")]
    {
        let Ok(Some(Packing::Text(TextPacking { charset: Some(charset), .. }))) =
            detect(CSV, &Hints { encoding: Some(label), ..none })
        else {
            panic!("{label} is a charset")
        };
        assert_eq!(charset.name(), name);
    }
    assert_eq!(code(b"\xff\xfe\0\0a\0\0\0", &none), "unsupported_encoding");
}

#[test]
fn params_that_contradict_the_bytes_are_rejected() {
    let none = Hints::default();
    let parquet = b"PAR1\x15\x04";
    let xlsx = b"PK\x03\x04xl/workbook.xml";
    for (bytes, hints) in [
        (CSV, Hints { compression: Some("gzip"), ..none }),
        (b"", Hints { compression: Some("gzip"), ..none }),
        (CSV, Hints { format: Some("xlsx"), ..none }),
        (CSV, Hints { format: Some("parquet"), ..none }),
        (CSV, Hints { sheet: Some("Sheet1"), ..none }),
        (&gzip(CSV), Hints { compression: Some("none"), ..none }),
        (&gzip(CSV), Hints { compression: Some("zstd"), ..none }),
        (&gzip(CSV), Hints { format: Some("xlsx"), ..none }),
        (parquet, Hints { format: Some("csv"), ..none }),
        (parquet, Hints { compression: Some("gzip"), ..none }),
        (parquet, Hints { encoding: Some("latin1"), ..none }),
        (parquet, Hints { sheet: Some("Sheet1"), ..none }),
        (xlsx, Hints { format: Some("csv"), ..none }),
        (xlsx, Hints { encoding: Some("utf-16"), ..none }),
    ] {
        assert_eq!(code(bytes, &hints), "format_mismatch", "{hints:?}");
    }
    assert_eq!(code(CSV, &Hints { format: Some("xml"), ..none }), "unknown_format");
    assert_eq!(code(CSV, &Hints { compression: Some("bzip2"), ..none }), "unknown_compression");
    let error = detect(&gzip(CSV), &Hints { compression: Some("zstd"), ..none }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "The param `compression` is `zstd`, but the file is gzip. Correct or remove the param."
    );
}

#[test]
fn workbooks_and_parquet_files_are_distinguished_from_similar_files() {
    let none = Hints::default();
    assert_eq!(detect(b"PAR1\x15\x04", &none), Ok(Some(Packing::Parquet)));
    let zip = b"PK\x03\x04............................some/file.txt";
    for hints in [
        Hints { file_name: Some("Orders.XLSX"), ..none },
        Hints { format: Some("xlsx"), ..none },
        Hints { content_type: Some("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"), ..none },
    ] {
        assert_eq!(detect(zip, &hints), Ok(Some(Packing::Xlsx { sheet: None, title_rows: 0 })));
        let named = detect(zip, &Hints { sheet: Some("Q3"), encoding: Some("utf-8"), ..hints });
        assert_eq!(named, Ok(Some(Packing::Xlsx { sheet: Some("Q3".to_owned()), title_rows: 0 })));
    }
    assert_eq!(code(zip, &none), "archive");
    assert_eq!(code(zip, &Hints { file_name: Some("orders.xlsb"), ..none }), "unsupported_spreadsheet");
    assert_eq!(
        code(b"PK\x03\x04..........................mimetypeapplication/vnd.oasis.opendocument", &none),
        "unsupported_spreadsheet"
    );
    assert_eq!(detect(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", &none), Err(FormatError::OldExcel));
    assert_eq!(code(b"PARE\x15\x04", &none), "unsupported_parquet");
}

#[test]
fn the_error_for_an_unsupported_file_says_what_to_do() {
    let none = Hints::default();
    assert_eq!(code(b"BZh91AY&SY", &none), "unsupported_compression");
    assert_eq!(code(&gzip(&gzip(CSV)), &none), "unsupported_compression");
    assert_eq!(code(&gzip(b"PAR1\x15\x04"), &none), "unsupported_compression");
    let mut tar = vec![0; 512];
    tar[257..262].copy_from_slice(b"ustar");
    assert_eq!(code(&gzip(&tar), &none), "archive");
    assert_eq!(code(b"7z\xbc\xaf\x27\x1c", &none), "archive");
    assert!(detect(&gzip(&tar), &none).unwrap_err().to_string().contains("Upload the file inside"));
}

#[test]
fn a_json_array_is_found_by_its_content_unless_the_file_is_declared_as_something_else() {
    let none = Hints::default();
    let array = |packing| Ok(Some(Packing::Text(TextPacking { json_array: true, ..packing })));
    let lines: &[u8] = b"{\"a\":1}\n{\"a\":2}\n";
    let objects: &[u8] = b"\n[\n {\"a\":1},\n {\"a\":2}]\n";
    assert_eq!(detect(objects, &none), array(packed(None, None)));
    assert_eq!(detect(&gzip(objects), &none), array(packed(Some(Compression::Gzip), None)));
    let text = String::from_utf8(objects.to_vec()).unwrap();
    let wide = utf16(&format!("\u{feff}{text}"), Charset::UTF_16LE);
    assert_eq!(detect(&zstd(&wide), &none), array(packed(Some(Compression::Zstd), Some(Charset::UTF_16LE))));
    // JSON of other things than objects must be declared.
    let named = |file_name| Hints { file_name: Some(file_name), ..none };
    let typed = |content_type| Hints { content_type: Some(content_type), ..none };
    let said = |format| Hints { format: Some(format), ..none };
    assert_eq!(detect(b"[1,2]", &none), Ok(None));
    for declared in [named("a.JSON"), named("a.json.gz"), typed("application/json; charset=utf-8"), said("json")] {
        assert_eq!(detect(b"[1,2]", &declared), array(packed(None, None)), "{declared:?}");
    }
    assert_eq!(detect(lines, &named("a.json")), Ok(None), "lines in a file with this name");
    assert_eq!(detect(objects, &named("a.jsonl")), array(packed(None, None)), "the bytes have the last word");
    for csv in [said("csv"), named("a.csv"), typed("text/csv")] {
        assert_eq!(detect(objects, &csv), Ok(None), "{csv:?}");
    }
    assert_eq!(code(lines, &said("json")), "format_mismatch");
    assert_eq!(code(objects, &said("jsonl")), "format_mismatch");
}
