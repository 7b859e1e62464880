//! The state that all gates of a world share with the scheduler: the suspended calls, the sleepers and the time.
//!
//! A task continues only when the adversary gives one of its calls a [`Verdict`], or when the clock reaches the time
//! until which it sleeps. The scheduler alone moves the clock. So a run is a sequence of decisions, and the same
//! decisions make the same run.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::ports::PortError;

use super::trace::{Brief, Trace};

/// The kind of a call: it decides which faults are possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallKind {
    /// Reads the current state.
    Read,
    /// Reads from an index that may lag behind.
    Index,
    /// Writes one row or object.
    Write,
    /// Writes several rows atomically, and may meet a conflict.
    Transaction,
    /// Sends messages, possibly only some of them.
    Send,
    /// Processes an item: the only possible fault is that the process dies.
    Item,
    /// Processes an item that kills its process.
    Poison,
}

/// The adversary's decision about a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Proceed,
    /// It fails before it takes effect.
    Fail(&'static str),
    /// It takes effect, and its reply is lost.
    LoseReply,
    /// It takes effect in part, and fails.
    Partly,
    /// It is answered from an index that lags behind.
    Stale,
    /// It takes effect, and then the process dies.
    DieAfter,
}

#[derive(Clone, Copy, Debug)]
pub struct Suspended {
    pub id: u64,
    pub task: u64,
    pub kind: CallKind,
}

struct Slot {
    call: Suspended,
    name: &'static str,
    detail: String,
    verdict: Option<Verdict>,
    waker: Waker,
}

struct Timer {
    id: u64,
    until: Timestamp,
    waker: Waker,
}

/// The state that all gates of a world share with the scheduler.
#[derive(Clone)]
pub struct Hub(Arc<Mutex<State>>);

struct State {
    now: Timestamp,
    next_id: u64,
    current: u64,
    slots: Vec<Slot>,
    timers: Vec<Timer>,
    doomed: Option<u64>,
    /// The number of failed calls of each task.
    failures: BTreeMap<u64, u32>,
    violation: Option<String>,
    trace: Trace,
}

