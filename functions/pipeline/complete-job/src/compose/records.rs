//! The skipped rows of a job over many files, as JSON lines. They have one form, whatever the formats of the files are, so
//! that a new job can read them.

use std::sync::Arc;

use rowmill_core::items::input::{InputError, InputItem, read_input};
use rowmill_core::items::layouts;
use rowmill_core::items::skipped::SkippedChunk;
use rowmill_core::model::files::LayoutId;
use rowmill_core::model::job::Job;
use rowmill_core::model::messages::{ChunkMessage, StoredText};
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::{Objects, PortError};
use rowmill_core::text::Record;
use serde_json::{Map, Value};

/// Reads the records of skipped rows.
pub struct Records<'a> {
    pub objects: &'a dyn Objects,
    pub job: &'a Job,
    pub spec: &'a Spec,
    /// How the chunk before was read.
    read: Option<(LayoutId, Spec)>,
}

/// The records of a chunk as JSON lines.
#[derive(Default)]
pub struct Lines {
    pub text: Vec<u8>,
    pub rows: u64,
    /// Rows that are no records, or whose file is gone or was replaced.
    pub unreadable: u64,
}

impl<'a> Records<'a> {
    pub const fn of(objects: &'a dyn Objects, job: &'a Job, spec: &'a Spec) -> Self {
        Self { objects, job, spec, read: None }
    }

    /// The skipped rows of this chunk.
    pub async fn lines(&mut self, skipped: &SkippedChunk) -> Result<Lines, PortError> {
        let SkippedChunk { address, chunk, stored_by, part, rows } = skipped;
        let stored = stored_by.map(|by| StoredText { by, weight: 0 });
        let message =
            ChunkMessage { stored, part: part.clone().map(Box::new), ..ChunkMessage::of(self.job, *address, *chunk) };
        let items = match self.items(&message).await {
            Ok(items) => items,
            Err(InputError::Port(error)) => return Err(error),
            Err(_) => return Ok(Lines { unreadable: rows.end - rows.start, ..Lines::default() }),
        };
        let mut lines = Lines::default();
        for item in items.into_iter().filter(|item| rows.contains(&item.row)) {
            match line_of(item) {
                Some(line) => {
                    lines.text.extend_from_slice(&line);
                    lines.text.push(b'\n');
                    lines.rows += 1;
                }
                None => lines.unreadable += 1,
            }
        }
        Ok(lines)
    }

    async fn items(&mut self, message: &ChunkMessage) -> Result<Vec<InputItem>, InputError> {
        let is_read = |(layout, _): &(LayoutId, Spec)| Some(layout) == message.layout();
        let spec = match self.read.take_if(|read| is_read(read)) {
            Some((_, spec)) => spec,
            None => layouts::spec_of(self.objects, self.spec.clone(), message).await?,
        };
        let columns: Arc<[String]> = spec.head.columns.clone().into();
        let items = read_input(self.objects, &spec, &columns, message).await;
        self.read = message.layout().cloned().map(|layout| (layout, spec));
        items
    }
}

/// The record of an item as JSON. The text of a record in JSON is kept: parsing could lose digits of a long number.
fn line_of(item: InputItem) -> Option<Vec<u8>> {
    match item.record.ok()? {
        Record::Json(_) => {
            let raw = item.raw?;
            // A line break in it would end the line.
            let has_breaks = raw.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
            (!has_breaks).then(|| raw.to_vec())
        }
        Record::Cells(cells) => {
            let cells = cells.iter().map(|(column, cell)| (column.to_owned(), Value::from(cell)));
            serde_json::to_vec(&cells.collect::<Map<_, _>>()).ok()
        }
    }
}
