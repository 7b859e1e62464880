use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;

use crate::user_text::shortened;

/// The longest message of a violation, in characters. The validator names all values of an `enum`.
const MESSAGE_MAX_CHARS: usize = 500;

/// Why a row violates the schema. This fails the item. The message does not quote the content.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SchemaViolation {
    /// The column with the problem, if it is a single column.
    pub column: Option<String>,
    /// The keyword that it breaks.
    pub rule: Option<String>,
    /// What is wrong, for the user.
    pub message: String,
}

/// What a row was made of.
pub(crate) enum Row<'a> {
    Json,
    Cells { has_column: &'a dyn Fn(&str) -> bool },
}

impl Row<'_> {
    /// Replaces the content in messages.
    fn value(&self) -> &'static str {
        match self {
            Self::Json => "the value",
            Self::Cells { .. } => "the cell",
        }
    }

    fn missing(&self, column: Option<&str>) -> &'static str {
        match (self, column) {
            (Self::Cells { has_column }, Some(column)) if has_column(column) => {
                "a value is required, but the cell is empty"
            }
            (Self::Cells { .. }, _) => "the schema requires it, but the file has no such column",
            (Self::Json, _) => "the schema requires it, but the row does not have it",
        }
    }
}

/// Describes the validator's error. The word `value` or `cell` replaces the content.
pub(crate) fn violation(error: &ValidationError<'_>, row: &Row<'_>) -> SchemaViolation {
    let path = error.instance_path().as_str();
    let mut segments = path.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~"));
    let column = segments.next().or_else(|| reported_property(error.kind()));
    let inside = path.splitn(3, '/').nth(2);
    let what = match error.kind() {
        ValidationErrorKind::Required { .. } if inside.is_none() && path.is_empty() => {
            row.missing(column.as_deref()).to_owned()
        }
        ValidationErrorKind::AdditionalProperties { .. } | ValidationErrorKind::UnevaluatedProperties { .. }
            if path.is_empty() =>
        {
            "the schema does not allow it".to_owned()
        }
        ValidationErrorKind::PropertyNames { .. } => "a property's name is not allowed".to_owned(),
        _ if column.is_none() => error.masked_with("the row").to_string(),
        _ => error.masked_with(row.value()).to_string(),
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
    SchemaViolation { message: format!("{place}{what} (rule `{rule}`)."), rule: Some(rule.to_owned()), column }
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
