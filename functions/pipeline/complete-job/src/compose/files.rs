//! Step 5: the files of a job over many, each with the counts of its rows.

use rowmill_core::items::files::{FilesAt, JobFiles, NextFile};
use rowmill_core::model::results::{FILES, ResultKind};
use rowmill_core::model::spec::Source;
use rowmill_core::ports::PortError;

use super::composition::Position;
use super::step::{Composing, Step};
use super::writer::OpenFile;

/// Lists the files from this place on.
pub(super) struct Files {
    pub at: FilesAt,
}

impl Step for Files {
    async fn run(self, composing: &mut Composing<'_>) -> Result<Option<Position>, PortError> {
        let Source::Files(list) = &composing.spec.source else { return Ok(None) };
        let mut writer =
            composing.writer(|| OpenFile::new(FILES.into(), ResultKind::Files, "application/x-ndjson".into(), false));
        let mut walk = JobFiles::of(composing.stored_job(), list, self.at).await?;
        let (clock, time_limit) = (&composing.composer.clock, composing.slot.time_limit);
        loop {
            match walk.next(|_| clock.now() < time_limit).await {
                Err(PortError::NotFound) => {
                    let message =
                        format!("the files from number {} on: their rows have expired", walk.at().file.number);
                    composing.composition.leave_out(writer.name(), message);
                    break;
                }
                Err(error) => return Err(error),
                Ok(NextFile::End) => break,
                Ok(NextFile::Suspended) => {
                    composing.keep_open(writer)?;
                    return Ok(Some(Position::Files { at: walk.at() }));
                }
                Ok(NextFile::File(file)) => {
                    let line = serde_json::to_vec(&file);
                    let mut line = line.map_err(|error| PortError::invalid("listing the files of a job", error))?;
                    line.push(b'\n');
                    writer.write(&line).await?;
                    writer.count(1);
                }
            }
            if composing.is_time_up() {
                composing.keep_open(writer)?;
                return Ok(Some(Position::Files { at: walk.at() }));
            }
        }
        composing.finish(writer, true).await?;
        Ok(None)
    }
}
