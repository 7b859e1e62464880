//! When a request is sent again, and how long to wait before.

use std::time::Duration;

use hyper::header::{HeaderMap, RETRY_AFTER};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};

/// The number and the patience of the tries of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Tries in all, the first one included.
    pub tries: u32,
    /// Wait before the second try; it doubles from try to try.
    pub first_delay: Duration,
    /// No wait of our own choice is longer.
    pub longest_delay: Duration,
    /// A server that asks for a longer wait than this gets no further try: a person should see that.
    pub longest_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            tries: 5,
            first_delay: Duration::from_millis(200),
            longest_delay: Duration::from_secs(5),
            // The rest of a minute in which the caller's limit is reached.
            longest_retry_after: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    pub fn once() -> Self {
        Self { tries: 1, ..Self::default() }
    }

    /// The policy for a transfer of many requests that got no further with this one: longer waits, and more of them.
    pub fn of_transfers(&self) -> Self {
        let (tries, first_delay) = (self.tries.saturating_add(3), self.first_delay * 5);
        Self { tries, first_delay, longest_delay: self.longest_delay * 6, ..self.clone() }
    }

    /// The wait before the next try after `failed` tries, or `None` if that was the last one.
    ///
    /// `jitter` is a random number in `0.0..1.0`. Half of the wait is random, so that clients refused together do not
    /// come back together. The server's `Retry-After` is a lower bound, jitter only adds to it.
    pub fn delay(&self, failed: u32, retry_after: Option<Duration>, jitter: f64) -> Option<Duration> {
        if failed >= self.tries || retry_after.is_some_and(|wait| wait > self.longest_retry_after) {
            return None;
        }
        let doublings = failed.saturating_sub(1).min(16);
        let full = (self.first_delay * 2u32.pow(doublings)).min(self.longest_delay);
        let own = full.mul_f64(0.5 + jitter / 2.0);
        Some(match retry_after {
            Some(asked) => asked + self.first_delay.mul_f64(jitter),
            None => own,
        })
    }
}

/// True if a later try of the same request may be answered otherwise.
pub fn is_transient(status: u16) -> bool {
    match status {
        408 | 429 => true,
        // Not implemented and unsupported protocol version stay what they are.
        501 | 505 => false,
        500..=599 => true,
        _ => false,
    }
}

/// The wait that an answer with these headers asks for.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    parse_retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, Timestamp::now())
}

/// Reads a `Retry-After` value: whole seconds, or an HTTP date, which `now` turns into a wait.
fn parse_retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    let wait = at.duration_since(now).max(SignedDuration::ZERO);
    Some(wait.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_then_end() {
        let policy = RetryPolicy {
            tries: 5,
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_millis(300),
            ..RetryPolicy::default()
        };
        let waits: Vec<_> = (1..=5).map(|failed| policy.delay(failed, None, 1.0)).collect();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(waits, [ms(100), ms(200), ms(300), ms(300), None]);
        assert_eq!(policy.delay(1, None, 0.0), ms(50), "half of the wait is jitter");
    }

    #[test]
    fn retry_after_is_a_lower_bound_of_the_wait() {
        let policy = RetryPolicy::default();
        let asked = Duration::from_secs(7);
        assert_eq!(policy.delay(1, Some(asked), 0.0), Some(asked));
        assert!(policy.delay(1, Some(asked), 0.9).unwrap() > asked);
    }

    #[test]
    fn a_too_long_retry_after_is_an_error_at_once() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.delay(1, Some(Duration::from_secs(600)), 0.5), None);
    }

    #[test]
    fn only_transient_errors_are_retried() {
        let transient: Vec<u16> = (200..600).filter(|status| is_transient(*status)).collect();
        assert!([408, 429, 500, 502, 503, 504].iter().all(|status| transient.contains(status)));
        assert!([400, 401, 403, 404, 409, 413, 422, 501].iter().all(|s| !transient.contains(s)));
    }

    #[test]
    fn retry_after_comes_as_seconds_or_as_a_date() {
        let now: Timestamp = "2015-10-21T07:27:30Z".parse().unwrap();
        assert_eq!(parse_retry_after(" 3 ", now), Some(Duration::from_secs(3)));
        let date = "Wed, 21 Oct 2015 07:28:00 GMT";
        assert_eq!(parse_retry_after(date, now), Some(Duration::from_secs(30)));
        let past = "Wed, 21 Oct 2015 07:27:00 GMT";
        assert_eq!(parse_retry_after(past, now), Some(Duration::ZERO));
        assert_eq!(parse_retry_after("soon", now), None);
    }
}
