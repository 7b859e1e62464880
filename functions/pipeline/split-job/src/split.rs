//! Cuts a job's file into chunks and dispatches them, a tally at a time.
//!
//! The steps for each tally of 64 chunks: put its chunk index and the tally row, count it in the job row, send its
//! messages. So no message is sent before the job row counts its tally. A crash between two steps leaves either a tally row
//! that does not count (harmless: the same row is put again) or a counted tally, whose messages are sent again.

use std::sync::Arc;

use jiff::Timestamp;
use rowmill_core::items::chunk_index;
use rowmill_core::items::stored_job::StoredJob;
use rowmill_core::model::chunk_index::{ChunkIndex, RecordPosition};
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::{Job, JobWarning, Stop, StopCode};
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode, SplitMessage};
use rowmill_core::model::records::dataset_of;
use rowmill_core::model::spec::{Source, Spec};
use rowmill_core::model::tally::CHUNKS_PER_TALLY;
use rowmill_core::model::warnings;
use rowmill_core::ports::{Clock, Entropy, JobStore, Objects, PortError, Queue, RecordStore};
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::commit::resend::ChunkResender;
use rowmill_core::progress::update::{
    Usage, release_lease, stop_attempt, stop_overdue, take_lease, update_job, update_job_ahead,
};
use rowmill_core::text::{Position, SCANNER_VERSION};

use crate::cut::{CutError, CutTally, FileCut};
use crate::dataset::DatasetCut;
use crate::dispatch::{Dispatched, TallyDispatcher, TallyPoint};
pub use crate::limits::SplitLimits;
use crate::packed::PackedCut;
use crate::redrive::RedriveCut;
use crate::resend::ResendEnd;

/// The most tallies of an attempt: their numbers must fit into one row of the table (400 KB).
pub const TALLIES_MAX: u32 = 65_536;

/// The use case and the ports it works through.
pub struct Splitter {
    pub jobs: Arc<dyn JobStore>,
    pub objects: Arc<dyn Objects>,
    pub records: Arc<dyn RecordStore>,
    /// The items queue.
    pub chunks: Arc<dyn Queue<ChunkMessage>>,
    /// The jobs queue, which starts the next invocation of a split that is handed over.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    /// Sends the chunks of a resumed job again.
    pub resender: ChunkResender,
    /// The shared steps: the concurrency window, closing a tally, ending the split.
    pub steps: JobSteps,
    pub clock: Arc<dyn Clock>,
    /// Names for runs.
    pub entropy: Arc<dyn Entropy>,
    pub limits: SplitLimits,
}

/// Result of an invocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SplitEnd {
    /// The file is split to its end, or the job was stopped.
    Finished,
    /// Time was up. A message for the next invocation is sent.
    Continued,
    /// The job is paused. Nothing was dispatched, or no more will be.
    Paused,
    /// Nobody has taken the job up, and its deadline has passed.
    Overdue,
    /// Nothing to do: the job is gone or past this attempt, or another run is at it.
    NotOurs,
}

