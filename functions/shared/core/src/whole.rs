//! Whole numbers of requests, as JSON Schema defines them: `3.0` is one too.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// The largest number that the format `int64` of the OpenAPI document has.
const MAX: u64 = i64::MAX as u64;

struct Whole(u64);

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {MAX}")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
        if number <= MAX { Ok(Whole(number)) } else { Err(E::invalid_value(Unexpected::Unsigned(number), &self)) }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn visit_f64<E: Error>(self, number: f64) -> Result<Whole, E> {
        // As a float, `MAX` is 2^63, which is one too many.
        if number.fract() == 0.0 && (0.0..MAX as f64).contains(&number) {
            return Ok(Whole(number as u64));
        }
        Err(E::invalid_value(Unexpected::Float(number), &self))
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_u64(WholeVisitor)
    }
}

/// Reads a whole number.
pub fn required<'de, D: Deserializer<'de>>(value: D) -> Result<u64, D::Error> {
    Whole::deserialize(value).map(|whole| whole.0)
}

/// Reads a whole number or null.
pub fn optional<'de, D: Deserializer<'de>, N: TryFrom<u64>>(value: D) -> Result<Option<N>, D::Error> {
    let Some(Whole(number)) = Option::deserialize(value)? else { return Ok(None) };
    let too_big = || D::Error::invalid_value(Unexpected::Unsigned(number), &"a smaller whole number");
    number.try_into().map(Some).map_err(|_| too_big())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Request {
        #[serde(deserialize_with = "required")]
        size: u64,
        #[serde(default, deserialize_with = "optional")]
        width: Option<u32>,
    }

    fn read(size: &str, width: &str) -> Option<(u64, Option<u32>)> {
        let json = format!(r#"{{"size": {size}, "width": {width}}}"#);
        serde_json::from_str(&json).ok().map(|Request { size, width }| (size, width))
    }

    #[test]
    fn whole_numbers_are_read_however_they_are_written() {
        assert_eq!(read("3", "null"), Some((3, None)));
        assert_eq!(read("3.0", "7.0"), Some((3, Some(7))));
        assert_eq!(read("1e3", "0"), Some((1000, Some(0))));
        assert_eq!(read("9223372036854775807", "4294967295"), Some((MAX, Some(u32::MAX))));
        assert_eq!(read("-0.0", "1"), Some((0, Some(1))));
    }

    #[test]
    fn other_numbers_are_rejected() {
        for size in ["-1", "3.5", "9223372036854775808", "9223372036854775808.0", "1e300", "\"3\"", "null", "[3]"] {
            assert_eq!(read(size, "null"), None, "{size}");
        }
        assert_eq!(read("3", "4294967296"), None);
    }
}
