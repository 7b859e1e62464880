//! Step 3: the input that was never dispatched, byte for byte, added to the unprocessed rows.

use futures::StreamExt;
use rowmill_core::model::results::{ResultKind, UNPROCESSED_ROWS};
use rowmill_core::model::spec::Source;
use rowmill_core::ports::PortError;

use super::composition::Position;
use super::input_text::TextError;
use super::step::{Composing, Step};
use super::writer::{OpenFile, ResultWriter};

/// Copies the input from this byte on.
pub(super) struct Undispatched {
    pub offset: u64,
}

/// Result of copying the input.
enum Copied {
    Whole,
    OutOfTime,
    /// The rest is left out, for this reason.
    InPart(String),
}

impl Step for Undispatched {
    async fn run(mut self, composing: &mut Composing<'_>) -> Result<Option<Position>, PortError> {
        // The step before keeps the file open if there is undispatched input that can be copied.
        if composing.composition.open.is_none() {
            return Ok(None);
        }
        let spec = composing.spec;
        let mut writer = composing.writer(|| OpenFile::of_rows(UNPROCESSED_ROWS, ResultKind::UnprocessedRows, spec));
        match self.copy(composing, &mut writer).await? {
            Copied::Whole => {}
            Copied::OutOfTime => {
                composing.keep_open(writer)?;
                return Ok(Some(Position::Undispatched { offset: self.offset }));
            }
            Copied::InPart(why) => {
                let message = format!("the rest of the file from byte {}: {why}", self.offset);
                composing.composition.leave_out(writer.name(), message);
            }
        }
        composing.finish(writer, false).await?;
        Ok(None)
    }
}

impl Undispatched {
    async fn copy(&mut self, composing: &Composing<'_>, writer: &mut ResultWriter<'_>) -> Result<Copied, PortError> {
        let max_bytes = composing.composer.unprocessed_max_bytes;
        let from = composing.job.unprocessed_from().map_or(self.offset, |from| from.offset);
        // The length of a packed upload's text is not known.
        let size = match &composing.spec.source {
            Source::File(file) => file.size,
            Source::Packed { .. } | Source::Dataset { .. } | Source::Files(_) | Source::Awaited(_) => u64::MAX,
        };
        let end = size.min(from.saturating_add(max_bytes));
        let is_first = composing.resumed_at == Some(Position::Undispatched { offset: self.offset });
        let clock = &composing.composer.clock;
        let begun = clock.now();
        let patience = begun + composing.slot.time_limit.duration_since(begun) / 2;
        let mut text = composing.input_text().range(self.offset..end);
        loop {
            match text.next().await {
                None if end < size && self.offset >= end => {
                    return Ok(Copied::InPart(format!("more than {max_bytes} bytes are not copied")));
                }
                None => return Ok(Copied::Whole),
                Some(Ok(passed_over)) if passed_over.is_empty() => {
                    if clock.now() >= patience {
                        return far_behind(is_first, composing.slot.is_retry);
                    }
                }
                Some(Ok(bytes)) => {
                    writer.write(&bytes).await?;
                    self.offset += bytes.len() as u64;
                    if composing.is_time_up() {
                        return Ok(Copied::OutOfTime);
                    }
                }
                Some(Err(TextError::Unreadable(error))) => return Ok(Copied::InPart(error.to_string())),
                Some(Err(TextError::Port(PortError::NotFound | PortError::Changed))) => {
                    return Ok(Copied::InPart("the upload is gone or was replaced".to_owned()));
                }
                Some(Err(TextError::Port(error))) => return Err(error),
            }
        }
    }
}

/// Half of the invocation's time went into decoding a packed upload, and the undispatched text is still ahead.
///
/// Each invocation decodes a packed upload from its beginning. An invocation with its full time for that gives the text
/// up, or invocations would follow each other for ever. Any other invocation leaves it to the next one.
fn far_behind(is_first: bool, is_retry: bool) -> Result<Copied, PortError> {
    match (is_first, is_retry) {
        (false, _) => Ok(Copied::OutOfTime),
        (true, true) => Err(PortError::unavailable("decoding the upload", "too little time is left of the invocation")),
        (true, false) => Ok(Copied::InPart("to decode the upload that far takes too long".to_owned())),
    }
}
