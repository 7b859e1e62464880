//! What stands before a target.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rowmill_core::in_memory::ManualClock;
use rowmill_core::ports::{Clock, Target, TargetError, TargetRequest};
use rowmill_targets::gate::{
    CALLS_MAX, Gate, GatedTarget, HOLD_MAX, OPEN_FOR, ProcessTurns, SILENT_MAX, TRIES_MAX, WAIT_MAX,
};
use tokio::sync::Semaphore;

use crate::server::{Reply, Server};
use crate::{LONG, call, webhook};

/// Ends call after call as it is told, and then well.
#[derive(Default)]
struct Scripted {
    ends: Mutex<VecDeque<TargetError>>,
    calls: AtomicUsize,
}

impl Scripted {
    fn of(ends: impl IntoIterator<Item = TargetError>) -> Arc<Self> {
        Arc::new(Self { ends: Mutex::new(ends.into_iter().collect()), calls: AtomicUsize::new(0) })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Target for Scripted {
    async fn call(&self, _request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.ends.lock().unwrap().pop_front().map_or_else(|| Ok(b"{}".to_vec()), Err)
    }
}

fn gated(target: Arc<dyn Target>, clock: &Arc<ManualClock>) -> GatedTarget {
    let clock: Arc<dyn Clock> = clock.clone();
    GatedTarget::new(Arc::new(Gate::new(clock, 10, ProcessTurns::default())), target)
}

fn later(seconds: u64) -> TargetError {
    TargetError::busy("status 429", Some(Duration::from_secs(seconds)))
}

#[tokio::test]
async fn a_target_that_says_when_to_come_back_is_called_then() {
    let clock = Arc::new(ManualClock::default());
    let target = Scripted::of([later(3), later(4)]);
    let start = clock.now();
    assert!(call(&gated(target.clone(), &clock)).await.is_ok());
    assert_eq!(target.calls(), 3);
    assert_eq!(clock.now(), start + Duration::from_secs(7), "the clock moves only by waiting");
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_the_queues_and_nobody_calls_meanwhile() {
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
    let target = Scripted::of((0..100).map(|_| later(WAIT_MAX.as_secs() - 1)));
    assert!(call(&gated(target.clone(), &clock)).await.is_err());
    assert_eq!((target.calls(), clock.now()), (2, start + WAIT_MAX - Duration::from_secs(1)));

    let target = Scripted::of([later(u64::MAX)]);
    let gated = gated(target, &clock);
    assert!(call(&gated).await.is_err());
    clock.advance(HOLD_MAX);
    assert!(call(&gated).await.is_ok(), "no target can ask for more than that");
}

#[tokio::test]
async fn an_error_without_a_time_to_come_back_is_not_tried_again_here() {
    let ends = [
        TargetError::busy("status 503", None),
        TargetError::failed("status 500"),
        TargetError::refused("status 404"),
        TargetError::silent("gone"),
    ];
    let count = ends.len();
    let target = Scripted::of(ends);
    let gated = gated(target.clone(), &Arc::new(ManualClock::default()));
    for _ in 0..count {
        assert!(call(&gated).await.is_err());
    }
    assert_eq!(target.calls(), count);
}

#[tokio::test]
async fn a_service_that_hangs_is_left_alone_until_it_is_there_again() {
    let clock = Arc::new(ManualClock::default());
    let hangs = Arc::new(AtomicBool::new(true));
    let hangs_now = hangs.clone();
    let script = move |_: &_, _| if hangs_now.load(Ordering::SeqCst) { Reply::Hang } else { Reply::well() };
    let server = Server::start(script).await;
    let gate = Arc::new(Gate::new(clock.clone(), 10, ProcessTurns::default()));
    let with_patience = |patience| GatedTarget::new(gate.clone(), Arc::new(webhook(&server.url("/"), patience)));
    let gated = with_patience(Duration::from_millis(50));
    for _ in 0..SILENT_MAX + 10 {
        assert!(matches!(call(&gated).await, Err(TargetError::Unreachable { .. })));
    }
    let calls = SILENT_MAX as usize;
    assert!(server.seen().len() <= calls, "the others were not sent");
    clock.advance(OPEN_FOR);
    for _ in 0..3 {
        assert!(call(&gated).await.is_err());
    }
    assert!(server.seen().len() <= calls + 1, "one looked");
    hangs.store(false, Ordering::SeqCst);
    clock.advance(OPEN_FOR);
    let before = server.seen().len();
    for _ in 0..3 {
        assert!(call(&with_patience(LONG)).await.is_ok(), "the next look finds it well");
    }
    assert_eq!(server.seen().len(), before + 3);
}

#[tokio::test]
async fn a_look_that_is_given_up_leaves_the_next_call_to_look() {
    let clock = Arc::new(ManualClock::default());
    let target = Arc::new(Slow { turns: Semaphore::new(0), silent: AtomicBool::new(true), calls: AtomicUsize::new(0) });
    let gated = gated(target.clone(), &clock);
    for _ in 0..SILENT_MAX {
        assert!(call(&gated).await.is_err());
    }
    clock.advance(OPEN_FOR);
    target.silent.store(false, Ordering::SeqCst);
    {
        let look = call(&gated);
        let mut look = std::pin::pin!(look);
        assert!(futures_now(look.as_mut()).await.is_none(), "it waits for the answer");
        assert!(call(&gated).await.is_err(), "somebody looks already");
    }
    target.turns.add_permits(1);
    assert!(call(&gated).await.is_ok());
}

/// What a future has come to without waiting.
async fn futures_now<T>(future: impl Future<Output = T> + Unpin) -> Option<T> {
    tokio::select! {
        biased;
        result = future => Some(result),
        () = std::future::ready(()) => None,
    }
}

/// Answers a call for each turn it is given.
struct Slow {
    turns: Semaphore,
    silent: AtomicBool,
    calls: AtomicUsize,
}

#[async_trait]
impl Target for Slow {
    async fn call(&self, _request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.silent.load(Ordering::SeqCst) {
            return Err(TargetError::silent("hangs"));
        }
        self.turns.acquire().await.unwrap().forget();
        Ok(b"{}".to_vec())
    }
}

#[tokio::test]
async fn no_more_calls_go_out_at_once_than_the_host_bears() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let target =
        Arc::new(Slow { turns: Semaphore::new(0), silent: AtomicBool::new(false), calls: AtomicUsize::new(0) });
    let gate = Arc::new(Gate::new(clock, 2, ProcessTurns::default()));
    let (one, two) = (GatedTarget::new(gate.clone(), target.clone()), GatedTarget::new(gate, target.clone()));
    let (mut a, mut b, mut c) = (Box::pin(call(&one)), Box::pin(call(&two)), Box::pin(call(&one)));
    for waiting in [&mut a, &mut b, &mut c] {
        assert!(futures_now(waiting.as_mut()).await.is_none());
    }
    assert_eq!(target.calls.load(Ordering::SeqCst), 2, "the third waits, whichever type it is of");
    target.turns.add_permits(1);
    assert!(a.await.is_ok());
    assert!(futures_now(c.as_mut()).await.is_none());
    assert_eq!(target.calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn no_more_calls_of_a_process_are_out_at_once_than_it_has_room_for_whatever_they_call() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let target =
        Arc::new(Slow { turns: Semaphore::new(0), silent: AtomicBool::new(false), calls: AtomicUsize::new(0) });
    let process = ProcessTurns::default();
    let host = || {
        let gate = Gate::new(clock.clone(), 10, process.clone());
        GatedTarget::new(Arc::new(gate), target.clone())
    };
    let hosts = [host(), host(), host()];
    let mut calls: VecDeque<_> = hosts.iter().cycle().take(30).map(|host| Box::pin(call(host))).collect();
    for waiting in &mut calls {
        assert!(futures_now(waiting.as_mut()).await.is_none());
    }
    assert_eq!(target.calls.load(Ordering::SeqCst), CALLS_MAX, "each host bears ten, three of them thirty");
    target.turns.add_permits(1);
    assert!(calls.pop_front().unwrap().await.is_ok());
    for waiting in &mut calls {
        assert!(futures_now(waiting.as_mut()).await.is_none());
    }
    assert_eq!(target.calls.load(Ordering::SeqCst), CALLS_MAX + 1);
    target.turns.add_permits(calls.len());
    for waiting in calls {
        assert!(waiting.await.is_ok(), "all have their turn");
    }
}
