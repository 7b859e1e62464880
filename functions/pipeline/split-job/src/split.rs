//! Cutting a job's file into chunks and sending them out, a tally at a time.
//!
//! For every tally of 64 chunks, in this order: its chunk index and the tally row are put, the job row counts it, its
//! messages are sent. So no message of a tally ever leaves before the job row counts it, and a crash between any two steps
//! leaves either a tally row nobody counts (harmless: it is put again, the same) or a counted tally whose messages are sent
//! again.

use rowmill_core::items::chunk_index;
use rowmill_core::model::keys;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use rowmill_core::model::chunk_index::{ChunkIndex, RecordPosition, StoredChunks};
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::{Job, Lease, Stop, StopCode};
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode, SplitMessage};
use rowmill_core::model::records::dataset_of;
use rowmill_core::model::spec::{Source, Spec};
use rowmill_core::model::tally::{CHUNKS_PER_TALLY, ChunkAddress, Tally};
use rowmill_core::ports::{Clock, Entropy, JobStore, Leased, Objects, PortError, Queue, RecordStore, WriteLost};
use rowmill_core::progress::JobSteps;
use rowmill_core::text::{Position, SCANNER_VERSION};

use crate::cut::{CutError, CutTally, FileCut};
use crate::dataset::DatasetCut;
pub use crate::limits::SplitLimits;
use crate::packed::PackedCut;
use crate::redrive::RedriveCut;

/// The most tallies an attempt may have: their numbers must fit into one row of the table (400 KB).
pub const TALLIES_MAX: u32 = 65_536;

/// How many objects are put at once.
const OBJECTS_PUT: usize = 8;

/// The use case and the ports it works through.
pub struct Splitter {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// The files.
    pub objects: Arc<dyn Objects>,
    /// The datasets.
    pub records: Arc<dyn RecordStore>,
    /// Where chunks go.
    pub chunks: Arc<dyn Queue<ChunkMessage>>,
    /// Where a split that ran out of time goes on.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    /// What is due when a split ends.
    pub steps: JobSteps,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names for runs.
    pub entropy: Arc<dyn Entropy>,
    /// The limits.
    pub limits: SplitLimits,
}

/// How an invocation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SplitEnd {
    /// The file is cut to its end, or the job was stopped.
    Finished,
    /// Time was up; a message to go on is on its way.
    Continued,
    /// Nothing to do here: the job is gone or past, or another run is at it.
    NotOurs,
}

impl Splitter {
    /// Splits the job from wherever its row says, until the end of the file or of the time.
    ///
    /// # Errors
    /// A port that is unavailable: deliver the message again.
    pub async fn split(&self, message: &SplitMessage, deadline: Timestamp) -> Result<SplitEnd, PortError> {
        let job = match self.jobs.job(message.job_guid).await {
            Err(PortError::NotFound) => return Ok(SplitEnd::NotOurs),
            job => job?,
        };
        if job.is_past(message.attempt) {
            return Ok(SplitEnd::NotOurs);
        }
        if job.split.done {
            self.steps.split_end.announce(&job).await?;
            return Ok(SplitEnd::Finished);
        }
        let now = self.clock.now();
        let run = self.entropy.run_id();
        let lease = Lease { holder: run, until: now + self.limits.lease() };
        match self.jobs.lease(message.job_guid, message.attempt, lease, now).await? {
            Leased::Refused(_) => Ok(SplitEnd::NotOurs),
            Leased::Taken(job) => {
                let end = self.split_leased(&job, run, deadline).await;
                if end.is_err() {
                    // Whoever gets the message next need not wait for the lease to run out.
                    self.jobs.release(job.job_guid, run).await.ok();
                }
                end
            }
        }
    }

