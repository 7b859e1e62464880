//! Writes decimals. Parquet stores them as integers of any length.

use super::unsupported;
use crate::error::DecodeError;

/// The maximum length of a decimal in bytes. The longest ones in use have 32 bytes.
pub(super) const DECIMAL_MAX_BYTES: usize = 256;

/// The maximum number of digits of a decimal. The specification sets no limit; the longest ones in use have 76.
pub(super) const DECIMAL_MAX_DIGITS: i32 = 76;

/// The number of digits after the point, if the specification allows this scale and precision: the precision is
/// positive, and the scale is neither negative nor larger. A value is written with `scale` digits, so an unchecked one
/// is a bomb.
pub(super) fn checked_scale(scale: i32, precision: i32) -> Result<usize, DecodeError> {
    let is_allowed = (1..=DECIMAL_MAX_DIGITS).contains(&precision) && (0..=precision).contains(&scale);
    usize::try_from(scale).ok().filter(|_| is_allowed).ok_or_else(|| {
        let what = format!(
            "has a decimal column of precision {precision} and scale {scale} (the precision must be 1 to \
             {DECIMAL_MAX_DIGITS}, the scale 0 to the precision)"
        );
        unsupported(what, "Write the column with another precision and scale, or as text.")
    })
}

/// Nine decimal digits fit into 32 bits.
const GROUP: u64 = 1_000_000_000;

/// Appends a big-endian two's complement integer as a decimal with `scale` digits after the point.
pub(super) fn push_decimal(text: &mut Vec<u8>, bytes: &[u8], scale: usize) {
    let is_negative = bytes.first().is_some_and(|&first| first >= 0x80);
    let digits = digits_of(bytes, is_negative);
    if is_negative {
        text.push(b'-');
    }
    let padding = (scale + 1).saturating_sub(digits.len());
    let padded = std::iter::repeat_n(b'0', padding).chain(digits.bytes());
    let whole = padding + digits.len() - scale;
    for (at, digit) in padded.enumerate() {
        if at == whole {
            text.push(b'.');
        }
        text.push(digit);
    }
}

/// The digits of the integer, without its sign.
fn digits_of(bytes: &[u8], is_negative: bool) -> String {
    // The magnitude in limbs of 32 bits, the most significant first.
    let fill = if is_negative { 0xFF } else { 0 };
    let missing = bytes.len().next_multiple_of(4) - bytes.len();
    let padded: Vec<u8> = std::iter::repeat_n(fill, missing).chain(bytes.iter().copied()).collect();
    let limb = |limb: &[u8]| limb.iter().fold(0_u32, |number, &byte| number << 8 | u32::from(byte));
    let mut limbs: Vec<u32> = padded.chunks_exact(4).map(limb).collect();
    if is_negative {
        let mut carry = true;
        for limb in limbs.iter_mut().rev() {
            (*limb, carry) = (!*limb).overflowing_add(carry.into());
        }
    }
    let mut groups = Vec::new();
    while limbs.iter().any(|&limb| limb != 0) {
        let mut rest = 0;
        for limb in &mut limbs {
            let value = rest << 32 | u64::from(*limb);
            *limb = (value / GROUP) as u32;
            rest = value % GROUP;
        }
        groups.push(rest);
    }
    let first = groups.pop().unwrap_or(0).to_string();
    groups.iter().rev().fold(first, |digits, group| format!("{digits}{group:09}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // The schema parser of the crate `parquet` refuses most of these first, but not all versions need to.
    #[test]
    fn a_scale_is_from_zero_to_the_precision_and_the_precision_has_a_limit() {
        for (scale, precision) in [(0, 1), (1, 1), (0, DECIMAL_MAX_DIGITS), (DECIMAL_MAX_DIGITS, DECIMAL_MAX_DIGITS)] {
            assert_eq!(checked_scale(scale, precision).ok(), usize::try_from(scale).ok(), "{scale} {precision}");
        }
        for (scale, precision) in [(-1, 9), (10, 9), (0, 0), (0, -1), (0, DECIMAL_MAX_DIGITS + 1), (i32::MAX, i32::MAX)]
        {
            let error = checked_scale(scale, precision).err().map(|error| error.code());
            assert_eq!(error, Some("unsupported_parquet"), "{scale} {precision}");
        }
    }

    fn decimal(bytes: &[u8], scale: usize) -> String {
        let mut text = Vec::new();
        push_decimal(&mut text, bytes, scale);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_scale_determines_the_position_of_the_point() {
        assert_eq!(decimal(&12_345_i32.to_be_bytes(), 2), "123.45");
        assert_eq!(decimal(&(-5_i64).to_be_bytes(), 3), "-0.005");
        assert_eq!(decimal(&[0], 0), "0");
        assert_eq!(decimal(&[0], 2), "0.00");
        assert_eq!(decimal(&[0x80], 0), "-128");
        assert_eq!(decimal(&[0xFF; 32], 0).as_str(), "-1", "the longest decimals in use");
        let mut largest = [0xFF; 32];
        largest[0] = 0x7F;
        assert_eq!(
            decimal(&largest, 10),
            "5789604461865809771178549250434395392663499233282028201972879200395.6564819967"
        );
    }

    proptest! {
        #[test]
        fn decimals_have_the_digits_of_the_stored_integers(value in any::<i128>(), shift in 0..120_u32) {
            let value = value >> shift;
            prop_assert_eq!(decimal(&value.to_be_bytes(), 0), value.to_string());
            let digits = format!("{:06}", value.unsigned_abs());
            let (whole, fraction) = digits.split_at(digits.len() - 5);
            let sign = if value < 0 { "-" } else { "" };
            prop_assert_eq!(decimal(&value.to_be_bytes(), 5), format!("{sign}{whole}.{fraction}"));
        }
    }
}
