//! `rowmill top`: what a stack is doing, as an operator sees it.
//!
//! [`read::Reader`] takes a [`Snapshot`], [`draw`] puts it on a terminal, and [`text`] prints it as plain tables. Only
//! the reader knows AWS.

pub mod draw;
pub mod read;
pub mod text;

#[cfg(test)]
mod fixtures;

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_api::at_work::{WorkerList, WorkerView};
use rowmill_api::job::JobView;
use rowmill_core::model::ids::{JobGuid, Owner};

/// Number of jobs shown: the newest of the active ones.
pub const JOBS_SHOWN: usize = 20;

/// A stack at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub stack: String,
    pub at: Timestamp,
    /// The queues, those with readers first.
    pub queues: Vec<Queue>,
    /// Number of active jobs, of all owners.
    pub active: usize,
    /// The newest active jobs, at most [`JOBS_SHOWN`].
    pub jobs: Vec<ActiveJob>,
    /// The workers outside of the stack that have tasks; `None` if the API could not be asked.
    pub workers: Option<WorkerList>,
    /// Counts of CloudWatch; `None` if the stack has no metrics, as a local one.
    pub counted: Option<Counted>,
}

impl Snapshot {
    /// The workers that are known to have tasks.
    pub fn workers(&self) -> &[WorkerView] {
        self.workers.as_ref().map_or(&[], |list| &list.workers)
    }
}

/// A queue at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name in the template, without the word queue.
    pub name: String,
    pub waiting: u64,
    pub in_flight: u64,
    /// The age of the oldest message, where it is known.
    pub oldest: Option<Duration>,
}

impl Queue {
    pub fn is_dead_letter_queue(&self) -> bool {
        self.name.ends_with("DeadLetter")
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ActiveJob {
    pub job_guid: JobGuid,
    pub owner: Owner,
    /// Its view in the API; `None` if the API could not be asked.
    pub view: Option<JobView>,
}

/// Sums of metrics over [`Counted::over`].
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The time over which they are summed up.
    pub over: Duration,
    /// The sum of each metric that had values.
    pub sums: HashMap<String, f64>,
}

impl Counted {
    /// 0 if it had no values.
    pub fn sum(&self, metric: &str) -> f64 {
        self.sums.get(metric).copied().unwrap_or_default()
    }

    fn per_second(&self, metrics: &[&str]) -> f64 {
        metrics.iter().map(|metric| self.sum(metric)).sum::<f64>() / self.over.as_secs_f64()
    }
}

/// Items of every outcome.
const ITEMS: [&str; 3] = ["ItemsSucceeded", "ItemsFailed", "ItemsSkipped"];

const ENDED: &str = "JobsEnded";

/// The refusals that are shown, with their names on the screen.
pub const REFUSALS: [(&str, &str); 5] = [
    ("JobsRefused", "jobs"),
    ("OwnerFull", "owner full"),
    ("JobTypeFull", "type full"),
    ("SystemFull", "system full"),
    ("RequestsLimited", "too many requests"),
];

/// Every metric that is read from CloudWatch.
pub fn metrics() -> Vec<&'static str> {
    ITEMS.into_iter().chain([ENDED]).chain(REFUSALS.map(|(metric, _)| metric)).collect()
}

/// Rates of progress; none where it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// Items accounted for in a second.
    pub items: Option<f64>,
    /// Jobs ended in a second.
    pub jobs: Option<f64>,
}

impl Rates {
    /// The rates between two snapshots: those that CloudWatch counted if it has any, else those that the jobs show. The
    /// items of a job that ended in between are missing from the latter, so they are a lower bound.
    pub fn between(before: Option<&Snapshot>, now: &Snapshot) -> Self {
        if let Some(counted) = &now.counted {
            let (items, jobs) = (counted.per_second(&ITEMS), counted.per_second(&[ENDED]));
            return Self { items: Some(items), jobs: Some(jobs) };
        }
        let Some(before) = before else { return Self::default() };
        let seconds = now.at.duration_since(before.at).as_secs_f64();
        if seconds <= 0.0 {
            return Self::default();
        }
        let earlier: HashMap<JobGuid, &JobView> = views(before).collect();
        let items = views(now).map(|(guid, view)| match earlier.get(&guid) {
            Some(earlier) if earlier.attempt == view.attempt => {
                view.item_progress.saturating_sub(earlier.item_progress)
            }
            // New since then, or in its next attempt.
            _ => view.item_progress,
        });
        // A job beyond those shown may only have been pushed out of the list by newer ones.
        let is_whole = before.active <= JOBS_SHOWN && now.active <= JOBS_SHOWN;
        let active: Vec<JobGuid> = now.jobs.iter().map(|job| job.job_guid).collect();
        let ended = before.jobs.iter().filter(|job| !active.contains(&job.job_guid)).count();
        Self { items: Some(items.sum::<u64>() as f64 / seconds), jobs: is_whole.then_some(ended as f64 / seconds) }
    }
}

fn views(snapshot: &Snapshot) -> impl Iterator<Item = (JobGuid, &JobView)> {
    snapshot.jobs.iter().filter_map(|job| Some((job.job_guid, job.view.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use super::fixtures::{job, snapshot};
    use super::*;

    #[test]
    fn without_metrics_the_rates_are_those_that_the_jobs_show() {
        let before = Snapshot { jobs: vec![job(1, 100), job(2, 50)], active: 2, ..snapshot() };
        let at = before.at + Duration::from_secs(2);
        let now = Snapshot { jobs: vec![job(1, 400), job(3, 40)], active: 2, at, ..snapshot() };
        assert_eq!(Rates::between(None, &now), Rates::default());
        assert_eq!(Rates::between(Some(&before), &now), Rates { items: Some(170.0), jobs: Some(0.5) });
        let many = Snapshot { active: JOBS_SHOWN + 1, ..now };
        assert_eq!(Rates::between(Some(&before), &many).jobs, None, "which jobs have ended is not known");
    }

    #[test]
    fn with_metrics_the_rates_are_those_of_all_functions() {
        let sums = [("ItemsSucceeded", 900.0), ("ItemsFailed", 300.0), ("JobsEnded", 30.0)];
        let sums = sums.map(|(name, sum)| (name.to_owned(), sum)).into();
        let counted = Counted { over: Duration::from_secs(60), sums };
        let now = Snapshot { counted: Some(counted), ..snapshot() };
        assert_eq!(Rates::between(None, &now), Rates { items: Some(20.0), jobs: Some(0.5) });
    }
}
