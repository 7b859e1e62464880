//! The view of a job: its row combined with its counters.

use jiff::Timestamp;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::job::states::{JobOutcome, Phase, Status};
use rowmill_core::model::job::{Awaits, Job, Stop};
use rowmill_core::model::warnings::Warning;
use rowmill_core::ports::{JobStore, PortError};
use rowmill_core::progress::counters::Counters;

use super::version::version;
use super::{JobError, JobLinks, JobView, JobWarning, PauseCode, PauseReason, PauseView, PausedBy, Stage, Unprocessed};
use crate::cost::JobCost;

impl JobView {
    /// The current view of a job, as a list has it: without the items that are done in unfinished chunks. Reads the
    /// counters if the row does not have them.
    pub async fn read_for_list(jobs: &dyn JobStore, job: &Job) -> Result<Self, PortError> {
        Ok(Self::of(job, counters(jobs, job).await?.as_ref()))
    }

    /// The current view of a job.
    pub async fn read(jobs: &dyn JobStore, job: &Job, now: Timestamp) -> Result<Self, PortError> {
        let counters = match counters(jobs, job).await? {
            Some(counters) if !job.is_ended() => Some(counters.with_at_work(jobs, job, now).await?),
            counters => counters,
        };
        Ok(Self::of(job, counters.as_ref()))
    }

    /// The view of a job with these counters.
    pub fn of(job: &Job, counters: Option<&Counters>) -> Self {
        let (status, end) = (job.status(), job.end());
        let counts = match end {
            Some(end) => end.counts,
            None => job.merged(counters.map(Counters::counts).unwrap_or_default()),
        };
        let percent = match status {
            Status::Completed => 100,
            Status::Waiting => 0,
            _ => counters.map_or(0, |counters| counters.percent(job)),
        };
        let stage = stage(job, counters);
        let heartbeat = counters.and_then(Counters::last_moved);
        Self {
            job_guid: job.job_guid,
            job_type: job.job_type.clone(),
            file_guid: job.file_guid,
            files: job.files,
            priority: job.priority.into(),
            max_concurrency: job.max_concurrency,
            tolerance: job.tolerance.map(Into::into),
            status,
            outcome: end.and_then(|end| end.outcome.clone().ok()),
            stage: stage.into(),
            message: message(job, percent),
            percent,
            item_count: item_count(job, counters),
            item_count_final: job.split.done || job.redrive.is_some(),
            item_progress: counts.sum(),
            items_succeeded: counts.succeeded,
            items_failed: counts.failed,
            items_skipped: counts.skipped,
            items_at_work: counters.and_then(|counters| counters.at_work),
            chunks_in_flight: chunks_in_flight(job, counters),
            cost: cost(job, counters),
            attempt: job.attempt,
            version: version(job, counters),
            created_at: job.created_at,
            started_at: job.started_at,
            first_chunk_at: job.first_chunk_at,
            heartbeat_at: heartbeat.map_or(job.moved_at, |at| at.max(job.moved_at)),
            deadline_at: job.deadline_at,
            start_by: job.start_by,
            finished_at: end.map(|end| end.finished_at),
            expires_at: job.expires_at(),
            pause: pause(job),
            error: job.error().map(JobError::from),
            causes: end.and_then(|end| end.results.as_ref()).map_or_else(Vec::new, |results| results.causes.clone()),
            warnings: job.warnings.iter().map(JobWarning::from).collect(),
            undone_by: job.undone_by,
            unprocessed: unprocessed(job),
            metadata: job.metadata.clone(),
            links: JobLinks::of(job.job_guid),
        }
    }
}

impl From<&Stop> for JobError {
    fn from(stop: &Stop) -> Self {
        let Stop { code, message, row, offset, .. } = stop.clone();
        Self { code: code.into(), message, row, offset }
    }
}

impl From<&Warning> for JobWarning {
    fn from(warning: &Warning) -> Self {
        let Warning { code, message } = warning.clone();
        Self { code, message }
    }
}

/// The counters of a job, unless its row has them.
async fn counters(jobs: &dyn JobStore, job: &Job) -> Result<Option<Counters>, PortError> {
    match job.status() {
        Status::Waiting | Status::Completed => Ok(None),
        _ => Counters::read(jobs, job).await.map(Some),
    }
}

/// The number of items in the part of the file that is split so far. A redrive adds none.
fn item_count(job: &Job, counters: Option<&Counters>) -> u64 {
    match &job.redrive {
        Some(redrive) => redrive.before.sum(),
        // The counters are read after the job row, so they may include items that were dispatched in between.
        None => job.items_dispatched().max(counters.map_or(0, Counters::items)),
    }
}

/// Cost of the job so far. Once an attempt has ended, the row includes its tallies.
fn cost(job: &Job, counters: Option<&Counters>) -> Option<JobCost> {
    let of_tallies = counters.filter(|_| !job.is_ended()).map_or(Usage::NONE, Counters::usage);
    let usage = job.usage + of_tallies;
    // A job of a version that did not count it.
    (!usage.is_none()).then(|| JobCost::of(&usage))
}

