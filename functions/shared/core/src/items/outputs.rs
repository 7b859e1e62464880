//! The outputs of a job's items in row order, over all attempts.
//!
//! A tally's marks say which runs won their chunks and whether they left outputs; only the run outputs of those runs
//! are read, so each output appears once. An item succeeds in one attempt only, so the outputs of all attempts are
//! merged by row.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::try_join_all;

use crate::items::run_output;
use crate::items::stored_job::StoredJob;
use crate::items::tally_pages::TallyPages;
use crate::model::ids::JobGuid;
use crate::model::run_output::ItemOutput;
use crate::model::tally::{ChunkAddress, Mark, MarkKind, Tally};
use crate::ports::{Objects, PortError};

/// Number of objects of each attempt read at once. Each may hold the outputs of a whole chunk.
const OBJECTS_READ: usize = 2;

/// A walk through the outputs of a job.
pub struct Outputs {
    attempts: Vec<AttemptOutputs>,
    missing: Vec<u32>,
}

/// The result of one step of the walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    Output(ItemOutput),
    /// No output in the objects read; there are more objects.
    Nothing,
    End,
}

impl Outputs {
    /// The outputs of this job after row `after`, of its present and all earlier attempts.
    pub async fn of(from: StoredJob<'_>, after: u64) -> Result<Self, PortError> {
        let mut attempts = Vec::new();
        for attempt in 1..=from.job.attempt {
            attempts.push(AttemptOutputs {
                objects: Arc::clone(from.objects),
                job_guid: from.job.job_guid,
                attempt,
                pages: TallyPages::of(from, attempt, after).await?,
                chunks: VecDeque::new(),
                ready: VecDeque::new(),
                after,
                read_to: after,
                is_read: false,
            });
        }
        Ok(Self { attempts, missing: Vec::new() })
    }

    /// The attempts found so far whose outputs have expired, at least in part.
    pub fn missing(&self) -> &[u32] {
        &self.missing
    }

    /// The row up to which all outputs have been returned.
    pub fn after(&self) -> u64 {
        self.attempts.iter().filter_map(AttemptOutputs::given_to).min().unwrap_or(u64::MAX)
    }

    /// The next output, or a step towards it: one step reads a few objects, and many may hold no outputs.
    pub async fn next(&mut self) -> Result<Found, PortError> {
        for attempt in &mut self.attempts {
            if attempt.ready.is_empty() && !attempt.is_read {
                match attempt.read().await {
                    Err(PortError::NotFound) => {
                        self.missing.push(attempt.attempt);
                        attempt.give_up();
                    }
                    read => read?,
                }
                return Ok(Found::Nothing);
            }
        }
        let first = self.attempts.iter_mut().filter(|attempt| !attempt.ready.is_empty());
        let first = first.min_by_key(|attempt| attempt.ready.front().map(|output| output.row));
        Ok(first.and_then(AttemptOutputs::give).map_or(Found::End, Found::Output))
    }
}

struct AttemptOutputs {
    objects: Arc<dyn Objects>,
    job_guid: JobGuid,
    attempt: u32,
    pages: TallyPages,
    /// Chunks of this attempt that may hold outputs and are not read yet.
    chunks: VecDeque<(ChunkAddress, Mark)>,
    /// Outputs that are read and not returned yet.
    ready: VecDeque<ItemOutput>,
    /// Outputs up to this row are not returned.
    after: u64,
    /// Everything up to this row has been read or returned.
    read_to: u64,
    /// True if nothing is left to read.
    is_read: bool,
}

impl AttemptOutputs {
    /// The row up to which its outputs have been returned. `None` if all have.
    fn given_to(&self) -> Option<u64> {
        match self.ready.front() {
            Some(next) => Some(next.row - 1),
            None if self.is_read => None,
            None => Some(self.read_to),
        }
    }

    fn give(&mut self) -> Option<ItemOutput> {
        let output = self.ready.pop_front()?;
        self.read_to = output.row;
        Some(output)
    }

    /// Reads a page of tallies, or a few objects.
    async fn read(&mut self) -> Result<(), PortError> {
        if !self.chunks.is_empty() {
            return self.read_objects().await;
        }
        match self.pages.next().await? {
            Some(tallies) => self.chunks.extend(tallies.iter().flat_map(chunks_of)),
            None => self.is_read = true,
        }
        Ok(())
    }

    fn give_up(&mut self) {
        self.is_read = true;
        self.chunks.clear();
        self.ready.clear();
    }

    async fn read_objects(&mut self) -> Result<(), PortError> {
        let count = self.chunks.len().min(OBJECTS_READ);
        let chunks: Vec<(ChunkAddress, Mark)> = self.chunks.drain(..count).collect();
        let (objects, job_guid) = (&*self.objects, self.job_guid);
        let reads: Vec<_> =
            chunks.into_iter().map(|(address, mark)| run_output::read(objects, job_guid, address, mark.run)).collect();
        for run_output in try_join_all(reads).await? {
            // If a chunk has no outputs, only its failed rows show how far the walk is.
            self.read_to = self.read_to.max(run_output.failed.last().map_or(0, |failed| failed.row));
            self.ready.extend(run_output.outputs.into_iter().filter(|output| output.row > self.after));
        }
        Ok(())
    }
}

/// The chunks of a tally that may hold outputs.
fn chunks_of(tally: &Tally) -> impl Iterator<Item = (ChunkAddress, Mark)> + '_ {
    let places = 0..u8::try_from(tally.expected).unwrap_or(u8::MAX);
    places.filter_map(move |index| {
        let mark = tally.mark(index)?;
        let has_run_output = matches!(mark.kind, MarkKind::HasFailed | MarkKind::HasOutputs | MarkKind::Stopped);
        let address = ChunkAddress { attempt: tally.attempt, tally: tally.number, index };
        has_run_output.then_some((address, mark))
    })
}
