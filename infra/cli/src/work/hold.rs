//! The requests of one task: beats, reports, and the return of what is left.
//!
//! One request at a time is under way for a task, and one without an answer is repeated as it was. So the API never has
//! to choose between two requests of one worker.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rowmill_api::problem::ProblemCode;
use rowmill_api::task::{ReleaseRequest, ReportRequest, TaskOrder, TaskOrderView, TaskView};
use rowmill_core::words::Open;
use tokio::time::{Instant, sleep};

use super::Worker;
use super::outcomes::Outcomes;
use crate::api::{ApiClient, ApiError, RetryPolicy};

/// Longest time for the last words about a task while the API does not answer. Until another worker has leased the task
/// they are welcome, and they may be about hours of work.
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(600);

/// The same once this worker has been told to end.
const HASTY_LIMIT: Duration = Duration::from_secs(20);

/// The longest part of a worker's time that is left to a command to end after SIGTERM.
const GRACE_MAX: Duration = Duration::from_secs(10);

/// Longest wait for an answer, if no beat depends on it.
const ANSWER: Duration = Duration::from_secs(35);

type Flight = Pin<Box<dyn Future<Output = Result<TaskOrderView, ApiError>>>>;

/// A report that has no answer yet.
struct Pending {
    report: ReportRequest,
    /// Number of items that it is about.
    count: usize,
    /// When it was sent for the first time. The API may have taken it then.
    since: Instant,
    tries: u32,
}

pub struct Hold<'a> {
    worker: &'a Worker,
    task: &'a TaskView,
    pub outcomes: Outcomes,
    /// When the last beat that was accepted was sent.
    accepted: Instant,
    pending: Option<Pending>,
    flight: Option<Flight>,
    /// When the next beat is due.
    next: Instant,
}

/// What a beat has brought.
pub enum Beaten {
    /// The task is still this worker's.
    Continue,
    Order(Open<TaskOrder>),
    /// The API refuses this worker, or what it reports.
    Refused(ApiError),
}

impl<'a> Hold<'a> {
    pub fn new(worker: &'a Worker, task: &'a TaskView) -> Self {
        let names = task.items.iter().map(|item| item.item_identifier.clone()).collect();
        let now = Instant::now();
        Self { worker, task, outcomes: Outcomes::of(names), accepted: now, pending: None, flight: None, next: now }
    }

    /// When the command must have ended: from then on another worker may have the task.
    pub fn end(&self) -> Instant {
        self.accepted + Duration::from_secs(self.task.stop_after_seconds)
    }

    /// Time that a command has to end after SIGTERM.
    pub fn grace(&self) -> Duration {
        GRACE_MAX.min(Duration::from_secs(self.task.stop_after_seconds) / 5)
    }

    /// Half of the longest time between two beats.
    fn interval(&self) -> Duration {
        Duration::from_secs(self.task.beat_seconds) / 2
    }

    /// The first beat, which must be accepted before anything begins.
    pub async fn begin(&mut self) -> Result<Option<Open<TaskOrder>>, ApiError> {
        let begun = Instant::now();
        let (report, _) = self.outcomes.report(&self.task.token, false);
        let limit = Duration::from_secs(self.task.first_beat_seconds);
        let answer = self.delivered(limit, async |api| api.beat_task(&self.task.task_id, &report, limit).await).await?;
        (self.accepted, self.next) = (begun, begun + self.interval());
        Ok((answer.order != TaskOrder::Continue).then_some(answer.order))
    }

    /// Has outcomes reported at once if there are more than a report takes.
    pub fn hasten(&mut self) {
        if self.pending.is_none() && self.outcomes.overflow() {
            self.next = Instant::now();
        }
    }

    /// Beats when it is time, until that brings something. May be dropped and called again at any time.
    pub async fn beat(&mut self) -> Beaten {
        loop {
            let flight = match self.flight.as_mut() {
                Some(flight) => flight,
                None => {
                    tokio::time::sleep_until(self.next).await;
                    let flight = self.take_off();
                    self.flight.insert(flight)
                }
            };
            let answer = flight.await;
            self.flight = None;
            if let Some(beaten) = self.landed(answer) {
                return beaten;
            }
        }
    }

