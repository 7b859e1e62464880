//! Step 1: the failed rows, for a person to correct and hand back to a redrive.

use rowmill_core::items::failed::FailedItems;
use rowmill_core::model::results::{FAILED_ROWS, ResultKind};
use rowmill_core::ports::PortError;

use super::composition::Position;
use super::failed_row;
use super::step::{Composing, Step};
use super::writer::OpenFile;

/// Writes the failed rows after this row.
pub(super) struct FailedRows {
    pub after: u64,
}

impl Step for FailedRows {
    async fn run(mut self, composing: &mut Composing<'_>) -> Result<Option<Position>, PortError> {
        if composing.counts.failed == 0 {
            return Ok(None);
        }
        let spec = composing.spec;
        let mut writer = composing.writer(|| OpenFile::of_rows(FAILED_ROWS, ResultKind::FailedRows, spec));
        if writer.is_empty() {
            writer.write(&failed_row::header(spec)?).await?;
        }
        let mut walk = FailedItems::of(composing.stored_job(), self.after).await?;
        loop {
            let items = match walk.next().await {
                Err(PortError::NotFound) => {
                    let message = format!("failed rows after row {}: they have expired", self.after);
                    composing.composition.leave_out(writer.name(), message);
                    break;
                }
                items => items?,
            };
            let Some(items) = items else { break };
            for item in &items {
                writer.write(&failed_row::row(spec, item)?).await?;
                composing.composition.causes.add(item);
                self.after = item.row;
            }
            writer.count(items.len() as u64);
            if composing.is_time_up() {
                composing.keep_open(writer)?;
                return Ok(Some(Position::FailedRows { after: self.after }));
            }
        }
        composing.finish(writer, true).await?;
        Ok(None)
    }
}
