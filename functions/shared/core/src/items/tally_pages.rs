//! Reads the tallies of an attempt in order, a page at a time.

use std::ops::Range;
use std::sync::Arc;

use crate::items::stored_job::StoredJob;
use crate::model::ids::JobGuid;
use crate::model::tally::Tally;
use crate::ports::{JobStore, PortError};

/// Number of tallies read at once.
const PAGE_TALLIES: u32 = 64;

/// The tallies of an attempt that have not been read yet.
pub(crate) struct TallyPages {
    jobs: Arc<dyn JobStore>,
    job_guid: JobGuid,
    attempt: u32,
    /// Up to the number of tallies that the attempt had when the walk through it began.
    unread: Range<u32>,
}

impl TallyPages {
    /// The tallies of the present or an earlier attempt of this job that may hold items behind row `after`.
    pub(crate) async fn of(from: StoredJob<'_>, attempt: u32, after: u64) -> Result<Self, PortError> {
        let (jobs, job) = (from.jobs, from.job);
        if attempt == job.attempt {
            Self::behind(jobs, job.job_guid, attempt, job.split.tallies, after).await
        } else {
            Self::of_ended(jobs, job.job_guid, attempt, after).await
        }
    }

    /// The tallies of an ended attempt that may hold items behind row `after`.
    pub(crate) async fn of_ended(
        jobs: &Arc<dyn JobStore>,
        job_guid: JobGuid,
        attempt: u32,
        after: u64,
    ) -> Result<Self, PortError> {
        let count = jobs.totals(job_guid, attempt).await?.final_tallies.unwrap_or(0);
        Self::behind(jobs, job_guid, attempt, count, after).await
    }

    async fn behind(
        jobs: &Arc<dyn JobStore>,
        job_guid: JobGuid,
        attempt: u32,
        count: u32,
        after: u64,
    ) -> Result<Self, PortError> {
        let (mut first, mut last) = (0, count.saturating_sub(1));
        while first < last && after > 0 {
            let middle = first + (last - first).div_ceil(2);
            let tally = jobs.tally(job_guid, attempt, middle).await?;
            // In the first attempt a tally holds its first row, in a redrive the last row before it.
            let before = if attempt == 1 { tally.start.row - 1 } else { tally.start.offset };
            if before <= after { first = middle } else { last = middle - 1 }
        }
        Ok(Self { jobs: Arc::clone(jobs), job_guid, attempt, unread: first..count })
    }

    /// Number of tallies of the attempt when the walk through it began.
    pub(crate) const fn count(&self) -> u32 {
        self.unread.end
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Tally>>, PortError> {
        if self.unread.is_empty() {
            return Ok(None);
        }
        let next = self.unread.start.saturating_add(PAGE_TALLIES).min(self.unread.end);
        let tallies = self.jobs.tallies(self.job_guid, self.attempt, self.unread.start..next).await?;
        self.unread.start = next;
        Ok(Some(tallies))
    }
}
