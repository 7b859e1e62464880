//! The limits of the requests of a caller, counted by minute and by hour, as the clock shows them.

use std::time::Duration;

use jiff::Timestamp;

/// Limits of the requests of one caller to one route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestLimits {
    pub per_minute: u32,
    pub per_hour: u32,
}

/// Counted requests of a caller to a route.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RequestsCounted {
    /// In the minute of the last request.
    pub minute: u32,
    /// In its hour.
    pub hour: u32,
}

/// A stretch of time in which requests are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    Minute,
    Hour,
}

impl Window {
    /// Its name in header fields and log lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
        }
    }

    pub const fn seconds(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 3600,
        }
    }

    /// The number of the window that this time is in, counted from 1970.
    pub fn number(self, at: Timestamp) -> i64 {
        at.as_second().div_euclid(self.seconds())
    }

    /// In how many seconds the window of this time ends: at least 1.
    pub fn ends_in(self, at: Timestamp) -> Duration {
        let seconds = self.seconds() - at.as_second().rem_euclid(self.seconds());
        Duration::from_secs(u64::try_from(seconds).unwrap_or(1))
    }
}

impl RequestLimits {
    /// The limit that refuses a further request: the one that lasts longer, if both do.
    pub const fn reached(self, counted: RequestsCounted) -> Option<Window> {
        if counted.hour >= self.per_hour {
            Some(Window::Hour)
        } else if counted.minute >= self.per_minute {
            Some(Window::Minute)
        } else {
            None
        }
    }

    pub const fn of(self, window: Window) -> u32 {
        match window {
            Window::Minute => self.per_minute,
            Window::Hour => self.per_hour,
        }
    }

    /// Number of further requests a window has room for.
    pub const fn left(self, window: Window, counted: RequestsCounted) -> u32 {
        let counted = match window {
            Window::Minute => counted.minute,
            Window::Hour => counted.hour,
        };
        self.of(window).saturating_sub(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_refused_until_the_longest_full_window_ends() {
        let limits = RequestLimits { per_minute: 2, per_hour: 5 };
        let reached = |minute, hour| limits.reached(RequestsCounted { minute, hour });
        assert_eq!(reached(1, 4), None);
        assert_eq!(reached(2, 4), Some(Window::Minute));
        assert_eq!(reached(2, 5), Some(Window::Hour));
        assert_eq!(reached(0, 5), Some(Window::Hour));
    }

    #[test]
    fn a_window_ends_with_the_minute_or_the_hour_of_the_clock() {
        let at: Timestamp = "2025-06-15T15:58:20.5Z".parse().unwrap();
        assert_eq!(Window::Minute.ends_in(at), Duration::from_secs(40));
        assert_eq!(Window::Hour.ends_in(at), Duration::from_secs(100));
        let full: Timestamp = "2025-06-15T16:00:00Z".parse().unwrap();
        assert_eq!(Window::Minute.ends_in(full), Duration::from_secs(60));
        assert_eq!(Window::Hour.number(full), Window::Hour.number(at) + 1);
    }
}