fn pause(job: &Job) -> Option<PauseView> {
    let Phase::Paused(by_breaker) = &job.phase else { return None };
    let (by, reason) = match by_breaker {
        Some(pause) => {
            let message = format!("{} ({})", pause.message, pause.code);
            (PausedBy::Breaker, Some(PauseReason { code: PauseCode::TargetDown.into(), message, since: pause.at }))
        }
        None if job.awaits_slots() => {
            let message = "the limits of active jobs of its type or of the system are reached".to_owned();
            let since = job.paused_at.unwrap_or(job.moved_at);
            (PausedBy::Limits, Some(PauseReason { code: PauseCode::NoSlot.into(), message, since }))
        }
        None => (PausedBy::Owner, None),
    };
    Some(PauseView { by: by.into(), next_probe_at: job.wake_at.filter(|_| reason.is_some()), reason })
}

fn paused(job: &Job, percent: u8) -> String {
    match job.breaker_pause() {
        Some(_) => format!("Job paused, {percent}% complete: its target is down. It continues by itself"),
        None if job.awaits_slots() => {
            format!("Job resumed, {percent}% complete: it waits for a slot. It continues by itself")
        }
        None => format!("Job paused, {percent}% complete"),
    }
}

fn chunks_in_flight(job: &Job, counters: Option<&Counters>) -> u64 {
    counters.filter(|_| !job.is_ended()).map_or(0, |counters| counters.in_flight(job))
}

fn unprocessed(job: &Job) -> Option<Unprocessed> {
    let from = job.unprocessed_from()?;
    Some(Unprocessed { from_row: from.row, from_offset: from.offset })
}

fn stage(job: &Job, counters: Option<&Counters>) -> Stage {
    match &job.phase {
        Phase::Ended(_) => Stage::Ended,
        Phase::Runnable if let Some(awaits) = job.awaits => match awaits {
            Awaits::File => Stage::Fetching,
            Awaits::Files => Stage::Listing,
            Awaits::Job(_) => Stage::After,
        },
        _ if job.status() == Status::Waiting => Stage::Queued,
        Phase::Stopping(_) => Stage::Stopping,
        _ if counters.is_some_and(|counters| counters.account_for_all(job)) => Stage::Composing,
        Phase::Paused(_) if job.awaits_slots() => Stage::WaitingForSlot,
        Phase::Paused(_) => Stage::Paused,
        _ if !job.split.done => Stage::Splitting,
        _ if job.first_chunk_at.is_none() => Stage::Queued,
        _ => Stage::Processing,
    }
}

fn message(job: &Job, percent: u8) -> String {
    match (&job.phase, job.status()) {
        (Phase::Runnable, _) if let Some(awaits) = job.awaits => match awaits {
            Awaits::File => "Waiting for the file, which is being fetched...".to_owned(),
            Awaits::Files => "Listing the files...".to_owned(),
            Awaits::Job(_) => "Waiting for another job...".to_owned(),
        },
        (_, Status::Waiting) => "Waiting for job to start...".to_owned(),
        (_, Status::Cancelling) => "Job is being cancelled...".to_owned(),
        (Phase::Stopping(_), _) => "Job is being stopped...".to_owned(),
        (Phase::Paused(_), _) => paused(job, percent),
        (Phase::Runnable, _) => format!("Job running, {percent}% complete..."),
        (Phase::Ended(end), _) => match &end.outcome {
            Ok(JobOutcome::Empty) => "Job complete: nothing to do".to_owned(),
            Ok(_) => "Job complete".to_owned(),
            Err(stop) if stop.is_cancel() => "Job cancelled".to_owned(),
            Err(stop) => format!("Job failed: {}", stop.message),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowmill_core::model::tally::{Tally, Totals};
    use rowmill_core::text::Position;
    use rowmill_testing::fixtures;

    fn sends(requests: u64) -> Usage {
        Usage::NONE.with_sends(requests)
    }

    #[test]
    fn the_cost_of_a_job_has_each_tally_once() {
        let open = Tally::of(1, 1, Position { offset: 0, row: 1 }, &[], fixtures::job().created_at);
        let counters = Counters {
            totals: Totals { usage: sends(20), ..Totals::default() },
            open: vec![Tally { usage: sends(300), ..open }],
            at_work: None,
        };
        let cost = |status, usage| {
            let job = Job { usage, ..fixtures::job_in(status) };
            JobView::of(&job, Some(&counters)).cost.map(|cost| cost.sqs_requests)
        };
        assert_eq!(cost(Status::Running, sends(1)), Some(321));
        assert_eq!(cost(Status::Failed, sends(321)), Some(321), "the row of an ended job includes its tallies");
        assert_eq!(cost(Status::Failed, Usage::NONE), None, "a job of a version that did not count");
    }
}
