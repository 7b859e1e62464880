//! The header `Retry-After` of RFC 9110: seconds or a date.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// Parses the header into a wait from `now`; `None` if it is malformed. A date in the past means no wait.
pub fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(header.parse().unwrap_or(u64::MAX)));
    }
    let date = DateTimeParser::new().parse_timestamp(header).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_seconds_and_dates_are_parsed() {
        let now: Timestamp = "2015-10-21T07:28:00Z".parse().unwrap();
        let seconds = |header| retry_after(header, now).map(|wait| wait.as_secs());
        assert_eq!([seconds("0"), seconds(" 120 ")], [Some(0), Some(120)]);
        assert_eq!(seconds("99999999999999999999999"), Some(u64::MAX));
        assert_eq!(seconds("Wed, 21 Oct 2015 07:28:30 GMT"), Some(30));
        assert_eq!(seconds("Tue, 20 Oct 2015 07:28:30 GMT"), Some(0), "past");
        for header in ["", "-1", "1.5", "soon", "2015-10-21T07:28:30Z", "Wed, 21 Oct"] {
            assert_eq!(seconds(header), None, "{header}");
        }
    }
}
