//! Composing the results of an attempt: the failed rows, the rows that were not processed, the output of the items.
//!
//! Everything is read in row order from what the winning runs left and written as it comes, so memory does not grow with the
//! job. When time is nearly up the state of the composition is stored and named in the job row, and the next invocation goes
//! on from there. What is composed follows from rows and objects that do not change any more: two runs at it at once write
//! the same.

pub mod failed_rows;
mod input_text;
mod unprocessed;
pub mod writer;

use rowmill_core::model::keys;
use std::sync::Arc;

use bytes::Bytes;
use rowmill_core::items::failed::FailedItems;
use rowmill_core::items::outputs::{Found, Outputs};
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::job::Job;
use rowmill_core::model::results::{FAILED_ROWS, LeftOut, ResultFile, ResultKind};
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::Counts;
use rowmill_core::ports::{Clock, JobStore, MultipartObjects, Objects, PortError};
use rowmill_core::text::Format;
use rowmill_formats::Limits;
use serde::{Deserialize, Serialize};

use crate::complete::InvocationSlot;
use writer::{Destination, OpenFile, ResultWriter};

/// How often a composition begins anew because what was stored of it is gone. A job whose end fails at every try must not
/// begin anew for ever.
const RESTARTS_MAX: u32 = 2;

/// How many outputs are written between two looks at the clock.
const OUTPUTS_AT_ONCE: usize = 256;

/// The use case and the ports it works through.
pub struct Composer {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// What the job left, the upload, and where the results go.
    pub objects: Arc<dyn Objects>,
    /// Where results go that are longer than a part.
    pub multipart: Arc<dyn MultipartObjects>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The most bytes of an upload that are copied because they were not processed.
    pub unprocessed_max_bytes: u64,
    /// How long a part of a result is, see [`PART_BYTES`](writer::PART_BYTES).
    pub part_bytes: usize,
    /// How much a packed upload may take; as the splitter's.
    pub packed: Limits,
}

/// How far a composition is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Composition {
    /// The name that the files are under.
    pub files_of: RunId,
    /// The files that are whole.
    pub files: Vec<ResultFile>,
    /// What is not in them.
    pub left_out: Vec<LeftOut>,
    step: Step,
    open: Option<OpenFile>,
    /// How many skipped rows were too long to be copied.
    #[serde(default)]
    too_long: u64,
    /// How often it was begun anew.
    #[serde(default)]
    restarts: u32,
}

/// What is to be done next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Step {
    /// The failed rows behind this one.
    FailedRows {
        after: u64,
    },
    /// The rows that were skipped behind this one.
    SkippedRows {
        after: u64,
    },
    /// What was never dispatched, from this byte on.
    Undispatched {
        offset: u64,
    },
    /// The outputs behind this row.
    Outputs {
        after: u64,
    },
    Done,
}

/// How an invocation left a composition.
pub enum Composed {
    /// The files are whole.
    Whole(Composition),
    /// Time was up; with the bytes of the open file that are not stored yet.
    OutOfTime(Composition, Vec<u8>),
}

impl Composition {
    fn new(files_of: RunId) -> Self {
        let (files, left_out) = (Vec::new(), Vec::new());
        Self { files_of, files, left_out, step: Step::FailedRows { after: 0 }, open: None, too_long: 0, restarts: 0 }
    }

    /// Notes what is not in a file, once.
    fn leave_out(&mut self, file: &str, message: impl Into<String>) {
        let left_out = LeftOut { file: file.to_owned(), message: message.into() };
        if !self.left_out.contains(&left_out) {
            self.left_out.push(left_out);
        }
    }
}

/// What is composed for.
#[derive(Clone, Copy)]
struct Task<'a> {
    job: &'a Job,
    spec: &'a Spec,
    counts: Counts,
    slot: InvocationSlot,
    /// What the invocation began with, if it goes on with what another one began.
    resumed: Option<Step>,
}

/// How a step ended.
enum StepEnd {
    /// The next one follows.
    Next(Step),
    /// Time was up, with this to be done next, and the open file.
    OutOfTime(Step, OpenFile, Vec<u8>),
}

