//! The result of a run, and its output.

use std::fmt::Write;

use serde::Serialize;

use super::resource::Resource;
use super::scenario::Scenario;

/// A limit is named if this part of it was used.
const BINDS: f64 = 0.6;

/// Result of a job.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub scenario: Scenario,
    /// From its creation to its end. `None` if it needs more tallies than a job may have.
    pub seconds: Option<f64>,
    /// The limit that was reached first.
    pub limit: &'static str,
    /// Number of chunks that went on in another invocation.
    pub continuations: u64,
    pub limits: Vec<Limit>,
}

/// Used share of a limit.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limit {
    pub name: &'static str,
    /// The part of it that was used.
    pub utilization: f64,
    /// For how long requests waited, all together.
    pub waited: f64,
}

impl Limit {
    pub(super) fn of(resource: &Resource, until: f64) -> Self {
        Self { name: resource.name, utilization: resource.utilization(until), waited: resource.waited }
    }
}

impl Outcome {
    pub(super) const fn too_long(scenario: &Scenario) -> Self {
        let limits = Vec::new();
        Self { scenario: *scenario, seconds: None, limit: "65,536 tallies", continuations: 0, limits }
    }

    /// Rows a second.
    pub fn rate(&self) -> Option<f64> {
        self.seconds.map(|seconds| self.scenario.rows as f64 / seconds)
    }
}

/// The limit that was used most, if it was used up.
pub(super) fn limit_of(limits: &[Limit]) -> &'static str {
    let most = limits.iter().max_by(|a, b| a.utilization.total_cmp(&b.utilization));
    most.filter(|limit| limit.utilization >= BINDS).map_or("start and end", |limit| limit.name)
}

/// A time for people.
pub fn time(seconds: f64) -> String {
    match seconds {
        ..10.0 => format!("{seconds:.1} s"),
        10.0..120.0 => format!("{seconds:.0} s"),
        120.0..7200.0 => format!("{:.0} min", seconds / 60.0),
        7200.0..172_800.0 => format!("{:.1} h", seconds / 3600.0),
        _ => format!("{:.1} d", seconds / 86_400.0),
    }
}

/// A table of Markdown: a line for each number of rows, a column for each variant.
pub fn table(title: &str, of: &str, columns: &[&str], rows: &[u64], outcomes: &[Vec<Outcome>]) -> String {
    let mut text = format!("{title}\n\n| {of} | {} |\n|---|{}\n", columns.join(" | "), "---|".repeat(columns.len()));
    for (count, line) in rows.iter().zip(outcomes) {
        let cells: Vec<String> = line.iter().map(cell).collect();
        let _ = writeln!(text, "| 10^{} | {} |", count.ilog10(), cells.join(" | "));
    }
    text
}

fn cell(outcome: &Outcome) -> String {
    match outcome.seconds {
        Some(seconds) => format!("{} · {}", time(seconds), outcome.limit),
        None => format!("– · {}", outcome.limit),
    }
}
