//! Reads a file in ranges. Several of them are in flight while the one before is used.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use rowmill_core::model::spec::SourceFile;
use rowmill_core::ports::{Objects, PortError, patience};
use tokio::task::JoinHandle;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadAhead {
    /// Size of a range, in bytes; 0 counts as 1.
    pub range_bytes: u64,
    /// Number of ranges in flight; 0 counts as 1.
    pub reads: usize,
}

/// Reads a file in ranges from a given byte to its end, and hands them out in their order.
///
/// It holds [`ReadAhead::reads`] ranges at most, in flight or waiting for their turn, beside the one that it has handed
/// out. Dropping it cancels all reads.
pub struct SourceReader {
    objects: Arc<dyn Objects>,
    file: SourceFile,
    range_bytes: u64,
    /// Maximum number of reads in flight behind the range that is handed out next: now, and ever.
    ahead: usize,
    ahead_max: usize,
    next_offset: u64,
    /// In the order of the file.
    in_flight: VecDeque<RangeRead>,
}

/// A read in flight. Dropping it cancels it.
struct RangeRead {
    range: Range<u64>,
    task: JoinHandle<Result<Bytes, PortError>>,
}

impl Drop for RangeRead {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SourceReader {
    /// A reader of `file` from byte `offset` on. It must be used within a tokio runtime.
    pub fn new(objects: Arc<dyn Objects>, file: SourceFile, offset: u64, ahead: ReadAhead) -> Self {
        let (range_bytes, ahead) = (ahead.range_bytes.max(1), ahead.reads.max(1));
        Self { objects, file, range_bytes, ahead, ahead_max: ahead, next_offset: offset, in_flight: VecDeque::new() }
    }

    /// A reader for a caller that may need the range at `offset` only. It reads one range ahead from the second range
    /// on, and twice as many with each further one.
    pub fn careful(objects: Arc<dyn Objects>, file: SourceFile, offset: u64, ahead: ReadAhead) -> Self {
        Self { ahead: 0, ..Self::new(objects, file, offset, ahead) }
    }

    /// The next range, or `None` at the end of the file. An error of a range comes when its turn has come; a further
    /// call begins again with this range.
    ///
    /// # Errors
    /// `NotFound` or `Changed` if the object was deleted or replaced since the job was created.
    pub async fn next(&mut self) -> Result<Option<Bytes>, PortError> {
        self.fetch(self.ahead.max(1));
        let Some(first) = self.in_flight.front_mut() else { return Ok(None) };
        let read = (&mut first.task).await;
        let range = self.in_flight.pop_front().map_or(0..0, |first| first.range.clone());
        match read.map_err(|error| PortError::unavailable("reading the file", error)).flatten() {
            Ok(bytes) => {
                self.fetch(self.ahead);
                self.ahead = (self.ahead * 2).clamp(1, self.ahead_max);
                Ok(Some(bytes))
            }
            Err(error) => {
                self.in_flight.clear();
                self.next_offset = range.start;
                Err(error)
            }
        }
    }

    /// Where the next range begins that [`next`](Self::next) returns.
    pub fn offset(&self) -> u64 {
        self.in_flight.front().map_or(self.next_offset, |first| first.range.start)
    }

    /// Starts reads until so many are in flight, or the file ends.
    fn fetch(&mut self, reads: usize) {
        while self.in_flight.len() < reads && self.next_offset < self.file.size {
            let end = self.next_offset.saturating_add(self.range_bytes).min(self.file.size);
            let range = self.next_offset..end;
            self.next_offset = end;
            let (objects, file, wanted) = (Arc::clone(&self.objects), self.file.clone(), range.clone());
            let read = async move {
                let length = wanted.end - wanted.start;
                let bytes = objects.read_range(&file.key, &file.etag, wanted).await?;
                // If the pinned object is shorter than before, it was replaced.
                if bytes.len() as u64 == length { Ok(bytes) } else { Err(PortError::Changed) }
            };
            let task = tokio::spawn(patience::of(patience::current(), read));
            self.in_flight.push_back(RangeRead { range, task });
        }
    }
}
