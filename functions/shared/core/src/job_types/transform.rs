//! `transform`: maps rows into an output file, in the order of the input. It is the example of a job type with outputs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::growing_row::{GrowingRow, value_bytes};
use super::row_writer::{FIELD_EXISTS, RowParams, RowWriter};
use crate::model::spec::{OutputFile, Source, Spec};
use crate::ports::processor::{CostClass, Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use crate::text::{Format, Record};

/// The job type `transform`.
///
/// | param | meaning |
/// |---|---|
/// | `mapping` | a list of steps that run in order, see below; default: no steps |
/// | `outputFormat` | `csv` or `jsonl`; default: the format of the input, `jsonl` for many files |
/// | `columns` | the columns to write, in this order; default: all; required to convert JSON Lines to CSV |
/// | `escapeFormulas` | whether cells that look like formulas are escaped, for CSV that people open in a spreadsheet |
///
/// A step is one of `{"rename": "old", "to": "new"}`, `{"drop": "column"}`, `{"set": "column", "value": …}` and
/// `{"set": "column", "template": "{first} {last}"}`. In a template, a column name in braces is replaced by the value
/// of the column; write `{{` and `}}` for literal braces.
pub struct Transform;

impl JobType for Transform {
    fn name(&self) -> &str {
        "transform"
    }

    fn params(&self) -> &'static [&'static str] {
        &["mapping", "outputFormat", "columns", "escapeFormulas"]
    }

    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        let format = spec.head.dialect.format;
        // The rows of many files have one output, whatever their formats are.
        let default_format = if matches!(spec.source, Source::Files(_)) { Format::Jsonl } else { format };
        // An empty file has no columns and no rows, so any mapping is accepted.
        let mut known = (!spec.head.columns.is_empty()).then(|| spec.head.columns.clone());
        let steps = steps(spec.params.get("mapping"))?;
        let steps: Vec<Step> =
            (0..).zip(steps).map(|(place, step)| step.compile(place, known.as_mut())).collect::<Result<_, _>>()?;
        if known.as_ref().is_some_and(Vec::is_empty) {
            return Err(ParamsError::new("params.mapping", "drops all columns. Keep at least one."));
        }
        let rows = RowWriter::of(RowParams {
            all: &spec.params,
            format: "outputFormat",
            default_format,
            default_columns: (format == Format::Csv).then(|| known.clone().unwrap_or_default()),
            own_names: own_names(spec, &steps),
        })?;
        if let (Some(known), Some(wanted)) = (&known, spec.params.get("columns").and_then(Value::as_array))
            && let Some(unknown) = wanted.iter().filter_map(Value::as_str).find(|name| !known.iter().any(|k| k == name))
        {
            let message =
                format!("names a column `{unknown}` that the mapping does not leave. It leaves {}.", known.join(", "));
            return Err(ParamsError::new("params.columns", message));
        }
        let row_max_bytes = spec.limits.max_record_bytes.saturating_mul(ROW_GROWTH_MAX);
        Ok(Arc::new(Mapping { steps, rows, row_max_bytes: usize::try_from(row_max_bytes).unwrap_or(usize::MAX) }))
    }
}

const STEPS_MAX: usize = 1_000;

/// A row may grow to so many times the largest record of a file.
const ROW_GROWTH_MAX: u64 = 4;
/// The names of the input's header for the columns that were given a name, as far as no step gives one of these names
/// to a column itself.
fn own_names(spec: &Spec, steps: &[Step]) -> HashMap<String, String> {
    let is_given = |name: &String| steps.iter().any(|step| step.target() == Some(name));
    let names = spec.head.columns.iter().zip(spec.head.own_header());
    names.filter(|(name, own)| name != own && !is_given(name)).map(|(name, own)| (name.clone(), own.clone())).collect()
}

