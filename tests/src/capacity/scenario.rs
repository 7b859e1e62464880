//! A job, and the stack on which it runs.

use serde::Serialize;

use super::limits::{FILES_AHEAD, LISTED, NETWORK_BYTES, PROCESSOR, TABLE_WRITES, TIMES};

pub const TALLIES_MAX: u64 = split_job::split::TALLIES_MAX as u64;

pub const CHUNKS_PER_TALLY: u64 = rowmill_core::model::tally::CHUNKS_PER_TALLY as u64;

/// Chunks that are sent ahead for each one that runs.
const AHEAD: u64 = 2;

/// The work on the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Microseconds of computing for each row.
    Validate,
    /// A record for each row.
    Import,
    /// 20 ms of waiting for each row.
    Slow,
}

impl Work {
    /// Seconds of a processor for a row. An assumption.
    pub(super) const fn computing(self) -> f64 {
        match self {
            Self::Validate => 4e-6,
            Self::Import => 30e-6,
            Self::Slow => 10e-6,
        }
    }

    /// Seconds of waiting for a row.
    pub(super) const fn waiting(self) -> f64 {
        match self {
            Self::Validate | Self::Import => 0.0,
            Self::Slow => 0.02,
        }
    }
}

/// The order in which a queue delivers its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Sent,
    Shuffled,
}

/// A job and the stack that it runs on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Scenario {
    /// Rows of 60 bytes.
    pub rows: u64,
    /// The objects that the rows are in, each with as many. A chunk never crosses them.
    pub files: u64,
    pub work: Work,
    /// `ItemsMaximumConcurrency`.
    pub workers: u64,
    /// `ChunksPerInvocation`.
    pub chunks_per_invocation: u64,
    /// The fewest items of a chunk, if the job has as many.
    pub chunk_min: u64,
    /// The most items of a chunk. A chunk grows while each worker has eight.
    pub chunk_max: u64,
    /// Number of chunks of one tally committed by one write.
    pub chunks_per_commit: u64,
    /// Over how many partition keys the tallies are spread.
    pub tally_keys: usize,
    /// Over how many partition keys the records of the dataset are spread.
    pub buckets: u64,
    /// True if the records table has taken its quota before.
    pub warm_table: bool,
    /// The quota of the records table, in write units a second.
    pub table_writes: f64,
    pub order: Order,
    /// Seed of the shuffling.
    pub seed: u64,
    /// Bytes a second that the splitter cuts.
    pub split_bytes: f64,
}

impl Scenario {
    /// A job with the default settings, and one write for each commit.
    pub const fn new(rows: u64, work: Work) -> Self {
        Self {
            rows,
            files: 1,
            work,
            workers: 50,
            chunks_per_invocation: 10,
            chunk_min: 500,
            chunk_max: 500,
            chunks_per_commit: 1,
            tally_keys: 1,
            buckets: 256,
            warm_table: false,
            table_writes: TABLE_WRITES,
            order: Order::Sent,
            seed: 1,
            split_bytes: NETWORK_BYTES,
        }
    }

    fn rows_of_file(&self) -> u64 {
        self.rows.div_ceil(self.files)
    }

    fn chunks_of_file(&self) -> u64 {
        self.rows_of_file().div_ceil(self.most_items())
    }

    fn most_items(&self) -> u64 {
        (self.rows / (self.workers.max(1) * 8)).clamp(self.chunk_min, self.chunk_max.max(self.chunk_min))
    }

    pub fn chunk_items(&self) -> u64 {
        match self.files {
            1 => self.most_items(),
            _ => self.rows_of_file().div_ceil(self.chunks_of_file()),
        }
    }

    pub fn chunks(&self) -> u64 {
        self.files * self.chunks_of_file()
    }

    /// Seconds until the objects are listed, a page after the other. One file is not listed.
    pub(super) fn listing(&self) -> f64 {
        match self.files {
            1 => 0.0,
            files => TIMES.delivery + TIMES.cold_start + files.div_ceil(LISTED) as f64 * TIMES.list,
        }
    }

    /// Seconds in which the splitter reads the beginnings of the objects of a tally, of which it reads some at once.
    pub(super) fn opening(&self, chunks: u64) -> f64 {
        match self.files {
            1 => 0.0,
            _ => chunks.div_ceil(self.chunks_of_file()) as f64 * TIMES.s3 / FILES_AHEAD,
        }
    }

    pub fn tallies(&self) -> u64 {
        self.chunks().div_ceil(CHUNKS_PER_TALLY)
    }

    pub fn tallies_ahead(&self) -> u64 {
        (self.workers * self.chunks_per_invocation * AHEAD).div_ceil(CHUNKS_PER_TALLY).max(2)
    }

    /// Seconds that the chunks of an invocation take, but for what is limited: they share its processor, and wait side
    /// by side.
    pub(super) fn processing(&self, items: &[u64]) -> f64 {
        let all: u64 = items.iter().sum();
        let longest = items.iter().copied().max().unwrap_or_default();
        all as f64 * self.work.computing() / PROCESSOR + longest as f64 * self.work.waiting()
    }
}
