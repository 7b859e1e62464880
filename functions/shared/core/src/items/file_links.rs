//! Links to the files of a job whose one item lists them.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::items::input::InputItem;
use crate::model::files::{FileProblem, ListedFile, files_of};
use crate::model::product::OCTET_STREAM;
use crate::model::spec::Spec;
use crate::ports::{DirectTransfers, Objects, PortError};
use crate::text::Record;

/// The field of the item that lists the files.
const FILES_FIELD: &str = "files";

/// A file as the target or worker gets it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LinkedFile<'a> {
    name: &'a str,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    #[serde(flatten)]
    place: Place<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Place<'a> {
    Linked { etag: &'a str, url: String },
    Unreadable { problem: &'a FileProblem },
}

/// About the longest link, without the name of the file: the host, the signature and a session token.
const LINK_BYTES: usize = 2200;

/// The most bytes of a byte of a name: it stands in the link twice, each time encoded, and once as it is.
const NAME_BYTES: usize = 7;

/// About the most bytes that this file takes in an item.
pub fn linked_bytes(file: &ListedFile) -> usize {
    match file.problem {
        Some(_) => LINK_BYTES,
        None => LINK_BYTES + NAME_BYTES * file.name.len(),
    }
}

/// Puts the files of the job into its item, if its item lists them: each with a link, which works from now on for this
/// time. What the text of the item says is not asked: a corrected row cannot name other files.
///
/// # Errors
/// `NotFound`, `Changed` if the list is gone; `Unavailable`.
pub async fn link(
    objects: &dyn Objects,
    transfers: &dyn DirectTransfers,
    (spec, expiry): (&Spec, Duration),
    items: &mut [InputItem],
) -> Result<(), PortError> {
    let Some(list) = &spec.inputs else { return Ok(()) };
    let invalid = |error| PortError::invalid("linking the files of a job", error);
    let text = objects.read_range(&list.list.key, &list.list.etag, 0..list.list.size).await?;
    let mut files = Vec::new();
    for file in files_of(&text) {
        let file = file.map_err(invalid)?;
        let content_type = file.content_type.as_deref();
        let place = match &file.problem {
            Some(problem) => Place::Unreadable { problem },
            None => {
                let saved_as = file.name.rsplit('/').next().unwrap_or_default();
                let shown_as = content_type.unwrap_or(OCTET_STREAM);
                let link = transfers.presign_get(&file.key, shown_as, saved_as, expiry).await?;
                Place::Linked { etag: &file.etag, url: link.url }
            }
        };
        let linked = LinkedFile { name: &file.name, bytes: file.size, content_type, place };
        files.push(serde_json::to_value(linked).map_err(invalid)?);
    }
    let record = Value::from(Map::from_iter([(FILES_FIELD.to_owned(), Value::from(files))]));
    for item in items.iter_mut().filter(|item| item.record.is_ok()) {
        item.record = Ok(Record::Json(record.clone()));
    }
    Ok(())
}
