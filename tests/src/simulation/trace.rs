//! The trace of a run, line by line, for people.

use std::fmt::Write as _;

use jiff::Timestamp;
use rowmill_api::task::TaskOrder;
use rowmill_core::model::breaker::Breaker;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::dead_letter::DeadLetter;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::permit::Permit;
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::{ChunkAddress, Commit, Counts, Tally, Totals};
use rowmill_core::model::task::{Task, TaskTerms};
use rowmill_core::model::upload::Upload;
use rowmill_core::ports::{
    BreakerMoved, CheckpointMoved, CommitAnswer, Created, Due, JobPage, ObjectHead, SlotsTaken, UpdateAnswer,
    UploadedPart,
};
use work_task::lend::Lent;

/// The lines of a run, if they are kept. A run keeps none; if it fails, it is repeated with a trace.
#[derive(Debug, Default)]
pub struct Trace {
    began: Option<Timestamp>,
    lines: Vec<String>,
}

impl Trace {
    /// A trace that keeps nothing.
    pub const fn none() -> Self {
        Self { began: None, lines: Vec::new() }
    }

    /// A trace of a run that begins at this time.
    pub const fn kept(began: Timestamp) -> Self {
        Self { began: Some(began), lines: Vec::new() }
    }

    pub const fn is_kept(&self) -> bool {
        self.began.is_some()
    }

    /// Adds a line.
    pub fn tell(&mut self, now: Timestamp, task: Option<u64>, line: impl FnOnce() -> String) {
        let Some(began) = self.began else { return };
        let ms = now.duration_since(began).as_millis();
        let (seconds, ms) = (ms / 1000, ms % 1000);
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let who = task.map(|task| format!("#{task}")).unwrap_or_default();
        let number = self.lines.len() + 1;
        self.lines.push(format!("{number:>5}  {hours}:{minutes:02}:{seconds:02}.{ms:03}  {who:>5}  {}", line()));
    }