    async fn split_leased(&self, job: &Job, run: RunId, deadline: Timestamp) -> Result<SplitEnd, PortError> {
        let mut point = self.resume_point(job).await?;
        if job.stop.is_some() || job.split.done {
            return self.finish(job, run, &point).await;
        }
        let spec = self.jobs.spec(job.job_guid).await?;
        if job.redrive.is_none() && spec.scanner_version != SCANNER_VERSION {
            return self.stop(job, run, &point, StopCode::ScannerChanged, SCANNER_CHANGED.to_owned()).await;
        }
        let resumed = point.number;
        if let Some(tally) = point.counted.take() {
            let index = chunk_index::of(&*self.objects, job.job_guid, &tally).await?;
            self.send(job, &index, &tally, DeliveryMode::Recovered).await?;
            point = TallyPoint { number: point.number + 1, start: index.end, counted: None };
        }
        let mut cut = self.cut(job, &spec, &point).await?;
        loop {
            if self.clock.now() >= job.deadline_at {
                return self.stop_for(job, run, &point, &Stop::deadline_exceeded(self.clock.now())).await;
            }
            // Less than the margin, which is for what comes after the cut.
            let tally = match cut.next_tally(deadline - self.limits.margin / 4).await {
                Ok(tally) => tally,
                Err(CutError::Stopped(stop)) => return self.stop_for(job, run, &point, &stop).await,
                Err(CutError::OutOfTime) if point.number > resumed => return self.hand_over(job, run, &point).await,
                // The next invocation would get no further than this one.
                Err(CutError::OutOfTime) => {
                    return self.stop(job, run, &point, StopCode::SplitTimeout, SPLIT_TIMEOUT.to_owned()).await;
                }
                Err(CutError::Port(error)) => return Err(error),
            };
            if tally.chunks.is_empty() {
                return self.end(job, run).await;
            }
            if point.number >= TALLIES_MAX {
                return self.stop(job, run, &point, StopCode::FileTooLong, too_long()).await;
            }
            let index = point.index(job.attempt, &spec, run, &tally);
            match self.dispatch(job, run, &point, &tally, index).await? {
                Dispatched::Sent(index) => {
                    if index.stored.as_ref().is_some_and(|stored| stored.by != run) {
                        cut.go_on_behind(&index);
                    }
                    point = TallyPoint { number: point.number + 1, start: index.end, counted: None };
                }
                Dispatched::Stopped => return self.finish(job, run, &point).await,
                Dispatched::Superseded => return Ok(SplitEnd::NotOurs),
            }
            if self.clock.now() + self.limits.margin >= deadline {
                return self.hand_over(job, run, &point).await;
            }
        }
    }

    async fn cut(&self, job: &Job, spec: &Spec, point: &TallyPoint) -> Result<Cut, PortError> {
        let (objects, clock, start) = (Arc::clone(&self.objects), Arc::clone(&self.clock), point.start);
        Ok(match (&job.redrive, &spec.source) {
            (Some(redrive), _) => {
                let jobs = Arc::clone(&self.jobs);
                let cut = RedriveCut::new(jobs, objects, clock, job, redrive, spec.limits, start).await?;
                Cut::Redrive(Box::new(cut))
            }
            (None, Source::File(file)) => {
                Cut::File(Box::new(FileCut::new(objects, clock, spec, file, start, self.limits.range_bytes)))
            }
            (None, Source::Packed { file, packing }) => {
                let (source, limits) = ((file, packing), self.limits.packed.into());
                Cut::Packed(Box::new(PackedCut::new(objects, clock, spec, source, start, limits)))
            }
            (None, Source::Dataset { dataset }) => {
                let at = self.records_before(job, point).await?;
                let (records, dataset) = (Arc::clone(&self.records), dataset_of(&spec.owner, dataset));
                Cut::Dataset(Box::new(DatasetCut::new(records, clock, dataset, spec.limits, start, at)))
            }
        })
    }

    /// Behind which record of a dataset the tally at this point begins.
    async fn records_before(&self, job: &Job, point: &TallyPoint) -> Result<RecordPosition, PortError> {
        let Some(before) = point.number.checked_sub(1) else { return Ok(RecordPosition::default()) };
        let tally = self.jobs.tally(job.job_guid, job.attempt, before).await?;
        let index = chunk_index::of(&*self.objects, job.job_guid, &tally).await?;
        index
            .next_record()
            .ok_or_else(|| PortError::invalid("going on with a dataset", "the chunk index does not say where"))
    }

    /// Stops the job at the tally it cannot get past.
    async fn stop(
        &self,
        job: &Job,
        run: RunId,
        point: &TallyPoint,
        code: StopCode,
        message: String,
    ) -> Result<SplitEnd, PortError> {
        let Position { offset, row } = point.start;
        let place = job.redrive.is_none().then_some((row, offset));
        let (row, offset) = place.unzip();
        let stop = Stop { code, message, row, offset, at: self.clock.now() };
        self.stop_for(job, run, point, &stop).await
    }

