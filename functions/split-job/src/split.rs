//! Cutting a job's file into chunks and sending them out, a tally at a time.
//!
//! For every tally of 64 chunks, in this order: the tally row is put, the job row counts it, its messages are sent. So no
//! message of a tally ever leaves before the job row counts it, and a crash between any two steps leaves either a tally
//! row nobody counts (harmless: it is put again, the same) or a counted tally whose messages are sent again.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::ids::RunId;
use rowmill_core::job::{Job, Lease, Stop, StopCode};
use rowmill_core::messages::{ChunkMessage, CompletionMessage, SplitMessage};
use rowmill_core::ports::{Clock, Entropy, JobStore, Leased, Objects, PortError, Queue, WriteLost};
use rowmill_core::spec::Spec;
use rowmill_core::tally::{CHUNKS_PER_TALLY, ChunkAddress, Tally};
use rowmill_core::text::{Chunk, ChunkCutter, Position, SCANNER_VERSION};

use crate::source::SourceReader;

/// The most tallies an attempt may have: their numbers must fit into one row of the table (400 KB).
pub const TALLIES_MAX: u32 = 65_536;

/// The use case and the ports it works through.
pub struct Splitter {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// The files.
    pub objects: Arc<dyn Objects>,
    /// Where chunks go.
    pub chunks: Arc<dyn Queue<ChunkMessage>>,
    /// Where a split that ran out of time goes on.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    /// Where an attempt whose last chunk was committed before the split had ended is announced.
    pub completions: Arc<dyn Queue<CompletionMessage>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names for runs.
    pub entropy: Arc<dyn Entropy>,
    /// The limits.
    pub limits: SplitLimits,
}

