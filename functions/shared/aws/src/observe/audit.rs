//! The audit log: one line for each change that a caller asked for, carried out or refused.
//!
//! A line names who, what and how it ended, and never what a file, a param or a token contains. It is written at
//! every level of the log.

use std::net::IpAddr;

/// The target of audit lines: `target` in the log.
pub const TARGET: &str = "audit";

/// The outcome of a change that was carried out. A refused one has the code of its problem.
pub const DONE: &str = "done";

/// A change that a caller asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Change<'a> {
    /// The owner, if the caller is known.
    pub owner: &'a str,
    /// True if an operator of the stack asked for it, for the owner.
    pub by_operator: bool,
    /// Where the request came from, if the gateway told it.
    pub address: Option<IpAddr>,
    /// The requested action: the route's `operationId`, or `receiveFile` for a dropped file.
    pub action: &'a str,
    /// The job that it is about, or that it created.
    pub job: Option<&'a str>,
    /// The upload that it is about, or that it created.
    pub upload: Option<&'a str>,
    /// [`DONE`], or the code of the problem.
    pub outcome: &'a str,
}

impl Change<'_> {
    pub fn log(&self) {
        tracing::info!(
            target: TARGET,
            owner = self.owner,
            operator = self.by_operator.then_some(true),
            source.address = self.address.map(|address| address.to_string()),
            action = self.action,
            job.id = self.job,
            upload.id = self.upload,
            outcome = self.outcome,
            "change"
        );
    }
}