impl Hub {
    /// A hub at the start of a run.
    pub fn new(now: Timestamp, trace: Trace) -> Self {
        let state = State {
            now,
            next_id: 1,
            current: 0,
            slots: Vec::new(),
            timers: Vec::new(),
            doomed: None,
            failures: BTreeMap::new(),
            violation: None,
            trace,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Timestamp {
        self.state().now
    }

    /// Takes the number of failed calls of a task that has ended.
    pub fn take_failures(&self, task: u64) -> u32 {
        self.state().failures.remove(&task).unwrap_or(0)
    }

    /// The task that runs now.
    pub fn current(&self) -> u64 {
        self.state().current
    }

    /// Notes which task runs now.
    pub(super) fn goes_on(&self, task: u64) {
        self.state().current = task;
    }

    /// Moves the clock to `now`, and wakes the sleepers whose time has come.
    pub fn advance_to(&self, now: Timestamp) {
        let mut state = self.state();
        state.now = state.now.max(now);
        let now = state.now;
        state.timers.iter().filter(|timer| timer.until <= now).for_each(|timer| timer.waker.wake_by_ref());
    }

    /// When the next sleeper wakes.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.state().timers.iter().map(|timer| timer.until).min()
    }

    /// The number of calls that wait for a verdict.
    pub fn suspended(&self) -> usize {
        self.state().slots.len()
    }

    /// The suspended call at this position, in the order of the calls.
    pub fn suspended_at(&self, place: usize) -> Suspended {
        self.state().slots[place].call
    }

    /// Decides about a call. Its task continues when it is polled next.
    pub fn decide(&self, id: u64, verdict: Verdict) {
        let mut state = self.state();
        let state = &mut *state;
        if let Some(slot) = state.slots.iter_mut().find(|slot| slot.call.id == id) {
            slot.verdict = Some(verdict);
            slot.waker.wake_by_ref();
            if !matches!(verdict, Verdict::Proceed | Verdict::Stale) {
                *state.failures.entry(slot.call.task).or_default() += 1;
            }
        }
    }

    /// The name and the detail of a suspended call, for the trace.
    pub fn describe(&self, id: u64) -> String {
        let state = self.state();
        let slot = state.slots.iter().find(|slot| slot.call.id == id);
        slot.map(|slot| format!("{}({})", slot.name, slot.detail)).unwrap_or_default()
    }

    /// Takes the task that must die now, if there is one.
    pub(super) fn take_doomed(&self) -> Option<u64> {
        self.state().doomed.take()
    }

    /// Notes that an invariant is violated. Only the first violation is kept.
    pub fn violate(&self, what: impl FnOnce() -> String) {
        let mut state = self.state();
        if state.violation.is_none() {
            state.violation = Some(what());
        }
    }

    /// Notes the violation that a check found, if any.
    pub fn check(&self, checked: Result<(), String>) {
        if let Err(what) = checked {
            self.violate(|| what);
        }
    }

    /// The first violation, if any.
    pub fn violation(&self) -> Option<String> {
        self.state().violation.clone()
    }

    /// Adds a line to the trace, if one is kept.
    pub fn tell(&self, task: Option<u64>, line: impl FnOnce() -> String) {
        let mut state = self.state();
        let now = state.now;
        state.trace.tell(now, task, line);
    }

    pub fn is_traced(&self) -> bool {
        self.state().trace.is_kept()
    }

    /// The trace so far, and its digest.
    pub fn take_trace(&self) -> Trace {
        std::mem::take(&mut self.state().trace)
    }

    /// Suspends until the adversary decides about this call, and then does what it decided.
    ///
    /// # Errors
    /// `Unavailable` if the adversary decides so, and the errors of the call itself.
    pub async fn through<T, E>(
        &self,
        kind: CallKind,
        name: &'static str,
        detail: impl FnOnce() -> String,
        effect: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        T: Brief,
        E: From<PortError> + fmt::Display,
    {
        let detail = if self.is_traced() { detail() } else { String::new() };
        let (verdict, task) = self.suspend(kind, name, detail.clone()).await;
        if let Verdict::Fail(why) = verdict {
            self.tell(Some(task), || format!("{name}({detail}) -> not done, fails: {why}"));
            return Err(PortError::unavailable(name, why).into());
        }
        let answer = effect.await;
        self.tell(Some(task), || {
            let answer = match &answer {
                Ok(done) => done.brief(),
                Err(error) => format!("Err: {error}"),
            };
            let loss = match verdict {
                Verdict::LoseReply | Verdict::Partly => ", REPLY LOST",
                Verdict::DieAfter => ", then it DIES",
                _ => "",
            };
            format!("{name}({detail}) -> {answer}{loss}")
        });
        match verdict {
            Verdict::LoseReply | Verdict::Partly => Err(PortError::unavailable(name, "the reply was lost").into()),
            Verdict::DieAfter => self.die(task).await,
            _ => answer,
        }
    }

    /// Suspends until there is a verdict. Returns it with the task of the call.
    pub async fn suspend(&self, kind: CallKind, name: &'static str, detail: String) -> (Verdict, u64) {
        let task = self.state().current;
        (Entering { hub: self, id: None, what: Some((kind, name, detail)) }.await, task)
    }

    /// Lets the task die. Never returns.
    pub async fn die<T>(&self, task: u64) -> T {
        self.state().doomed = Some(task);
        std::future::pending().await
    }

    pub async fn sleep(&self, duration: Duration) {
        let until = self.now() + duration;
        Sleeping { hub: self, id: None, until }.await;
    }
}

/// A call that waits for its verdict.
struct Entering<'a> {
    hub: &'a Hub,
    id: Option<u64>,
    what: Option<(CallKind, &'static str, String)>,
}

impl Future for Entering<'_> {
    type Output = Verdict;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Verdict> {
        let mut state = self.hub.state();
        if let Some((kind, name, detail)) = self.what.take() {
            let id = state.next_id;
            state.next_id += 1;
            let call = Suspended { id, task: state.current, kind };
            state.slots.push(Slot { call, name, detail, verdict: None, waker: context.waker().clone() });
            drop(state);
            self.id = Some(id);
            return Poll::Pending;
        }
        let place = state.slots.iter().position(|slot| Some(slot.call.id) == self.id);
        let Some(place) = place else { return Poll::Pending };
        match state.slots[place].verdict {
            None => {
                state.slots[place].waker.clone_from(context.waker());
                Poll::Pending
            }
            Some(verdict) => {
                state.slots.remove(place);
                drop(state);
                self.id = None;
                Poll::Ready(verdict)
            }
        }
    }
}

impl Drop for Entering<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.hub.state().slots.retain(|slot| slot.call.id != id);
        }
    }
}

struct Sleeping<'a> {
    hub: &'a Hub,
    id: Option<u64>,
    until: Timestamp,
}

impl Future for Sleeping<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.hub.state();
        if state.now >= self.until {
            return Poll::Ready(());
        }
        let id = match self.id {
            Some(id) => id,
            None => {
                state.next_id += 1;
                state.next_id - 1
            }
        };
        state.timers.retain(|timer| timer.id != id);
        let (until, waker) = (self.until, context.waker().clone());
        state.timers.push(Timer { id, until, waker });
        drop(state);
        self.id = Some(id);
        Poll::Pending
    }
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.hub.state().timers.retain(|timer| timer.id != id);
        }
    }
}