    async fn stop_for(&self, job: &Job, run: RunId, point: &TallyPoint, stop: &Stop) -> Result<SplitEnd, PortError> {
        // A run that was frozen until its lease had run out must not stop a job that somebody else is splitting.
        let now = self.clock.now();
        let lease = Lease { holder: run, until: now + self.limits.lease() };
        if let Leased::Refused(_) = self.jobs.lease(job.job_guid, job.attempt, lease, now).await? {
            return Ok(SplitEnd::NotOurs);
        }
        self.jobs.stop(job.job_guid, job.attempt, stop).await?;
        self.finish(job, run, point).await
    }

    /// Where to go on: at the tally whose messages may not all have been sent, else behind the last one.
    async fn resume_point(&self, job: &Job) -> Result<TallyPoint, PortError> {
        if job.split.dispatched < job.split.tallies {
            let number = job.split.tallies - 1;
            let tally = self.jobs.tally(job.job_guid, job.attempt, number).await?;
            return Ok(TallyPoint { number, start: tally.start, counted: Some(Box::new(tally)) });
        }
        Ok(TallyPoint { number: job.split.tallies, start: job.split.cursor, counted: None })
    }

    /// Puts the tally, counts it, sends its messages. The index of the tally that counts: another run may have put it first.
    async fn dispatch(
        &self,
        job: &Job,
        run: RunId,
        point: &TallyPoint,
        cut: &CutTally,
        index: ChunkIndex,
    ) -> Result<Dispatched, PortError> {
        let tally = self.put(job, point.number, cut, &index).await?;
        let index = match tally.stored_by == index.stored.as_ref().map(|stored| stored.by) {
            true => index,
            false => chunk_index::of(&*self.objects, job.job_guid, &tally).await?,
        };
        let now = self.clock.now();
        match self.jobs.count_tally(job.job_guid, job.attempt, run, point.number, index.end, now).await {
            Ok(()) => {}
            Err(WriteLost::Port(error)) => return Err(error),
            Err(WriteLost::Condition(now)) => {
                let ours = now.attempt == job.attempt && now.lease.is_some_and(|lease| lease.holder == run);
                let counted_before = now.split.tallies == point.number + 1 && now.split.cursor == index.end;
                match (ours, counted_before) {
                    (false, _) => return Ok(Dispatched::Superseded),
                    // Our own write, whose reply was lost: the tally counts, so its messages must leave.
                    (true, true) => {}
                    (true, false) => return Ok(Dispatched::Stopped),
                }
            }
        }
        self.send(job, &index, &tally, DeliveryMode::Fresh).await?;
        Ok(Dispatched::Sent(index))
    }

    /// Sends the messages of a tally's chunks, less the ones that are committed.
    async fn send(
        &self,
        job: &Job,
        index: &ChunkIndex,
        tally: &Tally,
        delivery_mode: DeliveryMode,
    ) -> Result<(), PortError> {
        let places = (0..).take(index.chunks.len()).filter(|place: &u8| tally.mark(*place).is_none());
        let address = |index| ChunkAddress { attempt: tally.attempt, tally: tally.number, index };
        let message = |place| index.message(job.job_guid, &job.owner, address(place), delivery_mode);
        let messages = places.filter_map(message).collect();
        self.chunks.send(&self.steps.window.admit(messages).await?).await
    }

    /// Everything that a chunk's receiver looks up, before the row that lets its message leave. The tally that is there
    /// then.
    async fn put(&self, job: &Job, number: u32, cut: &CutTally, index: &ChunkIndex) -> Result<Tally, PortError> {
        let (job_guid, attempt) = (job.job_guid, job.attempt);
        let stored_by = index.stored.as_ref().map(|stored| stored.by);
        let key = |index| {
            let chunk = ChunkAddress { attempt, tally: number, index };
            stored_by.map_or_else(|| keys::redrive_items(job_guid, chunk), |by| keys::stored_text(job_guid, chunk, by))
        };
        let keyed = (0..).zip(cut.inputs.iter().cloned()).map(|(index, input)| (key(index), input));
        let puts: Vec<_> = keyed.map(|(key, input)| self.put_input(key, input)).collect();
        stream::iter(puts).buffer_unordered(OBJECTS_PUT).try_collect::<()>().await?;
        chunk_index::put(&*self.objects, job_guid, attempt, number, &index).await?;
        let tally = Tally::of(attempt, number, index.start, &index.chunks, self.clock.now());
        self.jobs.put_tally(job_guid, &Tally { stored_by, ..tally }).await
    }

    async fn put_input(&self, key: String, input: Bytes) -> Result<(), PortError> {
        self.objects.put(&key, "application/x-ndjson", input, None).await.map(drop)
    }

