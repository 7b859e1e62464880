use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_core::ports::{BoxError, PortError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A row as DynamoDB stores it.
pub type Item = HashMap<String, AttributeValue>;

pub fn text(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

pub fn number(value: impl Into<i128>) -> AttributeValue {
    AttributeValue::N(value.into().to_string())
}

pub fn binary(value: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(Blob::new(value))
}

/// A time in milliseconds.
pub fn time(value: Timestamp) -> AttributeValue {
    number(value.as_millisecond())
}

/// A time in whole seconds, rounded up, so that no row expires early.
pub fn expiry_seconds(value: Timestamp) -> i64 {
    value.as_millisecond().div_euclid(1000) + i64::from(value.as_millisecond().rem_euclid(1000) > 0)
}

pub fn from_millis(millis: i64) -> Result<Timestamp, BoxError> {
    Ok(Timestamp::from_millisecond(millis)?)
}

pub fn from_seconds(seconds: i64) -> Result<Timestamp, BoxError> {
    Ok(Timestamp::from_second(seconds)?)
}

pub fn to_item(doing: &'static str, row: &impl Serialize) -> Result<Item, PortError> {
    serde_dynamo::to_item(row).map_err(|error| PortError::invalid(doing, error))
}

/// Decodes a row. Unknown attributes are ignored: a newer version may have written them.
pub fn from_item<T: DeserializeOwned>(doing: &'static str, item: Item) -> Result<T, PortError> {
    serde_dynamo::from_item(item).map_err(|error| PortError::invalid(doing, error))
}

/// The attribute names of the `#name` placeholders in an expression. Expressions use placeholders for all attributes,
/// since DynamoDB reserves over 570 words and adds more.
pub fn names(expression: &str) -> impl Iterator<Item = (String, String)> + '_ {
    expression.split('#').skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        (format!("#{}", &rest[..end]), rest[..end].to_owned())
    })
}

/// The size of an item in bytes, as DynamoDB counts it for its limits and prices.
#[cfg(test)]
pub fn size_of(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + size_of_value(value)).sum()
}

#[cfg(test)]
fn size_of_value(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        // One byte for two digits, one for the number, one for a sign.
        AttributeValue::N(digits) => {
            digits.trim_end_matches('0').len().div_ceil(2) + 1 + usize::from(digits.starts_with('-'))
        }
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::Bool(_) => 1,
        other => unreachable!("{other:?} in a row whose size matters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_in_an_expression() {
        let found: Vec<_> = names("SET #a = :a, #b1 = #b1 + :one REMOVE #c").collect();
        let names: Vec<_> = found.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["a", "b1", "b1", "c"]);
        assert_eq!(found[0].0, "#a");
    }

    #[test]
    fn an_expiry_is_never_before_its_time() {
        let at = |ms| expiry_seconds(Timestamp::from_millisecond(ms).unwrap());
        assert_eq!([at(1000), at(1001), at(1999), at(2000)], [1, 2, 2, 2]);
    }
}
