//! Step 4: the outputs of the items, one to a line.

use rowmill_core::items::outputs::{self, Found};
use rowmill_core::model::changes::RowChange;
use rowmill_core::model::results::ResultKind;
use rowmill_core::ports::PortError;

use super::composition::Position;
use super::step::{Composing, Step};
use super::writer::OpenFile;

/// Number of outputs written between two looks at the clock.
const OUTPUTS_AT_ONCE: usize = 256;

/// Said of rows that a worker of an older version has processed.
const NOT_COMPARED: &str = "changes of rows: an older version of Rowmill checked them without a comparison";

/// Writes the outputs after this row.
pub(super) struct Outputs {
    pub after: u64,
}

impl Step for Outputs {
    async fn run(self, composing: &mut Composing<'_>) -> Result<Option<Position>, PortError> {
        let Some(output) = &composing.spec.output else { return Ok(None) };
        let mut writer = composing.writer(|| {
            OpenFile::new(output.name.clone(), ResultKind::Output, output.content_type.clone(), output.gzip)
        });
        if let Some(header) = output.header.as_ref().filter(|_| writer.is_empty()) {
            writer.write(format!("{header}\n").as_bytes()).await?;
        }
        if output.has_changes {
            composing.composition.changes.get_or_insert_default();
        }
        let (mut walk, mut written) = (outputs::Outputs::of(composing.stored_job(), self.after).await?, 0_usize);
        loop {
            let found = walk.next().await?;
            for attempt in walk.missing() {
                let message = format!("outputs of attempt {attempt}: they have expired");
                composing.composition.leave_out(&output.name, message);
            }
            match found {
                Found::End => break,
                Found::Nothing => {}
                Found::Output(item) => {
                    if let Some(changes) = &mut composing.composition.changes {
                        match serde_json::from_str::<RowChange>(&item.output) {
                            Ok(change) => changes.add(&change),
                            Err(_) => composing.composition.leave_out(&output.name, NOT_COMPARED),
                        }
                    }
                    writer.write(item.output.as_bytes()).await?;
                    writer.write(b"\n").await?;
                    writer.count(1);
                    written += 1;
                    if !written.is_multiple_of(OUTPUTS_AT_ONCE) {
                        continue;
                    }
                }
            }
            // Hand over only after progress, or the next invocation would begin at the same row.
            if composing.is_time_up() && walk.after() > self.after {
                composing.keep_open(writer)?;
                return Ok(Some(Position::Outputs { after: walk.after() }));
            }
        }
        composing.finish(writer, true).await?;
        Ok(None)
    }
}
