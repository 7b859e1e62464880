//! Permits: how at most N holders have tasks of a job type with `concurrency` N at a time.
//!
//! A lease takes a permit in the transaction that makes its token the holder of the task. The permit is valid for as long
//! as the token holds the task, and never again after that. So nobody has to give it back: whoever finds that it is not
//! valid may take it. It has no time of its own.

use crate::model::ids::RunId;
use crate::model::task::TaskId;

/// A permit that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permit {
    /// Its number, below the `concurrency` of its type when it was taken.
    pub number: u32,
    /// The task that it was taken for.
    pub task: TaskId,
    /// The holder's.
    pub token: RunId,
}

/// A permit to take, as it was seen: free, or in the hands of a token that holds its task no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PermitSeen {
    pub job_type: String,
    pub number: u32,
    pub token: Option<RunId>,
}
