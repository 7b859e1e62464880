//! A number without regard to how it is written.

use serde_json::Number;

/// The value of a number: two numbers with the same one are the same, such as `1.50` and `15e-1`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decimal {
    is_negative: bool,
    /// Its digits without zeros around them; empty for zero.
    pub digits: String,
    /// The power of ten of the last one.
    last_power: i64,
}

impl Decimal {
    /// `None` if its exponent has more than 63 bits.
    pub fn of(number: &Number) -> Option<Self> {
        let written = number.to_string();
        let (mantissa, exponent) = written.split_once(['e', 'E']).unwrap_or((&written, "0"));
        let exponent: i64 = exponent.trim_start_matches('+').parse().ok()?;
        let (is_negative, mantissa) = mantissa.strip_prefix('-').map_or((false, mantissa), |mantissa| (true, mantissa));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let up_to_last = all.trim_end_matches('0');
        let digits = up_to_last.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { is_negative: false, digits, last_power: 0 });
        }
        let zeros_behind = i64::try_from(all.len() - up_to_last.len()).ok()?;
        let last_power = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(zeros_behind)?;
        Some(Self { is_negative, digits, last_power })
    }

    /// The power of ten of its first digit. `None` for zero, and beyond 63 bits.
    pub fn first_power(&self) -> Option<i64> {
        let behind = self.digits.len().checked_sub(1)?;
        self.last_power.checked_add(i64::try_from(behind).ok()?)
    }
}