/// What a split may take.
#[derive(Clone, Copy, Debug)]
pub struct SplitLimits {
    /// Bytes read at once.
    pub range_bytes: u64,
    /// How long before the invocation's time limit a split hands over to the next invocation.
    pub margin: Duration,
    /// How long the lease is held for; longer than an invocation can last.
    pub lease: Duration,
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
            return self.announce_end(&job).await;
        }
        let now = self.clock.now();
        let run = self.entropy.run_id();
        let lease = Lease { holder: run, until: now + self.limits.lease };
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
        let mut tally = self.resume_point(job).await?;
        if job.stop.is_some() || job.split.done {
            return self.finish(job, run, &tally).await;
        }
        let spec = self.jobs.spec(job.job_guid).await?;
        if spec.scanner_version != SCANNER_VERSION {
            return self.stop(job, run, &tally, StopCode::ScannerChanged, SCANNER_CHANGED.to_owned()).await;
        }
        let mut cut = Cut::new(self, &spec, tally.start);
        let resumed = tally.number;
        loop {
            // Less than the margin, which is for what comes after the cut.
            let chunks = match cut.next_tally(deadline - self.limits.margin / 4).await {
                Ok(chunks) => chunks,
                Err(CutError::Stopped(stop)) => {
                    self.jobs.stop(job.job_guid, job.attempt, &stop).await?;
                    return self.finish(job, run, &tally).await;
                }
                Err(CutError::OutOfTime) if tally.number > resumed => return self.hand_over(job, run).await,
                // The next invocation would get no further than this one.
                Err(CutError::OutOfTime) => {
                    return self.stop(job, run, &tally, StopCode::SplitTimeout, SPLIT_TIMEOUT.to_owned()).await;
                }
                Err(CutError::Port(error)) => return Err(error),
            };
            if chunks.is_empty() {
                return self.finish(job, run, &tally).await;
            }
            if tally.number >= TALLIES_MAX {
                return self.stop(job, run, &tally, StopCode::FileTooLong, too_long()).await;
            }
            let next = cut.border();
            match self.dispatch(job, run, &tally, &chunks, next).await? {
                Dispatched::Sent => {}
                Dispatched::Stopped => return self.finish(job, run, &tally).await,
                Dispatched::Superseded => return Ok(SplitEnd::NotOurs),
            }
            tally = TallyPoint { number: tally.number + 1, start: next, counted: false };
            if self.clock.now() + self.limits.margin >= deadline {
                return self.hand_over(job, run).await;
            }
        }
    }

    /// Stops the job at the tally it cannot get past.
    async fn stop(
        &self,
        job: &Job,
        run: RunId,
        tally: &TallyPoint,
        code: StopCode,
        message: String,
    ) -> Result<SplitEnd, PortError> {
        let Position { offset, row } = tally.start;
        let stop = Stop { code, message, row: Some(row), offset: Some(offset), at: self.clock.now() };
        self.jobs.stop(job.job_guid, job.attempt, &stop).await?;
        self.finish(job, run, tally).await
    }

    /// Where to go on: at the tally whose messages may not all have been sent, else behind the last one.
    async fn resume_point(&self, job: &Job) -> Result<TallyPoint, PortError> {
        if job.split.dispatched < job.split.tallies {
            let number = job.split.tallies - 1;
            let tally = self.jobs.tally(job.job_guid, job.attempt, number).await?;
            return Ok(TallyPoint { number, start: tally.start, counted: true });
        }
        Ok(TallyPoint { number: job.split.tallies, start: job.split.cursor, counted: false })
    }

    /// Puts the tally, counts it, sends its messages.
    async fn dispatch(
        &self,
        job: &Job,
        run: RunId,
        point: &TallyPoint,
        chunks: &[Chunk],
        next: Position,
    ) -> Result<Dispatched, PortError> {
        if !point.counted {
            let now = self.clock.now();
            let tally = Tally::of(job.attempt, point.number, point.start, chunks, now);
            self.jobs.put_tally(job.job_guid, &tally).await?;
            let counted = self.jobs.count_tally(job.job_guid, job.attempt, run, point.number, next, now).await;
            match counted {
                Ok(()) => {}
                Err(WriteLost::Port(error)) => return Err(error),
                Err(WriteLost::Condition(now)) => {
                    let ours = now.attempt == job.attempt && now.lease.is_some_and(|lease| lease.holder == run);
                    let counted_before = now.split.tallies == point.number + 1 && now.split.cursor == next;
                    match (ours, counted_before) {
                        (false, _) => return Ok(Dispatched::Superseded),
                        // Our own write, whose reply was lost: the tally counts, so its messages must leave.
                        (true, true) => {}
                        (true, false) => return Ok(Dispatched::Stopped),
                    }
                }
            }
        }
        self.chunks.send(&chunk_messages(job, point.number, chunks)).await?;
        Ok(Dispatched::Sent)
    }

    /// There will be no more tallies: the job row says so, then the totals. A tally that counts and whose messages may
    /// never leave now is closed without them.
    async fn finish(&self, job: &Job, run: RunId, tally: &TallyPoint) -> Result<SplitEnd, PortError> {
        if tally.counted {
            self.close_unsent(job, tally.number).await?;
        }
        match self.jobs.finish_split(job.job_guid, job.attempt, run, self.clock.now()).await {
            Ok(job) => self.announce_end(&job).await,
            Err(WriteLost::Condition(now)) if now.split.done && !now.is_past(job.attempt) => {
                self.announce_end(&now).await
            }
            Err(WriteLost::Condition(_)) => Ok(SplitEnd::NotOurs),
            Err(WriteLost::Port(error)) => Err(error),
        }
    }

    async fn close_unsent(&self, job: &Job, number: u32) -> Result<(), PortError> {
        let mut tally = self.jobs.tally(job.job_guid, job.attempt, number).await?;
        while !tally.is_closed() {
            tally = self.jobs.skip_rest(job.job_guid, &tally, self.clock.now()).await?;
        }
        self.jobs.fold(job.job_guid, &tally).await?;
        Ok(())
    }

    /// Tells the totals how many tallies there are; if they are all closed already, nobody else will announce it.
    async fn announce_end(&self, job: &Job) -> Result<SplitEnd, PortError> {
        let totals = self.jobs.set_final_tallies(job.job_guid, job.attempt, job.split.tallies).await?;
        if totals.is_complete() {
            let (job_guid, attempt, owner) = (job.job_guid, job.attempt, job.owner.clone());
            self.completions.send(&[CompletionMessage { job_guid, attempt, owner }]).await?;
        }
        Ok(SplitEnd::Finished)
    }

    /// Time is up. The lease is given back before the message to go on is sent, so that whoever receives it can begin.
    async fn hand_over(&self, job: &Job, run: RunId) -> Result<SplitEnd, PortError> {
        match self.jobs.pause_split(job.job_guid, job.attempt, run, self.clock.now()).await {
            Ok(()) => {}
            // Given back by this very write, whose reply was lost: the message must still leave.
            Err(WriteLost::Condition(now)) if now.lease.is_none() && !now.is_past(job.attempt) => {}
            Err(WriteLost::Condition(_)) => return Ok(SplitEnd::NotOurs),
            Err(WriteLost::Port(error)) => return Err(error),
        }
        let (job_guid, attempt, owner) = (job.job_guid, job.attempt, job.owner.clone());
        self.splits.send(&[SplitMessage { job_guid, attempt, owner }]).await?;
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
    /// The job row counts it already; only its messages may be missing.
    counted: bool,
}

