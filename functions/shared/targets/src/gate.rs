//! What stands before every target: how many calls go out at once, when one goes out again, and when none does.
//!
//! A gate belongs to a host, or to a function, and all job types that call it share it, within a process. All gates of a
//! process share its [`ProcessTurns`], so that what calls hold in memory is bounded too. A call that finds
//! the target silent (see [`SILENT_MAX`]) fails at once, for a passing reason. One that is told by the target when to come
//! back does so by itself if that is soon, so that a batch need not go back to the queue for a second's rest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rowmill_core::ports::{Clock, Target, TargetError, TargetRequest};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::breaker::{Breaker, Pass, Shut};
pub use crate::breaker::{HOLD_MAX, OPEN_FOR, SILENT_MAX};

/// How long one call waits in all because the target says so.
pub const WAIT_MAX: Duration = Duration::from_secs(20);

/// How often one call is made in all where the target says when to come back.
pub const TRIES_MAX: u32 = 4;

/// How many calls of a process are out at once, whatever they call. Each may hold a request of 6 MB and an answer of 6 MiB:
/// 16 of them at most 96 MB and 96 MiB.
pub const CALLS_MAX: usize = 16;

/// The turns that all gates of a process share: [`CALLS_MAX`].
#[derive(Clone, Debug)]
pub struct ProcessTurns(Arc<Semaphore>);

impl Default for ProcessTurns {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CALLS_MAX)))
    }
}

/// A gate before a host or a function.
pub struct Gate {
    clock: Arc<dyn Clock>,
    permits_of_target: Semaphore,
    process: ProcessTurns,
    breaker: Mutex<Breaker>,
}

impl Gate {
    /// A gate that lets so many calls through at once, as far as the process has turns left.
    pub fn new(clock: Arc<dyn Clock>, at_once: usize, process: ProcessTurns) -> Self {
        let permits_of_target = Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS));
        Self { clock, permits_of_target, process, breaker: Mutex::default() }
    }

    /// How many more calls it would let through now.
    pub fn free_turns(&self) -> usize {
        self.permits_of_target.available_permits()
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn, unless the target is left alone: asked before the wait, which may be long and for nothing, and
    /// after.
    async fn permit(&self) -> Result<CallPermit<'_>, Shut> {
        let shut = self.breaker().shut(self.clock.now());
        shut.map_or(Ok(()), Err)?;
        // One of the process comes last: who waits for the host must not keep calls of other hosts from going out.
        let permits = [self.permits_of_target.acquire().await.ok(), self.process.0.acquire().await.ok()];
        let pass = self.breaker().admit(self.clock.now())?;
        Ok(CallPermit { gate: self, looks: pass == Pass::Look, _permits: permits })
    }
}

/// A call that is out.
struct CallPermit<'a> {
    gate: &'a Gate,
    /// Whether others wait for what it sees.
    looks: bool,
    _permits: [Option<SemaphorePermit<'a>>; 2],
}

impl CallPermit<'_> {
    /// Reports how the call ended; how long the target is left alone, where it has asked for that.
    fn ended(mut self, result: &Result<Vec<u8>, TargetError>) -> Option<Duration> {
        self.looks = false;
        let (mut breaker, now) = (self.gate.breaker(), self.gate.clock.now());
        match result {
            Err(TargetError::Unreachable { .. }) => breaker.silent(now),
            _ => breaker.answered(),
        }
        match result {
            Err(TargetError::Busy { retry_after: Some(wait), .. }) => Some(breaker.hold(now, *wait)),
            _ => None,
        }
    }
}

impl Drop for CallPermit<'_> {
    /// Time was up for whoever made the call.
    fn drop(&mut self) {
        if self.looks {
            self.gate.breaker().gave_up();
        }
    }
}

/// A target behind its gate.
pub struct GatedTarget {
    gate: Arc<Gate>,
    target: Arc<dyn Target>,
}

impl GatedTarget {
    /// This target behind this gate.
    pub const fn new(gate: Arc<Gate>, target: Arc<dyn Target>) -> Self {
        Self { gate, target }
    }
}

#[async_trait]
impl Target for GatedTarget {
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        let (mut tries, mut waited) = (0, Duration::ZERO);
        loop {
            let (error, wait) = match self.gate.permit().await {
                Err(Shut::Silent) => {
                    return Err(TargetError::silent("it did not for some time, and is left alone for now"));
                }
                Err(Shut::Hold(wait)) => {
                    (TargetError::busy("it wants to be asked again later", Some(wait)), Some(wait))
                }
                Ok(permit) => {
                    tries += 1;
                    let result = self.target.call(request).await;
                    let wait = permit.ended(&result);
                    match result {
                        Err(error) => (error, wait),
                        answer => return answer,
                    }
                }
            };
            match wait {
                Some(wait) if tries < TRIES_MAX && waited + wait <= WAIT_MAX => {
                    self.gate.clock.sleep(wait).await;
                    waited += wait;
                }
                _ => return Err(error),
            }
        }
    }
}
