//! Checks rows against the JSON Schema of a job.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use rowmill_schema::{Bounded, Pattern, Validator};
pub use rowmill_schema::{SchemaError, SchemaViolation};
use serde_json::{Map, Value};

use crate::text::csv::Cells;
use crate::text::items::Record;
use crate::text::json::json_bytes;
use coerce::{Coerced, ColumnTypes, Types, coerce};
use flat::{CellChecks, FlatSchema, Patterns};
pub use guess::{ColumnType, common_type, type_of_cell, type_of_value};

mod coerce;
mod flat;
mod guess;

#[cfg(test)]
mod schema_tests;

/// Bytes of memory of a compiled schema for each byte of its JSON, patterns apart. An estimate.
const HELD_PER_BYTE: usize = 60;

/// Size limit for patterns, compiled to automata, of a schema whose rows are checked quickly: they are compiled
/// twice then.
const QUICK_COMPILED_BYTES: usize = 256 * 1024;

/// Memory limit for such a pattern in use, in bytes. Enough for most; others take longer.
const QUICK_CACHE_BYTES: usize = 128 * 1024;

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
    flat: Option<FlatSchema>,
    /// For the columns of the first row. All rows of a job have the same ones.
    plan: OnceLock<Plan>,
    held_bytes: usize,
}

/// The work on rows of certain columns.
#[derive(Debug)]
struct Plan {
    columns: Arc<[String]>,
    types: Vec<Types>,
    checks: Option<CellChecks>,
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
        let bounded = Bounded::of(schema)?;
        let validator = bounded.compile()?;
        let types = ColumnTypes::of(schema);
        let quick = bounded.with_cache(QUICK_CACHE_BYTES);
        let flat = FlatSchema::of(schema, &types, &mut QuickPatterns { bounded: quick, compiled: HashMap::new() });
        let quick_bytes = flat.as_ref().map_or(0, |_| quick.held_bytes());
        let held_bytes = bounded.held_bytes() + quick_bytes + HELD_PER_BYTE * json_bytes(schema);
        Ok(Self { checks: Some(Checks { validator, types, flat, plan: OnceLock::new(), held_bytes }) })
    }

    /// Its maximum memory, in bytes. An estimate.
    pub fn held_bytes(&self) -> usize {
        self.checks.as_ref().map_or(0, |checks| checks.held_bytes)
    }

    /// Turns a record into a checked object.
    pub fn check(&self, record: Record) -> Result<Map<String, Value>, SchemaViolation> {
        let cells = match record {
            Record::Cells(cells) => cells,
            Record::Json(row) => {
                self.validate_json(&row)?;
                return Ok(into_object(row));
            }
        };
        let Some(checks) = &self.checks else {
            return Ok(cells.iter().map(|(column, cell)| (column.to_owned(), cell.into())).collect());
        };
        let row = Value::Object(checks.object_of(&cells));
        if !checks.is_surely_valid(&cells) {
            checks.validate(&row, &cells)?;
        }
        Ok(into_object(row))
    }

    /// Checks a record as [`check`](Self::check) does, but makes no object of it. That is faster.
    pub fn validate(&self, record: &Record) -> Result<(), SchemaViolation> {
        match (record, &self.checks) {
            (Record::Json(row), _) => self.validate_json(row),
            (Record::Cells(cells), Some(checks)) if !checks.is_surely_valid(cells) => {
                checks.validate(&Value::Object(checks.object_of(cells)), cells)
            }
            (Record::Cells(_), _) => Ok(()),
        }
    }

    /// True if the quick check accepts the row.
    #[cfg(test)]
    pub(super) fn is_surely_valid(&self, cells: &Cells) -> bool {
        self.checks.as_ref().is_some_and(|checks| checks.is_surely_valid(cells))
    }

    /// Checks a row without the quick check.
    #[cfg(test)]
    pub(super) fn validate_in_full(&self, cells: &Cells) -> Result<(), SchemaViolation> {
        let Some(checks) = &self.checks else { return Ok(()) };
        checks.validate(&Value::Object(checks.object_of(cells)), cells)
    }

    fn validate_json(&self, row: &Value) -> Result<(), SchemaViolation> {
        if !row.is_object() {
            return Err(SchemaViolation { column: None, rule: None, message: "The row is not an object.".to_owned() });
        }
        let Some(checks) = &self.checks else { return Ok(()) };
        checks.validator.validate_json(row)
    }
}

/// The patterns of a flat schema, each compiled once.
struct QuickPatterns<'a> {
    bounded: Bounded<'a>,
    compiled: HashMap<String, Arc<Pattern>>,
}

impl Patterns for QuickPatterns<'_> {
    fn compile(&mut self, pattern: &str) -> Option<Arc<Pattern>> {
        if self.bounded.compiled_bytes > QUICK_COMPILED_BYTES {
            return None;
        }
        if let Some(known) = self.compiled.get(pattern) {
            return Some(Arc::clone(known));
        }
        let compiled = Arc::new(self.bounded.compile_pattern(pattern)?);
        self.compiled.insert(pattern.to_owned(), Arc::clone(&compiled));
        Some(compiled)
    }
}

impl Checks {
    /// True if the row is known to be valid without a look at it as an object.
    fn is_surely_valid(&self, cells: &Cells) -> bool {
        let Some(flat) = &self.flat else { return false };
        let checks = self.plan(cells).and_then(|plan| plan.checks.as_ref());
        checks.is_some_and(|checks| flat.accepts(cells, checks))
    }

    /// The plan for the columns of this row, unless it is for others.
    fn plan(&self, cells: &Cells) -> Option<&Plan> {
        let columns = cells.columns();
        let plan = self.plan.get_or_init(|| Plan {
            columns: Arc::clone(columns),
            types: columns.iter().map(|column| self.types.of_column(column)).collect(),
            checks: self.flat.as_ref().and_then(|flat| flat.checks(columns)),
        });
        (Arc::ptr_eq(&plan.columns, columns) || plan.columns == *columns).then_some(plan)
    }

    /// Validates the object of these cells.
    fn validate(&self, row: &Value, cells: &Cells) -> Result<(), SchemaViolation> {
        self.validator.validate_cells(row, &|column| cells.get(column).is_some())
    }

    fn object_of(&self, cells: &Cells) -> Map<String, Value> {
        let plan = self.plan(cells);
        let mut row = Map::new();
        for (index, (column, cell)) in cells.iter().enumerate() {
            let types = plan.map_or_else(|| self.types.of_column(column), |plan| plan.types[index]);
            match coerce(cell, types) {
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
