//! Dispatching a tally: its messages are sent only once the job row counts it.

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use rowmill_core::items::chunk_index;
use rowmill_core::model::chunk_index::{ChunkIndex, StoredChunks};
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::Job;
use rowmill_core::model::keys;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::tally::{ChunkAddress, Tally};
use rowmill_core::ports::{Clock, JobStore, Objects, PortError, Queue};
use rowmill_core::progress::commit::window::ConcurrencyWindow;
use rowmill_core::progress::update::{Updated, update_job};
use rowmill_core::text::Position;

use crate::cut::CutTally;

/// Number of objects put at once.
const OBJECTS_PUT: usize = 8;

/// Dispatches the tallies of a job, in a run that holds the job's lease.
pub struct TallyDispatcher<'a> {
    pub jobs: &'a dyn JobStore,
    /// Stores the chunk indexes, and the text of chunks that are not a range of the upload.
    pub objects: &'a dyn Objects,
    /// The items queue.
    pub chunks: &'a dyn Queue<ChunkMessage>,
    /// Bounds how many chunks of the job have messages.
    pub window: &'a ConcurrencyWindow,
    pub clock: &'a dyn Clock,
    /// The run that holds the lease.
    pub run: RunId,
}

/// The next tally to dispatch: its number, and the border where it begins.
pub struct TallyPoint {
    pub number: u32,
    pub start: Position,
    /// Its row, if the job row counts it already. Only its messages may be missing then.
    pub counted: Option<Box<Tally>>,
}

impl TallyPoint {
    /// The index of the tally that this run cut here.
    pub fn index(&self, attempt: u32, run: RunId, cut: &CutTally) -> ChunkIndex {
        let stored = cut.stored.as_ref();
        ChunkIndex {
            start: self.start,
            end: self.behind(attempt, cut),
            chunks: cut.chunks.clone(),
            stored: stored.map(|cut| StoredChunks {
                by: run,
                weights: cut.weights.clone(),
                next: cut.next.clone(),
                next_file: cut.next_file,
            }),
            parts: cut.parts.clone(),
        }
    }

    /// The border after the tally that begins here.
    fn behind(&self, attempt: u32, tally: &CutTally) -> Position {
        match tally.chunks.last() {
            None => self.start,
            Some(last) if attempt == 1 => {
                Position { offset: last.offset + last.length, row: last.first_row + u64::from(last.items) }
            }
            Some(_) => Position {
                offset: tally.last_row,
                row: self.start.row + tally.chunks.iter().map(|chunk| u64::from(chunk.items)).sum::<u64>(),
            },
        }
    }
}

pub enum Dispatched {
    /// Its messages are sent. Holds the job that counts it, and the index of the tally that counts: another run may
    /// have put the tally first.
    Sent(Box<Job>, ChunkIndex),
    /// The job was stopped. This run still holds the lease and must end the split.
    Stopped,
    /// The job [is held back](Job::is_held_back). This run still holds the lease. A resend sends the chunks of the
    /// tally, if it is counted.
    HeldBack,
    /// Another run, or another attempt, has taken over.
    Superseded,
}

impl TallyDispatcher<'_> {
    /// Puts the tally, counts it, and sends its messages.
    pub async fn dispatch(
        &self,
        job: &Job,
        point: &TallyPoint,
        cut: &CutTally,
        index: ChunkIndex,
    ) -> Result<Dispatched, PortError> {
        let tally = self.put(job, point.number, cut, &index).await?;
        let index = match tally.stored_by == index.stored.as_ref().map(|stored| stored.by) {
            true => index,
            false => chunk_index::of(self.objects, job.job_guid, &tally).await?,
        };
        let now = self.clock.now();
        let count = |job: &Job| job.count_tally(self.run, point.number, index.end, now);
        let (job, delivery_mode) = match update_job(self.jobs, job, count).await? {
            Updated::Now(job) => (job, DeliveryMode::Fresh),
            // The reply was lost: the tally counts, so its messages must be sent. Others may have sent them since.
            Updated::Before(job) if job.is_held_by(self.run) && !job.is_held_back() => (job, DeliveryMode::Recovered),
            Updated::Before(now) | Updated::Refused(now) => {
                let is_ours = now.attempt == job.attempt && now.is_held_by(self.run);
                return Ok(match (is_ours, now.is_held_back()) {
                    (false, _) => Dispatched::Superseded,
                    (true, true) => Dispatched::HeldBack,
                    (true, false) => Dispatched::Stopped,
                });
            }
        };
        self.send(&job, &index, &tally, delivery_mode).await?;
        Ok(Dispatched::Sent(Box::new(job), index))
    }

    /// Sends the messages of a tally's chunks that are not committed yet, if they may be sent now.
    pub async fn send(
        &self,
        job: &Job,
        index: &ChunkIndex,
        tally: &Tally,
        delivery_mode: DeliveryMode,
    ) -> Result<(), PortError> {
        if !self.window.is_due(job, tally.attempt, tally.number).await? {
            return Ok(());
        }
        let missing = index.missing(job, tally, delivery_mode);
        self.chunks.send(&self.window.admit(job, missing).await?).await
    }

    /// Puts all that the receiver of a chunk reads, and then the tally row. Returns the row that is in the store:
    /// another run may have put it first.
    async fn put(&self, job: &Job, number: u32, cut: &CutTally, index: &ChunkIndex) -> Result<Tally, PortError> {
        let (job_guid, attempt) = (job.job_guid, job.attempt);
        let stored_by = index.stored.as_ref().map(|stored| stored.by);
        let key = |index| {
            let chunk = ChunkAddress { attempt, tally: number, index };
            stored_by.map_or_else(|| keys::redrive_items(job_guid, chunk), |by| keys::stored_text(job_guid, chunk, by))
        };
        let keyed = (0..)
            .zip(cut.inputs.iter().cloned())
            .filter(|(_, input)| !input.is_empty())
            .map(|(index, input)| (key(index), input));
        let puts: Vec<_> = keyed.map(|(key, input)| self.put_input(key, input)).collect();
        stream::iter(puts).buffer_unordered(OBJECTS_PUT).try_collect::<()>().await?;
        chunk_index::put(self.objects, job_guid, attempt, number, index).await?;
        let tally = Tally::of(attempt, number, index.start, &index.chunks, self.clock.now());
        self.jobs.put_tally(job_guid, &Tally { stored_by, ..tally }).await
    }

    async fn put_input(&self, key: String, input: Bytes) -> Result<(), PortError> {
        self.objects.put(&key, "application/x-ndjson", input, None).await.map(drop)
    }
}
