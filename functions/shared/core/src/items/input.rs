//! Reads the items of a chunk: from the bytes of the file or, in a redrive, from the list of failed items.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::files::{FileRow, PartText, UnreadableFiles};
use crate::model::ids::JobGuid;
use crate::model::keys;
use crate::model::messages::ChunkMessage;
use crate::model::packing::{Packing, TextPacking};
use crate::model::run_output::{FailedItem, to_base64};
use crate::model::spec::{Source, Spec};
use crate::ports::processor::Item;
use crate::ports::{Objects, PortError};
use crate::text::bad_record::ROW_TOO_LONG;
use crate::text::{BadRecord, CharsetHint, Chunk, ChunkMode, Record, read_items};

/// The most bytes of neighbouring chunks that one request reads. In `process-items` they stay in memory until the last
/// of its chunks has ended. All chunks of an invocation begin together, so their bytes are in memory at the same time
/// in any case; this bounds how long a chunk waits for the bytes of its neighbours: about 0.1 seconds at the rate of
/// one connection to S3.
pub const SHARED_READ_MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The longest gap between two chunks of a shared read, in bytes. Between them may be blank lines, or a short chunk
/// that nobody here needs. Reading so much takes less time than another request.
const GAP_MAX_BYTES: u64 = 64 * 1024;

/// True if a chunk of the same file follows another one, or begins a little behind it.
pub fn follows(before: &Chunk, next: &Chunk) -> bool {
    next.offset.checked_sub(before.end()).is_some_and(|gap| gap <= GAP_MAX_BYTES)
}

#[derive(Clone, PartialEq, Debug)]
pub struct InputItem {
    /// Its 1-based number in the job, header not counted.
    pub row: u64,
    /// Its place in its file, in a job over many files.
    pub file: Option<FileRow>,
    /// The byte of the file it begins at.
    pub offset: u64,
    /// Its bytes without the terminator; none if it is too long to be read.
    pub raw: Option<Bytes>,
    /// Its record, or the failure that stands without processing.
    pub record: Result<Record, FailedItem>,
    /// Its failure in the attempt before, if this is a redrive.
    pub before: Option<FailedItem>,
}

impl InputItem {
    /// An item of these bytes that reads like this.
    fn new(place: ItemPlace, raw: Bytes, read: Result<Record, BadRecord>) -> Self {
        let record = read.map_err(|bad| failed_item(&place, Some(&raw), bad.code.into(), bad.message, bad.column));
        let ItemPlace { row, file, offset } = place;
        Self { row, file, offset, raw: Some(raw), record, before: None }
    }

    /// An item that fails with this code, and is not read.
    fn unread(place: ItemPlace, length: u64, code: &str, message: String) -> Self {
        let failed = FailedItem { length, ..failed_item(&place, None, code.to_owned(), message, None) };
        let ItemPlace { row, file, offset } = place;
        Self { row, file, offset, raw: None, record: Err(failed), before: None }
    }

    /// The item as a processor gets it; none if it is malformed.
    pub fn well_formed(self, job_guid: JobGuid) -> Option<Item> {
        Some(Item { job_guid, row: self.row, record: self.record.ok()? })
    }

    pub fn failed(&self, code: impl Into<String>, message: impl Into<String>) -> FailedItem {
        let place = ItemPlace { row: self.row, file: self.file.clone(), offset: self.offset };
        failed_item(&place, self.raw.as_ref(), code.into(), message.into(), None)
    }
}

/// Where an item begins.
struct ItemPlace {
    row: u64,
    file: Option<FileRow>,
    /// The byte of its file.
    offset: u64,
}

impl ItemPlace {
    /// The place of an item of a chunk of the first attempt; `offset` is that in the job.
    fn of(message: &ChunkMessage, row: u64, offset: u64) -> Self {
        let offset = message.file().map_or(offset, |file| file.offset(offset));
        Self { row, file: message.place(row), offset }
    }
}

