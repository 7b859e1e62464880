//! Converts Parquet values to JSON.
//!
//! | value | JSON |
//! |---|---|
//! | integer of any width, signed or unsigned | exact number |
//! | float, double | the shortest number that parses to the same value; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | decimal | string: `"-12.50"` |
//! | date, time, timestamp | string in ISO 8601, with `Z` if it is an instant: `"2026-01-31T12:30:00.5Z"` |
//! | text, enum, JSON | string |
//! | UUID | string |
//! | interval | string: `"P1M2DT0.500S"` |
//! | other bytes | string, in base64 |
//! | list, map, group | array, object, object |
//!
//! A date or time outside the years 0 to 9999 becomes the stored number. Text that is not UTF-8 keeps its bytes, so
//! that only its own item fails, as `invalid_utf8`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Span;
use jiff::civil::{Date, date};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as PhysicalType};
use parquet::data_type::Int96;
use parquet::schema::types::ColumnDescriptor;

use super::column::Value;
use super::decimal::{DECIMAL_MAX_BYTES, checked_scale, push_decimal};
use crate::error::DecodeError;

const DAY_NANOS: i128 = 24 * 60 * 60 * 1_000_000_000;

/// The logical type of a column's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// The physical type.
    Plain,
    /// An unsigned integer.
    Unsigned,
    /// A date: days since 1970.
    Date,
    /// A time of day in units of this many nanoseconds.
    Time { unit_nanos: i64 },
    /// A time since 1970 in units of this many nanoseconds; an instant if it is in UTC.
    Timestamp { unit_nanos: i64, is_utc: bool },
    /// A decimal with this many digits after the point.
    Decimal { scale: usize },
    /// Text.
    Text,
    /// A UUID.
    Uuid,
    /// A 16-bit float.
    Float16,
    /// An interval: months, days and milliseconds.
    Interval,
}

impl Meaning {
    /// The logical type of a column.
    ///
    /// # Errors
    /// It is a decimal that the specification does not allow.
    pub(super) fn of(column: &ColumnDescriptor) -> Result<Self, DecodeError> {
        let is_bytes = matches!(column.physical_type(), PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY);
        Ok(match column.logical_type_ref() {
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) if is_bytes => Self::Text,
            Some(LogicalType::Decimal(decimal)) => {
                Self::Decimal { scale: checked_scale(decimal.scale, decimal.precision)? }
            }
            Some(LogicalType::Date) => Self::Date,
            Some(LogicalType::Time(time)) => Self::Time { unit_nanos: nanos(&time.unit) },
            Some(LogicalType::Timestamp(time)) => {
                Self::Timestamp { unit_nanos: nanos(&time.unit), is_utc: time.is_adjusted_to_u_t_c }
            }
            Some(LogicalType::Integer(integer)) if !integer.is_signed => Self::Unsigned,
            Some(LogicalType::Uuid) => Self::Uuid,
            Some(LogicalType::Float16) => Self::Float16,
            Some(_) => Self::Plain,
            None => match column.converted_type() {
                ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON if is_bytes => Self::Text,
                ConvertedType::DECIMAL => {
                    Self::Decimal { scale: checked_scale(column.type_scale(), column.type_precision())? }
                }
                ConvertedType::DATE => Self::Date,
                ConvertedType::TIME_MILLIS => Self::Time { unit_nanos: 1_000_000 },
                ConvertedType::TIME_MICROS => Self::Time { unit_nanos: 1000 },
                ConvertedType::TIMESTAMP_MILLIS => Self::Timestamp { unit_nanos: 1_000_000, is_utc: true },
                ConvertedType::TIMESTAMP_MICROS => Self::Timestamp { unit_nanos: 1000, is_utc: true },
                ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64 => {
                    Self::Unsigned
                }
                ConvertedType::INTERVAL => Self::Interval,
                _ => Self::Plain,
            },
        })
    }
}

fn nanos(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::MILLIS => 1_000_000,
        TimeUnit::MICROS => 1000,
        TimeUnit::NANOS => 1,
    }
}

