use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use regex_syntax::ast::ErrorKind;
use regex_syntax::ast::parse::Parser;
use serde_json::Value;

use crate::user_text::shortened;

/// Why a schema cannot be used. The message is for the user who sent it.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("The schema must be a JSON object.")]
    NotAnObject,
    #[error(
        "The schema's `$schema` is `{uri}`, but only JSON Schema 2020-12 is supported. Convert the schema, or remove \
         `$schema`."
    )]
    OtherDraft {
        /// The value of `$schema`, shortened.
        uri: String,
    },
    #[error("The schema has more than {limit} {what}. {advice}")]
    TooLarge {
        limit: u64,
        /// The parts that are bounded, in the plural.
        what: &'static str,
        /// Advice, as a sentence.
        advice: &'static str,
    },
    #[error("A reference in the schema cannot be resolved: {reason}. Put the referenced schema under `$defs`.")]
    UnknownReference { reason: String },
    /// It has a pattern that cannot be used.
    #[error("The pattern `{pattern}` in the schema {reason}")]
    Pattern {
        /// The pattern, shortened.
        pattern: String,
        /// The error and advice: the rest of the sentence.
        reason: String,
    },
    #[error("The schema is not valid at `{location}`: {reason}.")]
    Invalid {
        /// JSON Pointer into the schema.
        location: String,
        /// The validator's explanation.
        reason: String,
    },
}

impl From<&ValidationError<'_>> for SchemaError {
    fn from(error: &ValidationError<'_>) -> Self {
        match error.kind() {
            ValidationErrorKind::Referencing(reason) => Self::UnknownReference { reason: reason.to_string() },
            ValidationErrorKind::Format { format } if format == "regex" && error.instance().is_string() => {
                let pattern = error.instance().as_str().unwrap_or_default();
                Self::Pattern { pattern: shortened(pattern), reason: refusal_of(pattern) }
            }
            kind => {
                let location = format!("#{}", error.instance_path().as_str());
                // The only choice that the rules of JSON Schema leave in a `type`: a type, or a list of types.
                let is_type = matches!(kind, ValidationErrorKind::AnyOf { .. }) && location.ends_with("/type");
                let reason = if is_type { no_type(error.instance()) } else { masked(error) };
                Self::Invalid { location, reason }
            }
        }
    }
}

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Why this value of `type` is refused. It is the word of a schema, not the content of a row.
fn no_type(value: &Value) -> String {
    let words = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let unknown = words.iter().filter_map(Value::as_str).find(|word| !TYPES.contains(word));
    let types = TYPES.join(", ");
    match unknown {
        Some(word) => format!("`{}` is not a type. The types are {types}", shortened(word)),
        None => format!("the value there must be a type, or a list of different types. The types are {types}"),
    }
}

fn masked(error: &ValidationError<'_>) -> String {
    error.masked_with("the value there").to_string()
}

/// Why a pattern is refused: the rest of a sentence that begins with it.
fn refusal_of(pattern: &str) -> String {
    let error = match Parser::new().parse(pattern) {
        Err(error) => error,
        Ok(_) => return "is not a valid regular expression. Correct it.".to_owned(),
    };
    let span = error.span().start.offset..error.span().end.offset;
    match error.kind() {
        ErrorKind::UnsupportedLookAround => {
            "uses look-around (`(?=`, `(?!`, `(?<=` or `(?<!`), which is not supported. Write it without."
        }
        // The parser knows numbers only.
        ErrorKind::EscapeUnrecognized if error.pattern().get(span) == Some(r"\k") => BACK_REFERENCE,
        ErrorKind::UnsupportedBackreference => BACK_REFERENCE,
        kind => return format!("is not a valid regular expression: {kind}. Correct it."),
    }
    .to_owned()
}

const BACK_REFERENCE: &str =
    r"uses a back-reference (such as `\1` or `\k<name>`), which is not supported. Write it without.";
