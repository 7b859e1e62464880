//! Composing the results of an attempt: the failed rows, the rows that were not processed, the output of the items.
//!
//! Everything is read in row order from what the winning runs left and written as it comes, so memory does not grow with the
//! job. When time is nearly up the state of the composition is stored and named in the job row, and the next invocation goes
//! on from there. What is composed follows from rows and objects that do not change any more: two runs at it at once write
//! the same.

pub mod failed_rows;
pub mod unprocessed;
pub mod writer;

use std::sync::Arc;

use futures::StreamExt;
use jiff::Timestamp;
use rowmill_core::failed_items::FailedItems;
use rowmill_core::ids::{JobGuid, RunId};
use rowmill_core::job::Job;
use rowmill_core::outputs::Outputs;
use rowmill_core::ports::{Clock, JobStore, MultipartObjects, Objects, PortError};
use rowmill_core::results::{LeftOut, ResultFile, ResultKind, result_key};
use rowmill_core::skipped_items::SkippedItems;
use rowmill_core::spec::{Source, Spec};
use rowmill_core::tally::Counts;
use rowmill_core::text::Format;
use serde::{Deserialize, Serialize};

use unprocessed::{SkippedRows, source_text};
use writer::{OpenFile, ResultWriter};

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
}

/// How far a composition is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Composition {
    /// The run whose name the files are under.
    pub files_of: RunId,
    /// The files that are whole.
    pub files: Vec<ResultFile>,
    /// What is not in them.
    pub left_out: Vec<LeftOut>,
    step: Step,
    open: Option<OpenFile>,
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
        Self { files_of, files, left_out, step: Step::FailedRows { after: 0 }, open: None }
    }

    fn leave_out(&mut self, file: &str, message: impl Into<String>) {
        self.left_out.push(LeftOut { file: file.to_owned(), message: message.into() });
    }
}

/// What is composed for.
struct Task<'a> {
    job: &'a Job,
    spec: &'a Spec,
    counts: Counts,
    time_limit: Timestamp,
}

/// How a step ended.
enum StepEnd {
    /// The next one follows.
    Next(Step),
    /// Time was up, with this to be done next, and the open file.
    OutOfTime(Step, OpenFile, Vec<u8>),
}

impl Composer {
    /// Composes the results of the job's present attempt, or goes on with that.
    ///
    /// # Errors
    /// `Unavailable`; `NotFound` where what was stored before is gone.
    pub async fn compose(
        &self,
        job: &Job,
        spec: &Spec,
        counts: Counts,
        run: RunId,
        time_limit: Timestamp,
    ) -> Result<Composed, PortError> {
        let task = Task { job, spec, counts, time_limit };
        if let Some(state) = job.composing {
            match self.go_on(&task, state).await {
                // The state, or a part stored before, has expired: it is composed anew.
                Err(PortError::NotFound) => {}
                composed => return composed,
            }
        }
        self.run(&task, Composition::new(run), Vec::new()).await
    }

    async fn go_on(&self, task: &Task<'_>, state: RunId) -> Result<Composed, PortError> {
        let keys = state_keys(task.job, state);
        let composition = serde_json::from_slice(&self.objects.read(&keys.0).await?);
        let composition = composition.map_err(|error| PortError::invalid("going on with a composition", error))?;
        let tail = self.objects.read(&keys.1).await?;
        self.run(task, composition, tail.to_vec()).await
    }