pub(super) fn push_json(json: &mut Vec<u8>, value: Value<'_>, meaning: Meaning) {
    match value {
        Value::Boolean(value) => push(json, format_args!("{value}")),
        Value::Int32(value) if meaning == Meaning::Unsigned => push(json, format_args!("{}", value as u32)),
        Value::Int32(value) => push_integer(json, value.into(), meaning),
        Value::Int64(value) if meaning == Meaning::Unsigned => push(json, format_args!("{}", value as u64)),
        Value::Int64(value) => push_integer(json, value, meaning),
        Value::Int96(value) => push_int96(json, &value),
        Value::Float(value) => push_float(json, value.is_nan(), value > 0.0, ryu::Buffer::new().format(value)),
        Value::Double(value) => push_float(json, value.is_nan(), value > 0.0, ryu::Buffer::new().format(value)),
        Value::Bytes(value) => push_bytes(json, value, meaning),
    }
}

fn push(json: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = std::io::Write::write_fmt(json, text);
}

fn push_integer(json: &mut Vec<u8>, value: i64, meaning: Meaning) {
    let start = json.len();
    let is_written = match meaning {
        Meaning::Date => push_instant(json, i128::from(value) * DAY_NANOS, Shown::Date),
        Meaning::Time { unit_nanos } => {
            let nanos = i128::from(value) * i128::from(unit_nanos);
            (0..DAY_NANOS).contains(&nanos) && push_instant(json, nanos, Shown::Time { unit_nanos })
        }
        Meaning::Timestamp { unit_nanos, is_utc } => {
            push_instant(json, i128::from(value) * i128::from(unit_nanos), Shown::Both { unit_nanos, is_utc })
        }
        Meaning::Decimal { scale } => {
            json.push(b'"');
            push_decimal(json, &value.to_be_bytes(), scale);
            json.push(b'"');
            true
        }
        _ => false,
    };
    if !is_written {
        json.truncate(start);
        push(json, format_args!("{value}"));
    }
}

/// Appends an INT96, the old format of timestamps: nanoseconds of the day, and the Julian day.
fn push_int96(json: &mut Vec<u8>, value: &Int96) {
    const JULIAN_DAY_OF_1970: i128 = 2_440_588;
    let [low, high, day] = *value.data() else { return push(json, format_args!("null")) };
    let nanos = i128::from(u64::from(high) << 32 | u64::from(low));
    let start = json.len();
    let since_1970 = (i128::from(day) - JULIAN_DAY_OF_1970) * DAY_NANOS + nanos;
    if !push_instant(json, since_1970, Shown::Both { unit_nanos: 1, is_utc: false }) {
        json.truncate(start);
        push(json, format_args!("{since_1970}"));
    }
}

enum Shown {
    Date,
    Time { unit_nanos: i64 },
    Both { unit_nanos: i64, is_utc: bool },
}