impl Composer {
    /// Composes the results of the job's present attempt under this name, or goes on with that under the name it has.
    ///
    /// # Errors
    /// `Unavailable`; `NotFound` where what the job left is gone.
    pub async fn compose(
        &self,
        job: &Job,
        spec: &Spec,
        counts: Counts,
        name: RunId,
        slot: InvocationSlot,
    ) -> Result<Composed, PortError> {
        let task = Task { job, spec, counts, slot, resumed: None };
        let mut now = Composition::new(name);
        if let Some((stored, tail)) = self.stored(job).await? {
            let (task, restarts) = (Task { resumed: Some(stored.step), ..task }, stored.restarts);
            match self.run(&task, stored, tail).await {
                // A part of a file has expired: it is composed anew.
                Err(PortError::NotFound) if restarts < RESTARTS_MAX => now.restarts = restarts + 1,
                Err(PortError::NotFound) => {
                    return Err(PortError::unavailable(
                        "composing the results",
                        "what is stored of them keeps vanishing",
                    ));
                }
                composed => return composed,
            }
        }
        self.run(&task, now, Vec::new()).await
    }

    /// The composition to go on with, unless there is none, or it has expired.
    async fn stored(&self, job: &Job) -> Result<Option<(Composition, Vec<u8>)>, PortError> {
        let Some(state) = job.composing else { return Ok(None) };
        let keys = state_keys(job, state);
        let (state, tail) = match (self.objects.read(&keys.0).await, self.objects.read(&keys.1).await) {
            (Err(PortError::NotFound), _) | (_, Err(PortError::NotFound)) => return Ok(None),
            (state, tail) => (state?, tail?),
        };
        let composition = serde_json::from_slice(&state);
        let composition = composition.map_err(|error| PortError::invalid("going on with a composition", error))?;
        Ok(Some((composition, tail.to_vec())))
    }

