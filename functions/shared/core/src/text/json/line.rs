//! One line of a JSON Lines file.

use serde_json::Value;

use super::reserved::{RESERVED_NAMES, has_reserved_name};
use crate::text::bad_record::{BadRecord, INVALID_JSON};

/// Reads a line that must hold one JSON object. Numbers keep every digit, and the way they are written.
pub(in crate::text) fn parse(line: &str) -> Result<Value, BadRecord> {
    if has_reserved_name(line.as_bytes()) {
        return Err(bad(format!("The line has a name that begins with `{RESERVED_NAMES}`. Rename that field.")));
    }
    let value: Value = serde_json::from_str(line).map_err(|error| {
        let told = error.to_string();
        // serde_json ends its message with " at line 1 column N". Replace that by the byte of the line.
        let what = told.split(" at line ").next().unwrap_or_default();
        bad(format!("The line is not valid JSON: {what}, at byte {} of the line.", error.column()))
    })?;
    match &value {
        Value::Object(_) => {}
        other => {
            return Err(bad(format!("The line must be a JSON object, but it is {}.", kind(other))));
        }
    }
    Ok(value)
}

fn bad(message: String) -> BadRecord {
    BadRecord { code: INVALID_JSON, column: None, message }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