/// Appends nanoseconds since 1970 as text. Returns false if the year is out of range.
fn push_instant(json: &mut Vec<u8>, nanos: i128, shown: Shown) -> bool {
    json.push(b'"');
    if !matches!(shown, Shown::Time { .. }) {
        let day = i64::try_from(nanos.div_euclid(DAY_NANOS)).ok().and_then(|days| Span::new().try_days(days).ok());
        let day: Option<Date> = day.and_then(|days| date(1970, 1, 1).checked_add(days).ok());
        // In ISO 8601 a year has four digits and no sign, unless both sides agreed on more.
        let Some(day) = day.filter(|day| day.year() >= 0) else { return false };
        push(json, format_args!("{day}"));
    }
    if let Shown::Time { unit_nanos } | Shown::Both { unit_nanos, .. } = shown {
        if matches!(shown, Shown::Both { .. }) {
            json.push(b'T');
        }
        let of_day = nanos.rem_euclid(DAY_NANOS);
        let (seconds, fraction) = (of_day / 1_000_000_000, of_day % 1_000_000_000);
        push(json, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
        match unit_nanos {
            _ if fraction == 0 => {}
            1_000_000 => push(json, format_args!(".{:03}", fraction / 1_000_000)),
            1000 => push(json, format_args!(".{:06}", fraction / 1000)),
            _ => push(json, format_args!(".{fraction:09}")),
        }
    }
    json.extend_from_slice(if matches!(shown, Shown::Both { is_utc: true, .. }) { b"Z\"" } else { b"\"" });
    true
}

fn push_float(json: &mut Vec<u8>, is_nan: bool, is_positive: bool, shortest: &str) {
    match shortest {
        _ if is_nan => json.extend_from_slice(b"\"NaN\""),
        "inf" | "-inf" if is_positive => json.extend_from_slice(b"\"Infinity\""),
        "inf" | "-inf" => json.extend_from_slice(b"\"-Infinity\""),
        shortest => json.extend_from_slice(shortest.as_bytes()),
    }
}

fn push_bytes(json: &mut Vec<u8>, value: &[u8], meaning: Meaning) {
    match (meaning, value) {
        (Meaning::Text, _) => push_text(json, value),
        (Meaning::Decimal { scale }, _) if (1..=DECIMAL_MAX_BYTES).contains(&value.len()) => {
            json.push(b'"');
            push_decimal(json, value, scale);
            json.push(b'"');
        }
        (Meaning::Uuid, [a, b, c, d, e, f, g, h, rest @ ..]) if value.len() == 16 => {
            let [high, mid, low] = [
                u32::from_be_bytes([*a, *b, *c, *d]),
                u32::from(*e) << 8 | u32::from(*f),
                u32::from(*g) << 8 | u32::from(*h),
            ];
            let rest = rest.iter().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
            push(
                json,
                format_args!("\"{high:08x}-{mid:04x}-{low:04x}-{:04x}-{:012x}\"", rest >> 48, rest & 0xFFFF_FFFF_FFFF),
            );
        }
        (Meaning::Float16, [low, high]) => {
            let value = float_of_16_bits(u16::from_le_bytes([*low, *high]));
            push_float(json, value.is_nan(), value > 0.0, ryu::Buffer::new().format(value));
        }
        (Meaning::Interval, _) if value.len() == 12 => {
            let number =
                |at: usize| value[at..at + 4].iter().rev().fold(0_u32, |number, &byte| number << 8 | u32::from(byte));
            let (months, days, ms) = (number(0), number(4), number(8));
            push(json, format_args!("\"P{months}M{days}DT{}.{:03}S\"", ms / 1000, ms % 1000));
        }
        _ => {
            json.push(b'"');
            push_base64(json, value);
            json.push(b'"');
        }
    }
}

/// Appends bytes in base64. If a value is written in pieces, the length of all pieces but the last must be a multiple
/// of 3.
pub(super) fn push_base64(json: &mut Vec<u8>, bytes: &[u8]) {
    json.extend_from_slice(STANDARD.encode(bytes).as_bytes());
}

/// Appends text as a JSON string. Invalid UTF-8 bytes are not changed.
pub(super) fn push_text(json: &mut Vec<u8>, text: &[u8]) {
    json.push(b'"');
    push_escaped(json, text);
    json.push(b'"');
}

/// Appends text with JSON escapes, without the quotes.
pub(super) fn push_escaped(json: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        json.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => json.extend_from_slice(b"\\\""),
            b'\\' => json.extend_from_slice(b"\\\\"),
            b'\n' => json.extend_from_slice(b"\\n"),
            b'\r' => json.extend_from_slice(b"\\r"),
            b'\t' => json.extend_from_slice(b"\\t"),
            control => push(json, format_args!("\\u{control:04x}")),
        }
        rest = &rest[at + 1..];
    }
    json.extend_from_slice(rest);
}

