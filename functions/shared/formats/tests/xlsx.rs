//! Decoding of workbooks.

mod support;

use std::io::Cursor;
use std::ops::ControlFlow;

use calamine::{Data, Reader, Xlsx};
use proptest::prelude::*;
use rowmill_core::model::packing::Packing;
use rowmill_formats::{DecodeError, Limits, decode_file};
use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook, Worksheet};
use support::file_text;

fn csv_of(workbook: &mut Workbook, sheet: Option<&str>) -> Result<String, DecodeError> {
    let packing = Packing::Xlsx { sheet: sheet.map(str::to_owned), title_rows: 0 };
    file_text(&packing, workbook.save_to_buffer().unwrap(), &Limits::default())
}

fn csv_with(fill: impl FnOnce(&mut Worksheet)) -> String {
    let mut workbook = Workbook::new();
    fill(workbook.add_worksheet());
    csv_of(&mut workbook, None).unwrap()
}

#[test]
fn a_sheet_becomes_csv() {
    let csv = csv_with(|sheet| {
        sheet.write_row(0, 0, ["id", "name", "note"]).unwrap();
        sheet.write(1, 0, 1.0).unwrap();
        sheet.write(1, 1, "Zoë, \"the\" one").unwrap();
        sheet.write(1, 2, "two\nlines").unwrap();
        sheet.write(2, 0, 0.1).unwrap();
        sheet.write(2, 1, true).unwrap();
        sheet.write(2, 2, -1.5e-9).unwrap();
    });
    assert_eq!(csv, "id,name,note\n1,\"Zoë, \"\"the\"\" one\",\"two\nlines\"\n0.1,true,-1.5e-9\n");
}

#[test]
fn short_rows_are_padded_to_the_header_and_long_rows_stay_long() {
    let bold = Format::new().set_bold();
    let csv = csv_with(|sheet| {
        // The header is the first row with a value. Cells that only have formatting are ignored.
        sheet.write_blank(0, 7, &bold).unwrap();
        sheet.write_row(3, 0, ["a", "b", "c"]).unwrap();
        sheet.write_blank(3, 3, &bold).unwrap();
        sheet.write(4, 0, "short").unwrap();
        sheet.write(6, 2, "only the last").unwrap();
        sheet.write_blank(7, 0, &bold).unwrap();
        sheet.write_string(7, 1, "").unwrap();
        sheet.write(8, 1, 5).unwrap();
        sheet.write(9, 4, "beyond").unwrap();
    });
    assert_eq!(csv, "a,b,c\nshort,,\n,,only the last\n,5,\n,,,,beyond\n");
}

#[test]
fn dates_and_times_are_iso_8601() {
    let day = Format::new().set_num_format("dd/mm/yyyy");
    let time = Format::new().set_num_format("hh:mm");
    let both = Format::new().set_num_format("yyyy-mm-dd hh:mm");
    let span = Format::new().set_num_format("[h]:mm");
    let built_in = Format::new().set_num_format_index(14);
    let money = Format::new().set_num_format("#,##0.00 \"days\"");
    let at = |text: &str| ExcelDateTime::parse_from_str(text).unwrap();
    let csv = csv_with(|sheet| {
        sheet.write_row(0, 0, ["day", "time", "both", "span", "built in", "money"]).unwrap();
        sheet.write_with_format(1, 0, at("2026-01-31"), &day).unwrap();
        sheet.write_with_format(1, 1, at("12:30:15"), &time).unwrap();
        sheet.write_with_format(1, 2, at("2026-01-31 23:59:59.5"), &both).unwrap();
        sheet.write_with_format(1, 3, 1.5, &span).unwrap();
        sheet.write_with_format(1, 4, 1, &built_in).unwrap();
        sheet.write_with_format(1, 5, 1234.5, &money).unwrap();
    });
    let expected = "2026-01-31,12:30:15,2026-01-31T23:59:59.500,PT36H0M0S,1900-01-01,1234.5\n";
    assert_eq!(csv.split_once('\n').unwrap().1, expected);
}

#[test]
fn formulas_become_their_last_result_and_errors_their_displayed_text() {
    let csv = csv_with(|sheet| {
        sheet.write_row(0, 0, ["sum", "text", "error", "new error"]).unwrap();
        sheet.write_formula(1, 0, Formula::new("=1+2").set_result("3")).unwrap();
        sheet.write_formula(1, 1, Formula::new("=\"a\"&\"b\"").set_result("ab")).unwrap();
        sheet.write_formula(1, 2, Formula::new("=1/0").set_result("#DIV/0!")).unwrap();
        sheet.write_formula(1, 3, Formula::new("=X").set_result("#SPILL!")).unwrap();
    });
    assert_eq!(csv, "sum,text,error,new error\n3,ab,#DIV/0!,#SPILL!\n");
}

