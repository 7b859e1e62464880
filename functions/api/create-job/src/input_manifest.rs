//! An input manifest: an upload that lists objects in external buckets, as S3 Batch Operations and S3 Inventory write it.
//!
//! A CSV file without a header has the bucket and the key in its first two columns, and the key is URL-encoded. With a
//! header, and as JSON lines or Parquet, it has the columns `bucket` and `key`, as they are.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use rowmill_core::model::files::{FileProblem, ListedFile};
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::keys;
use rowmill_core::model::spec::{Source, SourceFile};
use rowmill_core::ports::{Objects, PortError};
use rowmill_core::text::{ChunkCutter, ChunkLimits, Head, Position, Record, read_items, shortened};
use rowmill_formats::{Limits, Opened, open, text_within};
use serde_json::{Map, Value, json};

use crate::error::CreateJobError;
use crate::list_text::ListText;
use crate::request::InvalidField;
use crate::source::SourceDetector;

/// The most objects that a manifest may list. Each is looked at, all in one invocation.
const OBJECTS_MAX: usize = 50_000;

/// The longest text of a manifest, in bytes. It is held in memory.
const TEXT_MAX_BYTES: usize = 32 * 1024 * 1024;

/// Number of objects looked at at once.
const LOOKS: usize = 64;

/// The longest name of a bucket that S3 takes.
const BUCKET_MAX_BYTES: usize = 63;

/// An object that a manifest lists.
struct Entry {
    row: u64,
    bucket: String,
    key: String,
}

/// Adds the objects that this upload of the owner lists to a list.
///
/// # Errors
/// The upload is no manifest, or lists what this caller may not read.
pub async fn list(
    detector: &SourceDetector<'_>,
    owner: &Owner,
    file_guid: FileGuid,
    limits: ChunkLimits,
    mut list: ListText,
) -> Result<ListText, CreateJobError> {
    let (upload, file) = detector.upload(owner, file_guid).await?;
    let named = (upload.content_type.as_str(), upload.file_name.as_deref());
    let opened =
        async |params: Value| open(detector.objects, &file, named, &fields(params), detector.header_max_bytes).await;
    let mut manifest = opened(json!({})).await?;
    // JSON has no columns.
    let has_names = manifest.head.columns.is_empty() || column(&manifest.head, "key").is_some();
    if !has_names {
        manifest = opened(json!({ "headerRow": 0 })).await?;
    }
    let Opened { packing, head, .. } = manifest;
    let text = match packing {
        None => detector.text(&Source::File(file), TEXT_MAX_BYTES).await?,
        Some(packing) => text_within(detector.objects, &file, &packing, TEXT_MAX_BYTES, Limits::default()).await?,
    };
    if !text.whole {
        return Err(refused(format!("has more than the maximum of {TEXT_MAX_BYTES} bytes of text.")).into());
    }
    let entries = entries(&text.bytes, &head, limits, has_names)?;
    drop(text);
    for Entry { row, bucket, key } in &entries {
        let no_bucket = |why| refused(format!("row {row} names the bucket `{}`, which {why}", shortened(bucket)));
        detector.inputs.check_bucket(bucket).map_err(no_bucket)?;
        let no_key = |why| refused(format!("row {row} names the key `{}`, which {why}", shortened(key)));
        detector.inputs.check_key(owner, key).map_err(no_key)?;
    }
    let looks = stream::iter(entries.into_iter().map(|entry| look(detector.objects, entry)));
    let mut looks = looks.buffered(LOOKS);
    while let Some(file) = looks.try_next().await? {
        list.add(&file)?;
    }
    Ok(list)
}

fn fields(params: Value) -> Map<String, Value> {
    if let Value::Object(fields) = params { fields } else { Map::new() }
}

