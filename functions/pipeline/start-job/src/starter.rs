//! Looks for what a job waits for, with the code that looks at the file of a new job.
//!
//! If the process dies after the spec is stored, the next look finds it stored and goes on. If it dies after the job row
//! says that all is there, the sweep has the job split.

use std::sync::Arc;

use create_job::awaits::Look;
use create_job::create::Creator;
use rowmill_core::model::job::Job;
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::ports::{Clock, Completion, JobStore, PortError, Queue, found};
use rowmill_core::progress::update::{end_job, update_job};

/// The use case and the ports it works through.
pub struct Starter {
    pub jobs: Arc<dyn JobStore>,
    /// The jobs queue.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    pub clock: Arc<dyn Clock>,
    /// Looks for what a job waits for.
    pub creator: Creator,
}

/// Result of a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartEnd {
    /// Something is not there yet.
    Awaiting,
    /// All is there, and the job is sent to be split.
    Started,
    /// What it waits for will never be there. The job has ended.
    InVain,
    /// It no longer waits, or may not go on, or is gone; or it waits for a slot now.
    NotOurs,
}

impl Starter {
    /// Two runs may find the same file at once: the first spec counts, and both go on with it.
    pub async fn start(&self, message: &SplitMessage) -> Result<StartEnd, PortError> {
        let job = found(self.jobs.job(message.job_guid).await)?;
        let Some(job) = job.filter(Job::goes_on) else { return Ok(StartEnd::NotOurs) };
        let (look, now) = (self.creator.look(&job).await?, self.clock.now());
        match look {
            Look::NotYet(awaits) => {
                update_job(&*self.jobs, &job, |job| job.wait_for(awaits, now)).await?;
                Ok(StartEnd::Awaiting)
            }
            Look::Never(stop) => {
                let end = Completion::of_untaken(&job, &stop, self.creator.limits.jobs.retention);
                // Its owner may have changed it meanwhile.
                Ok(match end {
                    Some(end) if end_job(&*self.jobs, &end).await? => StartEnd::InVain,
                    _ => StartEnd::NotOurs,
                })
            }
            Look::Found(spec, warnings) => {
                let started = update_job(&*self.jobs, &job, |job| job.found(&spec, &warnings, now)).await?.job();
                // Without shared slots it is held back and waits for them.
                if started.is_awaiting() || started.is_held_back() {
                    return Ok(StartEnd::NotOurs);
                }
                self.splits.send(&[SplitMessage::of(&started)]).await?;
                Ok(StartEnd::Started)
            }
        }
    }
}
