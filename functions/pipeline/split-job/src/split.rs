//! Cuts a job's file into chunks and dispatches them, a tally at a time.
//!
//! The steps for each tally of 64 chunks: put its chunk index and the tally row, count it in the job row, send its
//! messages. So no message is sent before the job row counts its tally. A crash between two steps leaves either a tally
//! row that does not count (harmless: the same row is put again) or a counted tally, whose messages are sent again.

use std::ops::ControlFlow;
use std::sync::Arc;

use jiff::Timestamp;
use rowmill_core::items::chunk_index;
use rowmill_core::items::stored_job::StoredJob;
use rowmill_core::model::chunk_index::{ChunkIndex, RecordPosition};
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::{Job, Stop, StopCode};
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode, SplitMessage};
use rowmill_core::model::records::dataset_of;
use rowmill_core::model::spec::{Source, Spec};
use rowmill_core::model::tally::CHUNKS_PER_TALLY;
use rowmill_core::model::warnings::{self, Warning};
use rowmill_core::ports::{Clock, Entropy, JobStore, Objects, PortError, Queue, RecordStore};
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::commit::resend::ChunkResender;
use rowmill_core::progress::update::{take_lease, update_job};
use rowmill_core::text::{Position, SCANNER_VERSION};
use rowmill_formats::{SourceReader, TextStream};

use crate::cut::{CutError, CutTally, FileCut, PlainText, STORED_TALLY_BYTES};
use crate::dataset::DatasetCut;
use crate::dispatch::{Dispatched, TallyDispatcher, TallyPoint};
use crate::files::{FileReads, FilesCut};
pub use crate::limits::SplitLimits;
use crate::packed::PackedCut;
use crate::plan::{Conclusion, Plan, SplitEnd, plan};
use crate::redrive::RedriveCut;

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
    /// The starts queue, for jobs that wait.
    pub starts: Arc<dyn Queue<SplitMessage>>,
    /// Sends the chunks of a resumed job again.
    pub resender: ChunkResender,
    /// The shared steps: the concurrency window, closing a tally, ending the split.
    pub steps: JobSteps,
    pub clock: Arc<dyn Clock>,
    /// Names for runs.
    pub entropy: Arc<dyn Entropy>,
    pub limits: SplitLimits,
}

impl Splitter {
    /// Splits the job from the position in its row on, until the end of its input or until time is up.
    pub async fn split(&self, message: &SplitMessage, deadline: Timestamp) -> Result<SplitEnd, PortError> {
        let job = match self.jobs.job(message.job_guid).await {
            Err(PortError::NotFound) => return Ok(SplitEnd::NotOurs),
            job => job?,
        };
        match self.plan(&job, message) {
            Plan::Leave(end) => Ok(end),
            Plan::Wait(time) => {
                self.splits.send_later(&[SplitMessage::of(&job)], time).await?;
                Ok(SplitEnd::Continued)
            }
            Plan::Resend => self.resend(&job, deadline - self.limits.margin).await,
            Plan::Announce => self.announce(&job).await,
            Plan::Await => {
                self.starts.send(&[SplitMessage::of(&job)]).await?;
                Ok(SplitEnd::Awaiting)
            }
            Plan::Finish | Plan::Split => self.split_under_lease(&job, message, deadline).await,
        }
    }

    fn plan(&self, job: &Job, message: &SplitMessage) -> Plan {
        plan(job, message, self.clock.now(), self.limits.stop.grace)
    }

    pub(crate) async fn announce(&self, job: &Job) -> Result<SplitEnd, PortError> {
        self.steps.split_end.announce(job).await?;
        Ok(SplitEnd::Finished)
    }

    async fn split_under_lease(
        &self,
        job: &Job,
        message: &SplitMessage,
        deadline: Timestamp,
    ) -> Result<SplitEnd, PortError> {
        let run = self.entropy.run_id();
        let mut job = match take_lease(&*self.jobs, &*self.clock, job, run, self.limits.lease()).await?.done() {
            Ok(job) => job,
            // By a write whose reply was lost, and others have written the row since.
            Err(now) if now.is_held_by(run) => return self.conclude(&now, run, Conclusion::GiveBack).await,
            Err(_) => return Ok(SplitEnd::NotOurs),
        };
        let conclusion = match self.plan(&job, message) {
            Plan::Split => self.dispatch_all(&mut job, run, deadline).await.unwrap_or_else(Conclusion::Failed),
            Plan::Finish => Conclusion::End { at_end: false },
            // Others have written the row since it was read.
            Plan::Leave(_) | Plan::Wait(_) | Plan::Resend | Plan::Announce | Plan::Await => Conclusion::GiveBack,
        };
        self.conclude(&job, run, conclusion).await
    }