    /// Stores a composition under this name, for the next invocation.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn store(&self, job: &Job, name: RunId, composition: &Composition, tail: Bytes) -> Result<(), PortError> {
        let keys = state_keys(job, name);
        let state =
            serde_json::to_vec(composition).map_err(|error| PortError::invalid("storing a composition", error))?;
        self.objects.put(&keys.1, "application/octet-stream", tail, None).await?;
        self.objects.put(&keys.0, "application/json", state.into(), None).await?;
        Ok(())
    }

    async fn run(&self, task: &Task<'_>, mut now: Composition, mut tail: Vec<u8>) -> Result<Composed, PortError> {
        while now.step != Step::Done {
            let tail = std::mem::take(&mut tail);
            let end = match now.step {
                Step::FailedRows { after } => self.failed_rows(task, &mut now, tail, after).await?,
                Step::SkippedRows { after } => self.skipped_rows(task, &mut now, tail, after).await?,
                Step::Undispatched { offset } => self.undispatched(task, &mut now, tail, offset).await?,
                Step::Outputs { after } => self.outputs(task, &mut now, tail, after).await?,
                Step::Done => StepEnd::Next(Step::Done),
            };
            match end {
                StepEnd::Next(step) => now.step = step,
                StepEnd::OutOfTime(step, open, tail) => {
                    (now.step, now.open) = (step, Some(open));
                    return Ok(Composed::OutOfTime(now, tail));
                }
            }
        }
        Ok(Composed::Whole(now))
    }

    fn is_time_up(&self, task: &Task<'_>) -> bool {
        self.clock.now() >= task.slot.time_limit
    }

    /// The file that is open, or this one.
    fn writer(
        &self,
        task: &Task<'_>,
        now: &mut Composition,
        tail: Vec<u8>,
        file: impl FnOnce() -> OpenFile,
    ) -> ResultWriter<'_> {
        let file = now.open.take().unwrap_or_else(file);
        let key = keys::result_file(task.job.job_guid, task.job.attempt, now.files_of, &file.name);
        let to = Destination { objects: &*self.objects, multipart: &*self.multipart, part_bytes: self.part_bytes };
        ResultWriter::new(to, key, file, tail)
    }

    async fn failed_rows(
        &self,
        task: &Task<'_>,
        now: &mut Composition,
        tail: Vec<u8>,
        after: u64,
    ) -> Result<StepEnd, PortError> {
        if task.counts.failed == 0 {
            return Ok(StepEnd::Next(Step::SkippedRows { after: 0 }));
        }
        let (name, content_type) = rows_file(FAILED_ROWS, task.spec);
        let file = || OpenFile::new(name.clone(), ResultKind::FailedRows, content_type.to_owned(), false);
        let mut writer = self.writer(task, now, tail, file);
        if writer.is_empty() {
            writer.write(&failed_rows::header(task.spec)?).await?;
        }
        let (jobs, objects) = (Arc::clone(&self.jobs), Arc::clone(&self.objects));
        let mut walk = FailedItems::of(jobs, objects, task.job, after).await?;
        let mut after = after;
        loop {
            let items = match walk.next().await {
                Err(PortError::NotFound) => {
                    now.leave_out(&name, format!("failed rows behind row {after}: they are not kept any more"));
                    break;
                }
                items => items?,
            };
            let Some(items) = items else { break };
            for item in &items {
                writer.write(&failed_rows::row(task.spec, item)?).await?;
                after = item.row;
            }
            writer.count(items.len() as u64);
            if self.is_time_up(task) {
                let (file, tail) = writer.pause()?;
                return Ok(StepEnd::OutOfTime(Step::FailedRows { after }, file, tail));
            }
        }
        now.files.push(writer.finish(true).await?);
        Ok(StepEnd::Next(Step::SkippedRows { after: 0 }))
    }

    async fn outputs(
        &self,
        task: &Task<'_>,
        now: &mut Composition,
        tail: Vec<u8>,
        after: u64,
    ) -> Result<StepEnd, PortError> {
        let Some(output) = &task.spec.output else { return Ok(StepEnd::Next(Step::Done)) };
        let file = || OpenFile::new(output.name.clone(), ResultKind::Output, output.content_type.clone(), output.gzip);
        let mut writer = self.writer(task, now, tail, file);
        if let Some(header) = output.header.as_ref().filter(|_| writer.is_empty()) {
            writer.write(format!("{header}\n").as_bytes()).await?;
        }
        let (jobs, objects) = (Arc::clone(&self.jobs), Arc::clone(&self.objects));
        let (mut walk, mut written) = (Outputs::of(jobs, objects, task.job, after).await?, 0_usize);
        loop {
            let found = walk.next().await?;
            for attempt in walk.missing() {
                now.leave_out(&output.name, format!("outputs of attempt {attempt}: they are not kept any more"));
            }
            match found {
                Found::End => break,
                Found::Nothing => {}
                Found::Output(item) => {
                    writer.write(item.output.as_bytes()).await?;
                    writer.write(b"\n").await?;
                    writer.count(1);
                    written += 1;
                    if !written.is_multiple_of(OUTPUTS_AT_ONCE) {
                        continue;
                    }
                }
            }
            // Not before it has come any further, or the next invocation would begin where this one did.
            if self.is_time_up(task) && walk.after() > after {
                let (file, tail) = writer.pause()?;
                return Ok(StepEnd::OutOfTime(Step::Outputs { after: walk.after() }, file, tail));
            }
        }
        now.files.push(writer.finish(true).await?);
        Ok(StepEnd::Next(Step::Done))
    }
}

/// The name and media type of a file in the form of the input.
fn rows_file(name: &str, spec: &Spec) -> (String, &'static str) {
    match spec.head.dialect.format {
        Format::Csv => (format!("{name}.csv"), "text/csv"),
        Format::Jsonl => (format!("{name}.jsonl"), "application/x-ndjson"),
    }
}

fn state_keys(job: &Job, name: RunId) -> (String, String) {
    let (job, attempt): (JobGuid, u32) = (job.job_guid, job.attempt);
    let key = |what| format!("results/{job}/{attempt}/composition/{name}.{what}");
    (key("json"), key("tail"))
}
