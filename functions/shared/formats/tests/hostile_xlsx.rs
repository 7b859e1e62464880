//! Forged workbooks and workbooks that are far too large: each one ends in an error, with little memory.

mod support;

use std::time::Duration;

use proptest::prelude::*;
use rowmill_core::model::packing::Packing;
use rowmill_formats::{DecodeError, Limits};
use rust_xlsxwriter::Workbook;
use support::memory::{Counting, peak_of};
use support::zip::{Part, archive, contents, rewritten};
use support::{file_text, file_text_bytes};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: usize = 1024 * 1024;
const SHEET: &str = "xl/worksheets/sheet1.xml";
const STRINGS: &str = "xl/sharedStrings.xml";

fn honest() -> Vec<u8> {
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet();
    sheet.write_row(0, 0, ["id", "name"]).unwrap();
    sheet.write(1, 0, 1).unwrap();
    sheet.write(1, 1, "one").unwrap();
    workbook.save_to_buffer().unwrap()
}

/// The honest workbook, with one part replaced by this part.
fn with_part(part: Part) -> Vec<u8> {
    let parts = contents(&honest()).into_iter().filter(|(name, _)| *name != part.name);
    let mut parts: Vec<Part> = parts.map(|(name, content)| Part::deflated(&name, &content)).collect();
    parts.push(part);
    archive(&parts)
}

fn with_content(name: &str, content: &[u8]) -> Vec<u8> {
    with_part(Part::deflated(name, content))
}

fn sheet(rows: &str) -> Vec<u8> {
    format!("<worksheet><sheetData>{rows}</sheetData></worksheet>").into_bytes()
}

fn decoded(bytes: Vec<u8>, limits: &Limits) -> (Result<String, DecodeError>, usize) {
    peak_of(|| file_text(&Packing::Xlsx { sheet: None, title_rows: 0 }, bytes, limits))
}

fn refused_within(bytes: Vec<u8>, limits: &Limits, peak_max: usize) -> DecodeError {
    let (result, peak) = peak_of(|| file_text_bytes(&Packing::Xlsx { sheet: None, title_rows: 0 }, bytes, limits));
    assert!(peak < peak_max, "{peak} bytes were held");
    let error = result.expect_err("the file lies");
    assert!(!error.is_source(), "{error}");
    error
}

fn refused(bytes: Vec<u8>) -> DecodeError {
    refused_within(bytes, &Limits { ratio_from_bytes: 8 * MIB as u64, ..Limits::default() }, 4 * MIB)
}

#[test]
fn the_honest_form_of_these_files_is_read() {
    assert_eq!(decoded(honest(), &Limits::default()).0.unwrap(), "id,name\n1,one\n");
    assert_eq!(decoded(rewritten(&honest(), |_, content| content), &Limits::default()).0.unwrap(), "id,name\n1,one\n");
    let stored: Vec<Part> = contents(&honest()).iter().map(|(name, content)| Part::stored(name, content)).collect();
    assert_eq!(decoded(archive(&stored), &Limits::default()).0.unwrap(), "id,name\n1,one\n");
}

#[test]
fn shared_strings_over_the_limit_are_rejected_regardless_of_their_declared_size() {
    let mut part = Part::deflated(STRINGS, &vec![b' '; 64 * MIB]);
    part.size = 100;
    // White space is a single text of the XML, so the limit of a text stops it.
    assert_eq!(refused(with_part(part)).code(), "sheet_too_large");
    let mut strings = b"<sst>".to_vec();
    strings.extend(b"<si><t>text</t></si>".repeat(2_000_000));
    let mut part = Part::deflated(STRINGS, &strings);
    part.size = 100;
    let limits = Limits { ratio_from_bytes: u64::MAX, ..Limits::default() };
    let error = refused_within(with_part(part), &limits, 40 * MIB);
    assert!(error.to_string().contains("33554432 bytes of shared strings"), "{error}");
}

