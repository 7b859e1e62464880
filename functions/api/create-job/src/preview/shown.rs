//! The shown part of the rows: types of the columns, and rows that fit into the answer.

use std::collections::HashMap;

use rowmill_api::preview::{PreviewColumn, PreviewRow, RowProblem};
use rowmill_core::ports::processor::{ItemError, ItemOutcome};
use rowmill_core::text::{BadRecord, Cells, ColumnType, Record, common_type, type_of_cell, type_of_value};
use serde_json::{Map, Value};

/// Maximum size of the JSON of the columns and the rows together.
const ANSWER_MAX_BYTES: usize = 256 * 1024;

/// Maximum size of the JSON of the columns.
const COLUMNS_MAX_BYTES: usize = 64 * 1024;

/// Maximum size of the JSON of a row. Its texts are cut off at fewer characters until it fits.
const ROW_MAX_BYTES: usize = 64 * 1024;

const COLUMNS_MAX: usize = 1000;

/// Behind how many characters a text is cut off: the first number, or a later one if the row would be too long. With
/// the last one, as many cells as there may be columns fit.
const TEXT_CHARS: [usize; 4] = [1000, 200, 40, 8];

/// The part of a preview that comes from the rows.
pub struct Shown {
    /// The columns that are shown, with the types so far.
    pub columns: Vec<PreviewColumn>,
    pub column_count: u64,
    pub rows: Vec<PreviewRow>,
    /// True if these are all rows of the file.
    pub complete: bool,
    types: Vec<Option<ColumnType>>,
    /// Where the columns of JSON objects are, by their names; `None` if they are not shown.
    places: HashMap<String, Option<usize>>,
    /// Bytes of JSON that further columns may have, and the whole answer.
    columns_left: usize,
    left: usize,
    is_full: bool,
}

impl Shown {
    /// Nothing but these columns.
    pub fn new(columns: &[String]) -> Self {
        let mut shown = Self {
            columns: Vec::new(),
            column_count: columns.len() as u64,
            rows: Vec::new(),
            complete: false,
            types: Vec::new(),
            places: HashMap::new(),
            columns_left: COLUMNS_MAX_BYTES,
            left: ANSWER_MAX_BYTES,
            is_full: false,
        };
        for column in columns {
            if !shown.add_column(column) {
                break;
            }
        }
        shown
    }

    /// True if more text may give more rows.
    pub fn needs_more(&self, rows: usize) -> bool {
        !self.complete && !self.is_full && self.rows.len() < rows
    }

    /// Adds a row. Returns whether it fitted.
    pub fn add(&mut self, row: u64, record: Result<Record, BadRecord>) -> bool {
        match record {
            Ok(Record::Cells(cells)) => self.add_cells(row, &cells),
            Ok(Record::Json(value)) => self.add_object(row, value),
            Err(bad) => {
                let message = cut_off(&bad.message, TEXT_CHARS[0]).unwrap_or(bad.message);
                self.add_problem(row, RowProblem { code: bad.code.to_owned(), message })
            }
        }
    }

    /// Adds a row that would fail, or that is not shown. Returns whether it fitted.
    pub fn add_problem(&mut self, row: u64, problem: RowProblem) -> bool {
        self.push(PreviewRow { row, cells: None, value: None, problem: Some(problem), output: None, shortened: false })
    }

    /// Adds what a job would make of a row that is shown, if the job type tells: its output, or why it would fail.
    pub fn add_result(&mut self, row: u64, result: Result<ItemOutcome, ItemError>) {
        let Some(at) = self.rows.iter().position(|shown| shown.row == row) else { return };
        let mut shown = self.rows[at].clone();
        match result {
            Ok(ItemOutcome::Output(output)) => {
                let cut = cut_off(&output, TEXT_CHARS[0]);
                shown.shortened |= cut.is_some();
                shown.output = Some(cut.unwrap_or(output));
            }
            Err(ItemError { transient: false, code, message, .. }) => {
                let message = cut_off(&message, TEXT_CHARS[0]).unwrap_or(message);
                shown.problem = Some(RowProblem { code, message });
            }
            Ok(_) | Err(_) => return,
        }
        let more = json_bytes(&shown).saturating_sub(json_bytes(&self.rows[at]));
        if more <= self.left {
            self.left -= more;
            self.rows[at] = shown;
        }
    }