fn failed_item(
    place: &ItemPlace,
    raw: Option<&Bytes>,
    code: String,
    message: String,
    column: Option<String>,
) -> FailedItem {
    let text = raw.and_then(|raw| std::str::from_utf8(raw).ok());
    FailedItem {
        row: place.row,
        file: place.file.clone(),
        offset: place.offset,
        length: raw.map_or(0, |raw| raw.len() as u64),
        code,
        message,
        column,
        rule: None,
        raw: text.map(str::to_owned),
        raw_base64: raw.filter(|_| text.is_none()).map(|raw| to_base64(raw)),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file was deleted or replaced since it was split; says which.
    #[error("the uploaded file {0}")]
    SourceChanged(&'static str),
    /// The same bytes give another number of items than in the split: a bug of Rowmill.
    #[error("the chunk is read as {found} items, but the split counted {expected}")]
    OtherItems { expected: u32, found: usize },
    #[error(transparent)]
    Port(#[from] PortError),
}

/// An item of a redrive: one line of its chunk's object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RedriveItem {
    /// Its failure before.
    #[serde(flatten)]
    pub failed: FailedItem,
    /// Its new text, if it was corrected.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub corrected: Option<String>,
    /// True if it keeps its failure unprocessed, because the request did not select it: its corrected file has no such
    /// row, or its selection does not fit.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub left_out: bool,
}

/// A row of a corrected file: the new text of a failed item.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Correction {
    /// The failed item's row in the file of the first attempt.
    pub row: u64,
    /// Its record, in the format of that file.
    pub text: String,
}

/// Reads the rows of a corrected file, in row order.
pub fn read_corrections(bytes: &[u8]) -> Result<Vec<Correction>, PortError> {
    let rows: Result<Vec<Correction>, _> = serde_json::Deserializer::from_slice(bytes).into_iter().collect();
    rows.map_err(|error| PortError::invalid("reading the corrected rows", error))
}

/// The items of a message's chunk, in order. Their number is the one in the message.
pub async fn read_input(
    objects: &dyn Objects,
    spec: &Spec,
    columns: &Arc<[String]>,
    message: &ChunkMessage,
) -> Result<Vec<InputItem>, InputError> {
    let chunk = &message.chunk;
    let text = message.file().map(|file| &file.text);
    let file = || spec.source.file().ok_or(PortError::NotFound).map_err(source_error);
    let items = if message.address.attempt > 1 {
        let bytes =
            objects.read(&keys::redrive_items(message.job_guid, message.address)).await.map_err(source_error)?;
        let lines = read_redrive_items(&bytes)?;
        lines.into_iter().map(|item| redriven(item, spec, columns)).collect()
    } else if let Some(PartText::Unreadable(problem)) = text {
        let place = ItemPlace::of(message, chunk.first_row, chunk.offset);
        vec![InputItem::unread(place, 0, &problem.code, problem.message.clone())]
    } else if chunk.mode == ChunkMode::TooLong {
        vec![too_long(message, spec.limits.max_record_bytes)]
    } else {
        let bytes = match (text, message.stored) {
            (Some(PartText::Object { key, etag }), _) => {
                match objects.read_range(key, etag, message.range()).await.map_err(|error| read_error(key, error)) {
                    Err(InputError::SourceChanged(how)) if fails_alone(spec) => return Ok(changed(message, how)),
                    bytes => bytes?,
                }
            }
            (_, Some(stored)) => {
                let key = keys::stored_text(message.job_guid, message.address, stored.by);
                objects.read(&key).await.map_err(source_error)?
            }
            (_, None) => {
                let file = file()?;
                objects.read_range(&file.key, &file.etag, message.range()).await.map_err(source_error)?
            }
        };
        let items = read_items(chunk, &bytes, &spec.head.dialect, columns).with_hint(charset_hint(&spec.source));
        items
            .map(|item| {
                let place = ItemPlace::of(message, item.row, item.offset);
                InputItem::new(place, bytes.slice_ref(item.raw), item.record)
            })
            .collect::<Vec<_>>()
    };
    match items.len() == chunk.items as usize {
        true => Ok(items),
        false => Err(InputError::OtherItems { expected: chunk.items, found: items.len() }),
    }
}

/// Reads the lines of a redrive chunk's object.
pub fn read_redrive_items(bytes: &[u8]) -> Result<Vec<RedriveItem>, PortError> {
    let items: Result<Vec<RedriveItem>, _> = serde_json::Deserializer::from_slice(bytes).into_iter().collect();
    items.map_err(|error| PortError::invalid("reading the items of a redrive", error))
}

/// An external bucket answers that it denies a missing object, too.
fn read_error(key: &str, error: PortError) -> InputError {
    match error {
        PortError::Denied { .. } | PortError::Invalid { .. } if keys::of_other_bucket(key).is_some() => {
            InputError::SourceChanged("is gone or may no longer be read")
        }
        error => source_error(error),
    }
}

fn source_error(error: PortError) -> InputError {
    match error {
        PortError::NotFound => InputError::SourceChanged("is gone"),
        PortError::Changed => InputError::SourceChanged("was replaced"),
        error => error.into(),
    }
}

/// The hint about the charset of the job's file, for an item that is not UTF-8.
pub fn charset_hint(source: &Source) -> CharsetHint {
    match source {
        Source::File(_)
        | Source::Files(_)
        | Source::Packed { packing: Packing::Text(TextPacking { charset: None, .. }), .. } => CharsetHint::Likely,
        Source::Packed { packing: Packing::Text(TextPacking { charset: Some(charset), .. }), .. } => {
            CharsetHint::Declared(charset.name())
        }
        Source::Packed { .. } | Source::Dataset { .. } | Source::Awaited(_) => CharsetHint::None,
    }
}

/// The one item of a chunk that is a single record over the length limit. Its bytes are not read.
fn too_long(message: &ChunkMessage, max_record_bytes: u64) -> InputItem {
    let chunk = &message.chunk;
    let said = format!("the row takes {} bytes, more than the {max_record_bytes} a row may have", chunk.length);
    let place = ItemPlace::of(message, chunk.first_row, chunk.offset);
    InputItem::unread(place, chunk.length, ROW_TOO_LONG, said)
}

/// True if a file of many that cannot be read fails alone, and the job goes on.
fn fails_alone(spec: &Spec) -> bool {
    UnreadableFiles::of(&spec.params).unwrap_or_default() == UnreadableFiles::Fail
}

/// The items of a chunk of a file that was deleted or replaced since it was split.
fn changed(message: &ChunkMessage, how: &str) -> Vec<InputItem> {
    let chunk = &message.chunk;
    let rows = chunk.first_row..chunk.first_row + u64::from(chunk.items);
    let of = |row| {
        let said = format!("the file {how} since it was split");
        InputItem::unread(ItemPlace::of(message, row, chunk.offset), 0, SOURCE_CHANGED, said)
    };
    rows.map(of).collect()
}

/// The code of the items of a file that was deleted or replaced.
pub const SOURCE_CHANGED: &str = "source_changed";

/// A failed item, to be tried again from its own bytes or from its corrected text.
fn redriven(item: RedriveItem, spec: &Spec, columns: &Arc<[String]>) -> InputItem {
    let RedriveItem { failed, corrected, left_out } = item;
    // A file that could not be read has no format that a correction could have.
    let corrected = corrected.filter(|_| failed.file.as_ref().is_none_or(|file| file.layout.is_some()));
    let bytes = match (corrected, &failed.raw, &failed.raw_base64) {
        (Some(corrected), ..) => Some(Bytes::from(corrected)),
        (None, Some(raw), _) => Some(Bytes::from(raw.clone())),
        (None, None, Some(base64)) => STANDARD.decode(base64).ok().map(Bytes::from),
        (None, None, None) => None,
    };
    let (row, offset, file) = (failed.row, failed.offset, failed.file.clone());
    let read = bytes.as_ref().filter(|_| !left_out).and_then(|bytes| {
        let length = bytes.len() as u64;
        let chunk = Chunk { offset, length, first_row: row, items: 1, mode: ChunkMode::Items };
        let mut items = read_items(&chunk, bytes, &spec.head.dialect, columns).with_hint(charset_hint(&spec.source));
        items.next().map(|item| (bytes.clone(), item.record))
    });
    match read {
        Some((bytes, record)) => {
            InputItem { before: Some(failed), ..InputItem::new(ItemPlace { row, file, offset }, bytes, record) }
        }
        // Left out, or without any text: it keeps its failure.
        None => InputItem { row, file, offset, raw: bytes, record: Err(failed.clone()), before: Some(failed) },
    }
}
