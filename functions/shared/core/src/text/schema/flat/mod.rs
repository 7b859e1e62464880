//! A quick check of CSV rows against schemas that ask something of each cell by itself, in few keywords.
//!
//! Nearly all schemas are like that, and nearly all rows are valid. So a row is first checked here, from the text of
//! its cells. The check only knows rows that are surely valid: the validator decides on all others, and says what is
//! wrong with them. Any other schema is left to the validator from the beginning.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::coerce::ColumnTypes;
use crate::text::csv::Cells;
pub(super) use cell_rule::Patterns;
use cell_rule::{ANNOTATIONS, Answer, CellRule};

mod cell_rule;
mod plain_number;

#[cfg(test)]
mod flat_schema_tests;

/// A schema that asks something of each cell by itself.
#[derive(Debug)]
pub(super) struct FlatSchema {
    /// The columns of which it asks something, and what.
    rules: Vec<(String, CellRule)>,
    required: Vec<String>,
    /// The columns that a row may have; `None` if it may have any.
    allowed: Option<HashSet<String>>,
}

/// The checks of a flat schema for rows with certain columns.
#[derive(Debug)]
pub(super) struct CellChecks(Vec<Check>);

#[derive(Clone, Copy, Debug)]
struct Check {
    column: usize,
    /// The index of its rule.
    rule: usize,
    /// True if the cell must not be left out.
    is_required: bool,
}

impl FlatSchema {
    /// The quick check of a valid schema, `None` if it is not flat. `types` are those that its cells are converted to.
    pub(super) fn of(schema: &Value, types: &ColumnTypes, patterns: &mut dyn Patterns) -> Option<Self> {
        let mut flat = Self { rules: Vec::new(), required: Vec::new(), allowed: None };
        let no_properties = Map::new();
        let mut properties = &no_properties;
        for (keyword, value) in schema.as_object()? {
            match keyword.as_str() {
                "properties" => properties = value.as_object()?,
                "required" => {
                    let names = value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
                    flat.required = names.collect::<Option<_>>()?;
                }
                "type" if value == "object" => {}
                "additionalProperties" if value == &Value::Bool(true) => {}
                "additionalProperties" if value == &Value::Bool(false) => flat.allowed = Some(HashSet::new()),
                // Nothing refers to a definition: `$ref` is none of the known keywords.
                "$schema" | "$id" | "$defs" => {}
                annotation if ANNOTATIONS.contains(&annotation) => {}
                _ => return None,
            }
        }
        if let Some(allowed) = &mut flat.allowed {
            allowed.extend(properties.keys().cloned());
        }
        for (column, property) in properties {
            let rule = CellRule::of(property, patterns)?;
            // They differ in a schema of very many properties.
            if rule.types() != types.of_column(column) {
                return None;
            }
            if !rule.asks_nothing() {
                flat.rules.push((column.clone(), rule));
            }
        }
        Some(flat)
    }

    /// The checks for rows with these columns. `None` if no such row is surely valid.
    pub(super) fn checks(&self, columns: &[String]) -> Option<CellChecks> {
        let places: HashMap<&str, usize> = (0..).zip(columns).map(|(place, name)| (name.as_str(), place)).collect();
        // Of two columns with the same name a row keeps the last one.
        let is_unique = places.len() == columns.len();
        let is_complete = self.required.iter().all(|name| places.contains_key(name.as_str()));
        let is_allowed = self.allowed.as_ref().is_none_or(|allowed| columns.iter().all(|name| allowed.contains(name)));
        if !(is_unique && is_complete && is_allowed) {
            return None;
        }
        let required: HashSet<&str> = self.required.iter().map(String::as_str).collect();
        let check = |(rule, (name, _)): (usize, &(String, CellRule))| {
            let column = *places.get(name.as_str())?;
            Some(Check { column, rule, is_required: required.contains(name.as_str()) })
        };
        Some(CellChecks(self.rules.iter().enumerate().filter_map(check).collect()))
    }

    /// True if a row is surely valid. The checks must be for its columns.
    #[inline]
    pub(super) fn accepts(&self, cells: &Cells, checks: &CellChecks) -> bool {
        checks.0.iter().all(|check| {
            let cell = cells.at(check.column).unwrap_or_default();
            match self.rules[check.rule].1.check(cell) {
                Answer::Valid => true,
                Answer::LeftOut => !check.is_required,
                Answer::Unsure => false,
            }
        })
    }
}
