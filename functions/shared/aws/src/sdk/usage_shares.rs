//! Which job pays for what this process has used.
//!
//! The writes that count for a job carry what the process has used since the last such write: its requests, and the
//! time of its invocations. So the sum over all jobs is what the process has counted, and a job gets a share of what
//! other jobs used only while it shares invocations with them. No write is made for this.
//!
//! A write cannot contain what comes after it. So each pays *ahead* for itself and what certainly follows it, and the
//! next write pays so much less. What a process has used after its last write is lost when it ends.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rowmill_core::model::cost::Usage;

use crate::sdk::meter;

/// Shares out what is counted.
#[derive(Debug)]
pub struct UsageShares {
    counted: fn() -> Usage,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    /// All that was counted when a share was taken last.
    seen: Usage,
    /// Given back by a write that was not applied.
    returned: Usage,
    /// Paid ahead, and not counted since.
    ahead: Usage,
}

pub static OF_PROCESS: UsageShares = UsageShares::of(of_process);

impl UsageShares {
    /// Shares of what this function has counted since the process began.
    pub const fn of(counted: fn() -> Usage) -> Self {
        let open = Open { seen: Usage::NONE, returned: Usage::NONE, ahead: Usage::NONE };
        Self { counted, open: Mutex::new(open) }
    }

    /// Takes all that was used since the last call and was not paid for ahead, and pays for this `ahead`.
    pub fn take(&self, ahead: Usage) -> Usage {
        let mut open = self.open.lock();
        let counted = (self.counted)();
        let new = counted.without(open.seen);
        let due = new.without(open.ahead);
        let share = std::mem::take(&mut open.returned) + due + ahead;
        *open = Open { seen: counted, returned: Usage::NONE, ahead: open.ahead.without(new) + ahead };
        share
    }

    /// Gives back a share, because its write was not applied. The next share contains it, without `later`: what was
    /// paid ahead and does not follow.
    pub fn give_back(&self, share: Usage, later: Usage) {
        let mut open = self.open.lock();
        open.returned += share.without(later);
        open.ahead = open.ahead.without(later);
    }

    /// Drops what was used so far: the next shares are for work that has nothing to do with it.
    pub fn drop_open(&self) {
        *self.open.lock() = Open { seen: (self.counted)(), returned: Usage::NONE, ahead: Usage::NONE };
    }
}

fn of_process() -> Usage {
    let (lambda_requests, time) = INVOCATIONS.lock().sums();
    let lambda_mb_ms = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).saturating_mul(*MEMORY_MB) / 1000;
    Usage { lambda_requests, lambda_mb_ms, ..meter::counted() }
}

/// The memory of the function in megabytes, as Lambda says it; 0 elsewhere.
static MEMORY_MB: LazyLock<u64> = LazyLock::new(|| {
    std::env::var("AWS_LAMBDA_FUNCTION_MEMORY_SIZE").ok().and_then(|size| size.parse().ok()).unwrap_or(0)
});

/// The invocations of this process.
#[derive(Debug)]
struct Invocations {
    begun: u64,
    /// Number of those in progress, and since when there has been one.
    open: u32,
    since: Option<Instant>,
    /// The time during which there was one, each time rounded up to a millisecond as Lambda does.
    past: Duration,
}

static INVOCATIONS: Mutex<Invocations> =
    Mutex::new(Invocations { begun: 0, open: 0, since: None, past: Duration::ZERO });

impl Invocations {
    fn begin(&mut self, now: Instant) {
        self.begun += 1;
        self.open += 1;
        self.since.get_or_insert(now);
    }

    fn end(&mut self, now: Instant) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 {
            let time = self.since.take().map_or(Duration::ZERO, |since| now.duration_since(since));
            self.past += Duration::from_millis(u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX));
        }
    }

    fn sums(&self) -> (u64, Duration) {
        (self.begun, self.past + self.since.map_or(Duration::ZERO, |since| since.elapsed()))
    }
}

pub(crate) fn begin_invocation() {
    INVOCATIONS.lock().begin(Instant::now());
}

pub(crate) fn end_invocation() {
    INVOCATIONS.lock().end(Instant::now());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn sends(requests: u64) -> Usage {
        Usage::NONE.with_sends(requests)
    }

    #[test]
    fn each_unit_is_paid_for_once() {
        static COUNTED: AtomicU64 = AtomicU64::new(0);
        let shares = UsageShares::of(|| sends(COUNTED.load(Ordering::Relaxed)));
        let used = |requests| COUNTED.fetch_add(requests, Ordering::Relaxed);
        used(5);
        assert_eq!(shares.take(sends(2)), sends(5 + 2));
        assert_eq!(shares.take(sends(0)), sends(0), "nothing was counted, and 2 are paid ahead");
        used(1);
        assert_eq!(shares.take(sends(0)), sends(0), "paid ahead");
        used(4);
        let share = shares.take(sends(1));
        assert_eq!(share, sends(3 + 1), "one of the four was paid ahead");
        used(2);
        shares.give_back(share, sends(0));
        assert_eq!(shares.take(sends(0)), sends(4 + 1));
        let share = shares.take(sends(1 + 2));
        used(1);
        shares.give_back(share, sends(2));
        used(4);
        assert_eq!(shares.take(sends(0)), sends(1 + 4), "what was to follow did not, and is not paid for");
        used(9);
        shares.take(sends(7));
        used(3);
        shares.drop_open();
        used(1);
        assert_eq!(shares.take(sends(0)), sends(1), "neither what was open nor what was paid ahead");
    }

    #[test]
    fn time_counts_while_an_invocation_is_open() {
        let begun = Instant::now();
        let at = |micros| begun + Duration::from_micros(micros);
        let mut invocations = Invocations { begun: 0, open: 0, since: None, past: Duration::ZERO };
        invocations.begin(at(0));
        invocations.end(at(1));
        assert_eq!(invocations.sums(), (1, Duration::from_millis(1)), "rounded up");
        invocations.begin(at(10_000));
        invocations.begin(at(11_000));
        invocations.end(at(12_000));
        invocations.end(at(14_000));
        assert_eq!(invocations.sums(), (3, Duration::from_millis(5)), "two at once take the time of one");
        invocations.end(at(20_000));
        assert_eq!(invocations.sums().1, Duration::from_millis(5), "an end without a beginning is no panic");
    }
}