#[test]
fn text_keeps_its_white_space_loses_its_fonts_and_has_its_escapes_resolved() {
    let (bold, plain) = (Format::new().set_bold(), Format::default());
    let csv = csv_with(|sheet| {
        sheet.write(0, 0, "  kept  ").unwrap();
        sheet.write_rich_string(0, 1, &[(&bold, "two "), (&plain, "fonts")]).unwrap();
        sheet.write(0, 2, "tab\tand\rreturn _x000D_").unwrap();
        sheet.write(0, 3, "\u{feff}mark").unwrap();
    });
    assert_eq!(csv, "  kept  ,two fonts,\"tab\tand\rreturn _x000D_\",\"\u{feff}mark\"\n");
}

#[test]
fn a_sheet_is_selected_by_its_name_and_the_default_is_the_first_visible_one() {
    let mut workbook = Workbook::new();
    for (name, hidden) in [("Config", true), ("Orders", false), ("Q3 & more", false)] {
        let sheet = workbook.add_worksheet().set_name(name).unwrap().set_hidden(hidden);
        sheet.write(0, 0, format!("header of {name}")).unwrap();
        sheet.set_active(name == "Orders");
    }
    assert_eq!(csv_of(&mut workbook, None).unwrap(), "header of Orders\n");
    assert_eq!(csv_of(&mut workbook, Some("Config")).unwrap(), "header of Config\n", "a hidden sheet, by its name");
    assert_eq!(csv_of(&mut workbook, Some("q3 & MORE")).unwrap(), "header of Q3 & more\n");
    let error = csv_of(&mut workbook, Some("Invoices")).unwrap_err();
    assert_eq!(error.code(), "no_such_sheet");
    assert_eq!(
        error.to_string(),
        "The workbook has no sheet `Invoices`; it has `Config`, `Orders`, `Q3 & more`. Set the param `sheet` to one of these."
    );
}

#[test]
fn an_empty_sheet_is_an_empty_text() {
    assert_eq!(csv_with(|_| {}), "");
}

#[test]
fn days_may_be_counted_from_1904_on() {
    let day = Format::new().set_num_format("yyyy-mm-dd");
    let bytes = {
        let mut workbook = Workbook::new();
        workbook.add_worksheet().write_with_format(0, 0, 0, &day).unwrap();
        workbook.save_to_buffer().unwrap()
    };
    let bytes = rewritten(&bytes, "xl/workbook.xml", |xml| xml.replace("<workbookPr", "<workbookPr date1904=\"1\""));
    assert_eq!(
        file_text(&Packing::Xlsx { sheet: None, title_rows: 0 }, bytes, &Limits::default()).unwrap(),
        "1904-01-01\n"
    );
}

#[test]
fn unusual_xml_is_read_in_the_same_way_as_by_calamine() {
    // A prefix on every element, cells without references, and a text that is split by a comment and by CDATA.
    let mut workbook = Workbook::new();
    workbook.add_worksheet().write(0, 0, "x").unwrap();
    let bytes = workbook.save_to_buffer().unwrap();
    let sheet = r#"<?xml version="1.0"?><x:worksheet xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main">
        <x:sheetData><x:row><x:c t="inlineStr"><x:is><x:t>a&amp;<!-- no -->b<![CDATA[<c>]]></x:t></x:is></x:c><x:c><x:v>7</x:v></x:c>
        <x:c t="b"><x:v>1</x:v></x:c></x:row><x:row r="5"><x:c r="C5" t="str"><x:f>"q"</x:f><x:v>&#233;&#x20AC;</x:v></x:c></x:row>
        </x:sheetData></x:worksheet>"#;
    let bytes = rewritten(&bytes, "xl/worksheets/sheet1.xml", |_| sheet.to_owned());
    let csv = file_text(&Packing::Xlsx { sheet: None, title_rows: 0 }, bytes.clone(), &Limits::default()).unwrap();
    assert_eq!(csv, "a&b<c>,7,true\n,,é€\n");
    assert_eq!(records(&csv), read_by_calamine(bytes));
}

#[test]
fn the_header_is_available_without_reading_the_rest() {
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet_with_constant_memory().unwrap();
    for row in 0..50_000 {
        sheet.write_row(row, 0, (0..10).map(|column| row * 10 + column)).unwrap();
    }
    let bytes = workbook.save_to_buffer().unwrap();
    let (mut blocks, mut consumed) = (0, 0);
    decode_file(
        &Packing::Xlsx { sheet: None, title_rows: 0 },
        Cursor::new(bytes.clone()),
        &Limits::default(),
        |block| {
            (blocks, consumed) = (blocks + 1, block.consumed);
            assert!(block.bytes.starts_with(b"0,1,2,3,4,5,6,7,8,9\n"));
            ControlFlow::Break(())
        },
    )
    .unwrap();
    assert_eq!(blocks, 1);
    assert!(consumed > 0 && consumed < bytes.len() as u64 / 4, "{consumed} of {}", bytes.len());
}