#[test]
fn a_workbook_whose_first_row_lies_too_deep_is_refused_by_bytes_or_by_time() {
    let empty = with_content(SHEET, &sheet(&"<row/>".repeat(400_000)));
    let decode = |limits: Limits| {
        let limits = Limits { ratio_from_bytes: u64::MAX, ..limits };
        refused_within(empty.clone(), &limits, 4 * MIB).code()
    };
    assert_eq!(decode(Limits { expanded_max_bytes: MIB as u64, ..Limits::of_beginning() }), "begins_too_late");
    assert_eq!(decode(Limits { busy_max: Some(Duration::ZERO), ..Limits::of_beginning() }), "begins_too_late");
    assert_eq!(decode(Limits { expanded_max_bytes: MIB as u64, ..Limits::default() }), "expands_too_far");
    assert_eq!(decoded(honest(), &Limits::of_beginning()).0.unwrap(), "id,name\n1,one\n");
}

#[test]
fn the_declared_count_of_strings_is_ignored() {
    let strings = br#"<sst count="99999999999" uniqueCount="99999999999"><si><t>id</t></si><si><t>name</t></si><si><t>one</t></si></sst>"#;
    let (csv, peak) = decoded(with_content(STRINGS, strings), &Limits::default());
    assert_eq!(csv.unwrap(), "id,name\n1,one\n");
    assert!(peak < 4 * MIB, "{peak}");
}

#[test]
fn a_sheet_with_too_many_cells_is_rejected() {
    let rows = "<row><c><v>1</v></c><c s=\"1\"/></row>".repeat(60);
    let limits = Limits { xlsx_cells_max: 100, ..Limits::default() };
    let error = refused_within(with_content(SHEET, &sheet(&rows)), &limits, 4 * MIB);
    assert_eq!(error.code(), "sheet_too_large");
    assert_eq!(
        error.to_string(),
        "The workbook has more than the maximum of 100 cells. Save the sheet as CSV and upload that."
    );
}

#[test]
fn endless_rows_without_cells_are_stopped_by_their_ratio() {
    let error = refused(with_content(SHEET, &sheet(&"<row/>".repeat(4_000_000))));
    assert!(matches!(error, DecodeError::ExpandsTooSteeply { .. }), "{error}");
}

#[test]
fn cells_that_expand_far_beyond_the_size_of_their_sheet_are_stopped() {
    // A shared string of 32 KB for a few bytes of XML.
    let long = format!("<sst><si><t>{}</t></si></sst>", "x".repeat(32_000));
    let rows = "<row><c t=\"s\"><v>0</v></c></row>".repeat(10_000);
    let parts = contents(&honest()).into_iter().map(|(name, content)| match name.as_str() {
        SHEET => Part::deflated(&name, &sheet(&rows)),
        STRINGS => Part::deflated(&name, long.as_bytes()),
        _ => Part::deflated(&name, &content),
    });
    let error = refused(archive(&parts.collect::<Vec<_>>()));
    assert!(matches!(error, DecodeError::ExpandsTooSteeply { .. }), "{error}");
    // Only the last column of each row has a cell, and all columns to its left are padded.
    let rows = "<row><c r=\"XFD1\"><v>1</v></c></row>".repeat(10_000);
    let error = refused(with_content(SHEET, &sheet(&rows)));
    assert!(matches!(error, DecodeError::ExpandsTooSteeply { .. }), "{error}");
}

#[test]
fn endless_texts_and_tags_are_not_held_in_memory() {
    let long = "x".repeat(8 * MIB);
    let entities = "&amp;".repeat(2 * MIB);
    for content in [
        sheet(&format!("<row><c><v>{long}</v></c></row>")),
        sheet(&format!("<row><c r=\"{long}\"/></row>")),
        sheet(&format!("<!--{long}-->")),
        sheet(&format!("<row><c t=\"str\"><v>{entities}</v></c></row>")),
        sheet(&format!("<row><c t=\"inlineStr\"><is><t>{entities}</t></is></c></row>")),
    ] {
        let limits = Limits { ratio_from_bytes: u64::MAX, ..Limits::default() };
        let error = refused_within(with_content(SHEET, &content), &limits, 6 * MIB);
        assert!(["sheet_too_large", "record_too_long"].contains(&error.code()), "{error}");
    }
    let error = refused(with_content(SHEET, &sheet(&"<a>".repeat(1_000_000))));
    assert!(error.to_string().contains("nested too deeply"), "{error}");
}

#[test]
fn entities_that_the_file_defines_are_rejected() {
    let bomb = "<!DOCTYPE b [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><worksheet><sheetData><row><c t=\"str\"><v>&b;</v></c></row></sheetData></worksheet>";
    let error = refused(with_content(SHEET, bomb.as_bytes()));
    assert_eq!(error.code(), "corrupt_file");
    assert!(error.to_string().contains("in its part `xl/worksheets/sheet1.xml`"), "{error}");
}

