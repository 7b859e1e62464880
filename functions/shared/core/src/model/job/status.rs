//! The words that say how a job is doing.

use crate::words::words;

words! {
    /// Where a job is in its life.
    Status {
        /// The job is accepted. No function has taken it up yet.
        Waiting = "waiting",
        /// The job is being split, processed or completed.
        Running = "running",
        /// The owner or the breaker of the job type has paused the job, or it was resumed and waits for a slot. Running
        /// chunks end, no other one begins until it is resumed.
        Paused = "paused",
        /// The owner has cancelled the job. Running work ends, queued work is skipped.
        Cancelling = "cancelling",
        /// All items are accounted for. The outcome says how they ended.
        Completed = "completed",
        /// An error of the whole job ended it. Earlier work counts; the rest is skipped or was never dispatched.
        Failed = "failed",
        /// The job ended because its owner cancelled it.
        Cancelled = "cancelled",
    }
}

impl Status {
    /// True if nothing changes any more, unless the job is redriven.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

words! {
    /// Which workers process a job's chunks: each priority has workers of its own.
    Priority {
        /// Its split and its chunks wait behind those of no other priority, except on the lanes of its job type.
        High = "high",
        /// As jobs are if nothing is said.
        Normal = "normal",
        /// It may wait: few workers process its chunks.
        Low = "low",
    }
}

#[expect(clippy::derivable_impls, reason = "the macro that makes the words cannot mark one of them")]
impl Default for Priority {
    fn default() -> Self {
        Self::Normal
    }
}

impl Priority {
    /// This priority, or `highest` if this one is above it: `high` is above `normal`, and `normal` above `low`.
    #[must_use]
    pub const fn at_most(self, highest: Self) -> Self {
        match (self, highest) {
            (Self::High, _) | (Self::Normal, Self::Low) => highest,
            (Self::Normal | Self::Low, _) => self,
        }
    }
}

words! {
    /// How a completed job went.
    JobOutcome {
        /// Every item succeeded.
        Succeeded = "succeeded",
        /// Some items succeeded, some did not.
        Partial = "partial",
        /// No item succeeded.
        Failed = "failed",
        /// There was nothing to do: the input has no items.
        Empty = "empty",
    }
}

words! {
    /// Why a job was stopped.
    StopCode {
        /// The owner cancelled the job.
        Cancelled = "cancelled",
        /// The job's deadline passed.
        DeadlineExceeded = "deadline_exceeded",
        /// The owner has paused the job for longer than a pause may last.
        PausedTooLong = "paused_too_long",
        /// The job's deadline passed before any of its chunks began.
        CapacityExceeded = "capacity_exceeded",
        /// More items failed than the job's tolerance allows.
        ToleranceExceeded = "tolerance_exceeded",
        /// A quoted cell is still open at the end of the file.
        UnterminatedQuote = "unterminated_quote",
        /// The upload is gone, or was replaced after the job was created.
        SourceChanged = "source_changed",
        /// The file that the job waited for was not fetched, cannot be read, or is not there.
        SourceFailed = "source_failed",
        /// The job that it waited for did not end well.
        PrecedingFailed = "preceding_failed",
        /// Processing an item took longer than the item timeout.
        ItemTimeout = "item_timeout",
        /// The file needs more tallies than a job can have.
        FileTooLong = "file_too_long",
        /// The job's counters did not add up at its end, or the file reads differently from how it was split.
        AuditFailed = "audit_failed",
        /// One invocation of the splitter is too short to get from one chunk border of the file to the next.
        SplitTimeout = "split_timeout",
        /// The split began with another version of the scanner.
        ScannerChanged = "scanner_changed",
        /// The upload's packing cannot be read, or it holds more than is allowed.
        UnreadableFile = "unreadable_file",
        /// Every try to split the file ended without a result.
        SplitFailed = "split_failed",
        /// Every try to complete the job ended without a result.
        CompletionFailed = "completion_failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_back_as_it_was_written() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert_eq!(Status::parse("done"), None);
    }

    #[test]
    fn a_priority_is_lowered_to_the_highest_that_is_allowed_and_never_raised() {
        use Priority::{High, Low, Normal};
        let lowered = |priority: Priority| [High, Normal, Low].map(|highest| priority.at_most(highest));
        assert_eq!(lowered(High), [High, Normal, Low]);
        assert_eq!(lowered(Normal), [Normal, Normal, Low]);
        assert_eq!(lowered(Low), [Low, Low, Low]);
    }
}
