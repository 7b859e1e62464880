use jsonschema::{Draft, PatternOptions, ValidationError};
use serde_json::{Map, Value};

use crate::bounds::Bounded;
use crate::error::SchemaError;
use crate::violation::{Row, SchemaViolation, violation};

/// Memory that any pattern may take, in bytes: parts of a compiled pattern do not depend on its size.
const MIN_PATTERN_BYTES: usize = 64 * 1024;

/// The stack that counts as enough to compile a schema, in bytes. The deepest one takes less than three quarters of it in
/// a build without optimisation: `stack_tests`. A release build takes less.
pub(crate) const COMPILE_STACK_BYTES: usize = 4 * 1024 * 1024;

/// The same to check a row, in bytes for each level of the row.
const LEVEL_STACK_BYTES: usize = 256 * 1024;

/// A compiled schema.
#[derive(Debug)]
pub struct Validator(jsonschema::Validator);

impl Validator {
    /// Compiles a schema with these bounds.
    pub(crate) fn compile(schema: &Value, bounded: &Bounded<'_>) -> Result<Self, SchemaError> {
        on_enough_stack(COMPILE_STACK_BYTES, || Self::compile_here(schema, bounded))
    }

    /// The same on the stack that there is.
    pub(crate) fn compile_here(schema: &Value, bounded: &Bounded<'_>) -> Result<Self, SchemaError> {
        build(schema, bounded).map(Self).map_err(|error| SchemaError::from(&error))
    }

    /// Checks a row that is JSON.
    pub fn validate_json(&self, row: &Value) -> Result<(), SchemaViolation> {
        self.validate(row, &Row::Json)
    }

    /// Checks a row that was made of cells. `has_column` tells whether the file has a column.
    pub fn validate_cells(&self, row: &Value, has_column: &dyn Fn(&str) -> bool) -> Result<(), SchemaViolation> {
        self.validate(row, &Row::Cells { has_column })
    }

    fn validate(&self, value: &Value, row: &Row<'_>) -> Result<(), SchemaViolation> {
        on_enough_stack(check_stack_bytes(value), || self.validate_here(value, row))
    }

    /// The same on the stack that there is.
    pub(crate) fn validate_here(&self, value: &Value, row: &Row<'_>) -> Result<(), SchemaViolation> {
        self.0.validate(value).map_err(|error| violation(&error, row))
    }
}

/// A compiled pattern of a schema.
#[derive(Debug)]
pub struct Pattern(jsonschema::Validator);

impl Pattern {
    /// Compiles a pattern with these bounds; `None` if it is not valid.
    pub(crate) fn compile(pattern: &str, bounded: &Bounded<'_>) -> Option<Self> {
        let schema = Value::Object(Map::from_iter([("pattern".to_owned(), pattern.into())]));
        on_enough_stack(COMPILE_STACK_BYTES, || build(&schema, bounded).ok().map(Self))
    }

    /// True if the text matches. That takes a bounded stack: no pattern is tried recursively.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_valid(&Value::String(text.to_owned()))
    }
}

/// The stack that counts as enough to check this row, in bytes. Hardly a row is so deep that a thread has less.
pub(crate) fn check_stack_bytes(row: &Value) -> usize {
    LEVEL_STACK_BYTES * (2 + depth(row))
}

/// Number of arrays and objects in one another.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Runs this on the stack of the thread if that has so much room left, otherwise on a new one: schemas and rows come from
/// users, and a stack that overflows ends the process, with the work of others in it.
fn on_enough_stack<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(bytes, bytes, work)
}

fn build(schema: &Value, bounded: &Bounded<'_>) -> Result<jsonschema::Validator, ValidationError<'static>> {
    // The limits hold for each pattern; a compiled pattern takes about four times the size of its automaton.
    let patterns = PatternOptions::regex()
        .size_limit(4 * bounded.compiled_bytes + MIN_PATTERN_BYTES)
        .dfa_size_limit(bounded.cache_bytes);
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .offline()
        // Patterns come from users, so matching must take linear time in the length of the cell (no backtracking).
        .with_pattern_options(patterns)
        .build(schema)
}
