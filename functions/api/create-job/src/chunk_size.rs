//! The maximum number of items in a chunk of a new job.
//!
//! Each chunk costs requests, and a worker that is idle costs time. So chunks are as large as their items allow, while
//! every worker still has several of them. Items count when their chunk ends: so a small job of slow items has many
//! small chunks, or it would show no progress before its end. The limits are a part of the job's spec and never change.

use rowmill_core::model::spec::Source;
use rowmill_core::model::tally::CHUNKS_PER_TALLY;
use rowmill_core::ports::processor::CostClass;
use rowmill_core::text::ChunkLimits;
use rowmill_formats::FirstText;

use crate::limits::CreateLimits;

/// Minimum number of chunks of each worker, if the job has enough items: the last ones to end should be short.
const CHUNKS_PER_WORKER: u64 = 8;

/// The fewest items of a chunk that is made smaller for the sake of all workers: with fewer, a chunk costs more than
/// its items. It has a whole batch in any case, so that no service gets more calls for it.
const REMOTE_ITEMS_MIN: u64 = 50;

/// Bytes of a chunk of fast items: this many times the usual number, and a maximum. A worker holds the chunks of
/// an invocation in memory.
const FAST_BYTES_FACTOR: u64 = 4;
const FAST_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The properties of a job, beside its file, that decide about its chunks.
#[derive(Clone, Copy)]
pub struct Items {
    pub cost: CostClass,
    /// Items processed together.
    pub batch: usize,
    /// Number of items of a task, if workers process them: a chunk is a task.
    pub of_task: Option<u32>,
    /// True if they have outputs. Those of a chunk are held in memory, so it does not grow then.
    pub have_outputs: bool,
}

