use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;

/// Why a schema cannot be used. The message is for the user who sent it.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It is not a JSON object.
    #[error("The schema must be a JSON object.")]
    NotAnObject,
    /// It declares another dialect of JSON Schema.
    #[error(
        "The schema's `$schema` is `{uri}`, but only JSON Schema 2020-12 is supported. Convert the schema, or remove \
         `$schema`."
    )]
    OtherDraft {
        /// The value of `$schema`, shortened.
        uri: String,
    },
    /// It is above a bound.
    #[error("The schema has more than {limit} {what}. {advice}")]
    TooLarge {
        /// The bound.
        limit: u64,
        /// What is bounded, in the plural.
        what: &'static str,
        /// What to do, as a sentence.
        advice: &'static str,
    },
    /// It refers to something outside of itself.
    #[error("A reference in the schema cannot be resolved: {reason}. Put the referenced schema under `$defs`.")]
    UnknownReference {
        /// The validator's explanation.
        reason: String,
    },
    /// It violates the rules of JSON Schema.
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
            _ => Self::Invalid {
                location: format!("#{}", error.instance_path().as_str()),
                reason: error.masked_with("the value there").to_string(),
            },
        }
    }
}