impl Splitter {
    /// Splits the job from the position in its row on, until the end of its input or until time is up.
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
        if job.is_paused() {
            return Ok(SplitEnd::Paused);
        }
        if job.is_untaken() && self.clock.now() >= job.deadline_at {
            // The sweep ends it without anybody having taken it up.
            return Ok(SplitEnd::Overdue);
        }
        match self.resend(&job, deadline - self.limits.margin).await? {
            ResendEnd::Whole if job.resend_from.is_none() || job.split.done => {}
            // A split needs the whole time of an invocation: what the resend has left may be too little for a tally.
            ResendEnd::Whole | ResendEnd::OutOfTime => {
                self.splits.send(&[SplitMessage::of(&job)]).await?;
                return Ok(SplitEnd::Continued);
            }
            ResendEnd::NotOurs => return Ok(SplitEnd::NotOurs),
        }
        if job.split.done {
            self.steps.split_end.announce(&job).await?;
            return Ok(SplitEnd::Finished);
        }
        let run = self.entropy.run_id();
        match take_lease(&*self.jobs, &*self.clock, &job, run, self.limits.lease()).await?.done() {
            Err(now) if now.is_paused() => self.give_back(&job, run).await,
            Err(_) => Ok(SplitEnd::NotOurs),
            Ok(job) => {
                let end = self.split_leased(job.clone(), run, deadline).await;
                if end.is_err() {
                    // The next delivery need not wait until the lease expires.
                    release_lease(&*self.jobs, &job, run).await.ok();
                }
                end
            }
        }
    }

    async fn split_leased(&self, mut job: Job, run: RunId, deadline: Timestamp) -> Result<SplitEnd, PortError> {
        let mut point = self.resume_point(&job).await?;
        if job.stop.is_some() || job.split.done {
            return self.finish(&job, run).await;
        }
        let spec = self.jobs.spec(job.job_guid).await?;
        if job.redrive.is_none() && spec.scanner_version != SCANNER_VERSION {
            return self.stop(&job, run, &point, StopCode::ScannerChanged, SCANNER_CHANGED.to_owned()).await;
        }
        let dispatcher = self.dispatcher(run);
        let resumed = point.number;
        if let Some(tally) = point.counted.take() {
            let index = chunk_index::of(&*self.objects, job.job_guid, &tally).await?;
            dispatcher.send(&job, &index, &tally, DeliveryMode::Recovered).await?;
            point = TallyPoint { number: point.number + 1, start: index.end, counted: None };
        }
        let mut cut = self.cut(&job, &spec, &point).await?;
        let mut warnings = job.warnings.clone();
        loop {
            if self.clock.now() >= job.deadline_at {
                return self.stop_for(&job, run, None).await;
            }
            // The rest of the margin is for dispatching the tally.
            let tally = match cut.next_tally(deadline - self.limits.margin / 4).await {
                Ok(tally) => tally,
                Err(CutError::Stopped(stop)) => return self.stop_for(&job, run, Some(&stop)).await,
                Err(CutError::OutOfTime) if point.number > resumed => return self.hand_over(&job, run, &point).await,
                // The next invocation would get no further.
                Err(CutError::OutOfTime) => {
                    return self.stop(&job, run, &point, StopCode::SplitTimeout, SPLIT_TIMEOUT.to_owned()).await;
                }
                Err(CutError::Port(error)) => return Err(error),
            };
            // Before the tally is counted: the run after a crash does not read this text again.
            if warnings::add(&mut warnings, cut.warnings()) {
                let now = self.clock.now();
                match update_job(&*self.jobs, &job, |job| job.warn(run, &warnings, now)).await?.done() {
                    Ok(warned) => job = warned,
                    Err(_) => return Ok(SplitEnd::NotOurs),
                }
            }
            if tally.chunks.is_empty() {
                return self.end(&job, run).await;
            }
            if point.number >= TALLIES_MAX {
                return self.stop(&job, run, &point, StopCode::FileTooLong, too_long()).await;
            }
            let index = point.index(job.attempt, &spec, run, &tally);
            match dispatcher.dispatch(&job, &point, &tally, index).await? {
                Dispatched::Sent(counted, index) => {
                    job = *counted;
                    if index.stored.as_ref().is_some_and(|stored| stored.by != run) {
                        cut.go_on_behind(&index);
                    }
                    point = TallyPoint { number: point.number + 1, start: index.end, counted: None };
                }
                Dispatched::Stopped => return self.finish(&job, run).await,
                Dispatched::Paused => return self.hand_over_paused(&job, run, &point).await,
                Dispatched::Superseded => return Ok(SplitEnd::NotOurs),
            }
            if self.clock.now() + self.limits.margin >= deadline {
                return self.hand_over(&job, run, &point).await;
            }
        }
    }

    fn dispatcher(&self, run: RunId) -> TallyDispatcher<'_> {
        TallyDispatcher {
            jobs: &*self.jobs,
            objects: &*self.objects,
            chunks: &*self.chunks,
            window: &self.steps.window,
            clock: &*self.clock,
            run,
        }
    }

    /// The cut of the job's input, from this point on.
    async fn cut(&self, job: &Job, spec: &Spec, point: &TallyPoint) -> Result<Cut, PortError> {
        let objects = Arc::clone(&self.objects);
        let (clock, start) = (Arc::clone(&self.clock), point.start);
        Ok(match (&job.redrive, &spec.source) {
            (Some(redrive), _) => {
                let from = StoredJob { jobs: &self.jobs, objects: &objects, job };
                let cut = RedriveCut::new(from, clock, redrive, spec.limits, start).await?;
                Cut::Redrive(Box::new(cut))
            }
            (None, Source::File(file)) => {
                Cut::File(Box::new(FileCut::new(objects, clock, spec, file, start, self.limits.read_ahead())))
            }
            (None, Source::Packed { file, packing }) => {
                let source = (file, packing);
                let limits = (self.limits.packed.into(), self.limits.reads_in_flight);
                Cut::Packed(Box::new(PackedCut::new(objects, clock, spec, source, start, limits)))
            }
            (None, Source::Dataset { dataset }) => {
                let at = self.records_before(job, point).await?;
                let opened = self.records.opened(&dataset_of(&spec.owner, dataset)).await?;
                // It was there when the job was created.
                let gone = || PortError::invalid("exporting a dataset", "the row of the dataset was removed");
                let dataset = opened.ok_or_else(gone)?;
                let (records, weight) = (Arc::clone(&self.records), job.data_bytes);
                Cut::Dataset(Box::new(DatasetCut::new(records, clock, dataset, weight, spec.limits, start, at)))
            }
        })
    }

    /// The record of a dataset after which the tally at this point begins.
    async fn records_before(&self, job: &Job, point: &TallyPoint) -> Result<RecordPosition, PortError> {
        let Some(before) = point.number.checked_sub(1) else { return Ok(RecordPosition::default()) };
        let tally = self.jobs.tally(job.job_guid, job.attempt, before).await?;
        let index = chunk_index::of(&*self.objects, job.job_guid, &tally).await?;
        index
            .next_record()
            .ok_or_else(|| PortError::invalid("resuming the split of a dataset", "the chunk index has no next record"))
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
        self.stop_for(job, run, Some(&stop)).await
    }

    /// Stops the job for this reason, or because its deadline has passed (`None`).
    async fn stop_for(&self, job: &Job, run: RunId, stop: Option<&Stop>) -> Result<SplitEnd, PortError> {
        // A run that was frozen until its lease expired must not stop a job that another run is splitting.
        match take_lease(&*self.jobs, &*self.clock, job, run, self.limits.lease()).await?.done() {
            Ok(now) => match stop {
                Some(stop) => drop(stop_attempt(&*self.jobs, &now, stop).await?),
                None => drop(stop_overdue(&*self.jobs, &now, self.clock.now()).await?),
            },
            // The next run finds the same reason to stop.
            Err(now) if now.is_paused() => return self.give_back(job, run).await,
            Err(_) => return Ok(SplitEnd::NotOurs),
        }
        self.finish(job, run).await
    }

    /// Where to resume: at the last tally if some of its messages may not be sent, else after it.
    async fn resume_point(&self, job: &Job) -> Result<TallyPoint, PortError> {
        if job.split.dispatched < job.split.tallies {
            let number = job.split.tallies - 1;
            let tally = self.jobs.tally(job.job_guid, job.attempt, number).await?;
            return Ok(TallyPoint { number, start: tally.start, counted: Some(Box::new(tally)) });
        }
        Ok(TallyPoint { number: job.split.tallies, start: job.split.cursor, counted: None })
    }

    /// Ends the split: all items are dispatched.
    async fn end(&self, job: &Job, run: RunId) -> Result<SplitEnd, PortError> {
        let ended = self.steps.split_end.finish(job, run, true).await?;
        Ok(if ended { SplitEnd::Finished } else { SplitEnd::NotOurs })
    }

    /// Ends the split of a stopped job: no tally will follow, and the job row and then the totals say so. A counted tally
    /// whose messages may not be sent is left to the sweep: some may have been, and their runs end within the grace.
    async fn finish(&self, job: &Job, run: RunId) -> Result<SplitEnd, PortError> {
        let ended = self.steps.split_end.finish(job, run, false).await?;
        Ok(if ended { SplitEnd::Finished } else { SplitEnd::NotOurs })
    }

    /// The job is paused: releases the lease, like at the end of the time. If it has been resumed by then, the message of
    /// that resume may have found the lease taken, and the message that this run sends continues the split.
    async fn hand_over_paused(&self, job: &Job, run: RunId, point: &TallyPoint) -> Result<SplitEnd, PortError> {
        Ok(match self.hand_over(job, run, point).await? {
            SplitEnd::Continued => SplitEnd::Paused,
            end => end,
        })
    }

    /// The job is paused and refused the lease. This run may hold it all the same, from a write whose reply was lost. As in
    /// [`hand_over_paused`](Self::hand_over_paused), the next run may have to be called now.
    async fn give_back(&self, job: &Job, run: RunId) -> Result<SplitEnd, PortError> {
        release_lease(&*self.jobs, job, run).await?;
        self.splits.send(&[SplitMessage::of(job)]).await?;
        Ok(SplitEnd::Paused)
    }

    /// Time is up: releases the lease, and only then sends the message, so that its receiver can take the lease.
    async fn hand_over(&self, job: &Job, run: RunId, point: &TallyPoint) -> Result<SplitEnd, PortError> {
        let now = self.clock.now();
        // The message to the next invocation follows.
        let ahead = Usage::NONE.with_sends(1);
        let handed_over = update_job_ahead(&*self.jobs, job, ahead, |job| job.hand_split_over(run, now)).await?;
        if handed_over.done().is_err() {
            return Ok(SplitEnd::NotOurs);
        }
        let message = SplitMessage { tallies: point.number, ..SplitMessage::of(job) };
        self.splits.send(&[message]).await?;
        Ok(SplitEnd::Continued)
    }
}

