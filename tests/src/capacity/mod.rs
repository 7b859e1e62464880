//! A model of a job on AWS: how long it takes there, and what limits it.
//!
//! The emulator has none of the limits of AWS, so no measurement on it shows which of them a big job meets first. The
//! model follows a job through the splitter, the queue, the workers and the commits as discrete events, with AWS's
//! published limits ([`SOURCES`]) and assumed times ([`TIMES`](limits::TIMES)). It is an estimate, and nothing in it
//! was measured on AWS. The same scenario always gives the same result.

mod event;
pub mod limits;
mod model;
mod resource;
mod result;
mod scenario;
#[cfg(test)]
mod tests;

pub use limits::SOURCES;
pub use model::run;
pub use result::{Limit, Outcome, table, time};
pub use scenario::{Order, Scenario, Work};

/// A column of a table: what differs from the default scenario.
pub struct Variant {
    /// Its heading.
    pub name: &'static str,
    /// Makes the scenario of a job.
    pub of: fn(Scenario) -> Scenario,
}

/// A table of results.
pub struct Comparison {
    pub title: &'static str,
    pub work: Work,
    /// `ItemsMaximumConcurrency`.
    pub workers: u64,
    /// Its columns.
    pub variants: &'static [Variant],
}

pub const ROWS: [u64; 7] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000];

const fn ten(scenario: Scenario) -> Scenario {
    Scenario { chunks_per_commit: 10, ..scenario }
}

const fn shuffled(scenario: Scenario) -> Scenario {
    Scenario { order: Order::Shuffled, ..scenario }
}

const VALIDATE: [Variant; 5] = [
    Variant { name: "500 items, 1 chunk a commit", of: |job| job },
    Variant { name: "500 items, 10 chunks", of: ten },
    Variant { name: "4,000 items, 1 chunk", of: |job| Scenario { chunk_max: 4000, ..job } },
    Variant { name: "10,000 items, 10 chunks", of: |job| Scenario { chunk_max: 10_000, ..ten(job) } },
    Variant { name: "the same, 8 tally keys", of: |job| Scenario { chunk_max: 10_000, tally_keys: 8, ..ten(job) } },
];

const IMPORT: [Variant; 5] = [
    Variant { name: "16 buckets, new table", of: |job| Scenario { buckets: 16, ..job } },
    Variant { name: "256 buckets, new table", of: |job| job },
    Variant { name: "16 buckets, warm table", of: |job| Scenario { buckets: 16, warm_table: true, ..job } },
    Variant { name: "256 buckets, warm table", of: |job| Scenario { warm_table: true, ..job } },
    Variant {
        name: "256 buckets, warm table, quota raised to 300,000",
        of: |job| Scenario { warm_table: true, table_writes: 300_000.0, ..job },
    },
];

const SLOW: [Variant; 4] = [
    Variant { name: "1 chunk a commit", of: |job| job },
    Variant { name: "10 chunks", of: ten },
    Variant { name: "10 chunks, shuffled", of: |job| shuffled(ten(job)) },
    Variant { name: "1 chunk, 8 tally keys", of: |job| Scenario { tally_keys: 8, ..job } },
];

const fn fast(scenario: Scenario) -> Scenario {
    Scenario { split_bytes: 10.0 * limits::NETWORK_BYTES, ..scenario }
}

const FAST: [Variant; 5] = [
    Variant { name: "500 items, 1 chunk a commit", of: fast },
    Variant { name: "500 items, 10 chunks", of: |job| fast(ten(job)) },
    Variant { name: "500 items, 10 chunks, shuffled", of: |job| fast(shuffled(ten(job))) },
    Variant {
        name: "500 items, 10 chunks, shuffled, 8 keys",
        of: |job| Scenario { tally_keys: 8, ..fast(shuffled(ten(job))) },
    },
    Variant { name: "10,000 items, 10 chunks", of: |job| Scenario { chunk_max: 10_000, ..fast(ten(job)) } },
];

/// The tables of `docs/performance.md`.
pub const COMPARISONS: [Comparison; 7] = [
    Comparison {
        title: "`validate`, default settings (50 workers)",
        work: Work::Validate,
        workers: 50,
        variants: &VALIDATE,
    },
    Comparison { title: "`validate`, 1,000 workers", work: Work::Validate, workers: 1000, variants: &VALIDATE },
    Comparison { title: "`import`, default settings (50 workers)", work: Work::Import, workers: 50, variants: &IMPORT },
    Comparison { title: "`import`, 1,000 workers", work: Work::Import, workers: 1000, variants: &IMPORT },
    Comparison { title: "20 ms a row, default settings (50 workers)", work: Work::Slow, workers: 50, variants: &SLOW },
    Comparison { title: "20 ms a row, 1,000 workers", work: Work::Slow, workers: 1000, variants: &SLOW },
    Comparison {
        title: "`validate`, 1,000 workers, if the splitter were ten times as fast",
        work: Work::Validate,
        workers: 1000,
        variants: &FAST,
    },
];

impl Comparison {
    /// A line of outcomes for each number of rows.
    pub fn outcomes(&self) -> Vec<Vec<Outcome>> {
        let of = |rows, variant: &Variant| {
            run(&(variant.of)(Scenario { workers: self.workers, ..Scenario::new(rows, self.work) }))
        };
        ROWS.iter().map(|rows| self.variants.iter().map(|variant| of(*rows, variant)).collect()).collect()
    }

    /// The outcomes as a table of Markdown.
    pub fn table(&self, outcomes: &[Vec<Outcome>]) -> String {
        let columns: Vec<&str> = self.variants.iter().map(|variant| variant.name).collect();
        table(self.title, &columns, &ROWS, outcomes)
    }
}
