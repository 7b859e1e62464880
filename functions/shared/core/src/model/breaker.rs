//! The breaker of a job type: what is known of its target, and what follows from a failed run or a look of the sweep.
//!
//! ```text
//! closed ──► open ──► probing ──► closed      (enough failed runs; its time is over; the probe made progress)
//!             ▲          │
//!             └──────────┘                    (the probe failed: open for twice as long)
//! ```
//!
//! Nobody reads or writes a breaker as long as runs go well. All changes are compare-and-swaps by its revision.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::ids::JobGuid;

/// The longest opening of a breaker, in lengths of its first.
pub const LONGEST_OPENING: u32 = 16;

/// Time after which another job takes a probe over, in [`BreakerLimits::probe`].
pub const PROBE_TIMES: u32 = 10;

/// Retention of a breaker after its last change.
pub const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BreakerLimits {
    /// Number of failed runs that open it. 0: it never opens.
    pub failures: u32,
    /// Time for which failed runs count.
    pub window: Duration,
    /// Time for which it is open before a job probes. Twice as long after each failed probe, up to [`LONGEST_OPENING`]
    /// times.
    pub probe: Duration,
}

impl BreakerLimits {
    pub const fn is_off(&self) -> bool {
        self.failures == 0
    }

    /// The limits of a job type with so many lanes. A failed run holds its lane for most of a window, so one of each
    /// lane is all that may be seen.
    pub fn on_lanes(self, lanes: Option<u32>) -> Self {
        let failures = lanes.map_or(self.failures, |lanes| self.failures.min(lanes.max(1)));
        Self { failures, ..self }
    }

    /// Time the breaker stays open after so many openings in a row.
    fn open_for(&self, openings: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(openings.saturating_sub(1));
        self.probe.saturating_mul(doubled.min(LONGEST_OPENING))
    }
}

/// The breaker of a job type. A type without one has had no failed run for a while.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Breaker {
    /// Its revision, from 1. Each change is the next one.
    pub rev: u64,
    /// When it last changed.
    pub at: Timestamp,
    pub state: BreakerState,
    /// Number of openings since it last was closed.
    pub openings: u32,
    /// The code of the transient error that ended the last counted run. No text: that may be about one owner's job.
    pub code: String,
    /// The job whose probe failed last. Other jobs go first at the next probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_probe: Option<JobGuid>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BreakerState {
    /// Runs are counted, from the first failed one of a window on.
    #[serde(rename_all = "camelCase")]
    Closed {
        /// When the window began.
        since: Timestamp,
        /// Failed runs in the window.
        failed: u32,
        /// Good runs that the processes of these failed runs had before.
        good: u32,
    },
    /// The target is down: a job whose run fails is paused.
    #[serde(rename_all = "camelCase")]
    Open {
        /// When a job may probe.
        until: Timestamp,
    },
    /// One job runs, to see whether the target is back.
    Probing(Probe),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    pub job: JobGuid,
    pub attempt: u32,
    pub began: Timestamp,
    /// Number of its items that were accounted for then. One more, and the probe has succeeded.
    pub accounted: u64,
    /// When another job may take the probe over.
    pub until: Timestamp,
}

/// A run over a chunk that finished no item, because of transient errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedRun<'a> {
    pub job: JobGuid,
    pub attempt: u32,
    pub began: Timestamp,
    pub code: &'a str,
    /// Number of runs of the type that have gone well in this process since its last report.
    pub good: u32,
    /// The lanes of the job type, if it has any.
    pub lanes: Option<u32>,
    /// Its chunk is isolated. The chunk may be the cause itself, so such a run opens no closed
    /// breaker.
    pub is_isolated: bool,
}

/// Consequences of a failed run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AfterFailure {
    /// The breaker after it, if it changes.
    pub next: Option<Breaker>,
    /// When the next probe may begin, if the breaker is open now: the job is to be paused.
    pub probe_at: Option<Timestamp>,
}

/// The sweep's decision about a job that the breaker has paused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Look {
    /// The breaker is closed: resume the job.
    Resume,
    /// Look again at this time.
    Wait(Timestamp),
    /// The job may probe: take the probe by a write, then resume the job.
    TakeProbe,
    /// Another job probes: see how that goes.
    Judge(Probe),
}

/// Why the breaker of its job type has paused a job: the error of the run that paused it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BreakerPause {
    /// The code of the transient error.
    pub code: String,
    /// Its message, at most [`BreakerPause::MESSAGE_MAX_CHARS`] characters.
    pub message: String,
    /// Start of the pause.
    pub at: Timestamp,
}

impl BreakerPause {
    /// Maximum number of characters kept of an error's message.
    pub const MESSAGE_MAX_CHARS: usize = 300;

    pub fn after(code: &str, message: &str, at: Timestamp) -> Self {
        let cut = |text: &str| text.chars().take(Self::MESSAGE_MAX_CHARS).collect();
        Self { code: cut(code), message: cut(message), at }
    }
}

impl Breaker {
    fn next(seen: Option<&Self>, now: Timestamp, state: BreakerState) -> Self {
        let rev = seen.map_or(1, |seen| seen.rev + 1);
        let (openings, code) = seen.map_or_else(Default::default, |seen| (seen.openings, seen.code.clone()));
        Self { rev, at: now, state, openings, code, failed_probe: seen.and_then(|seen| seen.failed_probe) }
    }

    /// True if its time was over so long ago that no job can be waiting for its probe any more.
    fn is_stale(&self, now: Timestamp, limits: &BreakerLimits) -> bool {
        match self.state {
            BreakerState::Closed { since, .. } => now >= since + limits.window,
            BreakerState::Open { until } | BreakerState::Probing(Probe { until, .. }) => now >= until + limits.window,
        }
    }

