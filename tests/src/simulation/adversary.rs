//! The adversary: decides which faults happen until its budget is spent.

use std::time::Duration;

use super::functions::Function;
use super::hub::{CallKind, Verdict};
use super::plan::Faults;

/// The source of all faults and all randomness of a run.
pub struct Adversary {
    /// The only source of randomness.
    pub rng: fastrand::Rng,
    faults: Faults,
    left: u32,
}

/// The fate of a suspended call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It continues with this verdict.
    Call(Verdict),
    /// Its process dies before the call.
    Death,
    /// Its invocation stalls for this time.
    Stall(Duration),
}

impl Adversary {
    pub const fn new(rng: fastrand::Rng, faults: Faults) -> Self {
        Self { rng, left: faults.budget, faults }
    }

    /// True if it still injects faults at this step.
    pub const fn is_active(&self, step: u64) -> bool {
        self.left > 0 && step < self.faults.until_step
    }

    /// True if it injects a fault now: one time in `one_in`, if the world has this `kind` of fault.
    fn strikes(&mut self, step: u64, kind: bool, one_in: u32) -> bool {
        let strikes = self.is_active(step) && kind && self.rng.u32(0..one_in) == 0;
        self.left -= u32::from(strikes);
        strikes
    }

    pub fn fate(&mut self, kind: CallKind, step: u64, function: Function) -> Fate {
        if kind == CallKind::Poison {
            // Most poison items kill their process, some hang.
            return if self.rng.u8(..) < 180 { Fate::Death } else { Fate::Call(Verdict::Proceed) };
        }
        if kind == CallKind::Index && self.faults.staleness && self.is_active(step) && self.rng.u8(..) < 64 {
            return Fate::Call(Verdict::Stale);
        }
        // Reads of the index are frequent, and a failed one has little effect.
        let one_in = match (self.faults.focus, kind) {
            (_, CallKind::Index) => self.faults.one_in * 16,
            (Some(focus), _) if focus == function => self.faults.one_in.min(4),
            (Some(_), _) => self.faults.one_in * 8,
            (None, _) if function.is_rare() => self.faults.one_in.div_ceil(4),
            (None, _) => self.faults.one_in,
        };
        if !self.strikes(step, true, one_in) {
            return Fate::Call(Verdict::Proceed);
        }
        let Faults { failures, losses, deaths, stalls, .. } = self.faults;
        let is_call = kind != CallKind::Item;
        let kinds = [failures && is_call, losses && is_call, deaths, deaths, stalls, stalls];
        let there_are = kinds.iter().filter(|kind| **kind).count();
        let place = if there_are == 0 { return Fate::Call(Verdict::Proceed) } else { self.rng.usize(0..there_are) };
        match (0..kinds.len()).filter(|place| kinds[*place]).nth(place) {
            Some(0) => Fate::Call(Verdict::Fail(self.failure(kind))),
            Some(1) => Fate::Call(self.loss(kind)),
            Some(2) => Fate::Call(Verdict::DieAfter),
            Some(3) => Fate::Death,
            _ => Fate::Stall(Duration::from_millis(self.rng.u64(100..40_000))),
        }
    }

    fn failure(&mut self, kind: CallKind) -> &'static str {
        match (kind, self.rng.bool()) {
            (CallKind::Transaction, true) => "TransactionConflict at every try",
            (_, true) => "throttled at every try",
            _ => "no connection",
        }
    }

    fn loss(&mut self, kind: CallKind) -> Verdict {
        match kind {
            CallKind::Send if self.rng.bool() => Verdict::Partly,
            _ => Verdict::LoseReply,
        }
    }

    /// True if an invocation continues after its timeout, as a zombie.
    pub fn keeps_zombie(&mut self, step: u64) -> bool {
        self.strikes(step, self.faults.zombies, 2)
    }

    /// Sleep of a zombie before it continues.
    pub fn zombie_sleeps(&mut self) -> Duration {
        let most_ms = [1_000, 100_000, 1_000_000][self.rng.usize(0..3)];
        Duration::from_millis(self.rng.u64(0..=most_ms))
    }

    /// True if a message in processing is delivered once more.
    pub fn duplicates(&mut self, step: u64, function: Function) -> bool {
        let in_focus = self.faults.focus == Some(function);
        self.strikes(step, self.faults.deliveries, if in_focus { 3 } else { 30 })
    }

    /// True if a received message is dropped on the way to its function.
    pub fn drops(&mut self, step: u64) -> bool {
        self.strikes(step, self.faults.deliveries, 30)
    }

    /// Time from its receipt until a message reaches its function, if its poller is throttled.
    pub fn invokes_late(&mut self, step: u64) -> Option<Duration> {
        let late = self.strikes(step, self.faults.deliveries, 10);
        late.then(|| Duration::from_millis(self.rng.u64(0..140_000)))
    }

    pub fn loses_acknowledgement(&mut self, step: u64) -> bool {
        self.strikes(step, self.faults.deliveries, 30)
    }

    /// Move of the clock in this step.
    pub fn time_passes(&mut self, step: u64) -> Option<Duration> {
        if self.strikes(step, self.faults.jumps, 200) {
            return Some(Duration::from_millis(self.rng.u64(5_000..200_000)));
        }
        let most_ms = if self.is_active(step) { self.faults.slow_ms } else { 40 };
        (self.rng.u8(..) < 32).then(|| Duration::from_millis(self.rng.u64(1..=most_ms)))
    }

    /// When the message of a failed invocation becomes visible again, if before its visibility timeout.
    pub fn gives_back_after(&mut self) -> Option<Duration> {
        (self.rng.u8(..) < 64).then(|| Duration::from_millis(self.rng.u64(0..20_000)))
    }
}