    /// The `last` lines, with a note if earlier lines are left out.
    pub fn text(&self, last: usize) -> String {
        let mut text = String::new();
        let left_out = self.lines.len().saturating_sub(last);
        if left_out > 0 {
            let _ = writeln!(text, "       ({left_out} lines before these are left out)");
        }
        for line in &self.lines[left_out..] {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    pub const fn len(&self) -> usize {
        self.lines.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// The name of a job in a trace: its number.
pub fn job_name(job: JobGuid) -> String {
    format!("job {}", job.0.as_u128() & 0xffff)
}

/// The name of a chunk in a trace.
pub fn chunk_name(chunk: ChunkAddress) -> String {
    let ChunkAddress { attempt, tally, index } = chunk;
    format!("chunk {attempt}/{tally}/{index}")
}

/// The short form of an answer in a trace.
pub trait Brief {
    fn brief(&self) -> String;
}

impl Brief for bool {
    fn brief(&self) -> String {
        self.to_string()
    }
}

impl Brief for () {
    fn brief(&self) -> String {
        "done".into()
    }
}

impl Brief for u64 {
    fn brief(&self) -> String {
        self.to_string()
    }
}

impl Brief for String {
    fn brief(&self) -> String {
        self.clone()
    }
}

impl Brief for bytes::Bytes {
    fn brief(&self) -> String {
        format!("{} bytes", self.len())
    }
}

impl Brief for ObjectHead {
    fn brief(&self) -> String {
        format!("{} bytes", self.size)
    }
}

impl Brief for UploadedPart {
    fn brief(&self) -> String {
        format!("part {}, {} bytes", self.number, self.size)
    }
}

impl Brief for Spec {
    fn brief(&self) -> String {
        "the spec".into()
    }
}

impl Brief for Upload {
    fn brief(&self) -> String {
        format!("{:?}", self.state)
    }
}

impl Brief for JobPage {
    fn brief(&self) -> String {
        format!("{} jobs", self.jobs.len())
    }
}

impl Brief for Permit {
    fn brief(&self) -> String {
        format!("{} of {} {}", self.number, job_name(self.task.job), chunk_name(self.task.chunk))
    }
}

impl Brief for Task {
    fn brief(&self) -> String {
        let (job, chunk) = (job_name(self.message.job_guid), chunk_name(self.message.address));
        format!("{job} {chunk}, epoch {}", self.message.epoch)
    }
}

impl Brief for Owner {
    fn brief(&self) -> String {
        self.to_string()
    }
}

impl Brief for Timestamp {
    fn brief(&self) -> String {
        self.to_string()
    }
}

impl Brief for Lent {
    fn brief(&self) -> String {
        format!(
            "{} {} lent to {}, {} items",
            job_name(self.id.job),
            chunk_name(self.id.chunk),
            self.token,
            self.items.len()
        )
    }
}

impl Brief for TaskOrder {
    fn brief(&self) -> String {
        format!("{self:?}")
    }
}

impl Brief for TaskTerms {
    fn brief(&self) -> String {
        format!("{:?}", self.beat)
    }
}

impl Brief for Counts {
    fn brief(&self) -> String {
        format!("{}+{}-{}~", self.succeeded, self.failed, self.skipped)
    }
}

impl Brief for Job {
    fn brief(&self) -> String {
        let mut text = format!(
            "{} attempt {} tallies {}/{}",
            self.status().as_str(),
            self.attempt,
            self.split.dispatched,
            self.split.tallies
        );
        if self.split.done {
            text += " split";
        }
        if let Some(lease) = self.lease {
            let _ = write!(text, " leased by {}", lease.holder);
        }
        if let Some(stop) = self.stopped_by() {
            let _ = write!(text, " STOP {}", stop.code.as_str());
        }
        text
    }
}

impl Brief for Tally {
    fn brief(&self) -> String {
        format!("tally {}: {}/{} {}", self.number, self.done, self.expected, self.counts.brief())
    }
}

impl Brief for Totals {
    fn brief(&self) -> String {
        let last = self.final_tallies.map_or("?".into(), |count| count.to_string());
        format!("totals {:?} of {last}: {}", self.closed, self.counts.brief())
    }
}

impl Brief for UpdateAnswer {
    fn brief(&self) -> String {
        match self {
            Self::Written(job) => format!("written: {}", job.brief()),
            Self::WrittenBefore(job) => format!("written before: {}", job.brief()),
            Self::Refused(job) => format!("refused: {}", job.brief()),
            Self::Full(full) => format!("{:?}", full.admission),
        }
    }
}

/// The fields that an update of the job row changes.
pub fn changes(seen: &Job, next: &Job) -> String {
    let (seen, next) = (format!("{seen:#?}"), format!("{next:#?}"));
    let fields = next.lines().filter(|line| !seen.contains(line));
    fields.map(str::trim).collect::<Vec<_>>().join(" ")
}

impl Brief for Commit {
    fn brief(&self) -> String {
        let (chunk, counts) = (chunk_name(self.chunk), self.counts.brief());
        format!("{chunk}, {:?} by {}, {counts}", self.mark.kind, self.mark.run)
    }
}

impl Brief for CommitAnswer {
    fn brief(&self) -> String {
        match self {
            Self::Applied(tally) => format!("APPLIED {}", tally.brief()),
            Self::Refused(tally) => format!("refused {}", tally.brief()),
        }
    }
}

impl Brief for Created {
    fn brief(&self) -> String {
        match self {
            Self::New => "new".into(),
            Self::Before(job) => format!("before, as {}", job_name(*job)),
            Self::Same(job) => format!("the same as {}", job_name(*job)),
        }
    }
}

impl Brief for SlotsTaken {
    fn brief(&self) -> String {
        let Self { owner, job_type, system } = self;
        format!("{} of the owner, {} of the type, {} in the system", owner.active, job_type.active, system.active)
    }
}

impl Brief for Checkpoint {
    fn brief(&self) -> String {
        let mut text = format!("rev {} done {} {}", self.rev, self.done, self.counts.brief());
        if self.isolated {
            text += " isolated";
        }
        if let Some(note) = self.in_flight {
            let _ = write!(text, " in flight (deaths {})", note.deaths);
        }
        text
    }
}

impl Brief for Breaker {
    fn brief(&self) -> String {
        format!("rev {}, {:?}, {} openings", self.rev, self.state, self.openings)
    }
}

impl Brief for BreakerMoved {
    fn brief(&self) -> String {
        format!("{self:?}")
    }
}

impl Brief for CheckpointMoved {
    fn brief(&self) -> String {
        match self {
            Self::Won => "moved".into(),
            Self::Lost(checkpoint) => format!("lost to {}", checkpoint.brief()),
        }
    }
}

impl Brief for Due {
    fn brief(&self) -> String {
        job_name(self.job)
    }
}

impl Brief for DeadLetter {
    fn brief(&self) -> String {
        format!("{:?} {}", self.about, self.message_id)
    }
}

impl<T: Brief> Brief for Vec<T> {
    fn brief(&self) -> String {
        format!("[{}]", self.iter().map(Brief::brief).collect::<Vec<_>>().join(", "))
    }
}

impl<T: Brief> Brief for Option<T> {
    fn brief(&self) -> String {
        self.as_ref().map_or("none".into(), Brief::brief)
    }
}

impl<A: Brief, B: Brief> Brief for (A, B) {
    fn brief(&self) -> String {
        format!("{}, {}", self.0.brief(), self.1.brief())
    }
}

impl Brief for JobGuid {
    fn brief(&self) -> String {
        job_name(*self)
    }
}