    /// Consequences of a failed run. `progressed`: the job that probes has made progress since the probe began.
    pub fn after_failure(
        seen: Option<&Self>,
        run: &FailedRun<'_>,
        progressed: bool,
        now: Timestamp,
        limits: &BreakerLimits,
    ) -> AfterFailure {
        let none = AfterFailure { next: None, probe_at: None };
        let fresh = seen.filter(|seen| !seen.is_stale(now, limits));
        match (fresh.map(|seen| &seen.state), seen.map(|seen| &seen.state)) {
            // Its target had answered the probe, so this is the first failure of a new window.
            (_, Some(BreakerState::Probing(_))) if progressed => {
                let closed = seen.map(|seen| seen.closed(now));
                Self::counted(seen, closed.as_ref(), run, now, limits)
            }
            (_, Some(BreakerState::Probing(probe))) if probe.is_of(run) && run.began >= probe.began => {
                Self::opened(seen, Some(run.job), run.code, now, limits)
            }
            // A run from before the probe: it says nothing of the target now. The sweep resumes the job once more.
            (_, Some(BreakerState::Probing(probe))) if probe.is_of(run) => AfterFailure { probe_at: Some(now), ..none },
            (Some(BreakerState::Open { until }), _) => AfterFailure { probe_at: Some((*until).max(now)), ..none },
            (Some(BreakerState::Probing(_)), _) => AfterFailure { probe_at: Some(now + limits.probe), ..none },
            _ if run.is_isolated => none,
            (closed, _) => Self::counted(seen, closed.and(fresh), run, now, limits),
        }
    }

    /// Counts a failed run in the window of `fresh`, or in a new one. Enough of them open the breaker, if they are at
    /// least half of the runs.
    fn counted(
        seen: Option<&Self>,
        fresh: Option<&Self>,
        run: &FailedRun<'_>,
        now: Timestamp,
        limits: &BreakerLimits,
    ) -> AfterFailure {
        let counted = fresh.and_then(|fresh| match fresh.state {
            BreakerState::Closed { since, failed, good } => Some((since, failed, good)),
            _ => None,
        });
        let (since, failed, good) = counted.unwrap_or((now, 0, 0));
        let failed = failed + u32::from(!run.is_isolated);
        // More of them would hide a sudden outage behind a long good time.
        let good = good.saturating_add(run.good.min(limits.failures));
        let begun = Self {
            openings: 0,
            failed_probe: None,
            ..Self::next(seen, now, BreakerState::Closed { since, failed, good })
        };
        if failed >= limits.failures && failed >= good {
            let before = Self { rev: begun.rev - 1, ..begun };
            return Self::opened(Some(&before), None, run.code, now, limits);
        }
        AfterFailure { next: Some(Self { code: run.code.to_owned(), ..begun }), probe_at: None }
    }

    fn opened(
        seen: Option<&Self>,
        failed_probe: Option<JobGuid>,
        code: &str,
        now: Timestamp,
        limits: &BreakerLimits,
    ) -> AfterFailure {
        let openings = seen.map_or(0, |seen| seen.openings) + 1;
        let until = now + limits.open_for(openings);
        let next = Self::next(seen, now, BreakerState::Open { until });
        let next = Self { openings, code: code.to_owned(), failed_probe, ..next };
        AfterFailure { next: Some(next), probe_at: Some(until) }
    }

    /// Decides about this job, which the breaker has paused. `jitter`, from 0 to 1, spreads the looks.
    pub fn look(seen: Option<&Self>, job: JobGuid, jitter: f64, now: Timestamp, limits: &BreakerLimits) -> Look {
        let Some(seen) = seen.filter(|_| !limits.is_off()) else { return Look::Resume };
        match &seen.state {
            BreakerState::Closed { .. } => Look::Resume,
            BreakerState::Open { until } => {
                let yields = seen.failed_probe == Some(job);
                let from = if yields { *until + limits.probe } else { *until };
                if now >= from { Look::TakeProbe } else { Look::Wait(from + limits.probe.mul_f64(jitter / 4.0)) }
            }
            // It was not resumed after it had taken the probe, or a run from before has paused it again.
            BreakerState::Probing(probe) if probe.job == job => Look::TakeProbe,
            BreakerState::Probing(probe) => Look::Judge(*probe),
        }
    }

    /// When to look again at a job that waits for another one's probe.
    pub fn next_look(jitter: f64, now: Timestamp, limits: &BreakerLimits) -> Timestamp {
        now + limits.probe.mul_f64(0.75 + jitter / 2.0)
    }

    /// The breaker after this job has taken the probe.
    #[must_use]
    pub fn probing(&self, job: JobGuid, attempt: u32, accounted: u64, now: Timestamp, limits: &BreakerLimits) -> Self {
        let until = now + limits.probe.saturating_mul(PROBE_TIMES);
        let probe = Probe { job, attempt, began: now, accounted, until };
        Self::next(Some(self), now, BreakerState::Probing(probe))
    }

    /// The breaker after a probe has succeeded.
    #[must_use]
    pub fn closed(&self, now: Timestamp) -> Self {
        let state = BreakerState::Closed { since: now, failed: 0, good: 0 };
        Self { openings: 0, failed_probe: None, ..Self::next(Some(self), now, state) }
    }
}

impl Probe {
    fn is_of(&self, run: &FailedRun<'_>) -> bool {
        (self.job, self.attempt) == (run.job, run.attempt)
    }
}