fn float_of_16_bits(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1F), f32::from(bits & 0x3FF));
    sign * match exponent {
        0 => fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2_f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: Value<'_>, meaning: Meaning) -> String {
        let mut json = Vec::new();
        push_json(&mut json, value, meaning);
        String::from_utf8(json).unwrap()
    }

    #[test]
    fn integers_are_exact_and_floats_are_shortest() {
        assert_eq!(json(Value::Int64(i64::MIN), Meaning::Plain), "-9223372036854775808");
        assert_eq!(json(Value::Int64(-1), Meaning::Unsigned), "18446744073709551615");
        assert_eq!(json(Value::Int32(-1), Meaning::Unsigned), "4294967295");
        assert_eq!(json(Value::Float(0.1), Meaning::Plain), "0.1");
        assert_eq!(json(Value::Double(3.0), Meaning::Plain), "3.0");
        assert_eq!(json(Value::Double(1e300), Meaning::Plain), "1e300");
        assert_eq!(json(Value::Double(f64::NAN), Meaning::Plain), "\"NaN\"");
        assert_eq!(json(Value::Float(f32::NEG_INFINITY), Meaning::Plain), "\"-Infinity\"");
        assert_eq!(json(Value::Bytes(&[0x00, 0x3C]), Meaning::Float16), "1.0");
        assert_eq!(json(Value::Bytes(&[0x01, 0x80]), Meaning::Float16), "-5.9604645e-8");
        assert_eq!(json(Value::Bytes(&[0xFF, 0x7B]), Meaning::Float16), "65504.0");
    }

    #[test]
    fn dates_and_times_are_written_in_iso_8601() {
        let utc = Meaning::Timestamp { unit_nanos: 1_000_000, is_utc: true };
        let local = Meaning::Timestamp { unit_nanos: 1, is_utc: false };
        assert_eq!(json(Value::Int32(-1), Meaning::Date), "\"1969-12-31\"");
        assert_eq!(json(Value::Int32(i32::MAX), Meaning::Date), "2147483647");
        assert_eq!(json(Value::Int64(1_700_000_000_123), utc), "\"2023-11-14T22:13:20.123Z\"");
        assert_eq!(json(Value::Int64(-1), utc), "\"1969-12-31T23:59:59.999Z\"");
        assert_eq!(json(Value::Int64(1_700_000_000_000_000_001), local), "\"2023-11-14T22:13:20.000000001\"");
        assert_eq!(json(Value::Int64(i64::MAX), utc), i64::MAX.to_string());
        assert_eq!(json(Value::Int32(45_296_000), Meaning::Time { unit_nanos: 1_000_000 }), "\"12:34:56\"");
        assert_eq!(json(Value::Int64(-5), Meaning::Time { unit_nanos: 1000 }), "-5");
        let mut int96 = Int96::new();
        int96.set_data(1, 0, 2_440_589);
        assert_eq!(json(Value::Int96(int96), Meaning::Plain), "\"1970-01-02T00:00:00.000000001\"");
        int96.set_data(0, 0, u32::MAX);
        assert!(json(Value::Int96(int96), Meaning::Plain).parse::<i128>().is_ok());
    }

    #[test]
    fn bytes_are_converted_by_their_logical_type() {
        assert_eq!(json(Value::Bytes(b"a\"\\\n\x01\xc3\xa9"), Meaning::Text), "\"a\\\"\\\\\\n\\u0001é\"");
        assert_eq!(json(Value::Bytes(b"\0\xff"), Meaning::Plain), "\"AP8=\"");
        let long: Vec<u8> = (0..200_000_u32).map(|byte| byte as u8).collect();
        assert_eq!(json(Value::Bytes(&long), Meaning::Plain), format!("\"{}\"", STANDARD.encode(&long)));
        let uuid: Vec<u8> = (1..=16).collect();
        assert_eq!(json(Value::Bytes(&uuid), Meaning::Uuid), "\"01020304-0506-0708-090a-0b0c0d0e0f10\"");
        let interval = [1, 0, 0, 0, 2, 0, 0, 0, 0xDC, 5, 0, 0];
        assert_eq!(json(Value::Bytes(&interval), Meaning::Interval), "\"P1M2DT1.500S\"");
        assert_eq!(json(Value::Bytes(&[0xFF, 0x85]), Meaning::Decimal { scale: 2 }), "\"-1.23\"");
        let mut broken = Vec::new();
        push_text(&mut broken, b"a\xff\"");
        assert_eq!(broken, b"\"a\xff\\\"\"");
    }
}
