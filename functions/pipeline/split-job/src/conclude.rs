//! Ends the work of a run under the lease: it ends the split or hands it over, and frees the lease in each case.

use rowmill_core::model::cost::Usage;
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::{Job, Stop};
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::ports::PortError;
use rowmill_core::progress::update::{release_lease, stop_attempt, stop_overdue, take_lease, update_job_ahead};

use crate::plan::{Conclusion, SplitEnd};
use crate::split::Splitter;

impl Splitter {
    pub(crate) async fn conclude(&self, job: &Job, run: RunId, conclusion: Conclusion) -> Result<SplitEnd, PortError> {
        let end = self.try_to_conclude(job, run, conclusion).await;
        if end.is_err() {
            // The next delivery need not wait until the lease expires.
            release_lease(&*self.jobs, job, run).await.ok();
        }
        end
    }

    async fn try_to_conclude(&self, job: &Job, run: RunId, conclusion: Conclusion) -> Result<SplitEnd, PortError> {
        let conclusion = match conclusion {
            Conclusion::Stop(stop) => self.stop(job, run, stop).await?,
            conclusion => conclusion,
        };
        let hands_over = match conclusion {
            Conclusion::Failed(error) => return Err(error),
            Conclusion::Superseded => return Ok(SplitEnd::NotOurs),
            Conclusion::End { at_end } => {
                let ended = self.steps.split_end.finish(job, run, at_end).await?;
                return Ok(if ended { SplitEnd::Finished } else { SplitEnd::NotOurs });
            }
            Conclusion::HandOver => true,
            Conclusion::GiveBack | Conclusion::Stop(_) => false,
        };
        let now = self.clock.now();
        let free = |job: &Job| if hands_over { job.hand_split_over(run, now) } else { Some(job.release(run)) };
        // The message to the next invocation follows.
        let ahead = Usage::NONE.with_sends(1);
        let Ok(job) = update_job_ahead(&*self.jobs, job, ahead, free).await?.done() else {
            return Ok(SplitEnd::NotOurs);
        };
        if job.is_held_back() {
            // The message that continues the split follows a resume, or the end of its resend.
            return Ok(SplitEnd::Paused);
        }
        // Only now, so that its receiver can take the lease.
        self.splits.send(&[SplitMessage::of(&job)]).await?;
        Ok(SplitEnd::Continued)
    }

    /// Stops the job, and says how the run ends then. It takes the lease again: a run that was frozen until its lease
    /// expired must not stop a job that another run is splitting.
    async fn stop(&self, job: &Job, run: RunId, stop: Option<Stop>) -> Result<Conclusion, PortError> {
        let now = match take_lease(&*self.jobs, &*self.clock, job, run, self.limits.lease()).await?.done() {
            Ok(now) => now,
            // The next run finds the same reason to stop.
            Err(now) if now.is_held_by(run) => return Ok(Conclusion::GiveBack),
            Err(_) => return Ok(Conclusion::Superseded),
        };
        match stop {
            Some(stop) => drop(stop_attempt(&*self.jobs, &now, &stop).await?),
            None => match stop_overdue(&*self.jobs, &now, self.clock.now()).await?.job() {
                job if job.is_stopped() => {}
                // Its owner has moved the deadline, or has paused it.
                _ => return Ok(Conclusion::HandOver),
            },
        }
        Ok(Conclusion::End { at_end: false })
    }
}
