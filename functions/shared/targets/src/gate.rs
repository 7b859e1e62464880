//! The gate in front of every target: its concurrency limit, the stop after unanswered calls, and retries.
//!
//! Each host and each function has one gate per process; all job types that call it share the gate. All gates of a
//! process share its [`ProcessPermits`], which bounds the memory of the calls in flight. While the gate is shut (after
//! [`UNANSWERED_MAX`] unanswered calls), a call fails immediately with a transient error. If the target sends a short
//! `Retry-After`, the gate waits and repeats the call itself, so that the batch does not go back to the queue for a
//! delay of a second.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use rowmill_core::ports::{Clock, Target, TargetError, TargetRequest};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::gate_state::{Admitted, Blocked, GateState};
pub use crate::gate_state::{RETRY_AFTER_MAX, SHUT_FOR, UNANSWERED_MAX};

/// The longest total time that one call waits for the target's `Retry-After`.
pub const RETRY_WAIT_MAX: Duration = Duration::from_secs(20);

/// Maximum number of attempts of one call to a target that sends `Retry-After`.
pub const TRIES_MAX: u32 = 4;

/// Maximum number of calls in flight in a process, over all targets. Each call may hold a request of 6 MB and an answer
/// of 6 MiB, so all of them hold at most 96 MB and 96 MiB.
pub const CALLS_MAX: usize = 16;

/// The [`CALLS_MAX`] permits that all gates of a process share.
#[derive(Clone, Debug)]
pub struct ProcessPermits(Arc<Semaphore>);

impl Default for ProcessPermits {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CALLS_MAX)))
    }
}

/// The gate in front of a host or a function.
pub struct Gate {
    clock: Arc<dyn Clock>,
    target_permits: Semaphore,
    process: ProcessPermits,
    state: Mutex<GateState>,
}

impl Gate {
    /// A gate that admits at most `concurrency` calls at a time, as far as the process has permits left.
    pub fn new(clock: Arc<dyn Clock>, concurrency: usize, process: ProcessPermits) -> Self {
        let target_permits = Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS));
        Self { clock, target_permits, process, state: Mutex::default() }
    }

    /// Number of further calls the gate's own limit would admit now.
    pub fn free_permits(&self) -> usize {
        self.target_permits.available_permits()
    }

    /// Waits for a permit, unless calls are blocked. Checks the state before the wait, because the wait can be long
    /// and pointless, and again after it.
    async fn permit(&self) -> Result<CallPermit<'_>, Blocked> {
        let blocked = self.state.lock().blocked(self.clock.now());
        blocked.map_or(Ok(()), Err)?;
        // Take the permit of the process last: a call that waits for its own host must not block calls to other hosts.
        let permits = [self.target_permits.acquire().await.ok(), self.process.0.acquire().await.ok()];
        let admitted = self.state.lock().admit(self.clock.now())?;
        Ok(CallPermit { gate: self, is_probe: admitted == Admitted::Probe, _permits: permits })
    }
}

struct CallPermit<'a> {
    gate: &'a Gate,
    /// True if the gate waits for the result of this call.
    is_probe: bool,
    _permits: [Option<SemaphorePermit<'a>>; 2],
}

impl CallPermit<'_> {
    /// Reports the result of the call. Returns the delay that the target asked for, if any.
    fn ended(mut self, result: &Result<Vec<u8>, TargetError>) -> Option<Duration> {
        self.is_probe = false;
        let (mut state, now) = (self.gate.state.lock(), self.gate.clock.now());
        match result {
            Err(TargetError::Unreachable { .. }) => state.not_answered(now),
            _ => state.answered(),
        }
        match result {
            Err(TargetError::Busy { retry_after: Some(wait), .. }) => Some(state.back_off(now, *wait)),
            _ => None,
        }
    }
}

impl Drop for CallPermit<'_> {
    /// A probe that is dropped without a result was cancelled by its caller.
    fn drop(&mut self) {
        if self.is_probe {
            self.gate.state.lock().probe_abandoned();
        }
    }
}

pub struct GatedTarget {
    gate: Arc<Gate>,
    target: Arc<dyn Target>,
}

impl GatedTarget {
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
                Err(Blocked::Shut) => {
                    let detail = "several calls in a row had no answer, so no call is sent for a while";
                    return Err(TargetError::not_called(detail));
                }
                Err(Blocked::RetryAfter(wait)) => {
                    (TargetError::busy("it asked to be called again later", Some(wait)), Some(wait))
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
                Some(wait) if tries < TRIES_MAX && waited + wait <= RETRY_WAIT_MAX => {
                    self.gate.clock.sleep(wait).await;
                    waited += wait;
                }
                _ => return Err(error),
            }
        }
    }
}
