//! Numbers with few digits, compared exactly and without an allocation.

use std::cmp::Ordering;

/// A number that is written with few digits and without an exponent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PlainNumber {
    Integer(i64),
    /// `mantissa / 10^scale`, which is no integer.
    Decimal {
        mantissa: i64,
        scale: u32,
    },
}

/// An integer with so many digits fits into 64 bits.
const DIGITS_MAX: u32 = 18;

/// Decimal numbers with at most so many digits are different as floats if they are different.
const FLOAT_DIGITS_MAX: u32 = 15;

impl PlainNumber {
    /// Reads a number. Many a number is not plain: one with a plus sign, an exponent, a point at either end, many
    /// digits, or minus zero.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (mut mantissa, mut count, mut scale) = (0_i64, 0, None);
        for byte in digits.bytes() {
            match byte {
                b'0'..=b'9' if count < DIGITS_MAX => {
                    mantissa = 10 * mantissa + i64::from(byte - b'0');
                    count += 1;
                    scale = scale.map(|scale| scale + 1);
                }
                b'.' if scale.is_none() && count > 0 => scale = Some(0),
                _ => return None,
            }
        }
        if count == 0 || scale == Some(0) || (mantissa == 0 && is_negative) {
            return None;
        }
        let mantissa = if is_negative { -mantissa } else { mantissa };
        match scale {
            None => Some(Self::Integer(mantissa)),
            Some(scale) if mantissa % 10_i64.pow(scale) == 0 => Some(Self::Integer(mantissa / 10_i64.pow(scale))),
            Some(scale) => (count <= FLOAT_DIGITS_MAX).then_some(Self::Decimal { mantissa, scale }),
        }
    }

    /// Order of it and another number. `None` if that is not sure.
    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        if let (Self::Integer(one), Self::Integer(other)) = (self, other) {
            return Some(one.cmp(&other));
        }
        self.float()?.partial_cmp(&other.float()?)
    }

    /// True if other numbers can be checked for being multiples of it: it is greater than 0, and not too large.
    pub(super) fn is_divisor(self) -> bool {
        self.float().is_some_and(|float| float > 0.0)
    }

    /// True if it certainly is a multiple of another number, a [divisor](Self::is_divisor). The validator divides
    /// floats, if one of the two is no integer.
    pub(super) fn is_multiple_of(self, other: Self) -> bool {
        if let (Self::Integer(one), Self::Integer(other)) = (self, other) {
            return one % other == 0;
        }
        if self.float().is_none() {
            return false;
        }
        let parts = |number| match number {
            Self::Integer(integer) => (i128::from(integer), 0),
            Self::Decimal { mantissa, scale } => (i128::from(mantissa), scale),
        };
        // Below 10^33 each.
        let ((one, one_scale), (other, other_scale)) = (parts(self), parts(other));
        one * 10_i128.pow(other_scale) % (other * 10_i128.pow(one_scale)) == 0
    }

    /// The nearest float, if different numbers have different ones.
    fn float(self) -> Option<f64> {
        match self {
            Self::Integer(integer) => (integer.unsigned_abs() < 10_u64.pow(FLOAT_DIGITS_MAX)).then_some(integer as f64),
            // A float holds both exactly, so that the quotient is rounded once.
            Self::Decimal { mantissa, scale } => Some(mantissa as f64 / 10_i64.pow(scale) as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_numbers_are_read_and_others_are_not() {
        assert_eq!(PlainNumber::parse("-007"), Some(PlainNumber::Integer(-7)));
        assert_eq!(PlainNumber::parse("5.00"), Some(PlainNumber::Integer(5)));
        assert_eq!(PlainNumber::parse("-0.50"), Some(PlainNumber::Decimal { mantissa: -50, scale: 2 }));
        assert_eq!(PlainNumber::parse("999999999999999999"), Some(PlainNumber::Integer(999_999_999_999_999_999)));
        for text in
            ["", "-", "+1", "1.", ".5", "1e3", "-0", "-0.0", "1 ", "1000000000000000000", "1.2.3", "1.2345678901234567"]
        {
            assert_eq!(PlainNumber::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_number_is_compared_as_the_float_that_it_stands_for(one in "-?[0-9]{1,8}(\\.[0-9]{1,7})?", other in "-?[0-9]{1,8}(\\.[0-9]{1,7})?") {
            let float = |text: &str| text.parse::<f64>().expect("a number");
            let (Some(left), Some(right)) = (PlainNumber::parse(&one), PlainNumber::parse(&other)) else { return Ok(()) };
            let order = float(&one).partial_cmp(&float(&other));
            prop_assert_eq!(left.compare(right), order);
        }
    }
}
