//! The list of the files of a job while it is made, and the texts that a new job stores.

use bytes::Bytes;
use rowmill_core::items::file_links::linked_bytes;
use rowmill_core::items::of_task::RECORDS_MAX_BYTES;
use rowmill_core::model::files::{FileList, ListedFile};
use rowmill_core::model::keys;
use rowmill_core::model::spec::{Source, SourceFile, Spec};
use rowmill_core::ports::PortError;
use rowmill_core::ports::processor::InputKind;
use rowmill_formats::FirstText;

use crate::create::Creator;
use crate::error::CreateJobError;
use crate::request::InvalidField;

/// The longest list of the files of a job, in bytes. It is held in memory while it is made.
const LIST_MAX_BYTES: usize = 128 * 1024 * 1024;

/// The most files that an item lists.
const ITEM_FILES_MAX: u64 = 1000;

/// The list of the files of a job, as it is stored.
#[derive(Debug)]
pub struct ListText {
    text: Vec<u8>,
    pub files: u64,
    /// The bytes of all files.
    bytes: u64,
    /// About the length of the item that lists them, if one does.
    item_bytes: Option<usize>,
}

impl ListText {
    /// A list without files, for a job with this input.
    pub fn of(input: InputKind) -> Self {
        let item_bytes = (input == InputKind::Files).then_some(0);
        Self { text: Vec::new(), files: 0, bytes: 0, item_bytes }
    }

    /// The list of these files.
    ///
    /// # Errors
    /// As of [`add`](Self::add).
    pub fn with(input: InputKind, files: &[ListedFile]) -> Result<Self, CreateJobError> {
        let mut list = Self::of(input);
        files.iter().try_for_each(|file| list.add(file))?;
        Ok(list)
    }

    /// The list, and its text, which is not stored yet.
    pub fn unstored(self) -> (FileList, Bytes) {
        let Self { text, files, bytes, .. } = self;
        (FileList { list: to_store(&text), files, bytes }, text.into())
    }

    /// Adds a file.
    ///
    /// # Errors
    /// The list is too long.
    pub fn add(&mut self, file: &ListedFile) -> Result<(), CreateJobError> {
        (self.files, self.bytes) = (self.files + 1, self.bytes.saturating_add(file.size));
        serde_json::to_writer(&mut self.text, file).map_err(|error| PortError::invalid("listing files", error))?;
        self.text.push(b'\n');
        let item_bytes = self.item_bytes.map(|bytes| bytes + linked_bytes(file));
        self.item_bytes = item_bytes;
        let why = match item_bytes {
            Some(bytes) if self.files > ITEM_FILES_MAX || bytes > RECORDS_MAX_BYTES => {
                format!("one item cannot list them: at most {ITEM_FILES_MAX}, and {RECORDS_MAX_BYTES} bytes of links")
            }
            None if self.text.len() > LIST_MAX_BYTES => format!("their list is longer than {LIST_MAX_BYTES} bytes"),
            Some(_) | None => return Ok(()),
        };
        let message = format!("names so many files that {why}. Create a job for each part of them.");
        Err(InvalidField::new("source", message).into())
    }
}

/// A file of the caller, as a line of a list. A file without a name is named by its guid.
pub fn listed(name: Option<String>, content_type: String, file: SourceFile) -> ListedFile {
    let guid = file.file_guid.map(|guid| guid.to_string());
    let name = name.or(guid).unwrap_or_default();
    ListedFile { content_type: Some(content_type), ..ListedFile::of(name, file) }
}

/// An object that is not stored yet.
pub fn to_store(text: &[u8]) -> SourceFile {
    SourceFile { file_guid: None, key: String::new(), etag: String::new(), size: text.len() as u64 }
}

/// Texts of a job that may have to be stored.
pub(crate) struct Texts {
    /// The text that the head of its input was read from.
    pub first: FirstText,
    /// The list of the files that its one item lists.
    pub inputs: Option<Bytes>,
}

/// The media type of items that came with a request.
const JSON_LINES: &str = "application/x-ndjson";

impl Creator {
    /// Stores the items of a request, and the list of a job's files.
    pub(crate) async fn store_texts(&self, spec: &mut Spec, texts: Texts) -> Result<(), PortError> {
        let source = match &mut spec.source {
            Source::File(file) | Source::Files(FileList { list: file, .. }) => Some(file),
            Source::Packed { .. } | Source::Dataset { .. } | Source::Awaited(_) => None,
        };
        let source = source.filter(|file| file.key.is_empty()).map(|file| (file, texts.first.bytes));
        let inputs = spec.inputs.as_mut().zip(texts.inputs).map(|(files, text)| (&mut files.list, text));
        for (file, text) in source.into_iter().chain(inputs) {
            // Of two runs that store the same text, each reads its own: encrypted, it may have another entity tag.
            let key = keys::input(spec.job_guid, self.entropy.run_id());
            file.etag = self.objects.put(&key, JSON_LINES, text, None).await?;
            file.key = key;
        }
        Ok(())
    }
}
