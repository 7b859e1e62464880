//! How many items a chunk of a new job may have.
//!
//! Each chunk costs requests, and a worker that is idle costs time. So if items take microseconds, the chunks are as large
//! as they can be while every worker still has several of them. The limits are a part of the job's spec and never change.

use rowmill_core::model::spec::Source;
use rowmill_core::text::ChunkLimits;

use crate::limits::CreateLimits;
use crate::source::FirstText;

/// How many chunks each worker has at least, if the job has so many items: the last ones to end should be short.
const CHUNKS_PER_WORKER: u64 = 8;

/// The limits of a job whose items take microseconds, over a file that begins with this text.
pub fn of_fast_items(created: &CreateLimits, source: &Source, first: &FirstText) -> ChunkLimits {
    let (limits, workers) = (created.chunks, created.workers);
    let lines = first.bytes.iter().filter(|byte| **byte == b'\n').count().max(1);
    let line_bytes = (first.bytes.len() / lines).max(1);
    // The text of a packed file is longer than the file, so there are at least so many items.
    let items = source.file().map_or(0, |file| file.size) / line_bytes as u64;
    let for_all_workers = items / (u64::from(workers.max(1)) * CHUNKS_PER_WORKER);
    let max_items = for_all_workers
        .clamp(limits.max_items.into(), limits.max_items.saturating_mul(created.fast_factor.max(1)).into());
    ChunkLimits { max_items: u32::try_from(max_items).unwrap_or(limits.max_items), ..limits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowmill_core::fixtures;
    use rowmill_core::model::spec::SourceFile;

    #[test]
    fn chunks_grow_with_the_file_while_each_worker_has_several() {
        let Source::File(file) = fixtures::spec().source else { panic!("the job of the fixtures reads a file") };
        let limits = ChunkLimits { max_items: 500, max_bytes: 1 << 20, max_record_bytes: 1 << 20 };
        let created = CreateLimits { chunks: limits, fast_factor: 8, ..CreateLimits::default() };
        // Ten bytes a line.
        let first = FirstText { bytes: b"123456789\n".repeat(100).into(), whole: false };
        let items = |size, workers| {
            let source = Source::File(SourceFile { size, ..file.clone() });
            of_fast_items(&CreateLimits { workers, ..created }, &source, &first).max_items
        };
        assert_eq!(items(0, 2), 500);
        assert_eq!(items(10 * 16 * 500, 2), 500);
        assert_eq!(items(10 * 16 * 1000, 2), 1000);
        assert_eq!(items(10 * 16 * 1000, 4), 500);
        assert_eq!(items(u64::MAX, 2), 4000);
        let none = CreateLimits { workers: 0, fast_factor: 0, ..created };
        assert_eq!(of_fast_items(&none, &Source::File(file), &FirstText::default()), limits);
    }
}
