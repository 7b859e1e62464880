//! Writes the rows of an output file as CSV or JSON Lines.

use std::collections::HashMap;

use csv::{Terminator, WriterBuilder};
use serde_json::{Map, Value};

use crate::ports::processor::{ItemError, ParamsError};

use crate::model::spec::OutputFile;
use crate::text::{Format, escape_formula};

/// The code of an item that already has the field to be written.
pub(super) const FIELD_EXISTS: &str = "field_exists";

/// The params that configure a [`RowWriter`].
pub(super) struct RowParams<'a> {
    /// All params of the job.
    pub all: &'a Map<String, Value>,
    /// The name of the param with the format.
    pub format: &'static str,
    pub default_format: Format,
    /// The columns if the param `columns` is missing; `None` if they are unknown.
    pub default_columns: Option<Vec<String>>,
    /// Names in the header of a CSV file that differ from those of the columns. Not used for the param `columns`.
    pub own_names: HashMap<String, String>,
}

/// Writes all rows in the same format and with the same columns.
pub(super) struct RowWriter {
    format: Format,
    /// The columns in their order; `None` means all fields of each row.
    columns: Option<Vec<String>>,
    /// Names in the header of a CSV file that differ from those of the columns.
    own_names: HashMap<String, String>,
    /// True if cells that a spreadsheet would run as formulas are escaped.
    escape_formulas: bool,
}

impl RowWriter {
    /// Builds a writer from the params `columns`, `escapeFormulas` and the format.
    pub(super) fn of(params: RowParams<'_>) -> Result<Self, ParamsError> {
        let format = match params.all.get(params.format) {
            None | Some(Value::Null) => params.default_format,
            Some(Value::String(name)) if name == "csv" => Format::Csv,
            Some(Value::String(name)) if name == "jsonl" => Format::Jsonl,
            Some(_) => return Err(ParamsError::new(format!("params.{}", params.format), "must be `csv` or `jsonl`.")),
        };
        let escape_formulas = match params.all.get("escapeFormulas") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(escape)) => *escape,
            Some(_) => return Err(ParamsError::new("params.escapeFormulas", "must be true or false.")),
        };
        let chosen = columns(params.all)?;
        let own_names = if chosen.is_some() { HashMap::new() } else { params.own_names };
        let columns = chosen.or(params.default_columns);
        if format == Format::Csv && columns.is_none() {
            return Err(ParamsError::new(
                "params.columns",
                "is missing. CSV needs the same columns in every row: list them.",
            ));
        }
        Ok(Self { format, columns, own_names, escape_formulas })
    }

    /// Describes the output file: `name` plus the file extension of the format.
    pub(super) fn output(&self, name: &str, gzip: bool) -> OutputFile {
        let (extension, content_type) = match self.format {
            Format::Csv => ("csv", "text/csv"),
            Format::Jsonl => ("jsonl", "application/x-ndjson"),
        };
        let header = match (&self.columns, self.format) {
            (Some(columns), Format::Csv) => {
                let shown = columns.iter().map(|column| self.own_names.get(column).unwrap_or(column));
                csv_line(shown.map(|name| self.cell(name.clone())))
            }
            _ => None,
        };
        OutputFile {
            name: format!("{name}.{extension}{}", if gzip { ".gz" } else { "" }),
            content_type: if gzip { "application/gzip" } else { content_type }.to_owned(),
            header,
            gzip,
            has_changes: false,
        }
    }

    pub(super) fn row(&self, mut fields: Map<String, Value>) -> Result<String, ItemError> {
        let line = match (&self.columns, self.format) {
            (columns, Format::Jsonl) => {
                if let Some(columns) = columns {
                    fields.retain(|name, _| columns.contains(name));
                }
                Some(Value::Object(fields).to_string())
            }
            (Some(columns), Format::Csv) => {
                csv_line(columns.iter().map(|column| self.cell(cell_text(fields.remove(column)))))
            }
            (None, Format::Csv) => None,
        };
        line.ok_or_else(|| ItemError::permanent("output_not_written", "the row cannot be written as CSV"))
    }

    fn cell(&self, text: String) -> String {
        if self.escape_formulas { escape_formula(&text).into_owned() } else { text }
    }
}

fn columns(params: &Map<String, Value>) -> Result<Option<Vec<String>>, ParamsError> {
    let error = |message: &str| Err(ParamsError::new("params.columns", message));
    let columns: Vec<String> = match params.get("columns") {
        None | Some(Value::Null) => return Ok(None),
        Some(list) => match serde_json::from_value(list.clone()) {
            Ok(columns) => columns,
            Err(_) => return error("must be a list of column names."),
        },
    };
    let twice = columns.iter().enumerate().any(|(place, column)| columns[..place].contains(column));
    match (columns.is_empty(), twice) {
        (true, _) => error("must name at least one column. Omit it for all columns."),
        (_, true) => error("names a column twice. Remove one of the two."),
        _ => Ok(Some(columns)),
    }
}

fn cell_text(value: Option<Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    }
}

/// Writes the cells as a CSV record without the line end.
fn csv_line(cells: impl Iterator<Item = String>) -> Option<String> {
    let mut writer = WriterBuilder::new().terminator(Terminator::Any(b'\n')).from_writer(Vec::new());
    writer.write_record(cells.map(String::into_bytes)).ok()?;
    let mut line = writer.into_inner().ok()?;
    line.pop();
    String::from_utf8(line).ok()
}
