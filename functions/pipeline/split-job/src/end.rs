//! The ends of an invocation, and of a run under the lease.

use rowmill_core::model::job::Stop;
use rowmill_core::ports::PortError;

/// Result of an invocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SplitEnd {
    /// The file is split to its end, or the job was stopped.
    Finished,
    /// Time was up. A message for the next invocation is sent.
    Continued,
    /// The job is paused. Nothing was dispatched, or no more will be.
    Paused,
    /// Nobody has taken the job up, and its deadline has passed.
    Overdue,
    /// Nothing to do: the job is gone or past this attempt, or another run is at it.
    NotOurs,
}

/// The end of a run under the lease.
#[derive(Debug)]
pub enum Conclusion {
    /// No tally will follow, because all items are dispatched (`at_end`) or the job is stopped. A counted tally of a
    /// stopped job is left to the sweep: its chunks may have been sent, and their runs end within the grace.
    End {
        at_end: bool,
    },
    /// The job must stop for this reason, or because its deadline has passed (`None`).
    Stop(Option<Stop>),
    /// All counted tallies are dispatched, or the job is paused, and a resend sends them.
    HandOver,
    /// Nothing was dispatched.
    GiveBack,
    /// Another run, or another attempt, has taken over.
    Superseded,
    Failed(PortError),
}
