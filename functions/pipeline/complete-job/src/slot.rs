//! The time that one invocation has for a completion.

use jiff::Timestamp;
use rowmill_core::model::ids::RunId;

/// One try of an invocation to end an attempt: its run, and the time that it has.
#[derive(Clone, Copy)]
pub struct InvocationSlot {
    /// The invocation's run, which holds the lease.
    pub run: RunId,
    /// When the invocation hands a composition over to the next one.
    pub time_limit: Timestamp,
    /// True if an earlier try of this invocation failed, so that part of its time is gone.
    pub is_retry: bool,
}
