//! Estimates the usage of a job by its size, and the least time that it takes.
//!
//! The figures were measured with `rowmill bench` on a local stack with the template's defaults, on one machine: jobs
//! of 1,000 to 1,000,000 rows of 60 bytes in which no item fails. The requests follow from the code, the time is that
//! of the machine.

use rowmill_core::items::input::SHARED_READ_MAX_BYTES;
use rowmill_core::job_types::{IMPORT, undoable_dataset};
use rowmill_core::model::cost::Usage;
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::CHUNKS_PER_TALLY;
use rowmill_formats::RANGE_BYTES;

/// Number of requests that send the messages of a tally, 10 each.
const SENDS_PER_TALLY: u64 = 7;

/// To create, split and end a job without items.
const JOB: Usage = Usage {
    dynamodb_requests: 20,
    read_halves: 21,
    write_halves: 58,
    s3_reads: 2,
    s3_writes: 1,
    sqs_requests: 2,
    lambda_requests: 3,
    lambda_mb_ms: 50_000,
};

/// For each tally: its row, its count in the job row, its fold, its chunk index.
const TALLY: Usage = Usage { s3_writes: 1, ..Usage::of_row_writes(3) };

/// For each commit: the chunks of a tally that one invocation has.
const COMMIT: Usage = Usage::of_row_writes(1);

/// For each read of chunks.
const READ: Usage = Usage { s3_reads: 1, ..Usage::NONE };

/// For each invocation of `process-items`.
const INVOCATION: Usage =
    Usage { dynamodb_requests: 2, read_halves: 3, lambda_requests: 1, lambda_mb_ms: 2_000, ..Usage::NONE };

/// For each chunk with an output: its run output, which the composition reads.
const OUTPUT: Usage = Usage { s3_reads: 1, s3_writes: 1, ..Usage::NONE };

/// For each chunk of a packed file: its text, which the splitter stores.
const STORED: Usage = Usage { s3_writes: 1, ..Usage::NONE };

/// Usage of a thousand items of a type.
struct PerThousand {
    usage: Usage,
    /// Time a worker is busy with them.
    worker_ms: u64,
}

/// Of `validate`, and of every type that is not known here: what its items do is not known.
const CHECKED: PerThousand = PerThousand { usage: Usage { lambda_mb_ms: 1_200, ..Usage::NONE }, worker_ms: 1 };

/// Of a dry run of `import`: each record is read, 25 in a request. One of more than 4 KB costs more.
const COMPARED: PerThousand = PerThousand {
    usage: Usage { dynamodb_requests: 40, read_halves: 1_000, lambda_mb_ms: 100_000, ..Usage::NONE },
    worker_ms: 20,
};

/// Of `import`: each record is a write, in batches of 25. A record that replaces another one costs more.
const IMPORTED: PerThousand = PerThousand {
    usage: Usage { dynamodb_requests: 40, write_halves: 2_000, lambda_mb_ms: 500_000, ..Usage::NONE },
    worker_ms: 100,
};

/// Of an `import` that can be undone, if all its records are there: each is read before it is written, 25 in a request. One
/// of more than 4 KB costs more, and so does one that replaces another one.
const UNDOABLE: PerThousand = PerThousand {
    usage: Usage {
        dynamodb_requests: 80,
        read_halves: 1_000,
        write_halves: 2_000,
        lambda_mb_ms: 700_000,
        ..Usage::NONE
    },
    worker_ms: 140,
};

/// From the creation to the first chunk, and from the last chunk to the end, in seconds.
const AROUND_SECONDS: f64 = 0.2;

/// Speed of a splitter.
const SPLIT_BYTES_PER_SECOND: f64 = 100e6;

/// The input of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    pub items: u64,
    pub bytes: u64,
    /// A chunk never crosses files.
    pub files: u64,
    /// True if the items are counted and not judged.
    pub is_final: bool,
}

/// Expected usage and duration of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimate {
    pub chunks: u64,
    pub usage: Usage,
    pub seconds_at_least: f64,
}

/// Who works on the chunks of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Workers {
    /// Maximum number of chunks that run at once.
    pub at_once: u64,
    /// Maximum number of chunks of an invocation.
    pub chunks_per_invocation: u64,
    /// True if the job has `maxConcurrency`: then each chunk commits for itself.
    pub has_window: bool,
}

/// The estimate of a job over an input of this size.
pub fn of(spec: &Spec, size: Size, workers: Workers) -> Estimate {
    let item_bytes = (size.bytes / size.items.max(1)).max(1);
    let chunk_items = u64::from(spec.limits.max_items).min(spec.limits.max_bytes / item_bytes).max(1);
    let chunks = size.items.div_ceil(chunk_items).max(size.files.min(size.items));
    let per_thousand = match (spec.job_type.as_str(), spec.is_dry_run()) {
        (IMPORT, false) if undoable_dataset(spec).is_ok() => UNDOABLE,
        (IMPORT, false) => IMPORTED,
        (IMPORT, true) => COMPARED,
        _ => CHECKED,
    };
    let of_items = per_thousand.usage.zip_with(Usage::NONE, |units, _| {
        let units = u128::from(units) * u128::from(size.items) / 1000;
        u64::try_from(units).unwrap_or(u64::MAX)
    });
    let per_tally = CHUNKS_PER_TALLY as u64;
    let sends = chunks / per_tally * SENDS_PER_TALLY + (chunks % per_tally).div_ceil(10);
    let invocations = chunks.div_ceil(workers.chunks_per_invocation.max(1));
    // The chunks of an invocation are neighbours, and of one tally unless a tally ends among them.
    let groups = invocations + chunks / per_tally;
    let commits = if workers.has_window { chunks } else { groups.min(chunks) };
    let reads = match spec.source.is_stored() {
        true => chunks,
        false => groups.max(size.bytes / SHARED_READ_MAX_BYTES).min(chunks),
    };
    let mut usage = JOB
        + Usage { s3_reads: size.bytes.div_ceil(RANGE_BYTES), ..Usage::NONE.with_sends(sends) }
        + TALLY.times(chunks.div_ceil(per_tally))
        + COMMIT.times(commits)
        + READ.times(reads)
        + INVOCATION.times(invocations)
        + of_items;
    if spec.output.is_some() {
        usage += OUTPUT.times(chunks);
    }
    if spec.source.is_stored() {
        usage += STORED.times(chunks);
    }
    Estimate { chunks, usage, seconds_at_least: seconds(size, &per_thousand, chunks.min(workers.at_once)) }
}

/// The slower one of the split and the work on the items, and what is around both.
#[expect(clippy::cast_precision_loss, reason = "no input has 2^53 items or bytes")]
fn seconds(size: Size, per_thousand: &PerThousand, at_once: u64) -> f64 {
    let split = size.bytes as f64 / SPLIT_BYTES_PER_SECOND;
    let work = size.items as f64 * per_thousand.worker_ms as f64 / 1e6 / at_once.max(1) as f64;
    ((AROUND_SECONDS + split.max(work)) * 10.0).round() / 10.0
}
