//! The view of a job: its row combined with its counters.

use std::ops::Range;

use jiff::Timestamp;
pub use rowmill_api::job::{JobLinks, JobView, Unprocessed};
pub use rowmill_api::status::Stage;

use crate::model::job::Job;
use crate::model::states::Status;
use crate::model::tally::{Counts, Tally, Totals};
use crate::ports::{JobStore, PortError};
use crate::progress::view_version::version;

/// Two open tallies with fewer closed ones than this between them share one request: to read the closed ones too costs
/// less than a second request.
const RANGE_GAP: u32 = 16;

/// The counters of a running attempt. They are exact because the totals are read before the tallies: a tally that is
/// folded between the two reads counts once, as a tally.
#[derive(Clone, PartialEq, Debug)]
pub struct Counters {
    /// The sums of the closed tallies.
    pub totals: Totals,
    /// The tallies that the totals do not include.
    pub open: Vec<Tally>,
}

impl Counters {
    /// Reads the counters of the job's current attempt.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn read(jobs: &dyn JobStore, job: &Job) -> Result<Self, PortError> {
        let totals = jobs.totals(job.job_guid, job.attempt).await?;
        let mut open = Vec::new();
        for numbers in open_ranges(&totals, job.split.tallies) {
            open.extend(jobs.tallies(job.job_guid, job.attempt, numbers).await?);
        }
        open.retain(|tally| !totals.closed.contains(&tally.number));
        Ok(Self { totals, open })
    }

    /// Items accounted for, by how they ended.
    pub fn counts(&self) -> Counts {
        self.open.iter().fold(self.totals.counts, |sum, tally| sum + tally.counts)
    }

    /// Items of the tallies, accounted for or not.
    pub fn items(&self) -> u64 {
        self.open.iter().fold(self.totals.items, |sum, tally| sum + tally.items)
    }

    /// The progress of the attempt in whole percent: by bytes of the file in the first attempt, by items in a redrive.
    pub fn percent(&self, job: &Job) -> u8 {
        match &job.redrive {
            None => percent(self.bytes(), job.data_bytes),
            Some(redrive) => percent(self.counts().sum(), redrive.before.failed),
        }
    }

    /// Bytes of the committed chunks.
    pub fn bytes(&self) -> u64 {
        self.open.iter().fold(self.totals.bytes, |sum, tally| sum + tally.bytes)
    }

    /// When a tally last moved.
    pub fn last_moved(&self) -> Option<Timestamp> {
        self.open.iter().map(|tally| tally.at).chain(self.totals.at).max()
    }
}

/// The open tallies as a few ranges, so that one stuck tally does not make every read include all tallies behind it.
fn open_ranges(totals: &Totals, tallies: u32) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for number in (0..tallies).filter(|number| !totals.closed.contains(number)) {
        match ranges.last_mut() {
            Some(range) if number - range.end < RANGE_GAP => range.end = number + 1,
            _ => ranges.push(number..number + 1),
        }
    }
    ranges
}

/// The progress in whole percent, at most 99: only the end of the job is 100.
///
/// Within an attempt it never decreases, because `committed` only grows and `whole` never changes.
pub fn percent(committed: u64, whole: u64) -> u8 {
    if whole == 0 {
        return 0;
    }
    let share = u128::from(committed) * 100 / u128::from(whole);
    u8::try_from(share.min(99)).unwrap_or(99)
}

/// The current view of a job. Reads the counters if the row does not have them.
///
/// # Errors
/// `Unavailable`.
pub async fn read(jobs: &dyn JobStore, job: &Job) -> Result<JobView, PortError> {
    let counters = match job.status {
        Status::Waiting | Status::Completed => None,
        _ => Some(Counters::read(jobs, job).await?),
    };
    Ok(of(job, counters.as_ref()))
}