/// The limits of a job of such items, over a file that begins with this text.
pub fn of_items(items: Items, created: &CreateLimits, (source, first): (&Source, &FirstText)) -> ChunkLimits {
    if let Some(items) = items.of_task {
        return ChunkLimits { max_items: created.chunks.max_items.min(items.max(1)), ..created.chunks };
    }
    let (limits, Some(file)) = (created.chunks, source.file()) else { return created.chunks };
    let lines = first.bytes.iter().filter(|byte| **byte == b'\n').count().max(1);
    let line_bytes = (first.bytes.len() / lines).max(1) as u64;
    // The text of a packed file is longer than the file, so there are at least so many items.
    let for_all_workers = file.size / line_bytes / (u64::from(created.workers.max(1)) * CHUNKS_PER_WORKER);
    let usual = u64::from(limits.max_items);
    let (max_items, max_bytes) = match items.cost {
        CostClass::Fast if !items.have_outputs && for_all_workers > usual => {
            let factor = created.fast_factor.max(1);
            let most_items = limits.max_items.saturating_mul(factor).into();
            let most_bytes = limits.max_bytes.saturating_mul(FAST_BYTES_FACTOR.min(factor.into())).min(FAST_BYTES_MAX);
            let bytes = for_all_workers.saturating_mul(line_bytes).min(most_bytes).max(limits.max_bytes);
            (for_all_workers.min(most_items), bytes)
        }
        CostClass::Remote => {
            let batch = items.batch.max(1) as u64;
            // A small job has up to one tally of chunks, whatever they cost. Only of a text that was read whole is the
            // number of lines known: an estimate that is too low would make too many chunks.
            let for_progress = if first.whole { (lines as u64).div_ceil(CHUNKS_PER_TALLY as u64) } else { u64::MAX };
            let least = for_progress.min(REMOTE_ITEMS_MIN).next_multiple_of(batch);
            let least = least.min(REMOTE_ITEMS_MIN.max(batch)).min(usual);
            (for_all_workers.min(for_progress).clamp(least, usual), limits.max_bytes)
        }
        CostClass::Fast | CostClass::StoreBound => (usual, limits.max_bytes),
    };
    ChunkLimits { max_items: u32::try_from(max_items).unwrap_or(limits.max_items), max_bytes, ..limits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowmill_core::model::spec::SourceFile;
    use rowmill_testing::fixtures;

    const LIMITS: ChunkLimits = ChunkLimits { max_items: 500, max_bytes: 1 << 20, max_record_bytes: 1 << 20 };

    /// The limits of a job over a file of so many bytes, ten or a thousand of them a line.
    fn of(cost: CostClass, line_bytes: usize, size: u64, workers: u32) -> ChunkLimits {
        let created = CreateLimits { chunks: LIMITS, fast_factor: 20, workers, ..CreateLimits::default() };
        let line = format!("{}\n", "x".repeat(line_bytes - 1));
        let first = FirstText { bytes: line.repeat(100).into_bytes().into(), whole: false };
        of_items(of_cost(cost), &created, (&file(size), &first))
    }

    const fn of_cost(cost: CostClass) -> Items {
        Items { cost, batch: 1, of_task: None, have_outputs: false }
    }

    fn file(size: u64) -> Source {
        let Source::File(file) = fixtures::spec().source else { panic!("the job of the fixtures reads a file") };
        Source::File(SourceFile { size, ..file })
    }

    #[test]
    fn chunks_of_fast_items_grow_with_the_file_while_each_worker_has_several() {
        let items = |size, workers| of(CostClass::Fast, 10, size, workers).max_items;
        assert_eq!(items(0, 2), 500);
        assert_eq!(items(10 * 16 * 500, 2), 500);
        assert_eq!(items(10 * 16 * 1000, 2), 1000);
        assert_eq!(items(10 * 16 * 1000, 4), 500);
        assert_eq!(items(u64::MAX, 2), 10_000);
        assert_eq!(items(u64::MAX, 0), 10_000);
    }

    #[test]
    fn chunks_of_long_fast_items_grow_to_four_times_the_bytes() {
        let bytes = |line_bytes, size| of(CostClass::Fast, line_bytes, size, 2).max_bytes;
        assert_eq!(bytes(10, 10 * 16 * 1000), 1 << 20, "a thousand of them have less");
        assert_eq!(bytes(1000, 1000 * 16 * 400), 1 << 20, "the workers need smaller chunks");
        assert_eq!(bytes(1000, 1000 * 16 * 2000), 2_000_000);
        assert_eq!(bytes(1000, u64::MAX), 4 << 20);
    }

    #[test]
    fn chunks_of_remote_items_are_so_small_that_all_workers_have_some() {
        let items = |size, workers| of(CostClass::Remote, 10, size, workers).max_items;
        assert_eq!(items(10 * 2000, 50), 50);
        assert_eq!(items(10 * 16 * 100, 2), 100);
        assert_eq!(items(u64::MAX, 50), 500);
        let small = CreateLimits { chunks: ChunkLimits { max_items: 7, ..LIMITS }, ..CreateLimits::default() };
        let input = (&file(70), &FirstText::default());
        assert_eq!(of_items(of_cost(CostClass::Remote), &small, input).max_items, 7, "the operator's limit");
        let calls = Items { batch: 100, ..of_cost(CostClass::Remote) };
        let created = CreateLimits { chunks: LIMITS, ..CreateLimits::default() };
        assert_eq!(of_items(calls, &created, input).max_items, 100, "a whole call");
    }

    #[test]
    fn a_small_job_of_remote_items_has_a_tally_of_chunks_of_whole_batches() {
        let of_workers = |workers, lines: usize, batch, whole| {
            let first = FirstText { bytes: "x\n".repeat(lines).into_bytes().into(), whole };
            let created = CreateLimits { chunks: LIMITS, workers, ..CreateLimits::default() };
            let calls = Items { batch, ..of_cost(CostClass::Remote) };
            of_items(calls, &created, (&file(2 * lines as u64), &first)).max_items
        };
        let items = |lines, batch, whole| of_workers(50, lines, batch, whole);
        assert_eq!((items(50, 1, true), of_workers(1, 50, 1, true)), (1, 1));
        assert_eq!(items(51, 7, true), 7, "one batch");
        assert_eq!((items(64, 1, true), items(65, 1, true), items(640, 1, true)), (1, 2, 10));
        assert_eq!(items(640, 4, true), 12, "three batches");
        assert_eq!((items(3200, 1, true), items(30_000, 1, true)), (50, 75), "as many as before");
        assert_eq!((items(50, 100, true), items(50, 1000, true)), (100, 500), "a whole call, or the operator's limit");
        assert_eq!(items(50, 1, false), 50, "more text may follow");
        assert_eq!(items(50, 0, true), 1, "a batch that cannot be is no panic");
    }

    #[test]
    fn others_keep_the_limits() {
        assert_eq!(of(CostClass::StoreBound, 10, u64::MAX, 50), LIMITS);
        let created = CreateLimits { chunks: LIMITS, fast_factor: 0, ..CreateLimits::default() };
        let input = (&file(u64::MAX), &FirstText::default());
        let fast = of_cost(CostClass::Fast);
        assert_eq!(of_items(fast, &created, input), LIMITS, "without a factor");
        let created = CreateLimits { fast_factor: 20, ..created };
        assert_eq!(of_items(Items { have_outputs: true, ..fast }, &created, input), LIMITS, "with outputs");
        let dataset = Source::Dataset { dataset: "d".into(), keys_of: None };
        for cost in [CostClass::Fast, CostClass::Remote] {
            assert_eq!(
                of_items(of_cost(cost), &created, (&dataset, input.1)),
                LIMITS,
                "the number of items is unknown"
            );
        }
    }
}
