//! What a stopped job did not process, as a file that a new job can run over: the input's header, the rows that were
//! skipped, and everything that was never dispatched, byte for byte.

use std::sync::Arc;

use futures::StreamExt;
use rowmill_core::items::skipped::SkippedItems;
use rowmill_core::model::results::{ResultKind, UNPROCESSED_ROWS};
use rowmill_core::model::spec::Source;
use rowmill_core::ports::PortError;
use rowmill_core::text::ChunkMode;

use super::input_text::{InputText, TextError};
use super::writer::{OpenFile, ResultWriter};
use super::{Composer, Composition, Step, StepEnd, Task, rows_file};

/// How copying the skipped rows ended.
enum Copied {
    Whole,
    /// Time was up behind this row.
    OutOfTime(u64),
    /// The upload is gone or was replaced, or what the job left has expired.
    Gone,
}

impl Composer {
    fn unprocessed_file(&self, task: &Task<'_>, now: &mut Composition, tail: Vec<u8>) -> ResultWriter<'_> {
        let (name, content_type) = rows_file(UNPROCESSED_ROWS, task.spec);
        let file = || OpenFile::new(name, ResultKind::UnprocessedRows, content_type.to_owned(), false);
        self.writer(task, now, tail, file)
    }

    fn input_text<'a>(&self, task: &Task<'a>) -> InputText<'a> {
        InputText { objects: Arc::clone(&self.objects), spec: task.spec, packed: self.packed }
    }

    /// The rows that were skipped behind this one.
    pub(super) async fn skipped_rows(
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
        let (name, _) = rows_file(UNPROCESSED_ROWS, task.spec);
        let mut writer = self.unprocessed_file(task, now, tail);
        let copied = self.copy_skipped(task, now, &mut writer, after).await?;
        if let Copied::OutOfTime(after) = copied {
            let (file, tail) = writer.pause()?;
            return Ok(StepEnd::OutOfTime(Step::SkippedRows { after }, file, tail));
        }
        if now.too_long > 0 {
            now.leave_out(&name, format!("{} rows that are too long to be read", now.too_long));
        }
        match (copied, behind) {
            (Copied::Gone, _) => {
                now.leave_out(&name, "the rows themselves: the upload is gone or was replaced");
                Ok(StepEnd::Next(Step::Outputs { after: 0 }))
            }
            (_, None) => {
                now.files.push(writer.finish(true).await?);
                Ok(StepEnd::Next(Step::Outputs { after: 0 }))
            }
            (_, Some(from)) => {
                let (file, tail) = writer.pause()?;
                now.open = Some(file);
                self.undispatched(task, now, tail, from.offset).await
            }
        }
    }

    async fn copy_skipped(
        &self,
        task: &Task<'_>,
        now: &mut Composition,
        writer: &mut ResultWriter<'_>,
        after: u64,
    ) -> Result<Copied, PortError> {
        let input = self.input_text(task);
        if writer.is_empty() {
            let Some(header) = if_there(input.header().await)? else { return Ok(Copied::Gone) };
            writer.write(&header).await?;
        }
        let (jobs, objects) = (Arc::clone(&self.jobs), Arc::clone(&self.objects));
        let mut walk = SkippedItems::of(jobs, objects, task.job, after).await?;
        loop {
            let Some(skipped) = if_there(walk.next().await)? else { return Ok(Copied::Gone) };
            let Some(skipped) = skipped else { return Ok(Copied::Whole) };
            if skipped.chunk.mode == ChunkMode::TooLong {
                now.too_long += 1;
            } else {
                let text = if_there(input.skipped(task.job.job_guid, &skipped).await)?;
                let Some(text) = text else { return Ok(Copied::Gone) };
                writer.write(&text).await?;
                if !matches!(text.last(), None | Some(b'\n' | b'\r')) {
                    writer.write(b"\n").await?;
                }
                writer.count(skipped.rows.end - skipped.rows.start);
            }
            if self.is_time_up(task) {
                return Ok(Copied::OutOfTime(skipped.rows.end - 1));
            }
        }
    }

    /// What was never dispatched, from this byte on.
    pub(super) async fn undispatched(
        &self,
        task: &Task<'_>,
        now: &mut Composition,
        tail: Vec<u8>,
        offset: u64,
    ) -> Result<StepEnd, PortError> {
        let (name, _) = rows_file(UNPROCESSED_ROWS, task.spec);
        let mut writer = self.unprocessed_file(task, now, tail);
        let from = task.job.unprocessed_from().map_or(offset, |from| from.offset);
        // Nobody knows how long the text of a packed upload is.
        let size = match &task.spec.source {
            Source::File(file) => file.size,
            Source::Packed { .. } | Source::Dataset { .. } => u64::MAX,
        };
        let end = size.min(from.saturating_add(self.unprocessed_max_bytes));
        // A packed upload is decoded from its beginning each time. What takes most of an invocation to get to, of one that
        // begins with it, is left out, or the invocations would have no end.
        let begun = self.clock.now();
        let patience = begun + task.slot.time_limit.duration_since(begun) / 2;
        let begins_with_it = task.resumed == Some(Step::Undispatched { offset });
        let (mut offset, mut text) = (offset, self.input_text(task).range(offset..end));
        let why = loop {
            match text.next().await {
                None if end < size && offset >= end => {
                    break Some(format!("more than {} bytes are not copied", self.unprocessed_max_bytes));
                }
                None => break None,
                Some(Ok(passed_over)) if passed_over.is_empty() => {
                    if self.clock.now() < patience {
                        continue;
                    }
                    if !begins_with_it {
                        let (file, tail) = writer.pause()?;
                        return Ok(StepEnd::OutOfTime(Step::Undispatched { offset }, file, tail));
                    }
                    if task.slot.is_retry {
                        return Err(PortError::unavailable(
                            "decoding the upload",
                            "too little time is left of the invocation",
                        ));
                    }
                    break Some("to decode the upload that far takes too long".to_owned());
                }
                Some(Ok(bytes)) => {
                    writer.write(&bytes).await?;
                    offset += bytes.len() as u64;
                    if self.is_time_up(task) {
                        let (file, tail) = writer.pause()?;
                        return Ok(StepEnd::OutOfTime(Step::Undispatched { offset }, file, tail));
                    }
                }
                Some(Err(TextError::Unreadable(error))) => break Some(error.to_string()),
                Some(Err(TextError::Port(error))) => match if_there::<()>(Err(error))? {
                    Some(()) => {}
                    None => break Some("the upload is gone or was replaced".to_owned()),
                },
            }
        };
        if let Some(why) = why {
            now.leave_out(&name, format!("what lies behind byte {offset}: {why}"));
        }
        now.files.push(writer.finish(false).await?);
        Ok(StepEnd::Next(Step::Outputs { after: 0 }))
    }
}

/// What was read, unless it is not there any more.
fn if_there<T>(read: Result<T, PortError>) -> Result<Option<T>, PortError> {
    match read {
        Err(PortError::NotFound | PortError::Changed) => Ok(None),
        read => read.map(Some),
    }
}