/// A step as it appears in the params.
#[derive(Deserialize)]
#[serde(untagged)]
enum StepParams {
    Rename(RenameParams),
    Drop(DropParams),
    Value(ValueParams),
    Template(TemplateParams),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RenameParams {
    rename: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DropParams {
    drop: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueParams {
    set: String,
    value: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateParams {
    set: String,
    template: String,
}

fn steps(mapping: Option<&Value>) -> Result<Vec<StepParams>, ParamsError> {
    const FORMS: &str =
        "must be a step: {\"rename\", \"to\"}, {\"drop\"}, {\"set\", \"value\"} or {\"set\", \"template\"}.";
    const LIST: &str = "must be a list of steps, such as `[{\"drop\": \"notes\"}]`.";
    let Some(mapping) = mapping.filter(|mapping| !mapping.is_null()) else { return Ok(Vec::new()) };
    let list = mapping.as_array().ok_or_else(|| ParamsError::new("params.mapping", LIST))?;
    if list.len() > STEPS_MAX {
        return Err(ParamsError::new("params.mapping", format!("has more than the maximum of {STEPS_MAX} steps.")));
    }
    let step = |(place, step): (usize, &Value)| {
        serde_json::from_value(step.clone()).map_err(|_| ParamsError::new(format!("params.mapping[{place}]"), FORMS))
    };
    list.iter().enumerate().map(step).collect()
}

impl StepParams {
    /// Checks the step against the columns before it, and updates `known` to the columns after it. `known` is `None` if
    /// the columns are unknown.
    fn compile(self, place: usize, known: Option<&mut Vec<String>>) -> Result<Step, ParamsError> {
        let field = format!("params.mapping[{place}]");
        let find = |known: &[String], name: &str| {
            known.iter().position(|column| column == name).ok_or_else(|| {
                let message = format!(
                    "names a column `{name}` that the rows do not have at this step. They have {}.",
                    known.join(", ")
                );
                ParamsError::new(field.clone(), message)
            })
        };
        let step = match self {
            Self::Rename(RenameParams { rename, to }) => Step::Rename { from: rename, to },
            Self::Drop(DropParams { drop }) => Step::Drop(drop),
            Self::Value(ValueParams { set, value }) => Step::Set { column: set, value },
            Self::Template(TemplateParams { set, template }) => {
                let parts = template_parts(&template).map_err(|message| ParamsError::new(field.clone(), message))?;
                Step::Fill { column: set, parts }
            }
        };
        let name = match &step {
            Step::Rename { to: name, .. } | Step::Set { column: name, .. } | Step::Fill { column: name, .. } => name,
            Step::Drop(name) => name,
        };
        if name.is_empty() {
            return Err(ParamsError::new(field, "has an empty column name. Give the column a name."));
        }
        let Some(known) = known else { return Ok(step) };
        match &step {
            Step::Rename { from, to } => {
                let place = find(known, from)?;
                if from != to && known.contains(to) {
                    return Err(ParamsError::new(
                        field,
                        format!("renames a column to `{to}`, but there is already one with this name. Drop it first."),
                    ));
                }
                known[place].clone_from(to);
            }
            Step::Drop(column) => {
                let place = find(known, column)?;
                known.remove(place);
            }
            Step::Set { column, .. } => add(known, column),
            Step::Fill { column, parts } => {
                for part in parts {
                    if let Part::Column(name) = part {
                        find(known, name)?;
                    }
                }
                add(known, column);
            }
        }
        Ok(step)
    }
}

fn add(known: &mut Vec<String>, column: &String) {
    if !known.contains(column) {
        known.push(column.clone());
    }
}

enum Step {
    Rename { from: String, to: String },
    Drop(String),
    Set { column: String, value: Value },
    Fill { column: String, parts: Vec<Part> },
}

/// A piece of a template.
#[derive(PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Column(String),
}

/// Parses a template such as `{first} {last}`; `{{` and `}}` are literal braces.
fn template_parts(template: &str) -> Result<Vec<Part>, &'static str> {
    const UNBALANCED: &str = "has a template with an unmatched brace. Write a literal brace twice.";
    let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), template.chars().peekable());
    while let Some(c) = rest.next() {
        match c {
            '{' | '}' if rest.next_if_eq(&c).is_some() => text.push(c),
            '{' => {
                parts.push(Part::Text(std::mem::take(&mut text)));
                let mut column = String::new();
                loop {
                    match rest.next() {
                        Some('}') => break,
                        Some(c) if c != '{' => column.push(c),
                        _ => return Err(UNBALANCED),
                    }
                }
                parts.push(Part::Column(column));
            }
            '}' => return Err(UNBALANCED),
            c => text.push(c),
        }
    }
    parts.push(Part::Text(text));
    parts.retain(|part| *part != Part::Text(String::new()));
    Ok(parts)
}

