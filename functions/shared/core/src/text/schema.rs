//! Checks rows against the JSON Schema of a job.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use super::cells::Cells;
use super::coerce::{Coerced, ColumnTypes};
use super::head::shortened;
use super::items::Record;
use super::json_size::json_bytes;
use super::schema_bounds::{Bounded, check_bounds};
pub use super::schema_error::SchemaError;

/// What a compiled schema takes in memory for each byte of its JSON, patterns apart. An estimate.
const HELD_PER_BYTE: usize = 50;

/// What any pattern may take, in bytes: parts of a compiled pattern do not depend on its size.
const MIN_BYTES: usize = 64 * 1024;

/// The longest message of a violation, in characters. The validator names all values of an `enum`.
const MESSAGE_MAX_CHARS: usize = 500;

/// A compiled schema for rows as objects. Without a schema every row is valid.
///
/// Cells are text. So each cell is first converted to the type that the schema declares for its column: a number, a
/// boolean (`true`, `false`, `1` or `0`), or null for an empty cell. An empty cell is omitted if it can be neither null
/// nor a string. JSON rows are checked without conversion. As in JSON Schema 2020-12, `format` is an annotation and not
/// checked.
#[derive(Debug)]
pub struct RowSchema {
    checks: Option<Checks>,
}

#[derive(Debug)]
struct Checks {
    validator: Validator,
    types: ColumnTypes,
    held_bytes: usize,
}

/// Why a row violates the schema. This fails the item. The message does not quote the content.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SchemaViolation {
    /// The column with the problem, if it is a single column.
    pub column: Option<String>,
    /// The violated rule, for the user.
    pub message: String,
}

impl RowSchema {
    /// Compiles a schema. Without a schema every row is valid and every cell is a string.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] if it is not a valid, self-contained JSON Schema 2020-12.
    pub fn compile(schema: Option<&Value>) -> Result<Self, SchemaError> {
        let Some(schema) = schema else {
            return Ok(Self { checks: None });
        };
        if !schema.is_object() {
            return Err(SchemaError::NotAnObject);
        }
        let Bounded { compiled_bytes, cache_bytes, held_bytes } = check_bounds(schema)?;
        // The limits hold for each pattern; a compiled pattern takes about four times the size of its automaton.
        let patterns = PatternOptions::regex().size_limit(4 * compiled_bytes + MIN_BYTES).dfa_size_limit(cache_bytes);
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            // Patterns come from users, so matching must take linear time in the length of the cell (no backtracking).
            .with_pattern_options(patterns)
            .build(schema)
            .map_err(|error| SchemaError::from(&error))?;
        let held_bytes = held_bytes + HELD_PER_BYTE * json_bytes(schema);
        Ok(Self { checks: Some(Checks { validator, types: ColumnTypes::of(schema), held_bytes }) })
    }

    /// What it takes in memory at most, in bytes. An estimate.
    pub fn held_bytes(&self) -> usize {
        self.checks.as_ref().map_or(0, |checks| checks.held_bytes)
    }

    /// Turns a record into a checked object.
    ///
    /// # Errors
    ///
    /// The first [`SchemaViolation`] that is found; the item fails.
    pub fn check(&self, record: Record) -> Result<Map<String, Value>, SchemaViolation> {
        let cells = match record {
            Record::Cells(cells) => cells,
            Record::Json(row) => return self.check_json(row),
        };
        let Some(checks) = &self.checks else {
            return Ok(cells.iter().map(|(column, cell)| (column.to_owned(), cell.into())).collect());
        };
        let row = Value::Object(checks.object_of(&cells));
        if let Err(error) = checks.validator.validate(&row) {
            return Err(violation(&error, "the cell", Some(&cells)));
        }
        Ok(into_object(row))
    }

    fn check_json(&self, row: Value) -> Result<Map<String, Value>, SchemaViolation> {
        if !row.is_object() {
            return Err(SchemaViolation { column: None, message: "The row is not an object.".to_owned() });
        }
        if let Some(checks) = &self.checks
            && let Err(error) = checks.validator.validate(&row)
        {
            return Err(violation(&error, "the value", None));
        }
        Ok(into_object(row))
    }
}

impl Checks {
    fn object_of(&self, cells: &Cells) -> Map<String, Value> {
        let mut row = Map::new();
        for (column, cell) in cells.iter() {
            match self.types.coerce(column, cell) {
                Coerced::Value(value) => {
                    row.insert(column.to_owned(), value);
                }
                Coerced::LeftOut => {}
            }
        }
        row
    }
}

fn into_object(row: Value) -> Map<String, Value> {
    match row {
        Value::Object(row) => row,
        _ => Map::new(),
    }
}

/// Describes the validator's error. The word `value` replaces the content.
fn violation(error: &ValidationError<'_>, value: &'static str, cells: Option<&Cells>) -> SchemaViolation {
    let path = error.instance_path().as_str();
    let mut segments = path.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~"));
    let column = segments.next().or_else(|| reported_property(error.kind()));
    let inside = path.splitn(3, '/').nth(2);
    let what = match error.kind() {
        ValidationErrorKind::Required { .. } if inside.is_none() && path.is_empty() => {
            missing(column.as_deref(), cells).to_owned()
        }
        ValidationErrorKind::AdditionalProperties { .. } | ValidationErrorKind::UnevaluatedProperties { .. }
            if path.is_empty() =>
        {
            "the schema does not allow it".to_owned()
        }
        ValidationErrorKind::PropertyNames { .. } => "a property's name is not allowed".to_owned(),
        _ if column.is_none() => error.masked_with("the row").to_string(),
        _ => error.masked_with(value).to_string(),
    };
    let place = match (&column, inside) {
        (Some(column), Some(inside)) => format!("Column `{}`, at `/{}`: ", shortened(column), shortened(inside)),
        (Some(column), None) => format!("Column `{}`: ", shortened(column)),
        (None, _) => String::new(),
    };
    let rule = error.kind().keyword();
    let what = match what.char_indices().nth(MESSAGE_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &what[..end]),
        None => what,
    };
    SchemaViolation { message: format!("{place}{what} (rule `{rule}`)."), column }
}

/// The property with the problem, if the validator reports the whole row.
fn reported_property(kind: &ValidationErrorKind) -> Option<String> {
    match kind {
        ValidationErrorKind::Required { property } => property.as_str().map(str::to_owned),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected.first().cloned(),
        _ => None,
    }
}

fn missing(column: Option<&str>, cells: Option<&Cells>) -> &'static str {
    match (column, cells) {
        (Some(column), Some(cells)) if cells.get(column).is_some() => "a value is required, but the cell is empty",
        (_, Some(_)) => "the schema requires it, but the file has no such column",
        (_, None) => "the schema requires it, but the row does not have it",
    }
}
