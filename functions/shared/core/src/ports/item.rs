//! An item, and how it ends.

use crate::model::ids::JobGuid;
use crate::text::Record;

/// One well-formed record of the file.
#[derive(Clone, Debug)]
pub struct Item {
    pub job_guid: JobGuid,
    /// Its 1-based number in the file; the header does not count.
    pub row: u64,
    pub record: Record,
}

impl Item {
    /// A key that is the same every time this item is processed for this job: `jobGuid/row`.
    pub fn idempotency_key(&self) -> String {
        Self::identifier(self.job_guid, self.row)
    }

    /// The name of the item of this row, as targets and workers get it.
    pub fn identifier(job: JobGuid, row: u64) -> String {
        format!("{job}/{row}")
    }
}

/// The result of an item that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ItemOutcome {
    Succeeded,
    /// Nothing was left to do, because a later item replaced this one. Counts as succeeded.
    Superseded,
    /// The item was processed, and this is its part of the job's
    /// [`OutputFile`](crate::model::spec::OutputFile): one CSV record or one line, without the line end.
    Output(String),
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message} ({code})")]
pub struct ItemError {
    /// The problem for programs: a short, stable `snake_case` code.
    pub code: String,
    /// The problem for people. Must not quote the content of the item.
    pub message: String,
    /// The column with the problem, if it is a single column.
    pub column: Option<String>,
    /// The keyword of the JSON Schema that the item breaks, if it breaks one.
    pub rule: Option<String>,
    /// True if a retry can help.
    pub transient: bool,
}

impl ItemError {
    /// The item is bad: it is recorded as failed and not retried.
    pub fn permanent(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), column: None, rule: None, transient: false }
    }

    /// Something that the item needs is temporarily unavailable: the item is retried.
    pub fn transient(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { transient: true, ..Self::permanent(code, message) }
    }

    #[must_use]
    pub fn in_column(self, column: impl Into<String>) -> Self {
        Self { column: Some(column.into()), ..self }
    }
}

pub type ItemResult = Result<ItemOutcome, ItemError>;
