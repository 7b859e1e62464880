//! What a run of two tenants found.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The times of the good tenant's jobs, and what came of the hostile inputs.
#[derive(Debug, Default)]
pub struct Report {
    /// The jobs of the good tenant while the other one was quiet.
    pub alone: Vec<Duration>,
    /// Its jobs while the other one sent hostile inputs.
    pub beside: Vec<Duration>,
    /// How often each hostile input had each outcome, by the name of the input.
    pub answers: BTreeMap<String, BTreeMap<String, usize>>,
}

impl Report {
    pub(super) fn answered(&mut self, name: &str, outcomes: Vec<String>) {
        let counts = self.answers.entry(name.to_owned()).or_default();
        for outcome in outcomes {
            *counts.entry(outcome.trim_end().to_owned()).or_default() += 1;
        }
    }

    /// The slowest job beside the hostile tenant, as a multiple of the median alone.
    pub fn ratio(&self) -> f64 {
        slowest(&self.beside).as_secs_f64() / median(&self.alone).as_secs_f64()
    }

    /// One line about the good tenant's jobs.
    pub(super) fn speeds(&self) -> String {
        let (alone, beside) = (&self.alone, &self.beside);
        format!(
            "alone: {} jobs, median {} ms, slowest {} ms; beside: {} jobs, median {} ms, slowest {} ms; ratio {:.2}",
            alone.len(),
            median(alone).as_millis(),
            slowest(alone).as_millis(),
            beside.len(),
            median(beside).as_millis(),
            slowest(beside).as_millis(),
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
        f.write_str(&self.speeds())
    }
}

/// The middle one of these times, or zero if there is none.
fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn slowest(times: &[Duration]) -> Duration {
    times.iter().max().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_the_slowest_job_beside_and_the_median_alone() {
        let ms = |times: &[u64]| times.iter().map(|ms| Duration::from_millis(*ms)).collect();
        let mut report = Report { alone: ms(&[900, 100, 200]), beside: ms(&[100, 500]), ..Report::default() };
        assert!((report.ratio() - 2.5).abs() < 1e-9);
        report.answered("a bomb", vec!["422 a".into(), "422 a".into(), "404 ".into()]);
        let text = report.to_string();
        assert!(text.starts_with("a bomb: 1 × 404, 2 × 422 a\nalone: 3 jobs, median 200 ms, slowest 900 ms"), "{text}");
    }
}
