//! Speed and remaining time of a job, and the message for its status.

use std::collections::VecDeque;
use std::time::Duration;

use rowmill_api::job::{JobView, PausedBy, Stage};
use rowmill_core::model::job::states::{JobOutcome, Status};

use crate::terminal::{count, span};

/// The speed is measured over this window: long enough to be stable, short enough to be current.
const WINDOW: Duration = Duration::from_secs(10);

/// The message for the status of a job.
pub fn message(job: &JobView) -> String {
    match job.status {
        Status::Waiting => "Waiting for job to start...".to_owned(),
        Status::Running if job.stage == Stage::Composing => "Job running, writing its results...".to_owned(),
        Status::Running => format!("Job running, {}% complete...", job.percent),
        Status::Paused => match job.pause.as_ref().is_some_and(|pause| pause.by == PausedBy::Breaker) {
            true => format!("Job paused, {}% complete: its target is down", job.percent),
            false => format!("Job paused, {}% complete", job.percent),
        },
        Status::Cancelling => format!("Job cancelling, {}% complete...", job.percent),
        Status::Completed if job.outcome == Some(JobOutcome::Empty) => {
            "Job complete, nothing to do: the input has no rows".to_owned()
        }
        Status::Completed => "Job complete".to_owned(),
        Status::Failed => "Job failed".to_owned(),
        Status::Cancelled => "Job cancelled".to_owned(),
    }
}

/// Measures a job from samples of its progress.
#[derive(Debug, Default)]
pub struct RateMeter {
    samples: VecDeque<Sample>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Duration,
    attempt: u32,
    items: u64,
    percent: u8,
}

impl RateMeter {
    /// Adds a sample. `at` is a time on any monotonic clock.
    pub fn note(&mut self, at: Duration, job: &JobView) {
        if job.status == Status::Waiting {
            return;
        }
        let sample = Sample { at, attempt: job.attempt, items: job.item_progress, percent: job.percent };
        // A redriven job starts again, so samples of the previous attempt do not count.
        if self.samples.back().is_some_and(|last| last.attempt != sample.attempt) {
            self.samples.clear();
        }
        self.samples.push_back(sample);
        while self.samples.len() > 2 && self.samples[1].at + WINDOW <= at {
            self.samples.pop_front();
        }
    }

    /// Recent items per second, if there are enough samples.
    pub fn items_per_second(&self) -> Option<f64> {
        let (first, last) = self.ends()?;
        let items = (last.items - first.items) as f64;
        (items > 0.0).then(|| items / (last.at - first.at).as_secs_f64())
    }

    /// The remaining time at the recent speed.
    pub fn time_left(&self, job: &JobView) -> Option<Duration> {
        let seconds = if job.item_count_final && job.attempt == 1 {
            let left = job.item_count.saturating_sub(job.item_progress);
            left as f64 / self.items_per_second()?
        } else {
            // While the file is being split, only the percentage reflects its size. In a redrive every item was counted
            // before, so the sum of the counts says nothing.
            let (first, last) = self.ends()?;
            let percent = last.percent.saturating_sub(first.percent);
            let pace = f64::from(percent) / (last.at - first.at).as_secs_f64();
            f64::from(100u8.saturating_sub(last.percent)) / pace
        };
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Speed and remaining time of a running job as text, as far as they are known. Nothing at the end.
    pub fn pace(&self, job: &JobView) -> String {
        if job.stage == Stage::Composing {
            return String::new();
        }
        let rate = self.items_per_second().map(|rate| format!("{} items/s", count(rate as u64)));
        let left = self.time_left(job).filter(|left| *left > Duration::ZERO).map(|left| format!("{} left", span(left)));
        match job.status {
            Status::Running => rate.into_iter().chain(left).collect::<Vec<_>>().join(", "),
            _ => String::new(),
        }
    }

    fn ends(&self) -> Option<(Sample, Sample)> {
        let (first, last) = (*self.samples.front()?, *self.samples.back()?);
        (last.at > first.at).then_some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::job;

    #[test]
    fn the_messages_are_the_promised_ones() {
        assert_eq!(message(&job("waiting", 0)), "Waiting for job to start...");
        assert_eq!(message(&job("running", 37)), "Job running, 37% complete...");
        assert_eq!(message(&job("paused", 37)), "Job paused, 37% complete");
        assert_eq!(message(&job("completed", 100)), "Job complete");
        assert_eq!(message(&job("failed", 12)), "Job failed");
        assert_eq!(message(&job("cancelled", 12)), "Job cancelled");
    }

    #[test]
    fn speed_and_time_left_follow_from_the_last_polls() {
        let mut meter = RateMeter::default();
        let mut running = job("running", 0);
        (running.item_count, running.item_count_final) = (10_000, true);
        meter.note(Duration::from_secs(0), &running);
        assert_eq!(meter.pace(&running), "", "one look is no measure");
        running.item_progress = 3000;
        meter.note(Duration::from_secs(2), &running);
        assert_eq!(meter.pace(&running), "1,500 items/s, 4.7 s left");
        running.item_progress = 4000;
        meter.note(Duration::from_secs(12), &running);
        assert_eq!(meter.items_per_second(), Some(100.0), "the fast start is out of the window");
    }

    #[test]
    fn while_the_file_is_split_time_left_follows_from_the_percentage() {
        let mut meter = RateMeter::default();
        let mut running = job("running", 10);
        meter.note(Duration::from_secs(0), &running);
        (running.percent, running.item_progress, running.item_count) = (30, 500, 501);
        meter.note(Duration::from_secs(10), &running);
        assert_eq!(meter.pace(&running), "50 items/s, 35 s left");
    }

    #[test]
    fn a_redrive_is_measured_by_itself_and_by_its_percentage() {
        let mut meter = RateMeter::default();
        let mut job = job("running", 90);
        (job.item_count, job.item_count_final, job.item_progress) = (1000, true, 1000);
        meter.note(Duration::from_secs(0), &job);
        (job.attempt, job.percent) = (2, 10);
        meter.note(Duration::from_secs(5), &job);
        assert_eq!(meter.pace(&job), "", "one look is no measure");
        job.percent = 30;
        meter.note(Duration::from_secs(15), &job);
        assert_eq!(meter.pace(&job), "35 s left");
    }

    #[test]
    fn a_job_that_has_processed_all_items_writes_its_results_at_no_speed() {
        let mut meter = RateMeter::default();
        let mut running = job("running", 50);
        (running.item_count, running.item_count_final) = (1000, true);
        meter.note(Duration::from_secs(0), &running);
        (running.percent, running.item_progress) = (99, 1000);
        meter.note(Duration::from_secs(1), &running);
        assert_eq!(meter.pace(&running), "1,000 items/s");
        running.stage = Stage::Composing.into();
        assert_eq!(
            (message(&running).as_str(), meter.pace(&running)),
            ("Job running, writing its results...", String::new())
        );
    }

    #[test]
    fn nothing_is_claimed_of_a_job_that_stands_still_or_is_over() {
        let mut meter = RateMeter::default();
        let running = job("running", 50);
        meter.note(Duration::from_secs(0), &running);
        meter.note(Duration::from_secs(5), &running);
        assert_eq!(meter.pace(&running), "");
        assert_eq!(meter.pace(&job("completed", 100)), "");
    }
}