    /// Dispatches tallies until the split ends, or until another invocation has to continue.
    async fn dispatch_all(&self, job: &mut Job, run: RunId, deadline: Timestamp) -> Result<Conclusion, PortError> {
        let spec = self.jobs.spec(job.job_guid).await?;
        let mut point = self.resume_point(job).await?;
        if job.redrive.is_none() && spec.scanner_version != SCANNER_VERSION {
            return Ok(self.stop_at(job, &point, StopCode::ScannerChanged, SCANNER_CHANGED.to_owned()));
        }
        let dispatcher = self.dispatcher(run);
        let resumed = point.number;
        if let Some(tally) = point.counted.take() {
            let index = chunk_index::of(&*self.objects, job.job_guid, &tally).await?;
            dispatcher.send(job, &index, &tally, DeliveryMode::Recovered).await?;
            point = TallyPoint { number: point.number + 1, start: index.end, counted: None };
        }
        let mut cut = self.cut(job, &spec, &point).await?;
        let mut warnings = job.warnings.clone();
        loop {
            let tally = match self.next_tally(job, &mut cut, &point, resumed, deadline).await? {
                ControlFlow::Continue(tally) => tally,
                ControlFlow::Break(conclusion) => return Ok(conclusion),
            };
            // Before the tally is counted: the run after a crash does not read this text again.
            if warnings::add(&mut warnings, cut.warnings()) {
                let now = self.clock.now();
                match update_job(&*self.jobs, job, |job| job.warn(run, &warnings, now)).await?.done() {
                    Ok(warned) => *job = warned,
                    Err(_) => return Ok(Conclusion::Superseded),
                }
            }
            if tally.chunks.is_empty() {
                return Ok(Conclusion::End { at_end: true });
            }
            if point.number >= TALLIES_MAX {
                return Ok(self.stop_at(job, &point, StopCode::FileTooLong, too_long()));
            }
            let index = point.index(job.attempt, run, &tally);
            match dispatcher.dispatch(job, &point, &tally, index).await? {
                Dispatched::Sent(counted, index) => {
                    *job = *counted;
                    if index.stored.as_ref().is_some_and(|stored| stored.by != run) {
                        cut.go_on_behind(&index);
                    }
                    point = TallyPoint { number: point.number + 1, start: index.end, counted: None };
                }
                Dispatched::Stopped => return Ok(Conclusion::End { at_end: false }),
                Dispatched::HeldBack => return Ok(Conclusion::HandOver),
                Dispatched::Superseded => return Ok(Conclusion::Superseded),
            }
            if self.clock.now() + self.limits.margin >= deadline {
                return Ok(Conclusion::HandOver);
            }
        }
    }

    /// Cuts the next tally, unless the split cannot go on.
    async fn next_tally(
        &self,
        job: &Job,
        cut: &mut Cut,
        point: &TallyPoint,
        resumed: u32,
        deadline: Timestamp,
    ) -> Result<ControlFlow<Conclusion, CutTally>, PortError> {
        if self.clock.now() >= job.stops_at() {
            return Ok(ControlFlow::Break(Conclusion::Stop(None)));
        }
        // The rest of the margin is for dispatching the tally.
        Ok(match cut.next_tally(deadline - self.limits.margin / 4).await {
            Ok(tally) => ControlFlow::Continue(tally),
            Err(CutError::Stopped(stop)) => ControlFlow::Break(Conclusion::Stop(Some(stop))),
            Err(CutError::OutOfTime) if point.number > resumed => ControlFlow::Break(Conclusion::HandOver),
            // 64 chunks of records are never too many for one invocation: only their table is slow now.
            Err(CutError::OutOfTime) if matches!(cut, Cut::Dataset(_)) => ControlFlow::Break(Conclusion::HandOver),
            // The next invocation would get no further.
            Err(CutError::OutOfTime) => {
                let said = if matches!(cut, Cut::Files(_)) { NO_ROWS } else { SPLIT_TIMEOUT };
                ControlFlow::Break(self.stop_at(job, point, StopCode::SplitTimeout, said.to_owned()))
            }
            Err(CutError::Port(error)) => return Err(error),
        })
    }

