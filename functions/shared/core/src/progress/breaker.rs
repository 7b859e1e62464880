//! The breaker of a job type at work: it pauses a job whose target is down, and resumes it once the target is back.

use std::sync::Arc;

use jiff::Timestamp;

use crate::model::breaker::{Breaker, BreakerLimits, BreakerPause, BreakerState, FailedRun, Look, Probe};
use crate::model::job::Job;
use crate::ports::{BreakerMoved, Breakers, Clock, Entropy, JobStore, PortError};
use crate::progress::counters::Counters;
use crate::progress::update::update_job;
use crate::wiring::{Missing, Ports};

/// Number of tries of a move of a breaker. Each loss means that another run has moved it, so it soon opens or the runs
/// are mostly good.
const TRIES: usize = 8;

/// The steps around the breakers, over one set of ports.
#[derive(Clone)]
pub struct BreakerSteps {
    jobs: Arc<dyn JobStore>,
    breakers: Arc<dyn Breakers>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    limits: BreakerLimits,
}

/// A job that is held back until its target is back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldBack {
    pub probe_at: Timestamp,
    /// True if its run has opened the breaker.
    pub has_opened: bool,
}

/// Consequence of a failed run.
#[derive(Clone, PartialEq, Debug)]
pub enum Reported {
    /// The target is not known to be down.
    Up,
    /// The job is paused. The message of the run is dropped; a resume sends its chunk again.
    HeldBack(HeldBack),
    /// The target is down, and the job cannot be paused: it is stopped, has ended, or is in another attempt.
    Over(Box<Job>),
}

/// Result of a look at a job that the breaker has paused.
#[derive(Clone, PartialEq, Debug)]
pub enum Looked {
    /// It is not paused any more: the message that continues it is to be sent.
    Resumed(Box<Job>),
    /// It is due again at this time.
    Wait(Timestamp),
}

/// State of the target, by the job that probes.
enum Judged {
    /// The target answers.
    Succeeded,
    /// Nothing, and perhaps never: it has ended, is being stopped, is paused by its owner, waits for slots, or cannot
    /// be read.
    Over,
    /// Nothing yet.
    Open,
}

impl BreakerSteps {
    pub fn of(ports: &Ports, limits: BreakerLimits) -> Result<Self, Missing> {
        let (jobs, breakers) = (ports.jobs.get()?, ports.breakers.get()?);
        Ok(Self { jobs, breakers, clock: ports.clock.get()?, entropy: ports.entropy.get()?, limits })
    }

    pub const fn is_off(&self) -> bool {
        self.limits.is_off()
    }

    /// Reports a failed run to the breaker of its type, and pauses the job if the breaker is open. The invocation ends
    /// by `deadline`.
    pub async fn after_failure(
        &self,
        job: &Job,
        run: &FailedRun<'_>,
        error: &str,
        deadline: Timestamp,
    ) -> Result<Reported, PortError> {
        if self.is_off() {
            return Ok(Reported::Up);
        }
        let Some(HeldBack { probe_at, has_opened }) = self.report(&job.job_type, run).await? else {
            return Ok(Reported::Up);
        };
        let pause = |job: &Job| {
            let reason = BreakerPause::after(run.code, error, self.clock.now());
            job.pause_by_breaker(&reason, probe_at, deadline).filter(|job| job.attempt == run.attempt)
        };
        let paused = update_job(&*self.jobs, job, pause).await?;
        Ok(match paused.done() {
            Ok(_) => Reported::HeldBack(HeldBack { probe_at, has_opened }),
            Err(job) => Reported::Over(job),
        })
    }

    /// Counts a failed run. Returns when the next probe may begin, if the breaker is open.
    async fn report(&self, job_type: &str, run: &FailedRun<'_>) -> Result<Option<HeldBack>, PortError> {
        let mut seen = self.breakers.breaker(job_type).await?;
        // The answer to the last try is judged too, and not written.
        for tries in 0..=TRIES {
            let progressed = match seen.as_ref().map(|seen| &seen.state) {
                Some(BreakerState::Probing(probe)) => matches!(self.judge(probe).await?, Judged::Succeeded),
                _ => false,
            };
            let now = self.clock.now();
            let limits = self.limits.on_lanes(run.lanes);
            let after = Breaker::after_failure(seen.as_ref(), run, progressed, now, &limits);
            let held_back = |has_opened| after.probe_at.map(|probe_at| HeldBack { probe_at, has_opened });
            let Some(next) = &after.next else { return Ok(held_back(false)) };
            if tries == TRIES {
                break;
            }
            match self.breakers.move_breaker(job_type, next).await? {
                BreakerMoved::Won => return Ok(held_back(true)),
                BreakerMoved::Lost(there) => seen = there,
            }
        }
        // Too many runs report at once, and the breaker is not open. This one is not counted, and its message is
        // delivered again.
        Ok(None)
    }