/// What the text of a manifest lists.
fn entries(text: &[u8], head: &Head, limits: ChunkLimits, has_names: bool) -> Result<Vec<Entry>, InvalidField> {
    let start = Position { offset: head.data_start, row: 1 };
    let (mut cutter, mut chunks) = (ChunkCutter::new(&head.dialect, limits, start), Vec::new());
    cutter.push(&text[place(start.offset, text)..], &mut chunks);
    cutter.finish(&mut chunks).map_err(|quote| refused(format!("is damaged: {quote}")))?;
    let columns: Arc<[String]> = head.columns.clone().into();
    let of_name = |name, index| if has_names { column(head, name) } else { Some(index) };
    let (bucket_at, key_at) = (of_name("bucket", 0), of_name("key", 1));
    let mut entries = Vec::new();
    for chunk in &chunks {
        let bytes = &text[place(chunk.offset, text)..place(chunk.end(), text)];
        for item in read_items(chunk, bytes, &head.dialect, &columns) {
            let row = item.row;
            let (bucket, mut key) = match item.record {
                Ok(Record::Cells(cells)) => {
                    let cell = |at: Option<usize>| cells.at(at?).map(str::to_owned);
                    (cell(bucket_at), cell(key_at))
                }
                Ok(Record::Json(object)) => (member(&object, "bucket"), member(&object, "key")),
                Err(bad) => return Err(refused(format!("row {row} is damaged: {}", bad.message))),
            };
            if !has_names {
                key = key.as_deref().and_then(keys::decoded);
            }
            match (bucket.filter(|bucket| !bucket.is_empty()), key.filter(|key| !key.is_empty())) {
                (_, Some(key)) if key.len() > keys::KEY_MAX_BYTES => {
                    return Err(refused(format!("row {row} has a key of more than {} bytes.", keys::KEY_MAX_BYTES)));
                }
                (Some(bucket), _) if bucket.len() > BUCKET_MAX_BYTES => {
                    return Err(refused(format!("row {row} has a bucket of more than {BUCKET_MAX_BYTES} bytes.")));
                }
                (Some(bucket), Some(key)) => entries.push(Entry { row, bucket, key }),
                _ => return Err(refused(format!("row {row} names no object: it must have a `bucket` and a `key`."))),
            }
            if entries.len() > OBJECTS_MAX {
                return Err(refused(format!("lists more than the maximum of {OBJECTS_MAX} objects.")));
            }
        }
    }
    if entries.is_empty() { Err(refused("lists no object.".to_owned())) } else { Ok(entries) }
}

/// An offset in this text.
fn place(offset: u64, text: &[u8]) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX).min(text.len())
}

/// The place of the column with this name, in any case.
fn column(head: &Head, name: &str) -> Option<usize> {
    head.columns.iter().position(|column| column.eq_ignore_ascii_case(name))
}

fn member(object: &Value, name: &str) -> Option<String> {
    let found = object.as_object()?.iter().find(|(member, _)| member.eq_ignore_ascii_case(name));
    found?.1.as_str().map(str::to_owned)
}

/// Looks at an object. One that cannot be found is a file that cannot be read.
async fn look(objects: &Arc<dyn Objects>, Entry { bucket, key, .. }: Entry) -> Result<ListedFile, PortError> {
    let key = keys::in_bucket(&bucket, &key);
    let file = |etag, size| SourceFile { file_guid: None, key: key.clone(), etag, size };
    match objects.head(&key).await {
        Ok(head) => {
            let found = ListedFile::of(key.clone(), file(head.etag, head.size));
            Ok(ListedFile { content_type: head.content_type, ..found })
        }
        // Without the right to list, S3 denies what does not exist.
        Err(PortError::NotFound | PortError::Denied { .. } | PortError::Invalid { .. }) => {
            let problem = Some(FileProblem::not_given_out());
            Ok(ListedFile { problem, ..ListedFile::of(key.clone(), file(String::new(), 0)) })
        }
        Err(error) => Err(error),
    }
}

fn refused(message: String) -> InvalidField {
    InvalidField::new("source.manifest", message)
}