#[test]
fn a_panic_of_the_sink_reaches_the_caller() {
    let mut workbook = Workbook::new();
    workbook.add_worksheet().write(0, 0, "header").unwrap();
    let bytes = workbook.save_to_buffer().unwrap();
    let decode = || {
        decode_file(&Packing::Xlsx { sheet: None, title_rows: 0 }, Cursor::new(bytes), &Limits::default(), |_| {
            panic!("the sink's own")
        })
    };
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode)).expect_err("it goes on");
    assert_eq!(panic.downcast_ref(), Some(&"the sink's own"));
}

/// The workbook with one part rewritten.
fn rewritten(workbook: &[u8], part: &str, rewrite: impl Fn(String) -> String) -> Vec<u8> {
    support::zip::rewritten(workbook, |name, content| match name == part {
        true => rewrite(String::from_utf8(content).unwrap()).into_bytes(),
        false => content,
    })
}

fn records(csv: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(csv.as_bytes());
    reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
}

/// The same sheet as calamine reads it, with the rows and cells removed that Rowmill omits.
fn read_by_calamine(bytes: Vec<u8>) -> Vec<Vec<String>> {
    let mut workbook = Xlsx::new(Cursor::new(bytes)).unwrap();
    let mut cells = workbook.worksheet_cells_reader(&workbook.sheet_names()[0].clone()).unwrap();
    let mut rows: Vec<Vec<String>> = Vec::new();
    while let Some(cell) = cells.next_cell().unwrap() {
        let (row, column) = cell.get_position();
        let text = match Data::from(cell.get_value().clone()) {
            Data::Empty => continue,
            Data::Float(number) => number.to_string(),
            Data::DateTime(date) => {
                let (year, month, day, hour, minute, second, ms) = date.to_ymd_hms_milli();
                format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}")
            }
            value => value.to_string(),
        };
        if text.is_empty() {
            continue;
        }
        rows.resize(rows.len().max(row as usize + 1), Vec::new());
        let cells = &mut rows[row as usize];
        cells.resize(cells.len().max(column as usize + 1), String::new());
        cells[column as usize] = text;
    }
    rows.retain(|row| !row.is_empty());
    let width = rows.first().map_or(0, Vec::len);
    for row in &mut rows {
        row.resize(row.len().max(width), String::new());
    }
    rows
}

#[derive(Clone, Debug)]
enum Written {
    Nothing,
    Text(String),
    Number(f64),
    Boolean(bool),
    Date(f64),
}

fn any_cell() -> impl Strategy<Value = Written> {
    prop_oneof![
        Just(Written::Nothing),
        "[ -~\n\t]{0,12}".prop_map(Written::Text),
        "\\PC{0,8}".prop_map(Written::Text),
        any::<i32>().prop_map(|number| Written::Number(number.into())),
        (-1e9..1e9).prop_map(Written::Number),
        any::<bool>().prop_map(Written::Boolean),
        (61.0..2_958_465.0).prop_map(|days: f64| Written::Date((days * 1440.0).round() / 1440.0 + 0.000_007)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_sheet_is_read_in_the_same_way_as_by_calamine(
        rows in proptest::collection::vec(proptest::collection::vec(any_cell(), 0..6), 0..12),
    ) {
        let mut workbook = Workbook::new();
        let sheet = workbook.add_worksheet();
        let stamp = Format::new().set_num_format("yyyy-mm-dd hh:mm:ss");
        for (row, cells) in (0..).zip(&rows) {
            for (column, cell) in (0..).zip(cells) {
                match cell {
                    Written::Nothing => continue,
                    Written::Text(text) => sheet.write(row, column, text.as_str()).unwrap(),
                    Written::Number(number) => sheet.write(row, column, *number).unwrap(),
                    Written::Boolean(boolean) => sheet.write(row, column, *boolean).unwrap(),
                    Written::Date(days) => sheet.write_with_format(row, column, *days, &stamp).unwrap(),
                };
            }
        }
        let bytes = workbook.save_to_buffer().unwrap();
        let csv = file_text(&Packing::Xlsx { sheet: None, title_rows: 0 }, bytes.clone(), &Limits::default()).unwrap();
        prop_assert_eq!(records(&csv), read_by_calamine(bytes));
    }
}