    fn take_off(&mut self) -> Flight {
        let pending = self.pending.get_or_insert_with(|| {
            let (report, count) = self.outcomes.report(&self.task.token, false);
            Pending { report, count, since: Instant::now(), tries: 0 }
        });
        pending.tries += 1;
        let (api, task_id, report) = (self.worker.api(), self.task.task_id.clone(), pending.report.clone());
        // A beat that hangs leaves time for another one.
        let limit = self.interval().max(Duration::from_secs(1));
        Box::pin(async move { api.beat_task(&task_id, &report, limit).await })
    }

    fn landed(&mut self, answer: Result<TaskOrderView, ApiError>) -> Option<Beaten> {
        let interval = self.interval();
        let pending = self.pending.as_ref()?;
        match answer {
            Ok(answer) => {
                self.outcomes.taken(pending.count);
                self.accepted = pending.since;
                self.next = pending.since + interval;
                self.pending = None;
                self.hasten();
                Some(match answer.order == TaskOrder::Continue {
                    true => Beaten::Continue,
                    false => Beaten::Order(answer.order),
                })
            }
            Err(error) if error.is_transient() => {
                // The end of the lease bounds the tries.
                let delay = backoff().delay(pending.tries, error.retry_after(), fastrand::f64());
                self.next = Instant::now() + delay.unwrap_or(interval).min(interval);
                None
            }
            Err(error) => Some(Beaten::Refused(error)),
        }
    }

    /// Waits for the answer of a beat that is under way, and repeats it until it has one.
    pub async fn settle(&mut self) -> Result<(), ApiError> {
        if let Some(flight) = self.flight.take() {
            let answer = flight.await;
            if let Some(Beaten::Refused(error)) = self.landed(answer) {
                return Err(error);
            }
        }
        let Some(Pending { report, count, .. }) = self.pending.take() else { return Ok(()) };
        self.tell(&report).await?;
        self.outcomes.taken(count);
        Ok(())
    }

    /// Reports all outcomes up to the first item without one. True if the API has then nothing left to expect.
    pub async fn report_all(&mut self) -> Result<bool, ApiError> {
        self.settle().await?;
        loop {
            let (report, count) = self.outcomes.report(&self.task.token, true);
            if count == 0 {
                return Ok(self.outcomes.are_reported());
            }
            let is_finished = self.tell(&report).await?.order == TaskOrder::Finished;
            self.outcomes.taken(count);
            if is_finished {
                return Ok(true);
            }
        }
    }

    /// Reports after the command has ended.
    async fn tell(&self, report: &ReportRequest) -> Result<TaskOrderView, ApiError> {
        self.delivered(LAST_WORDS_LIMIT, async |api| api.beat_task(&self.task.task_id, report, ANSWER).await).await
    }

    /// Gives back what is left.
    pub async fn release(&self, failed: bool) -> Result<(), ApiError> {
        let release = ReleaseRequest { token: self.task.token.clone(), failed };
        let answer = self.delivered(LAST_WORDS_LIMIT, async |api| api.release_task(&self.task.task_id, &release).await);
        answer.await.map(drop)
    }

    /// Sends a request until it has an answer, for so long.
    async fn delivered<T>(
        &self,
        limit: Duration,
        send: impl AsyncFn(Arc<ApiClient>) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let begun = Instant::now();
        for tries in 1.. {
            let error = match send(self.worker.api()).await {
                Err(error) if error.is_transient() => error,
                answer => return answer,
            };
            let limit = if self.worker.is_stopped() { limit.min(HASTY_LIMIT) } else { limit };
            match backoff().delay(tries, error.retry_after(), fastrand::f64()) {
                Some(delay) if begun.elapsed() + delay < limit => sleep(delay).await,
                _ => return Err(error),
            }
        }
        unreachable!("the tries are not bounded")
    }
}

/// Waits between tries, whose number is bounded by time.
fn backoff() -> RetryPolicy {
    RetryPolicy { tries: u32::MAX, ..RetryPolicy::default() }
}

/// True if the task is not, or no longer, this worker's.
pub fn is_gone(error: &ApiError) -> bool {
    error.is(ProblemCode::TaskGone)
}
