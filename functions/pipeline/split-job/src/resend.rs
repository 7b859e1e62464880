//! Sends the chunks of a resumed job again whose messages were dropped while it was paused.
//!
//! It needs no lease: the messages may be sent twice. Each tally is noted in the job row, under the condition that the job
//! has not been paused again, so that another invocation can continue.

use jiff::Timestamp;
use rowmill_core::model::job::{Job, Resent};
use rowmill_core::ports::PortError;
use rowmill_core::progress::counters::Counters;
use rowmill_core::progress::update::update_job;

use crate::split::Splitter;

/// Result of sending the missing chunks of a resumed job.
pub enum ResendEnd {
    /// All are sent.
    Whole,
    /// Time is up before the last tally.
    OutOfTime,
    /// Another run has gone further, or the job was paused again.
    NotOurs,
}

impl Splitter {
    /// Sends the missing chunks of a job that was resumed, from the tally on that its row names.
    ///
    /// # Errors
    /// A port that is unavailable.
    pub(crate) async fn resend(&self, job: &Job, time_limit: Timestamp) -> Result<ResendEnd, PortError> {
        let Some(first) = job.resend_from else { return Ok(ResendEnd::Whole) };
        let (mut job, mut from) = (job.clone(), first);
        let counters = Counters::read(&*self.jobs, &job).await?;
        for tally in counters.open.iter().filter(|tally| tally.number >= first) {
            if from != first && self.clock.now() >= time_limit {
                return Ok(ResendEnd::OutOfTime);
            }
            // Also those of a tally that a splitter is sending: it may have sent some of them in the pause.
            self.resender.bring_forward(&job, tally).await?;
            let next = tally.number + 1;
            let Some(noted) = self.note_resent(&job, from, Some(next)).await? else { return Ok(ResendEnd::NotOurs) };
            (job, from) = (noted, next);
        }
        let is_noted = self.note_resent(&job, from, None).await?.is_some();
        Ok(if is_noted { ResendEnd::Whole } else { ResendEnd::NotOurs })
    }

    async fn note_resent(&self, job: &Job, from: u32, next: Option<u32>) -> Result<Option<Job>, PortError> {
        let (resent, now) = (Resent { pauses: job.pauses, from, next }, self.clock.now());
        let noted = update_job(&*self.jobs, job, |job| job.note_resent(resent, now)).await?.done().ok();
        // What was read of the tallies is only true of this resume.
        Ok(noted.filter(|noted| noted.pauses == job.pauses))
    }
}