enum Dispatched {
    Sent,
    /// The job was stopped; this run still holds the lease and has the split to end.
    Stopped,
    /// Another run, or another attempt, has taken over.
    Superseded,
}

fn chunk_messages(job: &Job, tally: u32, chunks: &[Chunk]) -> Vec<ChunkMessage> {
    let message = |(index, chunk): (u8, &Chunk)| ChunkMessage {
        job_guid: job.job_guid,
        owner: job.owner.clone(),
        address: ChunkAddress { attempt: job.attempt, tally, index },
        chunk: *chunk,
    };
    (0..).zip(chunks).map(message).collect()
}

/// The file being cut.
struct Cut<'a> {
    splitter: &'a Splitter,
    reader: SourceReader,
    cutter: ChunkCutter,
    /// Chunks cut and not yet given out.
    ready: Vec<Chunk>,
    /// The border behind the last chunk given out.
    border: Position,
    /// What ended the stream: the end of the file, or a reason to stop that waits until the chunks before it are out.
    ended: Option<Option<Stop>>,
}

enum CutError {
    /// The file cannot be cut any further.
    Stopped(Stop),
    /// The next border is too far away for this invocation.
    OutOfTime,
    Port(PortError),
}

impl<'a> Cut<'a> {
    fn new(splitter: &'a Splitter, spec: &Spec, start: Position) -> Self {
        let range_bytes = splitter.limits.range_bytes;
        Self {
            splitter,
            reader: SourceReader::new(Arc::clone(&splitter.objects), spec.file.clone(), start.offset, range_bytes),
            cutter: ChunkCutter::new(&spec.head.dialect, spec.limits, start),
            ready: Vec::new(),
            border: start,
            ended: None,
        }
    }

    /// The next 64 chunks; fewer at the end of the file, none behind it.
    async fn next_tally(&mut self, time_limit: Timestamp) -> Result<Vec<Chunk>, CutError> {
        while self.ready.len() < CHUNKS_PER_TALLY && self.ended.is_none() {
            if self.splitter.clock.now() >= time_limit {
                return Err(CutError::OutOfTime);
            }
            match self.reader.next().await {
                Ok(Some(bytes)) => self.cutter.push(&bytes, &mut self.ready),
                Ok(None) => self.ended = Some(self.end_of_file()),
                Err(PortError::NotFound) => return Err(self.source_changed("is gone")),
                Err(PortError::Changed) => return Err(self.source_changed("was replaced")),
                Err(error) => return Err(CutError::Port(error)),
            }
        }
        if self.ready.is_empty()
            && let Some(Some(stop)) = self.ended.take()
        {
            return Err(CutError::Stopped(stop));
        }
        let count = self.ready.len().min(CHUNKS_PER_TALLY);
        let rest = self.ready.split_off(count);
        let chunks = std::mem::replace(&mut self.ready, rest);
        if let Some(last) = chunks.last() {
            self.border = Position { offset: last.offset + last.length, row: last.first_row + u64::from(last.items) };
        }
        Ok(chunks)
    }

    const fn border(&self) -> Position {
        self.border
    }

    fn end_of_file(&mut self) -> Option<Stop> {
        let quote = self.cutter.finish(&mut self.ready).err()?;
        let message = format!(
            "the quote opened in row {} (byte {}) is never closed; close it and upload again",
            quote.row, quote.offset
        );
        Some(Stop {
            code: StopCode::UnterminatedQuote,
            message,
            row: Some(quote.row),
            offset: Some(quote.offset),
            at: self.splitter.clock.now(),
        })
    }

    fn source_changed(&self, how: &str) -> CutError {
        CutError::Stopped(Stop::source_changed(how, None, self.splitter.clock.now()))
    }
}
