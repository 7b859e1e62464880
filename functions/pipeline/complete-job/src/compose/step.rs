//! A step of a composition, and the state that the steps share.

use bytes::Bytes;
use rowmill_core::items::stored_job::StoredJob;
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::Job;
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::Counts;
use rowmill_core::ports::PortError;

use super::composer::Composer;
use super::composition::{Composition, Position};
use super::input_text::InputText;
use super::writer::{Destination, OpenFile, ResultWriter};
use crate::slot::InvocationSlot;

/// A step, at the position where it begins or is resumed.
pub(super) trait Step {
    /// Composes until the step is done or time is up.
    ///
    /// Returns the position to resume at if time was up. The step's file is open then.
    async fn run(self, composing: &mut Composing<'_>) -> Result<Option<Position>, PortError>;
}

pub(super) struct Composing<'a> {
    pub composer: &'a Composer,
    pub job: &'a Job,
    pub spec: &'a Spec,
    /// The counts of the whole job.
    pub counts: Counts,
    /// The id of this try in the keys of the files that it stores.
    pub name: RunId,
    pub slot: InvocationSlot,
    /// Where this invocation resumed the composition; none if it started it.
    pub resumed_at: Option<Position>,
    pub composition: Composition,
}

impl<'a> Composing<'a> {
    pub const fn stored_job(&self) -> StoredJob<'a> {
        StoredJob { jobs: &self.composer.jobs, objects: &self.composer.objects, job: self.job }
    }

    pub const fn input_text(&self) -> InputText<'a> {
        InputText { objects: &self.composer.objects, spec: self.spec, packed: self.composer.packed }
    }

    /// True if the rest must be left to the next invocation.
    pub fn is_time_up(&self) -> bool {
        self.composer.clock.now() >= self.slot.time_limit
    }

    /// Continues the open file, or starts this one.
    pub fn writer(&mut self, file: impl FnOnce() -> OpenFile) -> ResultWriter<'a> {
        let file = self.composition.open.take().unwrap_or_else(file);
        let tail = std::mem::take(&mut self.composition.tail);
        let Composer { objects, multipart, part_bytes, .. } = self.composer;
        let Job { job_guid, attempt, .. } = *self.job;
        let (objects, multipart, part_bytes) = (&**objects, &**multipart, *part_bytes);
        let to = Destination { job_guid, attempt, run: self.name, objects, multipart, part_bytes };
        ResultWriter::new(to, file, tail.into())
    }

    /// Keeps a file open, for the next step or the next invocation.
    pub fn keep_open(&mut self, writer: ResultWriter<'_>) -> Result<(), PortError> {
        let (file, tail) = writer.hand_over()?;
        (self.composition.open, self.composition.tail) = (Some(file), Bytes::from(tail));
        Ok(())
    }

    /// Finishes a file, of which all items are counted or none.
    pub async fn finish(&mut self, writer: ResultWriter<'_>, are_counted: bool) -> Result<(), PortError> {
        self.composition.files.push(writer.finish(are_counted).await?);
        Ok(())
    }
}