    fn add_cells(&mut self, row: u64, cells: &Cells) -> bool {
        let shown = self.columns.len();
        for (index, kind) in self.types.iter_mut().enumerate() {
            *kind = common_type(*kind, cells.at(index).and_then(type_of_cell));
        }
        self.set_types();
        let mut view = PreviewRow { row, cells: None, value: None, problem: None, output: None, shortened: false };
        for chars in TEXT_CHARS {
            let mut shortened = cells.len() > shown;
            let texts = cells.iter().take(shown).map(|(_, cell)| {
                let cut = cut_off(cell, chars);
                shortened |= cut.is_some();
                cut.unwrap_or_else(|| cell.to_owned())
            });
            view.cells = Some(texts.collect());
            view.shortened = shortened;
            if json_bytes(&view) <= ROW_MAX_BYTES {
                break;
            }
        }
        self.push(view)
    }

    fn add_object(&mut self, row: u64, value: Value) -> bool {
        let Value::Object(mut object) = value else { return true };
        for (name, value) in &object {
            let place = match self.places.get(name) {
                Some(place) => *place,
                None => {
                    self.column_count += 1;
                    let place = self.add_column(name).then(|| self.columns.len() - 1);
                    self.places.insert(name.clone(), place);
                    place
                }
            };
            if let Some(place) = place {
                self.types[place] = common_type(self.types[place], type_of_value(value));
            }
        }
        self.set_types();
        let mut shortened = false;
        for chars in TEXT_CHARS {
            shortened |= cut_off_in(&mut object, chars);
            if json_bytes(&object) <= ROW_MAX_BYTES {
                let value = Some(object);
                return self.push(PreviewRow { row, cells: None, value, problem: None, output: None, shortened });
            }
        }
        let message =
            format!("The row has too many values to be shown here: more than {ROW_MAX_BYTES} bytes. A job reads it.");
        self.add_problem(row, RowProblem { code: "not_shown".to_owned(), message })
    }

    /// Adds a column of no type yet. Returns whether it fitted.
    fn add_column(&mut self, name: &str) -> bool {
        let name = cut_off(name, TEXT_CHARS[0]).unwrap_or_else(|| name.to_owned());
        // The longest type, so that the answer does not grow with what is found.
        let column = PreviewColumn { name, r#type: ColumnType::Boolean.into() };
        let bytes = json_bytes(&column) + 1;
        if self.columns.len() >= COLUMNS_MAX || bytes > self.columns_left {
            // Columns that follow would be shown in the place of this one.
            self.columns_left = 0;
            return false;
        }
        (self.columns_left, self.left) = (self.columns_left - bytes, self.left.saturating_sub(bytes));
        self.columns.push(PreviewColumn { r#type: ColumnType::Null.into(), ..column });
        self.types.push(None);
        true
    }

    fn set_types(&mut self) {
        for (column, kind) in self.columns.iter_mut().zip(&self.types) {
            column.r#type = kind.unwrap_or(ColumnType::Null).into();
        }
    }

    fn push(&mut self, row: PreviewRow) -> bool {
        let bytes = json_bytes(&row) + 1;
        if bytes > self.left {
            (self.complete, self.is_full) = (false, true);
            return false;
        }
        self.left -= bytes;
        self.rows.push(row);
        true
    }
}

fn json_bytes(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}

/// The text cut off behind so many characters; `None` if it has no more.
fn cut_off(text: &str, chars: usize) -> Option<String> {
    // An earlier cut left a mark.
    let end = text.char_indices().nth(chars).map(|(end, _)| end)?;
    (text[end..] != *"…").then(|| format!("{}…", &text[..end]))
}

/// Cuts off the texts in an object. Returns whether there was one to cut off.
fn cut_off_in(object: &mut Map<String, Value>, chars: usize) -> bool {
    cut_off_all(object.values_mut(), chars)
}

/// Cuts off the texts in all these values.
fn cut_off_all<'a>(values: impl Iterator<Item = &'a mut Value>, chars: usize) -> bool {
    let mut shortened = false;
    for value in values {
        shortened |= cut_off_value(value, chars);
    }
    shortened
}

/// The depth is that of parsed JSON, which is bounded.
fn cut_off_value(value: &mut Value, chars: usize) -> bool {
    match value {
        Value::String(text) => cut_off(text, chars).map(|cut| *text = cut).is_some(),
        Value::Array(values) => cut_off_all(values.iter_mut(), chars),
        Value::Object(object) => cut_off_in(object, chars),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