struct Mapping {
    steps: Vec<Step>,
    rows: RowWriter,
    /// Maximum size of a row, in bytes: the names and the values of its fields.
    row_max_bytes: usize,
}

#[async_trait]
impl ItemProcessor for Mapping {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let mut row = GrowingRow::new(fields_of(&item.record)?, self.row_max_bytes)?;
        for step in &self.steps {
            step.apply(&mut row)?;
        }
        self.rows.row(row.into_fields()).map(ItemOutcome::Output)
    }

    /// The only effect is the output file, so a dry run does the same.
    async fn dry_run(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.process(item).await
    }

    fn output(&self) -> Option<OutputFile> {
        Some(self.rows.output("transformed", false))
    }

    fn cost(&self) -> CostClass {
        CostClass::Fast
    }
}

impl Step {
    /// The column that the step writes.
    const fn target(&self) -> Option<&String> {
        match self {
            Self::Rename { to: name, .. } | Self::Set { column: name, .. } | Self::Fill { column: name, .. } => {
                Some(name)
            }
            Self::Drop(_) => None,
        }
    }

    fn apply(&self, row: &mut GrowingRow) -> Result<(), ItemError> {
        match self {
            Self::Rename { from, to } => {
                if !row.rename(from, to)? {
                    let message =
                        format!("`{from}` cannot be renamed to `{to}`: the row already has that field; drop it first");
                    return Err(ItemError::permanent(FIELD_EXISTS, message).in_column(to.clone()));
                }
            }
            Self::Drop(column) => {
                row.remove(column);
            }
            Self::Set { column, value } => {
                row.set(column, value_bytes(value), |_| value.clone())?;
            }
            Self::Fill { column, parts } => {
                let bytes = parts.iter().map(|part| part.bytes(row.fields())).sum();
                row.set(column, bytes, |fields| Value::String(parts.iter().map(|part| part.text(fields)).collect()))?;
            }
        }
        Ok(())
    }
}

impl Part {
    /// Size of the text of this part.
    fn bytes(&self, fields: &Map<String, Value>) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Column(column) => match fields.get(column) {
                None | Some(Value::Null) => 0,
                Some(value) => value_bytes(value),
            },
        }
    }

    /// The text of this part for a row; empty if the row has no such value.
    fn text<'a>(&'a self, fields: &'a Map<String, Value>) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Column(column) => match fields.get(column) {
                None | Some(Value::Null) => "".into(),
                Some(Value::String(text)) => text.into(),
                Some(value) => value.to_string().into(),
            },
        }
    }
}

fn fields_of(record: &Record) -> Result<Map<String, Value>, ItemError> {
    match record {
        Record::Cells(cells) => {
            Ok(cells.iter().map(|(column, cell)| (column.to_owned(), Value::String(cell.to_owned()))).collect())
        }
        Record::Json(Value::Object(fields)) => Ok(fields.clone()),
        Record::Json(_) => Err(ItemError::permanent("invalid_json", "the row is not a JSON object")),
    }
}
