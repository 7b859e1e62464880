//! The findings of a run of two tenants.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The times of the good tenant's jobs, and what came of the hostile inputs.
#[derive(Debug, Default)]
pub struct Report {
    /// The jobs of the good tenant while the other one was quiet.
    pub alone: Vec<Duration>,
    /// Its jobs while the other one sent hostile inputs.
    pub beside: Vec<Beside>,
    /// Number of answers of each hostile input by outcome, by the name of the input.
    pub answers: BTreeMap<String, BTreeMap<String, usize>>,
}

/// A job beside hostile inputs.
#[derive(Debug)]
pub struct Beside {
    pub took: Duration,
    /// The names of the inputs that were sent meanwhile.
    pub inputs: Vec<String>,
}

/// Number of the slowest jobs that are shown with the inputs beside them.
const SLOWEST_SHOWN: usize = 5;

impl Report {
    fn times_beside(&self) -> Vec<Duration> {
        self.beside.iter().map(|job| job.took).collect()
    }

    pub(super) fn answered(&mut self, name: &str, outcomes: Vec<String>) {
        let counts = self.answers.entry(name.to_owned()).or_default();
        for outcome in outcomes {
            *counts.entry(outcome.trim_end().to_owned()).or_default() += 1;
        }
    }

    /// The slowest job beside the hostile tenant, as a multiple of the median alone.
    pub fn ratio(&self) -> f64 {
        slowest(&self.times_beside()).as_secs_f64() / median(&self.alone).as_secs_f64()
    }

    /// One line about the good tenant's jobs.
    pub(super) fn speeds(&self) -> String {
        let (alone, beside) = (&self.alone, &self.times_beside());
        format!(
            "alone: {}; beside: {}; slowest beside to median alone: {:.2}",
            spread(alone),
            spread(beside),
            self.ratio()
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcomes) in &self.answers {
            let outcomes: Vec<_> = outcomes.iter().map(|(outcome, times)| format!("{times} × {outcome}")).collect();
            writeln!(f, "{name}: {}", outcomes.join(", "))?;
        }
        let mut slow: Vec<_> = self.beside.iter().collect();
        slow.sort_unstable_by_key(|job| std::cmp::Reverse(job.took));
        for job in slow.into_iter().take(SLOWEST_SHOWN) {
            writeln!(f, "{} ms beside {}", job.took.as_millis(), job.inputs.join(", "))?;
        }
        f.write_str(&self.speeds())
    }
}

/// One line about these times. The slowest ones show how noisy the machine is.
fn spread(times: &[Duration]) -> String {
    let [median, most, slowest] = [median(times), at(times, 0.95), slowest(times)].map(|time| time.as_millis());
    format!("{} jobs, median {median} ms, 95% within {most} ms, slowest {slowest} ms", times.len())
}

/// The middle one of these times, or zero if there is none.
fn median(times: &[Duration]) -> Duration {
    at(times, 0.5)
}

/// The time within which this part of them are, or zero if there is none.
fn at(times: &[Duration], part: f64) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get((times.len() as f64 * part) as usize).copied().unwrap_or_default()
}

fn slowest(times: &[Duration]) -> Duration {
    times.iter().max().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_the_slowest_job_beside_and_the_median_alone() {
        let alone = [900, 100, 200].map(Duration::from_millis).to_vec();
        let beside = [100, 500].map(|ms| Beside { took: Duration::from_millis(ms), inputs: vec!["a bomb".into()] });
        let mut report = Report { alone, beside: beside.into(), ..Report::default() };
        assert!((report.ratio() - 2.5).abs() < 1e-9);
        report.answered("a bomb", vec!["422 a".into(), "422 a".into(), "404 ".into()]);
        let text = report.to_string();
        assert!(text.contains("alone: 3 jobs, median 200 ms, 95% within 900 ms, slowest 900 ms"), "{text}");
        assert!(text.starts_with("a bomb: 1 × 404, 2 × 422 a\n500 ms beside a bomb\n100 ms"), "{text}");
    }
}