    fn dispatcher(&self, run: RunId) -> TallyDispatcher<'_> {
        TallyDispatcher {
            jobs: &*self.jobs,
            objects: &*self.objects,
            chunks: &*self.chunks,
            window: &self.steps.committer.window,
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
                let text = SourceReader::new(objects, file.clone(), start.offset, self.limits.ahead());
                let text = PlainText::Read(text);
                Cut::File(Box::new(FileCut::new(text, clock, (&spec.head.dialect, spec.limits), start)))
            }
            (None, Source::Packed { file, packing }) => {
                let (limits, reads) = (self.limits.packed.into(), self.limits.reads_in_flight);
                let text = TextStream::open(objects, file, packing, limits, reads);
                let how = (&spec.head.dialect, spec.limits);
                Cut::Packed(Box::new(PackedCut::new((text, packing), clock, how, start)))
            }
            (None, Source::Files(files)) => {
                let before = self.index_before(job, point).await?;
                let at = before.as_ref().and_then(ChunkIndex::next_file).unwrap_or_default();
                let SplitLimits { first_max_bytes, packed, .. } = self.limits;
                let reads = FileReads { first_max_bytes, ahead: self.limits.ahead(), packed: packed.into() };
                Cut::Files(Box::new(FilesCut::new(objects, clock, spec, files, (at, start), reads)))
            }
            (None, Source::Awaited(_)) => {
                return Err(PortError::invalid("splitting a job", "its file is not there yet"));
            }
            (None, Source::Dataset { dataset, keys_of }) => {
                let at = self.records_before(job, point).await?;
                let opened = self.records.opened(&dataset_of(&spec.owner, dataset)).await?;
                // It was there when the job was created.
                let gone = || PortError::invalid("exporting a dataset", "the row of the dataset was removed");
                let dataset = opened.ok_or_else(gone)?;
                let (records, weight) = (Arc::clone(&self.records), job.data_bytes);
                let reads = (dataset, *keys_of);
                Cut::Dataset(Box::new(DatasetCut::new(records, clock, reads, weight, spec.limits, start, at)))
            }
        })
    }

    /// The record of a dataset after which the tally at this point begins.
    async fn records_before(&self, job: &Job, point: &TallyPoint) -> Result<RecordPosition, PortError> {
        let Some(index) = self.index_before(job, point).await? else { return Ok(RecordPosition::default()) };
        index
            .next_record()
            .ok_or_else(|| PortError::invalid("resuming the split of a dataset", "the chunk index has no next record"))
    }

    /// The index of the tally before this point.
    async fn index_before(&self, job: &Job, point: &TallyPoint) -> Result<Option<ChunkIndex>, PortError> {
        let Some(before) = point.number.checked_sub(1) else { return Ok(None) };
        let tally = self.jobs.tally(job.job_guid, job.attempt, before).await?;
        chunk_index::of(&*self.objects, job.job_guid, &tally).await.map(Some)
    }

    /// The stop of the job at the tally it cannot get past.
    fn stop_at(&self, job: &Job, point: &TallyPoint, code: StopCode, message: String) -> Conclusion {
        let Position { offset, row } = point.start;
        let place = job.redrive.is_none().then_some((row, offset));
        let (row, offset) = place.unzip();
        Conclusion::Stop(Some(Stop { code, message, row, offset, at: self.clock.now() }))
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
}

const SCANNER_CHANGED: &str = "another version of Rowmill started to split the file, and this version would split it differently; create a new job";

const SPLIT_TIMEOUT: &str = "64 chunks could not be split from here within the time limit of split-job; look for a quote that is \
     never closed, or raise SplitTimeoutSeconds";

const NO_ROWS: &str = "too many files without a row follow each other here, or one whose quote is never closed: no row was found \
     within the time limit of split-job; leave files without rows out, or raise SplitTimeoutSeconds";

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
    /// Many files, in the first attempt.
    Files(Box<FilesCut>),
    /// The failed items, in each further attempt.
    Redrive(Box<RedriveCut>),
}

impl Cut {
    async fn next_tally(&mut self, time_limit: Timestamp) -> Result<CutTally, CutError> {
        match self {
            Self::File(cut) => cut.next(CHUNKS_PER_TALLY, time_limit).await,
            Self::Packed(cut) => cut.next((CHUNKS_PER_TALLY, STORED_TALLY_BYTES), time_limit).await,
            Self::Files(cut) => cut.next_tally(time_limit).await,
            Self::Dataset(cut) => cut.next_tally(time_limit).await,
            Self::Redrive(cut) => cut.next_tally(time_limit).await,
        }
    }

    /// Warnings for the owner of the job about the input so far.
    fn warnings(&self) -> Vec<Warning> {
        match self {
            Self::File(cut) => cut.warnings(),
            Self::Packed(cut) => cut.warnings(),
            Self::Files(cut) => cut.warnings(),
            Self::Dataset(_) | Self::Redrive(_) => Vec::new(),
        }
    }

    /// Resumes after a tally of another run, because that one counts. Two runs can only cut a dataset or many files
    /// differently.
    fn go_on_behind(&mut self, index: &ChunkIndex) {
        match (self, index.next_record(), index.next_file()) {
            (Self::Dataset(cut), Some(next), _) => cut.go_on_behind(next, index.end),
            (Self::Files(cut), _, Some(next)) => cut.go_on_behind(next, index.end),
            _ => {}
        }
    }
}
