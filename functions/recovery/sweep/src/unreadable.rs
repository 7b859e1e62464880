//! Jobs whose counters cannot be read: a tally row, or the totals. They end too, with what can be read.

use jiff::Timestamp;
use rowmill_core::model::job::{Job, Stop, StopCode};
use rowmill_core::model::tally::Totals;
use rowmill_core::ports::{Completion, PortError};
use rowmill_core::progress::update::{end_job, stop_attempt};

use crate::sweep::{Sweeper, Swept, TALLIES_CLOSED_MAX};

/// Number of looks at a stopped job before it ends without results. The row may be readable again by then.
const UNREADABLE_LOOKS: u32 = 3;

impl Sweeper {
    /// Until the deadline an operator may repair the row: each look fails, which an alarm tells. Then the job is
    /// stopped, and ends after the grace period and [`UNREADABLE_LOOKS`]. Answers as
    /// [`bring_forward`](Self::bring_forward).
    pub(crate) async fn look_at_unreadable(
        &self,
        job: &Job,
        error: PortError,
        swept: &mut Swept,
    ) -> Result<(Timestamp, u32), PortError> {
        let now = self.clock.now();
        if job.is_stopped() && job.recoveries < UNREADABLE_LOOKS {
            swept.failed += 1;
            tracing::warn!(job.id = %job.job_guid, error = &error as &dyn std::error::Error, "stopped job not ended");
            return Ok(self.later(job, now));
        }
        if job.is_stopped() {
            return self.end_unreadable(job, &error, swept).await;
        }
        if now < job.stops_at() {
            return Err(error);
        }
        let message = "a row with the job's counters cannot be read; please report this";
        stop_attempt(&*self.jobs, job, &Stop::because(StopCode::AuditFailed, message, now)).await?;
        swept.overdue += 1;
        // The stop made the job due at once.
        Ok((now, 0))
    }

    /// Ends a stopped job without results. Its counts are those of the tallies that can be read.
    async fn end_unreadable(
        &self,
        job: &Job,
        error: &PortError,
        swept: &mut Swept,
    ) -> Result<(Timestamp, u32), PortError> {
        let now = self.clock.now();
        if !job.split.done {
            return Ok((self.end_split(job).await?.unwrap_or(now), job.recoveries));
        }
        // Totals that cannot be read take no tally in. To try that with each tally of a long job takes too long.
        let open: Vec<u32> = match self.readable_totals(job).await? {
            Some(totals) => (0..job.split.tallies).filter(|number| !totals.closed.contains(number)).collect(),
            None => Vec::new(),
        };
        let mut closed = 0;
        for number in open {
            let close = async {
                let tally = self.jobs.tally(job.job_guid, job.attempt, number).await?;
                self.steps.committer.close_without_rest(job, &[tally]).await
            };
            match close.await {
                Err(PortError::Invalid { .. } | PortError::NotFound) => {}
                end => {
                    end?;
                    (closed, swept.tallies_closed) = (closed + 1, swept.tallies_closed + 1);
                }
            }
            if closed == TALLIES_CLOSED_MAX {
                return Ok((now, job.recoveries));
            }
        }
        let totals = self.readable_totals(job).await?;
        let totals = totals.unwrap_or(Totals { attempt: job.attempt, ..Totals::default() });
        let end = Completion::of(job, &totals, None, now, self.limits.jobs.retention).filter(|_| !totals.is_complete());
        // It can be read after all, so it ends as any other job.
        let Some(end) = end else { return Ok(self.later(job, now)) };
        if end_job(&*self.jobs, &end).await? {
            tracing::error!(job.id = %job.job_guid, error = error as &dyn std::error::Error, "job ended with incomplete counts");
        }
        Ok((now, job.recoveries))
    }

    /// The totals; none if their row cannot be read.
    async fn readable_totals(&self, job: &Job) -> Result<Option<Totals>, PortError> {
        match self.jobs.totals(job.job_guid, job.attempt).await {
            Err(PortError::Invalid { .. }) => Ok(None),
            totals => totals.map(Some),
        }
    }
}
