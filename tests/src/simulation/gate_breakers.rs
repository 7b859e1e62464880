//! The gate before the breakers, and what must hold of a run whose breaker is open.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::breaker::{Breaker, BreakerLimits, BreakerState};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::{BreakerMoved, Breakers, PortError};
use rowmill_testing::in_memory::InMemoryBreakers;

use super::broken::Broken;
use super::checks::{Checked, ensure};
use super::hub::{CallKind, Hub};
use super::invariants::Invariants;
use super::plan::SKEW_MAX;
use super::trace::{Brief, job_name};

pub struct GatedBreakers {
    pub store: Arc<InMemoryBreakers>,
    /// Decides about each call.
    pub hub: Hub,
    /// Checked after every write.
    pub invariants: Arc<Invariants>,
    pub limits: BreakerLimits,
    pub broken: Broken,
}

impl GatedBreakers {
    /// An invocation has seen this breaker. Returns what it takes it for. Its clock may be ahead.
    fn seen(&self, breaker: Option<Breaker>) -> Option<Breaker> {
        if let Some(BreakerState::Open { until }) = breaker.as_ref().map(|breaker| &breaker.state)
            && self.hub.now() + SKEW_MAX < *until + self.limits.window
        {
            self.invariants.saw_open(self.hub.current());
            return breaker.filter(|_| self.broken != Broken::BreakerUnseen);
        }
        breaker
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Breakers for GatedBreakers {
    async fn breaker(&self, job_type: &str) -> Result<Option<Breaker>, PortError> {
        let effect = async {
            let answer = self.store.breaker(job_type).await?;
            Ok(self.seen(answer))
        };
        self.hub.through(CallKind::Read, "breaker", || job_type.to_owned(), effect).await
    }

    async fn move_breaker(&self, job_type: &str, next: &Breaker) -> Result<BreakerMoved, PortError> {
        let effect = async {
            Ok(match self.store.move_breaker(job_type, next).await? {
                BreakerMoved::Won => {
                    self.invariants.reach(place(next));
                    self.seen(Some(next.clone()));
                    BreakerMoved::Won
                }
                BreakerMoved::Lost(there) => BreakerMoved::Lost(self.seen(there)),
            })
        };
        self.hub.through(CallKind::Write, "move_breaker", || next.brief(), effect).await
    }
}

const fn place(moved: &Breaker) -> &'static str {
    match &moved.state {
        BreakerState::Closed { failed: 0, .. } => "breaker closed",
        BreakerState::Closed { .. } => "breaker counts",
        BreakerState::Open { .. } if moved.openings > 1 => "breaker opened again",
        BreakerState::Open { .. } => "breaker opened",
        BreakerState::Probing(_) => "breaker probes",
    }
}

impl Invariants {
    /// An invocation has seen that the breaker is open.
    fn saw_open(&self, task: u64) {
        self.known().saw_open.insert(task);
    }

    /// An invocation of `process-items` gives its message back. If its items still fail, it must not have seen that the
    /// breaker is open: then its deliveries would be used up by the outage, and its rows would fail.
    pub fn may_give_back(&self, task: u64, job: JobGuid, why: &str, at: Timestamp) -> Checked {
        let saw_open = self.known().saw_open.remove(&task);
        ensure(!saw_open || !why.contains("items still fail"), || {
            format!("{}: a chunk returns to its queue at {at} although the breaker is open: {why}", job_name(job))
        })
    }
}