#[test]
fn a_part_with_a_wrong_checksum_is_corrupt() {
    let mut part = Part::deflated(SHEET, &sheet("<row><c><v>1</v></c></row>"));
    part.crc32 ^= 1;
    let error = refused(with_part(part));
    assert_eq!(error.code(), "corrupt_file");
    assert!(error.to_string().contains("checksum"), "{error}");
}

#[test]
fn the_error_says_what_is_missing_in_a_workbook() {
    assert!(
        refused(with_content(SHEET, b"<worksheet><sheetData><row><c>"))
            .to_string()
            .contains("data is missing at its end")
    );
    let missing = sheet("<row><c t=\"s\"><v>3</v></c></row>");
    assert!(refused(with_content(SHEET, &missing)).to_string().contains("in row 1 of the sheet"));
    let disordered = sheet("<row r=\"7\"><c r=\"B7\"><v>3</v></c><c r=\"A7\"><v>3</v></c></row>");
    assert!(refused(with_content(SHEET, &disordered)).to_string().contains("in row 7 of the sheet"));
    let without = |gone: &str| {
        let parts = contents(&honest()).into_iter().filter(|(name, _)| name != gone);
        archive(&parts.map(|(name, content)| Part::deflated(&name, &content)).collect::<Vec<_>>())
    };
    assert_eq!(refused(without(SHEET)).code(), "corrupt_file");
    assert_eq!(refused(without("xl/workbook.xml")).code(), "unsupported_xlsx");
    assert_eq!(refused(without("xl/_rels/workbook.xml.rels")).code(), "no_such_sheet");
    assert_eq!(decoded(without("xl/styles.xml"), &Limits::default()).0.unwrap(), "id,name\n1,one\n");
    assert_eq!(decoded(without("_rels/.rels"), &Limits::default()).0.unwrap(), "id,name\n1,one\n");
}

#[test]
fn the_declared_number_of_entries_in_a_directory_is_ignored() {
    let mut bytes = honest();
    let end = bytes.len();
    bytes[end - 14..end - 10].copy_from_slice(&[0xFF; 4]);
    let (csv, peak) = decoded(bytes, &Limits::default());
    assert_eq!(csv.unwrap(), "id,name\n1,one\n", "the entries themselves show the end of the directory");
    assert!(peak < 4 * MIB);
    for (field, value) in [(10, 0x00FF_FFFF_u32), (6, u32::MAX), (6, 1_000_000)] {
        let mut bytes = honest();
        bytes[end - field..end - field + 4].copy_from_slice(&value.to_le_bytes());
        let error = refused(bytes);
        assert!(["corrupt_file", "sheet_too_large"].contains(&error.code()), "{error}");
    }
}

#[test]
fn a_workbook_that_is_cut_off_anywhere_is_corrupt() {
    let whole = honest();
    for end in 0..whole.len() {
        let (result, _) = decoded(whole[..end].to_vec(), &Limits::default());
        assert_eq!(result.expect_err("the file is cut off").code(), "corrupt_file", "{end}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_damaged_workbook_ends_in_text_or_an_error(
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        part in any::<proptest::sample::Index>(),
    ) {
        // Damage the archive itself, or the XML inside it.
        let honest = honest();
        let mut outside = honest.clone();
        let parts = contents(&honest);
        let (name, mut inside) = part.get(&parts).clone();
        for (index, byte) in &flips {
            let at = index.index(outside.len());
            outside[at] = *byte;
            let at = index.index(inside.len());
            inside[at] = *byte;
        }
        for bytes in [outside, with_content(&name, &inside)] {
            let (result, peak) = decoded(bytes, &support::tight());
            prop_assert!(peak < 8 * MIB, "{} bytes were held", peak);
            if let Err(error) = result {
                prop_assert!(!error.is_source(), "{error}");
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_not_a_workbook(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        for magic in [&b""[..], b"PK\x03\x04", b"PK\x05\x06"] {
            let bytes = [magic, &bytes, magic, &[0; 18]].concat();
            let (result, _) = decoded(bytes, &support::tight());
            prop_assert!(!result.expect_err("it is not a workbook").is_source());
        }
    }
}