const SCANNER_CHANGED: &str = "another version of Rowmill started to split the file, and this version would split it differently; create a new job";

const SPLIT_TIMEOUT: &str = "64 chunks could not be split from here within the time limit of split-job; look for a quote that is \
     never closed, or raise SplitTimeoutSeconds";

fn too_long() -> String {
    format!(
        "the file needs more than {TALLIES_MAX} tallies of {CHUNKS_PER_TALLY} chunks; split it, or raise the chunk limits"
    )
}

enum Cut {
    /// The upload, in the first attempt.
    File(Box<FileCut>),
    /// A packed upload, in the first attempt.
    Packed(Box<PackedCut>),
    /// A dataset, in the first attempt.
    Dataset(Box<DatasetCut>),
    /// The failed items, in each further attempt.
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

    /// Warnings for the owner of the job about the input so far.
    fn warnings(&self) -> Vec<JobWarning> {
        match self {
            Self::File(cut) => cut.warnings(),
            Self::Packed(cut) => cut.warnings(),
            Self::Dataset(_) | Self::Redrive(_) => Vec::new(),
        }
    }

    /// Resumes after a tally of another run, because that one counts. Only a dataset can be cut differently by two runs.
    fn go_on_behind(&mut self, index: &ChunkIndex) {
        if let (Self::Dataset(cut), Some(next)) = (self, index.next_record()) {
            cut.go_on_behind(next, index.end);
        }
    }
}
