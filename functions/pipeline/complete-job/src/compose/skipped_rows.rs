//! Step 2: the header of the input and the skipped rows, byte for byte. The file is an input for a new job.

use rowmill_core::items::skipped::SkippedItems;
use rowmill_core::model::results::{FILES, ResultKind, UNPROCESSED_ROWS};
use rowmill_core::model::spec::Source;
use rowmill_core::ports::PortError;
use rowmill_core::text::ChunkMode;

use super::composition::Position;
use super::input_text::ReadRange;
use super::records::Records;
use super::step::{Composing, Step};
use super::writer::{OpenFile, ResultWriter};

/// Copies the skipped rows after this row.
pub(super) struct SkippedRows {
    pub after: u64,
}

/// Result of copying the skipped rows.
enum Copied {
    Whole,
    OutOfTime,
    /// The upload is gone or was replaced, or objects that the job left have expired.
    Gone,
}

impl Step for SkippedRows {
    async fn run(mut self, composing: &mut Composing<'_>) -> Result<Option<Position>, PortError> {
        let is_of_many = matches!(composing.spec.source, Source::Files(_));
        let has_undispatched = composing.job.unprocessed_from().is_some();
        let is_empty = composing.counts.skipped == 0 && !has_undispatched;
        if is_empty || matches!(composing.spec.source, Source::Dataset { .. }) {
            return Ok(None);
        }
        let spec = composing.spec;
        let mut writer = composing.writer(|| OpenFile::of_rows(UNPROCESSED_ROWS, ResultKind::UnprocessedRows, spec));
        let copied = self.copy(composing, &mut writer).await?;
        if matches!(copied, Copied::OutOfTime) {
            composing.keep_open(writer)?;
            return Ok(Some(Position::SkippedRows { after: self.after }));
        }
        let too_long = composing.composition.too_long;
        if too_long > 0 {
            let why = if is_of_many { "that cannot be read" } else { "that are too long to be read" };
            composing.composition.leave_out(writer.name(), format!("{too_long} rows {why}"));
        }
        if has_undispatched && is_of_many {
            let message = format!("the rows that were not split: `{FILES}` says how far each file was read");
            composing.composition.leave_out(writer.name(), message);
        }
        if matches!(copied, Copied::Gone) {
            let message = "the rows themselves: the upload is gone or was replaced";
            composing.composition.leave_out(writer.name(), message);
        } else if has_undispatched && !is_of_many {
            composing.keep_open(writer)?;
        } else {
            composing.finish(writer, true).await?;
        }
        Ok(None)
    }
}

impl SkippedRows {
    async fn copy(
        &mut self,
        composing: &mut Composing<'_>,
        writer: &mut ResultWriter<'_>,
    ) -> Result<Copied, PortError> {
        let input = composing.input_text();
        let (objects, job, spec) = (&*composing.composer.objects, composing.job, composing.spec);
        let mut records = matches!(spec.source, Source::Files(_)).then(|| Records::of(objects, job, spec));
        if writer.is_empty() {
            let Some(header) = if_there(input.header().await)? else { return Ok(Copied::Gone) };
            writer.write(&header).await?;
        }
        let mut walk = SkippedItems::of(composing.stored_job(), self.after).await?;
        let mut read = ReadRange::default();
        loop {
            let Some(skipped) = if_there(walk.next().await)? else { return Ok(Copied::Gone) };
            let Some(skipped) = skipped else { return Ok(Copied::Whole) };
            if let Some(records) = &mut records {
                let Some(lines) = if_there(records.lines(&skipped).await)? else { return Ok(Copied::Gone) };
                writer.write(&lines.text).await?;
                writer.count(lines.rows);
                composing.composition.too_long += lines.unreadable;
            } else if skipped.chunk.mode == ChunkMode::TooLong {
                composing.composition.too_long += 1;
            } else {
                let end = walk.end_of_read(&skipped.chunk);
                let text = if_there(input.skipped(composing.job.job_guid, &skipped, &mut read, end).await)?;
                let Some(text) = text else { return Ok(Copied::Gone) };
                writer.write(&text).await?;
                if !matches!(text.last(), None | Some(b'\n' | b'\r')) {
                    writer.write(b"\n").await?;
                }
                writer.count(skipped.rows.end - skipped.rows.start);
            }
            self.after = skipped.rows.end - 1;
            if composing.is_time_up() {
                return Ok(Copied::OutOfTime);
            }
        }
    }
}

/// The bytes that were read; none if they are gone or were replaced.
fn if_there<T>(read: Result<T, PortError>) -> Result<Option<T>, PortError> {
    match read {
        Err(PortError::NotFound | PortError::Changed) => Ok(None),
        read => read.map(Some),
    }
}
