//! Converts cells to text.
//!
//! | cell | text |
//! |---|---|
//! | text | the text |
//! | integer | its digits as stored in the file |
//! | other number | the shortest form that parses to the same number |
//! | number formatted as a date or time | ISO 8601: `2026-01-31`, `2026-01-31T12:30:00`, `12:30:00`, `PT26H30M0S` |
//! | boolean | `true` or `false` |
//! | error | its displayed text, such as `#N/A` |
//! | formula | its last stored result |

use std::fmt::Write;

use super::date::push_iso;
use super::strings::{SharedStrings, unescape};
use super::styles::Styles;

/// Form of the value of a cell in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Kind {
    /// A number. A value that is not a number is taken as text.
    #[default]
    Number,
    /// The index of a shared string.
    Shared,
    /// `0` or `1`.
    Boolean,
    /// Text: the result of a formula, an error, or a date in ISO 8601.
    Text,
    /// An inline string, stored in the cell but not as its value.
    Inline,
}

impl Kind {
    pub(super) fn of(attribute: &str) -> Self {
        match attribute {
            "s" => Self::Shared,
            "b" => Self::Boolean,
            "inlineStr" => Self::Inline,
            "n" | "" => Self::Number,
            _ => Self::Text,
        }
    }
}

/// Appends the text of a cell with this value. Returns false if its shared string is missing.
pub(super) fn push_text(
    text: &mut String,
    value: &str,
    kind: Kind,
    style: Option<usize>,
    strings: &SharedStrings,
    styles: &Styles,
) -> bool {
    match kind {
        Kind::Shared if value.trim().is_empty() => true,
        Kind::Shared => match value.trim().parse().ok().and_then(|index| strings.get(index)) {
            Some(shared) => {
                text.push_str(shared);
                true
            }
            None => false,
        },
        Kind::Boolean => {
            text.push_str(match value.trim() {
                "1" => "true",
                "0" => "false",
                other => other,
            });
            true
        }
        Kind::Text => {
            let start = text.len();
            text.push_str(value);
            unescape(text, start);
            true
        }
        Kind::Number => {
            push_number(text, value.trim(), style, styles);
            true
        }
        Kind::Inline => true,
    }
}

fn push_number(text: &mut String, value: &str, style: Option<usize>, styles: &Styles) {
    let Some(number) = value.parse::<f64>().ok().filter(|number| number.is_finite()) else {
        return text.push_str(value);
    };
    if push_iso(text, number, styles.meaning(style), styles.from_1904) {
        return;
    }
    let digits = value.strip_prefix('-').unwrap_or(value).as_bytes();
    let is_whole = matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && digits.iter().all(u8::is_ascii_digit);
    // Writing to a string cannot fail.
    let _ = match number.abs() {
        0.0 => write!(text, "0"),
        _ if is_whole => write!(text, "{value}"),
        1e-7..1e21 => write!(text, "{number}"),
        _ => write!(text, "{number:e}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_their_shortest_form() {
        let styles = Styles::of(&[], false);
        for (value, text) in [
            ("1.0", "1"),
            ("-0", "0"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("0.10000000000000001", "0.1"),
            ("1E3", "1000"),
            ("1.5E-9", "1.5e-9"),
            ("1e300", "1e300"),
            ("9007199254740993", "9007199254740993"),
            ("-12345678901234567890123", "-12345678901234567890123"),
            ("007", "7"),
            ("inf", "inf"),
            ("not a number", "not a number"),
            ("", ""),
        ] {
            let mut written = String::new();
            push_number(&mut written, value, None, &styles);
            assert_eq!(written, text);
        }
    }
}
