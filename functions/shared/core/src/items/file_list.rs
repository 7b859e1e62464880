//! Reads the list of the files of a job over many, line by line.

use std::sync::Arc;

use bytes::Bytes;

use crate::model::files::{FilePosition, ListedFile};
use crate::model::spec::SourceFile;
use crate::ports::{Objects, PortError};

/// Size of one read of the list.
const READ_BYTES: u64 = 256 * 1024;

/// A line of the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListLine {
    /// The place of the file.
    pub at: FilePosition,
    /// The place of the next one.
    pub next: FilePosition,
    pub file: ListedFile,
}

/// The list from one of its lines on.
pub struct FileLines {
    objects: Arc<dyn Objects>,
    list: SourceFile,
    next: FilePosition,
    /// Bytes from there on that are read.
    read: Bytes,
}

impl FileLines {
    /// Begins at this place.
    pub const fn new(objects: Arc<dyn Objects>, list: SourceFile, at: FilePosition) -> Self {
        Self { objects, list, next: FilePosition { begun: None, ..at }, read: Bytes::new() }
    }

    /// Goes to this place.
    pub fn seek(&mut self, at: FilePosition) {
        (self.next, self.read) = (FilePosition { begun: None, ..at }, Bytes::new());
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// `NotFound` or `Changed` if the list is gone; `Invalid` if it is not Rowmill's.
    pub async fn next(&mut self) -> Result<Option<ListLine>, PortError> {
        let length = loop {
            if let Some(length) = self.read.iter().position(|byte| *byte == b'\n') {
                break length + 1;
            }
            let from = self.next.line + self.read.len() as u64;
            if from >= self.list.size {
                return Ok(None);
            }
            let range = from..self.list.size.min(from + READ_BYTES);
            let more = self.objects.read_range(&self.list.key, &self.list.etag, range).await?;
            self.read = [&self.read[..], &more[..]].concat().into();
        };
        let line = self.read.split_to(length);
        let file =
            serde_json::from_slice(&line).map_err(|error| PortError::invalid("reading a list of files", error))?;
        let at = self.next;
        self.next = FilePosition { line: at.line + length as u64, number: at.number.saturating_add(1), begun: None };
        Ok(Some(ListLine { at, next: self.next, file }))
    }
}
