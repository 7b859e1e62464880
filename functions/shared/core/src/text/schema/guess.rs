//! Guesses the type of a column from its values, for a person who describes it with a schema.

use serde_json::Value;

use super::coerce::{integer_digits, is_decimal};
use crate::words::words;

words! {
    /// What the values of a column look like.
    ColumnType {
        /// Whole numbers. A number with zeros in front, such as `007`, is a string.
        Integer = "integer",
        /// Numbers, some of them with a fraction or an exponent.
        Number = "number",
        /// `true` and `false`.
        Boolean = "boolean",
        /// Any text, or values of several types.
        String = "string",
        /// Nothing but empty cells or nulls.
        Null = "null",
        /// JSON objects.
        Object = "object",
        /// JSON arrays.
        Array = "array",
    }
}

/// The type of a cell; `None` if it is empty.
///
/// A number with zeros or a plus sign in front is a string: as a number it would lose them, which matters for postcodes
/// and telephone numbers.
pub fn type_of_cell(cell: &str) -> Option<ColumnType> {
    let text = cell.trim_ascii();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_padded =
        text.starts_with('+') || (digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit()));
    Some(match text {
        "" => return None,
        _ if !is_padded && integer_digits(text) == Some(text) => ColumnType::Integer,
        _ if !is_padded && is_decimal(text) => ColumnType::Number,
        _ if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") => ColumnType::Boolean,
        _ => ColumnType::String,
    })
}

/// The type of a value of a JSON object; `None` if it is null.
pub fn type_of_value(value: &Value) -> Option<ColumnType> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => ColumnType::Boolean,
        Value::Number(number) if number.as_str().contains(['.', 'e', 'E']) => ColumnType::Number,
        Value::Number(_) => ColumnType::Integer,
        Value::String(_) => ColumnType::String,
        Value::Array(_) => ColumnType::Array,
        Value::Object(_) => ColumnType::Object,
    })
}

/// The type of a column with a value of this type and others of type `before`. Two types that have none in common are
/// strings.
pub fn common_type(before: Option<ColumnType>, now: Option<ColumnType>) -> Option<ColumnType> {
    use ColumnType::{Integer, Number};
    match (before, now) {
        (None, one) | (one, None) => one,
        (Some(before), Some(now)) if before == now => Some(now),
        (Some(Integer | Number), Some(Integer | Number)) => Some(Number),
        _ => Some(ColumnType::String),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn column(cells: &[&str]) -> Option<ColumnType> {
        cells.iter().fold(None, |before, cell| common_type(before, type_of_cell(cell)))
    }

    #[test]
    fn the_type_of_a_column_is_the_narrowest_that_holds_for_all_cells() {
        assert_eq!(column(&["1", "-20", ""]), Some(ColumnType::Integer));
        assert_eq!(column(&["1", "12.50", "1e3"]), Some(ColumnType::Number));
        assert_eq!(column(&["true", "FALSE"]), Some(ColumnType::Boolean));
        assert_eq!(column(&["1", "true"]), Some(ColumnType::String));
        assert_eq!(column(&["", " "]), None);
        assert_eq!(column(&["0", "0.5", "-0.25"]), Some(ColumnType::Number));
    }

    #[test]
    fn a_number_that_would_lose_characters_is_a_string() {
        for cell in ["007", "-01", "+49", "00.5", "NaN", "inf", "1,5", "2026-01-01", "0x1", "1 000"] {
            assert_eq!(type_of_cell(cell), Some(ColumnType::String), "{cell}");
        }
        assert_eq!(type_of_cell("00"), Some(ColumnType::String));
        assert_eq!(type_of_cell("5.00"), Some(ColumnType::Number), "the cell is not written as an integer");
    }

    #[test]
    fn the_type_of_a_json_value_is_its_own() {
        let value: Value = serde_json::from_str("[1, 1.0, 1e2, true, \"a\", null, [], {}]").unwrap();
        let types: Vec<_> = value.as_array().unwrap().iter().map(type_of_value).collect();
        use ColumnType::*;
        let expected =
            [Some(Integer), Some(Number), Some(Number), Some(Boolean), Some(String), None, Some(Array), Some(Object)];
        assert_eq!(types, expected);
        assert_eq!(common_type(type_of_value(&json!([])), type_of_value(&json!(1))), Some(String));
    }
}