/// The view of a job with these counters.
pub fn of(job: &Job, counters: Option<&Counters>) -> JobView {
    let counts = match (job.status.is_terminal(), job.counts, counters) {
        (true, Some(counts), _) => counts,
        (_, _, Some(counters)) => job.merged(counters.counts()),
        _ => job.merged(Counts::default()),
    };
    let percent = match job.status {
        Status::Completed => 100,
        Status::Waiting => 0,
        _ => counters.map_or(0, |counters| counters.percent(job)),
    };
    let stage = stage(job, counters);
    let heartbeat = counters.and_then(Counters::last_moved);
    JobView {
        job_guid: job.job_guid,
        job_type: job.job_type.clone(),
        file_guid: job.file_guid,
        status: job.status,
        outcome: job.outcome,
        stage: stage.into(),
        message: message(job, percent),
        percent,
        item_count: item_count(job, counters),
        item_count_final: job.split.done || job.redrive.is_some(),
        item_progress: counts.sum(),
        items_succeeded: counts.succeeded,
        items_failed: counts.failed,
        items_skipped: counts.skipped,
        attempt: job.attempt,
        version: version(job, counters),
        created_at: job.created_at,
        started_at: job.started_at,
        heartbeat_at: heartbeat.map_or(job.moved_at, |at| at.max(job.moved_at)),
        deadline_at: job.deadline_at,
        finished_at: job.finished_at,
        expires_at: job.expires_at,
        error: job.error(),
        warnings: job.warnings.clone(),
        unprocessed: unprocessed(job),
        metadata: job.metadata.clone(),
        links: JobLinks::of(job.job_guid),
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

fn unprocessed(job: &Job) -> Option<Unprocessed> {
    let from = job.unprocessed_from()?;
    Some(Unprocessed { from_row: from.row, from_offset: from.offset })
}

fn stage(job: &Job, counters: Option<&Counters>) -> Stage {
    if job.status.is_terminal() {
        return Stage::Ended;
    }
    match (job.status, &job.stop) {
        (Status::Waiting, _) => Stage::Queued,
        (Status::Cancelling, _) | (_, Some(_)) => Stage::Stopping,
        _ if !job.split.done => Stage::Splitting,
        _ if counters.is_some_and(|counters| counters.counts().sum() == job.items_dispatched()) => Stage::Completing,
        _ => Stage::Processing,
    }
}

fn message(job: &Job, percent: u8) -> String {
    match (job.status, &job.stop) {
        (Status::Waiting, _) => "Waiting for job to start...".to_owned(),
        (Status::Cancelling, _) => "Job is being cancelled...".to_owned(),
        (Status::Running, Some(_)) => "Job is being stopped...".to_owned(),
        (Status::Running, None) => format!("Job running, {percent}% complete..."),
        (Status::Completed, _) => "Job complete".to_owned(),
        (Status::Cancelled, _) => "Job cancelled".to_owned(),
        (Status::Failed, Some(stop)) => format!("Job failed: {}", stop.message),
        (Status::Failed, None) => "Job failed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_an_ended_job_has_100_percent() {
        assert_eq!(percent(0, 0), 0);
        assert_eq!(percent(0, 1000), 0);
        assert_eq!(percent(9, 1000), 0);
        assert_eq!(percent(370, 1000), 37);
        assert_eq!(percent(1000, 1000), 99);
        assert_eq!(percent(u64::MAX, u64::MAX), 99);
    }

    proptest! {
        #[test]
        fn percent_never_decreases_while_chunks_are_committed(
            chunks in prop::collection::vec(1..5_000_000_u64, 1..200),
            order in any::<prop::sample::Index>(),
        ) {
            let data_bytes = chunks.iter().sum();
            let first = order.index(chunks.len());
            let (mut committed, mut shown) = (0, 0);
            for bytes in chunks[first..].iter().chain(&chunks[..first]) {
                committed += bytes;
                let now = percent(committed, data_bytes);
                prop_assert!(now >= shown && now <= 99);
                shown = now;
            }
            prop_assert_eq!(shown, 99);
        }
    }
}
