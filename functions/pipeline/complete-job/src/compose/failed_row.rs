//! A failed item as a row of the failed-rows file.
//!
//! CSV jobs: the input's own header and cells, then `row`, `code`, `message` and `column`. If the input has a column of
//! such a name, [`failed_rows_columns`] chooses other names. A row with too few cells is filled up with empty ones. In
//! a row with too many, the last column holds the extra cells, joined by the delimiter. Bytes that are not UTF-8 become
//! U+FFFD, and a row too long to be read has empty cells. Cells that a spreadsheet would run as formulas are escaped. A
//! person corrects the cells and hands the file back to a redrive, which removes the escaping.
//!
//! JSONL jobs, and jobs over many files: JSON lines with `row`, `code`, `message`, `column` and the `record`. If the record is not JSON, `raw`
//! holds the text of the line. A row of
//! one of many files has its `file` too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use csv::{Terminator, WriterBuilder};
use rowmill_core::model::files::FileRow;
use rowmill_core::model::results::failed_rows_columns;
use rowmill_core::model::run_output::FailedItem;
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::PortError;
use rowmill_core::text::{Format, escape_formula, split_cells};
use serde::Serialize;
use serde_json::value::RawValue;

/// The header, if the file has one.
///
/// # Errors
/// None in practice.
pub fn header(spec: &Spec) -> Result<Vec<u8>, PortError> {
    match spec.head.dialect.format {
        Format::Jsonl => Ok(Vec::new()),
        Format::Csv => {
            let own = spec.head.own_header();
            let names = failed_rows_columns(own);
            csv_row(spec, own.iter().chain(&names).map(String::as_str))
        }
    }
}

/// The row of an item.
///
/// # Errors
/// None in practice.
pub fn row(spec: &Spec, item: &FailedItem) -> Result<Vec<u8>, PortError> {
    match spec.head.dialect.format {
        Format::Jsonl => json_row(item),
        Format::Csv => {
            let (cells, number) = (input_cells(spec, item), item.row.to_string());
            let column = item.column.as_deref().unwrap_or_default();
            let ours = [number.as_str(), &item.code, &item.message, column];
            csv_row(spec, cells.iter().map(String::as_str).chain(ours))
        }
    }
}

fn csv_row<'a>(spec: &Spec, cells: impl Iterator<Item = &'a str>) -> Result<Vec<u8>, PortError> {
    let invalid = |error| PortError::invalid("writing a failed row", error);
    let delimiter = spec.head.dialect.delimiter;
    let mut writer =
        WriterBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).from_writer(Vec::new());
    for cell in cells {
        writer.write_field(escape_formula(cell).as_bytes()).map_err(invalid)?;
    }
    writer.write_record(None::<&[u8]>).map_err(invalid)?;
    writer.into_inner().map_err(|error| PortError::invalid("writing a failed row", error.into_error()))
}

/// The item's cells, one for each column.
fn input_cells(spec: &Spec, item: &FailedItem) -> Vec<String> {
    let (columns, delimiter) = (spec.head.columns.len(), spec.head.dialect.delimiter);
    let mut cells = split_cells(&raw_bytes(item), delimiter);
    if let Some(last) = columns.checked_sub(1).filter(|_| cells.len() > columns) {
        let extra = cells.split_off(last);
        cells.push(extra.join(&char::from(delimiter).to_string()));
    }
    cells.resize(columns, String::new());
    cells
}

fn raw_bytes(item: &FailedItem) -> Vec<u8> {
    match (&item.raw, &item.raw_base64) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(base64)) => STANDARD.decode(base64).unwrap_or_default(),
        (None, None) => Vec::new(),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonRow<'a> {
    row: u64,
    /// Its place in its file, in a job over many files.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a FileRow>,
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_base64: Option<&'a str>,
}

fn json_row(item: &FailedItem) -> Result<Vec<u8>, PortError> {
    // The record's own text, since parsing could lose digits of a long number. A line break in it would end the line.
    let record = item.raw.as_deref().filter(|raw| !raw.contains(['\n', '\r'])).map(serde_json::from_str::<&RawValue>);
    let record = record.and_then(Result::ok).filter(|record| record.get().starts_with('{'));
    let row = JsonRow {
        row: item.row,
        file: item.file.as_ref(),
        code: &item.code,
        message: &item.message,
        column: item.column.as_deref(),
        record,
        raw: item.raw.as_deref().filter(|_| record.is_none()),
        raw_base64: item.raw_base64.as_deref(),
    };
    let mut line = serde_json::to_vec(&row).map_err(|error| PortError::invalid("writing a failed row", error))?;
    line.push(b'\n');
    Ok(line)
}
