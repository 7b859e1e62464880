//! Sends the chunks of a resumed job again whose messages were dropped while it was paused.
//!
//! It needs no lease: the messages may be sent twice. Each tally is noted in the job row, under the condition that the
//! job has not been paused again, so that another invocation can continue. The note comes before the reads: a run that
//! commits sends what waits for it in a tally that is noted, and leaves later ones to the resend.

use jiff::Timestamp;
use rowmill_core::model::job::{Job, Resent};
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::model::tally::Tally;
use rowmill_core::ports::PortError;
use rowmill_core::progress::counters::Counters;
use rowmill_core::progress::update::update_job;

use crate::plan::SplitEnd;
use crate::split::Splitter;

impl Splitter {
    /// Sends the missing chunks of a job that was resumed, from the tally on that its row names, and has the split
    /// continue. No tally is counted meanwhile. It ends early if another run has gone further, or the job was paused
    /// again or stopped.
    pub(crate) async fn resend(&self, job: &Job, time_limit: Timestamp) -> Result<SplitEnd, PortError> {
        let counters = Counters::read(&*self.jobs, job).await?;
        let open: Vec<&Tally> = counters.open.iter().filter(|tally| Some(tally.number) >= job.resend_from).collect();
        let from = job.resend_from.filter(|_| job.paused_at.is_none());
        let Some(mut job) = self.note_resent(job, from, open.first()).await? else { return Ok(SplitEnd::NotOurs) };
        for (place, tally) in open.iter().enumerate() {
            if place > 0 && self.clock.now() >= time_limit {
                return self.go_on(&job).await;
            }
            self.resender.bring_forward(&job, tally).await?;
            let noted = self.note_resent(&job, Some(tally.number), open.get(place + 1)).await?;
            let Some(noted) = noted else { return Ok(SplitEnd::NotOurs) };
            job = noted;
        }
        // A split needs the whole time of an invocation: what is left of this one may be too little for a tally.
        if job.split.done { self.announce(&job).await } else { self.go_on(&job).await }
    }

    async fn go_on(&self, job: &Job) -> Result<SplitEnd, PortError> {
        self.splits.send(&[SplitMessage::of(job)]).await?;
        Ok(SplitEnd::Continued)
    }

    async fn note_resent(&self, job: &Job, from: Option<u32>, next: Option<&&Tally>) -> Result<Option<Job>, PortError> {
        let resent = Resent { epoch: job.epoch, from, next: next.map(|tally| tally.number) };
        let now = self.clock.now();
        let noted = update_job(&*self.jobs, job, |job| job.note_resent(resent, now)).await?.done().ok();
        // The tallies were read for this resume only.
        Ok(noted.filter(|noted| noted.epoch == job.epoch))
    }
}
