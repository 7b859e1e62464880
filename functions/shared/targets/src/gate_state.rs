//! The state of a gate: it decides whether a call may be sent.

use std::time::Duration;

use jiff::Timestamp;

/// Number of unanswered calls in a row after which the gate is shut.
pub const UNANSWERED_MAX: u32 = 5;

pub const SHUT_FOR: Duration = Duration::from_secs(30);

pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(5 * 60);

/// The state of a target, derived from its last calls.
///
/// After [`UNANSWERED_MAX`] unanswered calls in a row the gate is shut: no calls are sent for [`SHUT_FOR`]. A target
/// that hangs therefore does not block the workers that other jobs need. Then a single probe call is sent, and its
/// result opens the gate or keeps it shut.
#[derive(Debug, Default)]
pub struct GateState {
    unanswered: u32,
    shut_until: Option<Timestamp>,
    probing: bool,
    retry_after: Option<Timestamp>,
}

/// A call that may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admitted {
    /// A normal call: the gate is open.
    Call,
    /// The one call after the gate was shut for long enough.
    Probe,
}

/// Why no call may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocked {
    /// The target does not answer.
    Shut,
    /// The target asked to be called again only after this time.
    RetryAfter(Duration),
}

impl GateState {
    /// The reason why no call may be sent now; `None` if a call may be sent.
    pub fn blocked(&self, now: Timestamp) -> Option<Blocked> {
        if let Some(wait) = self.retry_after.and_then(|until| time_left(now, until)) {
            return Some(Blocked::RetryAfter(wait));
        }
        self.shut_until.filter(|until| self.probing || now < *until).map(|_| Blocked::Shut)
    }

    /// Admits a call, unless calls are blocked. A probe call must report its result, or that it was abandoned.
    pub fn admit(&mut self, now: Timestamp) -> Result<Admitted, Blocked> {
        if let Some(blocked) = self.blocked(now) {
            return Err(blocked);
        }
        self.probing = self.shut_until.is_some();
        Ok(if self.probing { Admitted::Probe } else { Admitted::Call })
    }

    /// The target answered, with success or with an error: opens the gate.
    pub const fn answered(&mut self) {
        (self.unanswered, self.shut_until, self.probing) = (0, None, false);
    }

    pub fn not_answered(&mut self, now: Timestamp) {
        self.unanswered = self.unanswered.saturating_add(1);
        self.probing = false;
        if self.unanswered >= UNANSWERED_MAX {
            self.shut_until = now.checked_add(SHUT_FOR).ok();
        }
    }

    /// The probe call was abandoned without a result; the next call probes.
    pub const fn probe_abandoned(&mut self) {
        self.probing = false;
    }

    /// The target asked for a delay. Returns the delay that is kept: at most [`RETRY_AFTER_MAX`].
    pub fn back_off(&mut self, now: Timestamp, wait: Duration) -> Duration {
        let wait = wait.min(RETRY_AFTER_MAX);
        self.retry_after = self.retry_after.max(now.checked_add(wait).ok());
        wait
    }
}

fn time_left(now: Timestamp, until: Timestamp) -> Option<Duration> {
    Duration::try_from(until.duration_since(now)).ok().filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::Admitted::{Call, Probe};
    use super::Blocked::{RetryAfter, Shut};
    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn shut() -> GateState {
        let mut gate = GateState::default();
        for _ in 0..UNANSWERED_MAX {
            assert_eq!(gate.admit(START), Ok(Call));
            gate.not_answered(START);
        }
        gate
    }

    #[test]
    fn the_gate_is_shut_after_unanswered_calls_and_then_admits_a_probe() {
        let mut gate = shut();
        assert_eq!(gate.admit(START), Err(Shut));
        assert_eq!(gate.admit(START + SHUT_FOR - Duration::from_millis(1)), Err(Shut));
        assert_eq!(gate.admit(START + SHUT_FOR), Ok(Probe));
    }

    #[test]
    fn an_answer_resets_the_count_of_unanswered_calls() {
        let mut gate = GateState::default();
        for _ in 0..10 {
            (1..UNANSWERED_MAX).for_each(|_| gate.not_answered(START));
            gate.answered();
            assert_eq!(gate.admit(START), Ok(Call));
        }
    }

    #[test]
    fn only_one_call_probes_a_gate_that_was_shut() {
        let later = START + SHUT_FOR;
        let mut gate = shut();
        assert_eq!([gate.admit(later), gate.admit(later)], [Ok(Probe), Err(Shut)]);
        gate.probe_abandoned();
        assert_eq!(gate.admit(later), Ok(Probe), "the first probe had no result");
        gate.not_answered(later);
        assert_eq!(gate.admit(later), Err(Shut), "it is shut again");
        assert_eq!(gate.admit(later + SHUT_FOR), Ok(Probe));
        gate.answered();
        assert_eq!([gate.admit(later), gate.admit(later)], [Ok(Call); 2]);
    }

    #[test]
    fn a_delay_that_the_target_asks_for_is_kept_up_to_a_maximum() {
        let mut gate = GateState::default();
        assert_eq!(gate.back_off(START, Duration::from_secs(7)), Duration::from_secs(7));
        assert_eq!(gate.back_off(START, Duration::from_secs(2)), Duration::from_secs(2), "the longer delay stays");
        assert_eq!(gate.admit(START + Duration::from_secs(4)), Err(RetryAfter(Duration::from_secs(3))));
        assert_eq!(gate.admit(START + Duration::from_secs(7)), Ok(Call));
        assert_eq!(gate.back_off(START, Duration::MAX), RETRY_AFTER_MAX);
        assert_eq!(gate.admit(START + RETRY_AFTER_MAX), Ok(Call));
    }
}