    /// Stores a composition under this name, for the next invocation.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn store(
        &self,
        job: &Job,
        name: RunId,
        composition: &Composition,
        tail: Vec<u8>,
    ) -> Result<(), PortError> {
        let keys = state_keys(job, name);
        let state =
            serde_json::to_vec(composition).map_err(|error| PortError::invalid("storing a composition", error))?;
        self.objects.put(&keys.1, "application/octet-stream", tail.into(), None).await?;
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
        self.clock.now() >= task.time_limit
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
        let key = result_key(task.job.job_guid, task.job.attempt, now.files_of, &file.name);
        ResultWriter::new(&*self.objects, &*self.multipart, key, file, tail)
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
        let (name, content_type) = rows_file("failed-rows", task.spec);
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

    async fn skipped_rows(
        &self,
        task: &Task<'_>,
        now: &mut Composition,
        tail: Vec<u8>,
        after: u64,
    ) -> Result<StepEnd, PortError> {
        let behind = task.job.unprocessed_from();
        let nothing = task.counts.skipped == 0 && behind.is_none();
        if nothing || matches!(task.spec.source, Source::Dataset { .. }) {
            return Ok(StepEnd::Next(Step::Outputs { after: 0 }));
        }
        let (name, content_type) = rows_file("unprocessed-rows", task.spec);
        let file = || OpenFile::new(name.clone(), ResultKind::UnprocessedRows, content_type.to_owned(), false);
        let mut writer = self.writer(task, now, tail, file);
        let end = self.copy_skipped(task, &mut writer, after).await;
        match end {
            Ok(None) => {}
            Ok(Some(after)) => {
                let (file, tail) = writer.pause()?;
                return Ok(StepEnd::OutOfTime(Step::SkippedRows { after }, file, tail));
            }
            Err(PortError::NotFound | PortError::Changed) => {
                now.leave_out(&name, "the rows themselves: the upload is gone or was replaced");
                return Ok(StepEnd::Next(Step::Outputs { after: 0 }));
            }
            Err(error) => return Err(error),
        }
        match behind {
            None => {
                now.files.push(writer.finish(true).await?);
                Ok(StepEnd::Next(Step::Outputs { after: 0 }))
            }
            Some(from) => {
                let (file, tail) = writer.pause()?;
                now.open = Some(file);
                self.undispatched(task, now, tail, from.offset).await
            }
        }
    }

    /// Copies the skipped rows behind this one; the row behind which to go on where time was up.
    async fn copy_skipped(
        &self,
        task: &Task<'_>,
        writer: &mut ResultWriter<'_>,
        after: u64,
    ) -> Result<Option<u64>, PortError> {
        let rows = SkippedRows { objects: &self.objects, job_guid: task.job.job_guid, spec: task.spec };
        if writer.is_empty() {
            writer.write(&rows.header().await?).await?;
        }
        let (jobs, objects) = (Arc::clone(&self.jobs), Arc::clone(&self.objects));
        let mut walk = SkippedItems::of(jobs, objects, task.job, after).await?;
        while let Some(skipped) = walk.next().await? {
            let (mut text, mut last) = (rows.text(&skipped).await?, b'\n');
            while let Some(bytes) = text.next().await {
                let bytes = bytes?;
                last = bytes.last().copied().unwrap_or(last);
                writer.write(&bytes).await?;
            }
            if !matches!(last, b'\n' | b'\r') {
                writer.write(b"\n").await?;
            }
            writer.count(skipped.rows.end - skipped.rows.start);
            if self.is_time_up(task) {
                return Ok(Some(skipped.rows.end - 1));
            }
        }
        Ok(None)
    }

    async fn undispatched(
        &self,
        task: &Task<'_>,
        now: &mut Composition,
        tail: Vec<u8>,
        offset: u64,
    ) -> Result<StepEnd, PortError> {
        let (name, content_type) = rows_file("unprocessed-rows", task.spec);
        let file = || OpenFile::new(name.clone(), ResultKind::UnprocessedRows, content_type.to_owned(), false);
        let mut writer = self.writer(task, now, tail, file);
        let from = task.job.unprocessed_from().map_or(offset, |from| from.offset);
        // Nobody knows how long the text of a packed upload is.
        let size = match &task.spec.source {
            Source::File(file) => file.size,
            Source::Packed { .. } | Source::Dataset { .. } => u64::MAX,
        };
        let end = size.min(from.saturating_add(self.unprocessed_max_bytes));
        let (mut offset, mut text) = (offset, source_text(&self.objects, &task.spec.source, offset..end));
        while let Some(bytes) = text.next().await {
            let bytes = match bytes {
                Err(PortError::NotFound | PortError::Changed) => {
                    now.leave_out(&name, format!("what lies behind byte {offset}: the upload is gone or was replaced"));
                    break;
                }
                bytes => bytes?,
            };
            writer.write(&bytes).await?;
            offset += bytes.len() as u64;
            if self.is_time_up(task) {
                let (file, tail) = writer.pause()?;
                return Ok(StepEnd::OutOfTime(Step::Undispatched { offset }, file, tail));
            }
        }
        if end < size && offset >= end {
            let limit = self.unprocessed_max_bytes;
            now.leave_out(&name, format!("what lies behind byte {end}: more than {limit} bytes are not copied"));
        }
        now.files.push(writer.finish(false).await?);
        Ok(StepEnd::Next(Step::Outputs { after: 0 }))
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
        while let Some(item) = walk.next().await? {
            writer.write(item.output.as_bytes()).await?;
            writer.write(b"\n").await?;
            writer.count(1);
            written += 1;
            if written.is_multiple_of(OUTPUTS_AT_ONCE) && self.is_time_up(task) {
                let (file, tail) = writer.pause()?;
                return Ok(StepEnd::OutOfTime(Step::Outputs { after: item.row }, file, tail));
            }
        }
        for attempt in walk.missing() {
            now.leave_out(&output.name, format!("outputs of attempt {attempt}: they are not kept any more"));
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
