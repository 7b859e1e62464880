//! When a target is not called at all.

use std::time::Duration;

use jiff::Timestamp;

/// How many calls in a row go without an answer before the target is left alone for a while.
pub const SILENT_MAX: u32 = 5;

/// How long it is left alone.
pub const OPEN_FOR: Duration = Duration::from_secs(30);

/// The longest that a target is left alone because it says so.
pub const HOLD_MAX: Duration = Duration::from_secs(5 * 60);

/// What is known of a target from its last calls.
///
/// After [`SILENT_MAX`] calls without an answer it is open: nothing is called for [`OPEN_FOR`], so that a target that hangs
/// does not hold the workers that other jobs need. Then one call goes out to see, and closes it or opens it again.
#[derive(Debug, Default)]
pub struct Breaker {
    silent: u32,
    open_until: Option<Timestamp>,
    looking: bool,
    hold_until: Option<Timestamp>,
}

/// What a call goes out as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pass {
    /// As one of many.
    Call,
    /// As the one that sees whether the target is there again.
    Look,
}

/// Why no call goes out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shut {
    /// The target does not answer.
    Silent,
    /// The target wants to be asked again after this time.
    Hold(Duration),
}

impl Breaker {
    /// Why no call may go out now, if none may.
    pub fn shut(&self, now: Timestamp) -> Option<Shut> {
        if let Some(wait) = self.hold_until.and_then(|until| after(now, until)) {
            return Some(Shut::Hold(wait));
        }
        self.open_until.filter(|until| self.looking || now < *until).map(|_| Shut::Silent)
    }

    /// Lets a call out, unless none may. Who is to look must report what it saw, or that it gave up.
    pub fn admit(&mut self, now: Timestamp) -> Result<Pass, Shut> {
        if let Some(shut) = self.shut(now) {
            return Err(shut);
        }
        self.looking = self.open_until.is_some();
        Ok(if self.looking { Pass::Look } else { Pass::Call })
    }

    /// The target has answered, whatever it said.
    pub const fn answered(&mut self) {
        (self.silent, self.open_until, self.looking) = (0, None, false);
    }

    /// There was no answer.
    pub fn silent(&mut self, now: Timestamp) {
        self.silent = self.silent.saturating_add(1);
        self.looking = false;
        if self.silent >= SILENT_MAX {
            self.open_until = now.checked_add(OPEN_FOR).ok();
        }
    }

    /// The call that was to look was given up, so nothing was seen.
    pub const fn gave_up(&mut self) {
        self.looking = false;
    }

    /// The target wants to be asked again after this time. Returns how long it is left alone.
    pub fn hold(&mut self, now: Timestamp, wait: Duration) -> Duration {
        let wait = wait.min(HOLD_MAX);
        self.hold_until = self.hold_until.max(now.checked_add(wait).ok());
        wait
    }
}

fn after(now: Timestamp, until: Timestamp) -> Option<Duration> {
    Duration::try_from(until.duration_since(now)).ok().filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::Pass::{Call, Look};
    use super::Shut::{Hold, Silent};
    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn silent_for_long() -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..SILENT_MAX {
            assert_eq!(breaker.admit(START), Ok(Call));
            breaker.silent(START);
        }
        breaker
    }

    #[test]
    fn a_target_that_stays_silent_is_left_alone_for_a_while() {
        let mut breaker = silent_for_long();
        assert_eq!(breaker.admit(START), Err(Silent));
        assert_eq!(breaker.admit(START + OPEN_FOR - Duration::from_millis(1)), Err(Silent));
        assert_eq!(breaker.admit(START + OPEN_FOR), Ok(Look));
    }

    #[test]
    fn an_answer_in_between_begins_the_count_anew() {
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            (1..SILENT_MAX).for_each(|_| breaker.silent(START));
            breaker.answered();
            assert_eq!(breaker.admit(START), Ok(Call));
        }
    }

    #[test]
    fn one_call_looks_whether_it_is_there_again_while_the_others_wait() {
        let later = START + OPEN_FOR;
        let mut breaker = silent_for_long();
        assert_eq!([breaker.admit(later), breaker.admit(later)], [Ok(Look), Err(Silent)]);
        breaker.gave_up();
        assert_eq!(breaker.admit(later), Ok(Look), "the first look saw nothing");
        breaker.silent(later);
        assert_eq!(breaker.admit(later), Err(Silent), "left alone for another while");
        assert_eq!(breaker.admit(later + OPEN_FOR), Ok(Look));
        breaker.answered();
        assert_eq!([breaker.admit(later), breaker.admit(later)], [Ok(Call); 2]);
    }

    #[test]
    fn a_target_is_not_called_before_the_time_it_asks_for_within_bounds() {
        let mut breaker = Breaker::default();
        assert_eq!(breaker.hold(START, Duration::from_secs(7)), Duration::from_secs(7));
        assert_eq!(breaker.hold(START, Duration::from_secs(2)), Duration::from_secs(2), "the longer wait stays");
        assert_eq!(breaker.admit(START + Duration::from_secs(4)), Err(Hold(Duration::from_secs(3))));
        assert_eq!(breaker.admit(START + Duration::from_secs(7)), Ok(Call));
        assert_eq!(breaker.hold(START, Duration::MAX), HOLD_MAX);
        assert_eq!(breaker.admit(START + HOLD_MAX), Ok(Call));
    }
}