    /// All items are dispatched.
    async fn end(&self, job: &Job, run: RunId) -> Result<SplitEnd, PortError> {
        let ended = self.steps.split_end.finish(job, run, true).await?;
        Ok(if ended { SplitEnd::Finished } else { SplitEnd::NotOurs })
    }

    /// The job is stopped, so there will be no more tallies: the job row says so, then the totals. A tally that counts and
    /// whose messages may never leave now is closed without them.
    async fn finish(&self, job: &Job, run: RunId, point: &TallyPoint) -> Result<SplitEnd, PortError> {
        if point.counted.is_some() {
            self.steps.committer.close_without_rest(job, point.number).await?;
        }
        let ended = self.steps.split_end.finish(job, run, false).await?;
        Ok(if ended { SplitEnd::Finished } else { SplitEnd::NotOurs })
    }

    /// Time is up. The lease is given back before the message to go on is sent, so that whoever receives it can begin.
    async fn hand_over(&self, job: &Job, run: RunId, point: &TallyPoint) -> Result<SplitEnd, PortError> {
        match self.jobs.pause_split(job.job_guid, job.attempt, run, self.clock.now()).await {
            Ok(()) => {}
            // Given back by this very write, whose reply was lost: the message must still leave.
            Err(WriteLost::Condition(now)) if now.lease.is_none() && !now.is_past(job.attempt) => {}
            Err(WriteLost::Condition(_)) => return Ok(SplitEnd::NotOurs),
            Err(WriteLost::Port(error)) => return Err(error),
        }
        let message = SplitMessage { tallies: point.number, ..SplitMessage::of(job) };
        self.splits.send(&[message]).await?;
        Ok(SplitEnd::Continued)
    }
}

const SCANNER_CHANGED: &str =
    "another version of Rowmill began to cut the file, and this one would cut it otherwise; create a new job";

const SPLIT_TIMEOUT: &str = "64 chunks could not be cut from here within the time limit of split-job; look for a quote that is \
     never closed, or raise SplitTimeoutSeconds";

fn too_long() -> String {
    format!(
        "the file needs more than {TALLIES_MAX} tallies of {CHUNKS_PER_TALLY} chunks; split it, or raise the chunk limits"
    )
}

/// A tally about to be dispatched.
struct TallyPoint {
    number: u32,
    start: Position,
    /// Its row, where the job row counts it already; only its messages may be missing.
    counted: Option<Box<Tally>>,
}

impl TallyPoint {
    /// The index of the tally that begins here and was cut by this run.
    fn index(&self, attempt: u32, spec: &Spec, run: RunId, cut: &CutTally) -> ChunkIndex {
        let stored = cut.stored.as_ref();
        ChunkIndex {
            start: self.start,
            end: self.behind(attempt, cut),
            max_concurrency: spec.max_concurrency,
            chunks: cut.chunks.clone(),
            stored: stored.map(|cut| StoredChunks { by: run, weights: cut.weights.clone(), next: cut.next.clone() }),
        }
    }

    /// The border behind the tally that begins here.
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

enum Dispatched {
    /// Its messages are out.
    Sent(ChunkIndex),
    /// The job was stopped; this run still holds the lease and has the split to end.
    Stopped,
    /// Another run, or another attempt, has taken over.
    Superseded,
}

/// What is being cut.
enum Cut {
    /// The upload, in the first attempt.
    File(Box<FileCut>),
    /// A packed upload, in the first attempt.
    Packed(Box<PackedCut>),
    /// A dataset, in the first attempt.
    Dataset(Box<DatasetCut>),
    /// What had failed, in each further one.
    Redrive(Box<RedriveCut>),
}

impl Cut {
    async fn next_tally(&mut self, time_limit: Timestamp) -> Result<CutTally, CutError> {
        match self {
            Self::File(cut) => cut.next_tally(time_limit).await,
            Self::Packed(cut) => cut.next_tally(time_limit).await,
            Self::Dataset(cut) => cut.next_tally(time_limit).await,
            Self::Redrive(cut) => cut.next_tally(time_limit).await,
        }
    }
    /// Another run's tally counts: goes on behind that. Only a dataset can have been cut otherwise.
    fn go_on_behind(&mut self, index: &ChunkIndex) {
        if let (Self::Dataset(cut), Some(next)) = (self, index.next_record()) {
            cut.go_on_behind(next, index.end);
        }
    }
}
