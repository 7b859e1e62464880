//! The outputs of a job's items, in row order, however many attempts it had.
//!
//! A tally's marks say which runs won their chunks and whether they left outputs; only those runs' segments are read, so an
//! item's output is there once. An item succeeds in one attempt only, so the attempts' outputs are merged by their rows.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use futures::future::try_join_all;

use crate::failed_items::first_tally;
use crate::ids::JobGuid;
use crate::job::Job;
use crate::ports::{JobStore, Objects, PortError};
use crate::segment::{ItemOutput, Segment};
use crate::tally::{ChunkAddress, Mark, MarkKind, Tally};

/// How many tallies are read at once.
const TALLIES_READ: u32 = 64;

/// How many objects of an attempt are read at once: each may hold the outputs of a whole chunk.
const OBJECTS_READ: usize = 4;

/// A walk through the outputs of a job.
pub struct Outputs {
    attempts: Vec<AttemptOutputs>,
    missing: Vec<u32>,
}

impl Outputs {
    /// The outputs of this job behind row `after`, of its present attempt and all before it.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn of(
        jobs: Arc<dyn JobStore>,
        objects: Arc<dyn Objects>,
        job: &Job,
        after: u64,
    ) -> Result<Self, PortError> {
        let mut attempts = Vec::new();
        for attempt in 1..=job.attempt {
            let tallies = match attempt == job.attempt {
                true => job.split.tallies,
                false => jobs.totals(job.job_guid, attempt).await?.final_tallies.unwrap_or(0),
            };
            let first = first_tally(&*jobs, job.job_guid, attempt, tallies, after).await?;
            attempts.push(AttemptOutputs {
                jobs: Arc::clone(&jobs),
                objects: Arc::clone(&objects),
                job_guid: job.job_guid,
                attempt,
                tallies: first..tallies,
                chunks: VecDeque::new(),
                ready: VecDeque::new(),
                after,
            });
        }
        Ok(Self { attempts, missing: Vec::new() })
    }

    /// The attempts whose outputs have expired, wholly or in part, as found so far.
    pub fn missing(&self) -> &[u32] {
        &self.missing
    }

    /// The next output; none at the end.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn next(&mut self) -> Result<Option<ItemOutput>, PortError> {
        let mut first: Option<(usize, u64)> = None;
        for (place, attempt) in self.attempts.iter_mut().enumerate() {
            let row = match attempt.first_row().await {
                Err(PortError::NotFound) => {
                    self.missing.push(attempt.attempt);
                    attempt.give_up();
                    None
                }
                row => row?,
            };
            if let Some(row) = row
                && first.is_none_or(|(_, before)| row < before)
            {
                first = Some((place, row));
            }
        }
        Ok(first.and_then(|(place, _)| self.attempts[place].ready.pop_front()))
    }
}

/// The outputs of one attempt.
struct AttemptOutputs {
    jobs: Arc<dyn JobStore>,
    objects: Arc<dyn Objects>,
    job_guid: JobGuid,
    attempt: u32,
    /// Its tallies not read yet.
    tallies: Range<u32>,
    /// Its chunks that may hold outputs, not read yet.
    chunks: VecDeque<(ChunkAddress, Mark)>,
    /// What has been read and not given out.
    ready: VecDeque<ItemOutput>,
    /// Outputs up to this row are not given out.
    after: u64,
}

impl AttemptOutputs {
    /// The row of the first output that is left.
    async fn first_row(&mut self) -> Result<Option<u64>, PortError> {
        loop {
            if let Some(first) = self.ready.front() {
                return Ok(Some(first.row));
            }
            if !self.chunks.is_empty() {
                self.read_objects().await?;
            } else if !self.tallies.is_empty() {
                self.read_tallies().await?;
            } else {
                return Ok(None);
            }
        }
    }

    fn give_up(&mut self) {
        self.tallies = 0..0;
        self.chunks.clear();
        self.ready.clear();
    }

    async fn read_tallies(&mut self) -> Result<(), PortError> {
        let next = self.tallies.start.saturating_add(TALLIES_READ).min(self.tallies.end);
        for tally in self.jobs.tallies(self.job_guid, self.attempt, self.tallies.start..next).await? {
            self.chunks.extend(chunks_of(&tally));
        }
        self.tallies.start = next;
        Ok(())
    }

    async fn read_objects(&mut self) -> Result<(), PortError> {
        let count = self.chunks.len().min(OBJECTS_READ);
        let chunks: Vec<(ChunkAddress, Mark)> = self.chunks.drain(..count).collect();
        let (objects, job_guid) = (&*self.objects, self.job_guid);
        let reads: Vec<_> =
            chunks.into_iter().map(|(address, mark)| Segment::read(objects, job_guid, address, mark.run)).collect();
        for segment in try_join_all(reads).await? {
            self.ready.extend(segment.outputs.into_iter().filter(|output| output.row > self.after));
        }
        Ok(())
    }
}

/// The chunks of a tally that may hold outputs.
fn chunks_of(tally: &Tally) -> impl Iterator<Item = (ChunkAddress, Mark)> + '_ {
    let places = 0..u8::try_from(tally.expected).unwrap_or(u8::MAX);
    places.filter_map(move |index| {
        let mark = tally.mark(index)?;
        let has_segment = matches!(mark.kind, MarkKind::HasFailed | MarkKind::HasOutputs | MarkKind::Stopped);
        let address = ChunkAddress { attempt: tally.attempt, tally: tally.number, index };
        has_segment.then_some((address, mark))
    })
}
