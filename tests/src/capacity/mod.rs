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

/// What the lines of a table are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// Numbers of rows.
    Rows,
    /// Numbers of objects.
    Files,
}

/// A table of results.
pub struct Comparison {
    pub title: &'static str,
    pub lines: Lines,
    pub work: Work,
    /// `ItemsMaximumConcurrency`.
    pub workers: u64,
    /// Its columns.
    pub variants: &'static [Variant],
}

pub const ROWS: [u64; 7] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000];

pub const OBJECTS: [u64; 4] = [1000, 10_000, 100_000, 1_000_000];

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

/// A job over objects with so many rows each.
const fn each(job: Scenario, rows: u64) -> Scenario {
    Scenario { rows: job.files * rows, chunk_min: 1, chunk_max: 10_000, ..ten(job) }
}

const FILES: [Variant; 4] = [
    Variant { name: "10 rows each", of: |job| each(job, 10) },
    Variant { name: "1,000 rows each", of: |job| each(job, 1000) },
    Variant { name: "1,000 rows each, 1,000 workers", of: |job| Scenario { workers: 1000, ..each(job, 1000) } },
    Variant { name: "10,000 rows each, 1,000 workers", of: |job| Scenario { workers: 1000, ..each(job, 10_000) } },
];

/// The tables of `docs/performance.md`.
pub const COMPARISONS: [Comparison; 8] = [
    Comparison {
        lines: Lines::Rows,
        title: "`validate`, default settings (50 workers)",
        work: Work::Validate,
        workers: 50,
        variants: &VALIDATE,
    },
    Comparison {
        lines: Lines::Rows,
        title: "`validate`, 1,000 workers",
        work: Work::Validate,
        workers: 1000,
        variants: &VALIDATE,
    },
    Comparison {
        lines: Lines::Rows,
        title: "`import`, default settings (50 workers)",
        work: Work::Import,
        workers: 50,
        variants: &IMPORT,
    },
    Comparison {
        lines: Lines::Rows,
        title: "`import`, 1,000 workers",
        work: Work::Import,
        workers: 1000,
        variants: &IMPORT,
    },
    Comparison {
        lines: Lines::Rows,
        title: "20 ms a row, default settings (50 workers)",
        work: Work::Slow,
        workers: 50,
        variants: &SLOW,
    },
    Comparison {
        lines: Lines::Rows,
        title: "20 ms a row, 1,000 workers",
        work: Work::Slow,
        workers: 1000,
        variants: &SLOW,
    },
    Comparison {
        lines: Lines::Rows,
        title: "`validate`, 1,000 workers, if the splitter were ten times as fast",
        work: Work::Validate,
        workers: 1000,
        variants: &FAST,
    },
    Comparison {
        lines: Lines::Files,
        title: "`validate` over the objects of a bucket, default settings (50 workers)",
        work: Work::Validate,
        workers: 50,
        variants: &FILES,
    },
];

impl Comparison {
    /// A line of outcomes for each number of rows or objects.
    pub fn outcomes(&self) -> Vec<Vec<Outcome>> {
        let of = |count, variant: &Variant| {
            let job = Scenario { workers: self.workers, ..Scenario::new(count, self.work) };
            let job = if self.lines == Lines::Files { Scenario { files: count, ..job } } else { job };
            run(&(variant.of)(job))
        };
        self.counts().iter().map(|count| self.variants.iter().map(|variant| of(*count, variant)).collect()).collect()
    }

    /// The outcomes as a table of Markdown.
    pub fn table(&self, outcomes: &[Vec<Outcome>]) -> String {
        let columns: Vec<&str> = self.variants.iter().map(|variant| variant.name).collect();
        let of = if self.lines == Lines::Files { "objects" } else { "rows" };
        table(self.title, of, &columns, self.counts(), outcomes)
    }

    const fn counts(&self) -> &'static [u64] {
        match self.lines {
            Lines::Rows => &ROWS,
            Lines::Files => &OBJECTS,
        }
    }
}
