//! Converts dates and times. A workbook stores them as a number of days.

use std::fmt::Write;

use jiff::ToSpan;
use jiff::civil::{Date, date};

use super::styles::Meaning;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The first day that is out of range: the first day of the year 10000.
const DAYS_END: f64 = 2_958_466.0;

/// Appends the number as ISO 8601, with millisecond precision. Returns false for a number outside the range of days
/// that a workbook can display; the caller writes it as a number.
///
/// No information is lost if the cell format shows less than the number contains: a date with a time is written with
/// its time, and a time that is not on day 0 is written with its date.
pub(super) fn push_iso(text: &mut String, days: f64, meaning: Meaning, from_1904: bool) -> bool {
    if !(0.0..DAYS_END).contains(&days) || meaning == Meaning::Number {
        return false;
    }
    let ms = (days * DAY_MS as f64).round() as i64;
    let (day, ms_of_day) = (ms / DAY_MS, ms % DAY_MS);
    let (shows_date, shows_time) = match meaning {
        Meaning::Duration => {
            push_duration(text, ms);
            return true;
        }
        Meaning::Date => (true, ms_of_day != 0),
        Meaning::Time => (day != 0, true),
        Meaning::DateOrTime => (day != 0, day == 0 || ms_of_day != 0),
        _ => (true, true),
    };
    if shows_date && !push_date(text, day, from_1904) {
        return false;
    }
    if shows_date && shows_time {
        text.push('T');
    }
    if shows_time {
        push_time(text, ms_of_day);
    }
    true
}

fn push_date(text: &mut String, day: i64, from_1904: bool) -> bool {
    // Workbooks treat 1900 as a leap year, although it was not one.
    const NO_SUCH_DAY: i64 = 60;
    let day_zero: Date = match (from_1904, day) {
        (true, _) => date(1904, 1, 1),
        (false, NO_SUCH_DAY) => {
            text.push_str("1900-02-29");
            return true;
        }
        (false, ..NO_SUCH_DAY) => date(1899, 12, 31),
        (false, _) => date(1899, 12, 30),
    };
    match day_zero.checked_add(day.days()) {
        Ok(date) => write!(text, "{date}").is_ok(),
        Err(_) => false,
    }
}

fn push_time(text: &mut String, ms_of_day: i64) {
    let (seconds, ms) = (ms_of_day / 1000, ms_of_day % 1000);
    // Writing to a string cannot fail.
    let _ = write!(text, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if ms != 0 {
        let _ = write!(text, ".{ms:03}");
    }
}

fn push_duration(text: &mut String, ms: i64) {
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let _ = write!(text, "PT{}H{}M{}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if ms != 0 {
        let _ = write!(text, ".{ms:03}");
    }
    text.push('S');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_days_become_dates_and_times() {
        for (days, meaning, iso) in [
            (1.0, Meaning::Date, "1900-01-01"),
            (59.0, Meaning::Date, "1900-02-28"),
            (60.0, Meaning::Date, "1900-02-29"),
            (61.0, Meaning::Date, "1900-03-01"),
            (45_992.0, Meaning::Date, "2025-12-01"),
            (45_992.5, Meaning::Date, "2025-12-01T12:00:00"),
            (45_992.0, Meaning::DateTime, "2025-12-01T00:00:00"),
            (45_992.520_833_333_336, Meaning::DateTime, "2025-12-01T12:30:00"),
            (0.520_844_907, Meaning::Time, "12:30:01"),
            (0.999_999_999_9, Meaning::DateOrTime, "1900-01-01"),
            (0.000_011_585_648_148_148_148, Meaning::Time, "00:00:01.001"),
            (1.104_166_666_666_666_7, Meaning::Duration, "PT26H30M0S"),
            (2_958_465.999, Meaning::DateTime, "9999-12-31T23:58:33.600"),
        ] {
            let mut text = String::new();
            assert!(push_iso(&mut text, days, meaning, false));
            assert_eq!(text, iso);
        }
        let mut text = String::new();
        assert!(push_iso(&mut text, 0.0, Meaning::Date, true));
        assert_eq!(text, "1904-01-01");
    }

    #[test]
    fn numbers_outside_the_range_of_dates_stay_numbers() {
        for days in [-1.0, f64::NAN, f64::INFINITY, 2_958_466.0, 1e300] {
            let mut text = String::new();
            assert!(!push_iso(&mut text, days, Meaning::DateTime, false), "{days}");
            assert_eq!(text, "");
        }
    }
}