    /// Looks at a job that the breaker has paused: resumes it if the breaker is closed, or as the probe of an open one.
    pub async fn look_at(&self, job: &Job, accounted: u64) -> Result<Looked, PortError> {
        let seen = self.breakers.breaker(&job.job_type).await?;
        let now = self.clock.now();
        let moved = match Breaker::look(seen.as_ref(), job.job_guid, self.entropy.fraction(), now, &self.limits) {
            Look::Resume => return self.resume(job).await,
            Look::Wait(at) => return Ok(Looked::Wait(at)),
            Look::TakeProbe => seen.map(|seen| seen.probing(job.job_guid, job.attempt, accounted, now, &self.limits)),
            Look::Judge(probe) => match self.judge(&probe).await? {
                Judged::Succeeded => seen.map(|seen| seen.closed(now)),
                Judged::Open if now < probe.until => None,
                Judged::Over | Judged::Open => {
                    seen.map(|seen| seen.probing(job.job_guid, job.attempt, accounted, now, &self.limits))
                }
            },
        };
        if let Some(next) = moved
            && self.breakers.move_breaker(&job.job_type, &next).await? == BreakerMoved::Won
        {
            return self.resume(job).await;
        }
        Ok(Looked::Wait(Breaker::next_look(self.entropy.fraction(), now, &self.limits)))
    }

    async fn resume(&self, job: &Job) -> Result<Looked, PortError> {
        let (epoch, now) = (job.epoch, self.clock.now());
        let resumed = update_job(&*self.jobs, job, |job| job.resume_by_breaker(epoch, now)).await?.done();
        Ok(match resumed {
            // It waits for slots.
            Ok(job) if job.is_paused() => Looked::Wait(now),
            Ok(job) => Looked::Resumed(Box::new(job)),
            // Its owner has paused, resumed or stopped it. A resume has a message of its own: a second one could join
            // the resend.
            Err(_) => Looked::Wait(now),
        })
    }

    /// State of the target, by the job that probes. Items count that were processed, also those that the target has
    /// refused for good.
    async fn judge(&self, probe: &Probe) -> Result<Judged, PortError> {
        match self.try_to_judge(probe).await {
            // A job that is gone or has an unreadable row does not hold up the other jobs of its type.
            Err(PortError::NotFound | PortError::Invalid { .. }) => Ok(Judged::Over),
            judged => judged,
        }
    }

    async fn try_to_judge(&self, probe: &Probe) -> Result<Judged, PortError> {
        let job = self.jobs.job(probe.job).await?;
        if job.attempt != probe.attempt {
            return Ok(Judged::Over);
        }
        if accounted(&Counters::read(&*self.jobs, &job).await?) > probe.accounted {
            return Ok(Judged::Succeeded);
        }
        // A breaker's pause may be older than the probe: the job that took it is resumed next.
        let is_held_back = job.is_paused() && job.breaker_pause().is_none();
        let is_over = job.is_ended() || job.is_stopped() || is_held_back;
        Ok(if is_over { Judged::Over } else { Judged::Open })
    }
}

/// Number of processed items of an attempt. Those that were skipped say nothing about the target.
pub fn accounted(counters: &Counters) -> u64 {
    let counts = counters.counts();
    counts.succeeded + counts.failed
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use async_trait::async_trait;

    use super::*;
    use crate::fixtures;
    use crate::in_memory::{CountingEntropy, InMemoryJobStore, ManualClock};

    /// A breaker that other runs move before each write: they open it with the last of this many.
    struct Contended(Mutex<usize>);

    #[async_trait]
    impl Breakers for Contended {
        async fn breaker(&self, _: &str) -> Result<Option<Breaker>, PortError> {
            Ok(None)
        }

        async fn move_breaker(&self, _: &str, next: &Breaker) -> Result<BreakerMoved, PortError> {
            let mut left = self.0.lock().unwrap();
            *left -= 1;
            let state = match *left {
                0 => BreakerState::Open { until: next.at + Duration::from_secs(60) },
                _ => next.state.clone(),
            };
            Ok(BreakerMoved::Lost(Some(Breaker { state, ..next.clone() })))
        }
    }

    #[tokio::test]
    async fn the_answer_to_the_last_lost_write_is_judged() {
        let limits = BreakerLimits { failures: 100, window: Duration::from_secs(600), probe: Duration::from_secs(60) };
        let breakers = Arc::new(Contended(Mutex::new(TRIES)));
        let (jobs, clock) = (Arc::new(InMemoryJobStore::default()), Arc::new(ManualClock::default()));
        let entropy = Arc::new(CountingEntropy::default());
        let steps = BreakerSteps { jobs, breakers, clock: clock.clone(), entropy, limits };
        let (job, began) = (fixtures::job(), clock.now());
        let run =
            FailedRun { job: job.job_guid, attempt: 1, began, code: "busy", good: 0, lanes: None, is_isolated: false };
        let held_back = steps.report(&job.job_type, &run).await.unwrap();
        assert!(held_back.is_some_and(|held_back| !held_back.has_opened), "{held_back:?}");
    }
}
