//! Follows a job to its end: listens on a live connection, polls with growing intervals where there is none, and gives
//! up after a timeout.

mod live;
mod meter;
mod reporter;
mod summary;

use std::time::Duration;

use jiff::Timestamp;
use rowmill_api::job::JobView;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use tokio::time::Instant;

use crate::api::{ApiClient, ApiError, Job};
use crate::terminal::span;
use live::LiveJob;
pub use meter::{RateMeter, message};
pub use reporter::Reporter;
pub use summary::{
    Details, Verdict, causes_table, changes_text, failed_items_table, file_name, status_word, summary, took,
};

/// Wait before the second request. Small jobs have ended by then.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// Longest wait, even if the API asks for more: a person is watching.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Maximum silence of a live connection before the API is asked, too: nothing depends on the messages alone.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);

/// A job without progress for this long is reported once.
const QUIET_NOTICE: Duration = Duration::from_secs(60);

/// The way to follow a job, and the time to give up.
#[derive(Debug, Clone)]
pub struct Patience {
    /// The longest time without an answer from the API.
    pub unanswered: Duration,
    /// The longest time without any change of a running job.
    pub unchanged: Duration,
    /// True to listen on a live connection. Otherwise the job is polled only.
    pub listens: bool,
}

impl Default for Patience {
    fn default() -> Self {
        Self { unanswered: Duration::from_secs(60), unchanged: Duration::from_secs(20 * 60), listens: true }
    }
}

/// Error of following a job. The job itself goes on.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The API has not answered for too long.
    #[error("no answer about job {job_guid} for {}: {source}", span(*.unanswered))]
    Unanswered {
        job_guid: JobGuid,
        unanswered: Duration,
        #[source]
        source: ApiError,
    },
    /// The API refuses to show the job.
    #[error("cannot follow job {job_guid}: {source}")]
    Refused {
        job_guid: JobGuid,
        #[source]
        source: ApiError,
    },
    /// The API answers, but the job makes no progress.
    #[error(
        "job {job_guid} is {} and has not moved for {}: its functions may be gone",
        .status.as_str(), span(*.unchanged)
    )]
    Unchanged { job_guid: JobGuid, status: Status, unchanged: Duration },
}

/// Receives the observed states of a job.
pub trait Observer {
    /// The current state of the job.
    fn looked(&mut self, job: &JobView);

    /// The job makes no progress. Called once per period without progress.
    fn quiet(&mut self, job: &JobView, unchanged: Duration);
}

/// Follows `job` until it has ended. `observer` gets every state, including the given one and the last one, and never
/// one that is older than the one before.
///
/// # Errors
///
/// A [`FollowError`] that names the job, so that the caller can follow it again later.
pub async fn follow(
    api: &ApiClient,
    mut job: Job,
    patience: &Patience,
    observer: &mut impl Observer,
) -> Result<Job, FollowError> {
    let mut pace = Pace::default();
    let mut answered = Instant::now();
    let mut stillness = StallDetector::since_now(&job);
    let mut live = LiveJob::new(api, job.job_guid);
    observer.looked(&job);
    // A small job has ended by the first look, without a live connection.
    let mut wait = pace.next(None);
    while !job.status.is_terminal() {
        let seen = if live.is_open() {
            live.changed(LONGEST_SILENCE).await
        } else {
            tokio::time::sleep(wait).await;
            None
        };
        let shown = match seen {
            Some(shown) => shown,
            None => {
                let within = patience.unanswered.saturating_sub(answered.elapsed());
                match api.glance_at_job(job.job_guid, within.max(FIRST_WAIT)).await {
                    Ok(answer) => {
                        wait = pace.next(answer.retry_after);
                        answer.body
                    }
                    Err(error) if !error.is_transient() => {
                        return Err(FollowError::Refused { job_guid: job.job_guid, source: error });
                    }
                    Err(error) if answered.elapsed() >= patience.unanswered => {
                        let (job_guid, unanswered) = (job.job_guid, answered.elapsed());
                        return Err(FollowError::Unanswered { job_guid, unanswered, source: error });
                    }
                    Err(error) => {
                        wait = pace.next(error.retry_after());
                        continue;
                    }
                }
            }
        };
        answered = Instant::now();
        // What comes by two ways may come in another order.
        if shown.version < job.version {
            continue;
        }
        job = shown;
        observer.looked(&job);
        stillness.check(&job, patience, observer)?;
        if patience.listens && !job.status.is_terminal() {
            live.open_if_due().await;
        }
    }
    Ok(job)
}

/// The waits between requests.
struct Pace(Duration);

impl Default for Pace {
    fn default() -> Self {
        Self(FIRST_WAIT)
    }
}

impl Pace {
    /// The next wait. It grows by half each time, up to the wait that the API asks for, and to [`LONGEST_WAIT`].
    fn next(&mut self, retry_after: Option<Duration>) -> Duration {
        let longest = retry_after.map_or(LONGEST_WAIT, |a| a.clamp(FIRST_WAIT, LONGEST_WAIT));
        let wait = self.0.min(longest);
        self.0 = (self.0 * 3 / 2).min(LONGEST_WAIT);
        wait
    }
}

/// The fields that change while a job makes progress.
type Activity = (Status, u32, u64, u64, u8, Timestamp);

/// Since when a job has made no progress.
struct StallDetector {
    seen: Activity,
    since: Instant,
    mentioned: bool,
}

impl StallDetector {
    fn since_now(job: &JobView) -> Self {
        Self { seen: activity(job), since: Instant::now(), mentioned: false }
    }

    fn check(&mut self, job: &JobView, patience: &Patience, observer: &mut impl Observer) -> Result<(), FollowError> {
        if job.status.is_terminal() {
            return Ok(());
        }
        if activity(job) != self.seen {
            *self = Self::since_now(job);
            return Ok(());
        }
        let unchanged = self.since.elapsed();
        if unchanged >= patience.unchanged {
            let (job_guid, status) = (job.job_guid, job.status);
            return Err(FollowError::Unchanged { job_guid, status, unchanged });
        }
        if unchanged >= QUIET_NOTICE && !self.mentioned {
            self.mentioned = true;
            observer.quiet(job, unchanged);
        }
        Ok(())
    }
}

fn activity(job: &JobView) -> Activity {
    (job.status, job.attempt, job.item_count, job.item_progress, job.percent, job.heartbeat_at)
}

#[cfg(test)]
mod live_tests;
#[cfg(test)]
mod tests;
