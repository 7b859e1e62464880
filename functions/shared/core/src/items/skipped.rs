//! The items of a stopped job that were dispatched and never processed, in row order.
//!
//! Only the first attempt has skipped items: an item that a redrive skips keeps its earlier failure.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::items::input::{SHARED_READ_MAX_BYTES, follows};
use crate::items::stored_job::StoredJob;
use crate::items::tally_pages::TallyPages;
use crate::items::{chunk_index, run_output};
use crate::model::files::Part;
use crate::model::ids::{JobGuid, RunId};
use crate::model::tally::{ChunkAddress, MarkKind, Tally};
use crate::ports::{Objects, PortError};
use crate::text::{Chunk, ChunkMode};

/// A walk through the chunks of a job with items that were skipped.
pub struct SkippedItems {
    objects: Arc<dyn Objects>,
    job_guid: JobGuid,
    pages: TallyPages,
    /// Tallies with skipped items, whose chunks are not read yet.
    tallies: VecDeque<Tally>,
    /// Chunks that are read and not returned yet.
    ready: VecDeque<SkippedChunk>,
    /// Items up to this row are not returned.
    after: u64,
}

/// A chunk with items that were skipped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkippedChunk {
    pub address: ChunkAddress,
    pub chunk: Chunk,
    /// The run of the splitter that stored its text. `None` if the text is a range of the upload.
    pub stored_by: Option<RunId>,
    /// Where it comes from, in a job over many files.
    pub part: Option<Part>,
    /// The skipped rows; they reach to the end of the chunk.
    pub rows: Range<u64>,
}

impl SkippedItems {
    /// The skipped items of this job after row `after`.
    pub async fn of(from: StoredJob<'_>, after: u64) -> Result<Self, PortError> {
        Ok(Self {
            objects: Arc::clone(from.objects),
            job_guid: from.job.job_guid,
            pages: TallyPages::of(from, 1, after).await?,
            tallies: VecDeque::new(),
            ready: VecDeque::new(),
            after,
        })
    }

    /// The next chunk. `None` at the end.
    ///
    /// # Errors
    /// `Unavailable`; `NotFound` if the objects have expired.
    pub async fn next(&mut self) -> Result<Option<SkippedChunk>, PortError> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            if let Some(tally) = self.tallies.pop_front() {
                self.read_chunks(&tally).await?;
            } else if let Some(page) = self.pages.next().await? {
                self.tallies.extend(page.into_iter().filter(|tally| tally.counts.skipped > 0));
            } else {
                return Ok(None);
            }
        }
    }

    /// The end of the bytes that one request can read for this chunk, which was returned last, and those behind it.
    pub fn end_of_read(&self, chunk: &Chunk) -> u64 {
        let mut last = *chunk;
        for SkippedChunk { chunk: next, stored_by, .. } in &self.ready {
            let is_range = stored_by.is_none() && next.mode == ChunkMode::Items;
            if !is_range || !follows(&last, next) || next.end() - chunk.offset > SHARED_READ_MAX_BYTES {
                break;
            }
            last = *next;
        }
        last.end()
    }

    async fn read_chunks(&mut self, tally: &Tally) -> Result<(), PortError> {
        let index = chunk_index::of(&*self.objects, self.job_guid, tally).await?;
        for (place, chunk) in (0_u8..).zip(index.chunks.iter().copied()) {
            let end = chunk.first_row + u64::from(chunk.items);
            if end <= self.after.saturating_add(1) {
                continue;
            }
            let address = ChunkAddress { attempt: 1, tally: tally.number, index: place };
            if let Some(first) = self.first_skipped(tally, address, &chunk).await? {
                let rows = first.max(self.after.saturating_add(1))..end;
                self.ready.push_back(SkippedChunk {
                    address,
                    chunk,
                    stored_by: tally.stored_by,
                    part: index.part(place).cloned(),
                    rows,
                });
            }
        }
        Ok(())
    }

    /// The row from which a chunk was skipped: its first row, or the row at which its run was stopped.
    async fn first_skipped(
        &self,
        tally: &Tally,
        address: ChunkAddress,
        chunk: &Chunk,
    ) -> Result<Option<u64>, PortError> {
        Ok(match tally.mark(address.index) {
            Some(mark) if mark.kind == MarkKind::Stopped => {
                run_output::read(&*self.objects, self.job_guid, address, mark.run).await?.skipped_from
            }
            Some(mark) if mark.kind == MarkKind::Skipped => Some(chunk.first_row),
            None if tally.is_closed() => Some(chunk.first_row),
            _ => None,
        })
    }
}
