//! The gate in front of a target.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rowmill_core::ports::{Clock, Target, TargetError, TargetRequest};
use rowmill_targets::gate::{
    CALLS_MAX, Gate, GatedTarget, ProcessPermits, RETRY_AFTER_MAX, RETRY_WAIT_MAX, SHUT_FOR, TRIES_MAX, UNANSWERED_MAX,
};
use rowmill_testing::in_memory::ManualClock;
use tokio::sync::Semaphore;

use crate::server::{Reply, Server};
use crate::{LONG, call, webhook};

/// Returns these errors, one for each call, and then succeeds.
#[derive(Default)]
struct Scripted {
    errors: Mutex<VecDeque<TargetError>>,
    calls: AtomicUsize,
}

impl Scripted {
    fn of(errors: impl IntoIterator<Item = TargetError>) -> Arc<Self> {
        Arc::new(Self { errors: Mutex::new(errors.into_iter().collect()), calls: AtomicUsize::new(0) })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Target for Scripted {
    async fn call(&self, _request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.errors.lock().unwrap().pop_front().map_or_else(|| Ok(b"{}".to_vec()), Err)
    }
}

fn gated(target: Arc<dyn Target>, clock: &Arc<ManualClock>) -> GatedTarget {
    let clock: Arc<dyn Clock> = clock.clone();
    GatedTarget::new(Arc::new(Gate::new(clock, 10, ProcessPermits::default())), target)
}

fn later(seconds: u64) -> TargetError {
    TargetError::busy("status 429", Some(Duration::from_secs(seconds)))
}

#[tokio::test]
async fn a_short_retry_after_is_waited_for_and_the_call_repeated() {
    let clock = Arc::new(ManualClock::default());
    let target = Scripted::of([later(3), later(4)]);
    let start = clock.now();
    assert!(call(&gated(target.clone(), &clock)).await.is_ok());
    assert_eq!(target.calls(), 3);
    assert_eq!(clock.now(), start + Duration::from_secs(7), "the clock moves only by waiting");
}

#[tokio::test]
async fn a_long_retry_after_fails_the_call_and_blocks_other_calls_until_then() {
    let clock = Arc::new(ManualClock::default());
    let target = Scripted::of([later(60)]);
    let gated = gated(target.clone(), &clock);
    let start = clock.now();
    for _ in 0..3 {
        assert!(matches!(call(&gated).await, Err(TargetError::Busy { .. })));
    }
    assert_eq!((target.calls(), clock.now()), (1, start));
    clock.advance(Duration::from_secs(45));
    assert!(call(&gated).await.is_ok(), "the rest of the wait is short enough");
    assert_eq!(clock.now(), start + Duration::from_secs(60));
}

#[tokio::test]
async fn tries_and_waits_are_bounded() {
    let clock = Arc::new(ManualClock::default());
    let start = clock.now();
    let target = Scripted::of((0..100).map(|_| later(0)));
    assert!(call(&gated(target.clone(), &clock)).await.is_err());
    assert_eq!(target.calls(), TRIES_MAX as usize);
    let target = Scripted::of((0..100).map(|_| later(RETRY_WAIT_MAX.as_secs() - 1)));
    assert!(call(&gated(target.clone(), &clock)).await.is_err());
    assert_eq!((target.calls(), clock.now()), (2, start + RETRY_WAIT_MAX - Duration::from_secs(1)));

    let target = Scripted::of([later(u64::MAX)]);
    let gated = gated(target, &clock);
    assert!(call(&gated).await.is_err());
    clock.advance(RETRY_AFTER_MAX);
    assert!(call(&gated).await.is_ok(), "a longer delay is cut to the maximum");
}

#[tokio::test]
async fn an_error_without_retry_after_is_not_retried_by_the_gate() {
    let errors = [
        TargetError::busy("status 503", None),
        TargetError::failed("status 500"),
        TargetError::refused("status 404"),
        TargetError::no_answer("gone"),
    ];
    let count = errors.len();
    let target = Scripted::of(errors);
    let gated = gated(target.clone(), &Arc::new(ManualClock::default()));
    for _ in 0..count {
        assert!(call(&gated).await.is_err());
    }
    assert_eq!(target.calls(), count);
}

#[tokio::test]
async fn the_gate_of_a_service_that_hangs_stays_shut_until_it_answers_again() {
    let clock = Arc::new(ManualClock::default());
    let hangs = Arc::new(AtomicBool::new(true));
    let hangs_now = hangs.clone();
    let script = move |_: &_, _| if hangs_now.load(Ordering::SeqCst) { Reply::Hang } else { Reply::ok() };
    let server = Server::start(script).await;
    let gate = Arc::new(Gate::new(clock.clone(), 10, ProcessPermits::default()));
    let with_timeout = |timeout| GatedTarget::new(gate.clone(), Arc::new(webhook(&server.url("/"), timeout)));
    let gated = with_timeout(Duration::from_millis(50));
    for _ in 0..UNANSWERED_MAX + 10 {
        assert!(matches!(call(&gated).await, Err(TargetError::Unreachable { .. })));
    }
    let calls = UNANSWERED_MAX as usize;
    assert!(server.seen().len() <= calls, "the other calls were not sent");
    clock.advance(SHUT_FOR);
    for _ in 0..3 {
        assert!(call(&gated).await.is_err());
    }
    assert!(server.seen().len() <= calls + 1, "one call probed");
    hangs.store(false, Ordering::SeqCst);
    clock.advance(SHUT_FOR);
    let before = server.seen().len();
    for _ in 0..3 {
        assert!(call(&with_timeout(LONG)).await.is_ok(), "the next probe succeeds");
    }
    assert_eq!(server.seen().len(), before + 3);
}

#[tokio::test]
async fn after_a_cancelled_probe_the_next_call_probes() {
    let clock = Arc::new(ManualClock::default());
    let target =
        Arc::new(Slow { permits: Semaphore::new(0), no_answer: AtomicBool::new(true), calls: AtomicUsize::new(0) });
    let gated = gated(target.clone(), &clock);
    for _ in 0..UNANSWERED_MAX {
        assert!(call(&gated).await.is_err());
    }
    clock.advance(SHUT_FOR);
    target.no_answer.store(false, Ordering::SeqCst);
    {
        let probe = call(&gated);
        let mut probe = std::pin::pin!(probe);
        assert!(poll_once(probe.as_mut()).await.is_none(), "it waits for the answer");
        assert!(call(&gated).await.is_err(), "another call probes already");
    }
    target.permits.add_permits(1);
    assert!(call(&gated).await.is_ok());
}

/// The result of a future if it is ready now.
async fn poll_once<T>(future: impl Future<Output = T> + Unpin) -> Option<T> {
    tokio::select! {
        biased;
        result = future => Some(result),
        () = std::future::ready(()) => None,
    }
}

/// Answers one call for each permit.
struct Slow {
    permits: Semaphore,
    no_answer: AtomicBool,
    calls: AtomicUsize,
}

#[async_trait]
impl Target for Slow {
    async fn call(&self, _request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.no_answer.load(Ordering::SeqCst) {
            return Err(TargetError::no_answer("hangs"));
        }
        self.permits.acquire().await.unwrap().forget();
        Ok(b"{}".to_vec())
    }
}

#[tokio::test]
async fn concurrent_calls_to_a_host_are_limited_over_all_job_types() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let target =
        Arc::new(Slow { permits: Semaphore::new(0), no_answer: AtomicBool::new(false), calls: AtomicUsize::new(0) });
    let gate = Arc::new(Gate::new(clock, 2, ProcessPermits::default()));
    let (one, two) = (GatedTarget::new(gate.clone(), target.clone()), GatedTarget::new(gate, target.clone()));
    let (mut a, mut b, mut c) = (Box::pin(call(&one)), Box::pin(call(&two)), Box::pin(call(&one)));
    for waiting in [&mut a, &mut b, &mut c] {
        assert!(poll_once(waiting.as_mut()).await.is_none());
    }
    assert_eq!(target.calls.load(Ordering::SeqCst), 2, "the third call waits, although its job type has no other call");
    target.permits.add_permits(1);
    assert!(a.await.is_ok());
    assert!(poll_once(c.as_mut()).await.is_none());
    assert_eq!(target.calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn concurrent_calls_of_a_process_are_limited_over_all_hosts() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let target =
        Arc::new(Slow { permits: Semaphore::new(0), no_answer: AtomicBool::new(false), calls: AtomicUsize::new(0) });
    let process = ProcessPermits::default();
    let host = || {
        let gate = Gate::new(clock.clone(), 10, process.clone());
        GatedTarget::new(Arc::new(gate), target.clone())
    };
    let hosts = [host(), host(), host()];
    let mut calls: VecDeque<_> = hosts.iter().cycle().take(30).map(|host| Box::pin(call(host))).collect();
    for waiting in &mut calls {
        assert!(poll_once(waiting.as_mut()).await.is_none());
    }
    assert_eq!(target.calls.load(Ordering::SeqCst), CALLS_MAX, "each of the three hosts allows ten");
    target.permits.add_permits(1);
    assert!(calls.pop_front().unwrap().await.is_ok());
    for waiting in &mut calls {
        assert!(poll_once(waiting.as_mut()).await.is_none());
    }
    assert_eq!(target.calls.load(Ordering::SeqCst), CALLS_MAX + 1);
    target.permits.add_permits(calls.len());
    for waiting in calls {
        assert!(waiting.await.is_ok(), "all calls complete");
    }
}
