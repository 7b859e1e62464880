//! One line of a JSON Lines file.

use serde_json::Value;

use super::bad_record::{BadRecord, INVALID_JSON};

/// Reads a line that must hold one JSON object.
pub(super) fn parse(line: &str) -> Result<Value, BadRecord> {
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
    if may_have_lost_digits(&value)
        && let Some(byte) = inexact_integer(line)
    {
        return Err(bad(format!(
            "The number at byte {} of the line has too many digits to be stored exactly. Write it as a string.",
            byte + 1
        )));
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

/// Whether the value contains a number so large that it may be an integer of more than 64 bits. serde_json turns such
/// an integer into the nearest float. This check is cheap, so that the text of the line is only scanned if there is
/// such a number.
fn may_have_lost_digits(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(|float| float.abs() >= 2_f64.powi(63)),
        Value::Array(values) => values.iter().any(may_have_lost_digits),
        Value::Object(members) => members.values().any(may_have_lost_digits),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// The byte offset of the first integer in valid JSON that cannot be represented exactly.
fn inexact_integer(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b'-' | b'0'..=b'9' => {
                let length = bytes[at..].iter().take_while(|byte| is_number_byte(**byte)).count();
                let token = &line[at..at + length];
                if !token.contains(['.', 'e', 'E']) && exact_integer(token).is_none() {
                    return Some(at);
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

/// The offset after the string that starts at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// Parses an optional sign and digits as a JSON number; `None` if the number cannot represent every digit.
pub(super) fn exact_integer(digits: &str) -> Option<Value> {
    if let Ok(integer) = digits.parse::<i64>() {
        return Some(integer.into());
    }
    if let Ok(integer) = digits.parse::<u64>() {
        return Some(integer.into());
    }
    let float: f64 = digits.parse().ok().filter(|float: &f64| float.is_finite())?;
    let (sign, magnitude) = match digits.strip_prefix('-') {
        Some(magnitude) => ("-", magnitude),
        None => ("", digits.strip_prefix('+').unwrap_or(digits)),
    };
    let kept = format!("{float:.0}");
    (kept == format!("{sign}{}", magnitude.trim_start_matches('0'))).then(|| Value::from(float))
}
