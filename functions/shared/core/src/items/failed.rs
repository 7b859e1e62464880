//! The failed items of a job in row order, over all attempts.
//!
//! A tally's marks say which runs won their chunks and whether they left failed items; only the run outputs of those
//! runs are read. Tallies, chunks and rows have the same order, so nothing is sorted and memory stays small. A
//! redrive's chunks hold the items that failed before it, with their failures. So a redrive chunk that is not
//! committed, or was skipped, tells which failures still stand, and only items that the redrive never dispatched are
//! read from the attempt before. If an attempt dispatched all of its items, no earlier attempt is read: its objects may
//! have expired.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::try_join_all;

use crate::items::input::read_redrive_items;
use crate::items::stored_job::StoredJob;
use crate::items::tally_pages::TallyPages;
use crate::items::{chunk_index, run_output};
use crate::model::ids::JobGuid;
use crate::model::keys;
use crate::model::run_output::FailedItem;
use crate::model::tally::{ChunkAddress, Mark, MarkKind, Tally};
use crate::ports::{JobStore, Objects, PortError};

/// Number of objects read at once. Each may hold a whole chunk with all of its outputs.
const OBJECTS_READ: usize = 8;

/// A walk through the failed items of a job.
pub struct FailedItems {
    jobs: Arc<dyn JobStore>,
    objects: Arc<dyn Objects>,
    job_guid: JobGuid,
    /// The current attempt of the walk.
    attempt: u32,
    /// The attempt at which the walk ends.
    base: u32,
    pages: TallyPages,
    /// Chunks of this attempt that may hold items and are not read yet.
    chunks: VecDeque<ChunkItems>,
    /// Items that are read and not returned yet.
    ready: VecDeque<Vec<FailedItem>>,
    /// Items up to this row are not returned.
    after: u64,
    objects_read: usize,
}

/// A chunk whose items may have failed.
#[derive(Clone, Copy)]
struct ChunkItems {
    address: ChunkAddress,
    /// The mark that names the run output. `None` if the items stand as before the redrive.
    mark: Option<Mark>,
}

impl FailedItems {
    /// The failed items of this job after row `after`, as they stand in or after its present attempt.
    pub async fn of(from: StoredJob<'_>, after: u64) -> Result<Self, PortError> {
        Self::enter_at(from, from.job.attempt, from.job.failures_since(), after).await
    }

    /// The items that failed before the present attempt of this job, after row `after`.
    pub async fn before(from: StoredJob<'_>, after: u64) -> Result<Self, PortError> {
        let attempt = from.job.attempt.saturating_sub(1).max(1);
        let base = from.job.redrive.as_ref().map_or(1, |redrive| redrive.base);
        Self::enter_at(from, attempt, base, after).await
    }

    async fn enter_at(from: StoredJob<'_>, attempt: u32, base: u32, after: u64) -> Result<Self, PortError> {
        Ok(Self {
            jobs: Arc::clone(from.jobs),
            objects: Arc::clone(from.objects),
            job_guid: from.job.job_guid,
            attempt,
            base,
            pages: TallyPages::of(from, attempt, after).await?,
            chunks: VecDeque::new(),
            ready: VecDeque::new(),
            after,
            objects_read: 0,
        })
    }

    pub const fn objects_read(&self) -> usize {
        self.objects_read
    }

    /// The row after which the walk continues.
    pub const fn after(&self) -> u64 {
        self.after
    }

    /// The next failed items, all of one chunk. `None` at the end.
    ///
    /// # Errors
    /// `Unavailable`; `NotFound` if the objects have expired.
    pub async fn next(&mut self) -> Result<Option<Vec<FailedItem>>, PortError> {
        loop {
            if let Some(mut items) = self.ready.pop_front() {
                items.retain(|item| item.row > self.after);
                if let Some(last) = items.last() {
                    self.after = last.row;
                    return Ok(Some(items));
                }
            } else if !self.chunks.is_empty() {
                self.read_objects().await?;
            } else if let Some(tallies) = self.pages.next().await? {
                self.chunks.extend(tallies.iter().flat_map(chunks_of));
            } else if !self.leave().await? {
                return Ok(None);
            }
        }
    }

    /// Moves on to the attempt before, for the items that this one did not dispatch. Returns whether there is one.
    async fn leave(&mut self) -> Result<bool, PortError> {
        if self.attempt <= self.base {
            return Ok(false);
        }
        if let Some(last) = self.pages.count().checked_sub(1) {
            let index = chunk_index::read(&*self.objects, self.job_guid, self.attempt, last, None).await?;
            self.after = self.after.max(index.end.offset);
        }
        self.attempt -= 1;
        self.pages = TallyPages::of_ended(&self.jobs, self.job_guid, self.attempt, self.after).await?;
        Ok(true)
    }

    async fn read_objects(&mut self) -> Result<(), PortError> {
        let count = self.chunks.len().min(OBJECTS_READ);
        let chunks: Vec<ChunkItems> = self.chunks.drain(..count).collect();
        self.objects_read += count;
        let (objects, job_guid) = (&*self.objects, self.job_guid);
        let reads: Vec<_> = chunks.into_iter().map(|chunk| read_chunk(objects, job_guid, chunk)).collect();
        self.ready.extend(try_join_all(reads).await?);
        Ok(())
    }
}

async fn read_chunk(objects: &dyn Objects, job: JobGuid, chunk: ChunkItems) -> Result<Vec<FailedItem>, PortError> {
    match chunk.mark {
        Some(mark) => Ok(run_output::read(objects, job, chunk.address, mark.run).await?.failed),
        None => {
            let bytes = objects.read(&keys::redrive_items(job, chunk.address)).await?;
            Ok(read_redrive_items(&bytes)?.into_iter().map(|item| item.failed).collect())
        }
    }
}

/// The chunks of a tally that may hold failed items.
fn chunks_of(tally: &Tally) -> impl Iterator<Item = ChunkItems> + '_ {
    let (attempt, number) = (tally.attempt, tally.number);
    let places = 0..u8::try_from(tally.expected).unwrap_or(u8::MAX);
    places.filter_map(move |index| {
        let mark = tally.mark(index);
        let address = ChunkAddress { attempt, tally: number, index };
        match mark.map(|mark| mark.kind) {
            Some(MarkKind::Clean | MarkKind::HasOutputs) => None,
            Some(MarkKind::HasFailed | MarkKind::Stopped) => Some(ChunkItems { address, mark }),
            Some(MarkKind::Skipped) | None => (attempt > 1).then_some(ChunkItems { address, mark: None }),
        }
    })
}
