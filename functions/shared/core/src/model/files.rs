//! Jobs over many files.
//!
//! The files of such a job are read as one long text: offsets and rows go on from file to file, so each row of the job
//! has one number. A chunk never crosses files. Each file has a head of its own: its [layout](LayoutId) names it.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::model::sha256::sha256_hex;
use crate::model::spec::SourceFile;
use crate::ports::processor::ParamsError;
use crate::text::{Chunk, Head, Position};
use crate::words::words;

/// The files of a job: an object with one [`ListedFile`] a line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileList {
    pub list: SourceFile,
    pub files: u64,
    /// Their bytes, as far as they are known.
    pub bytes: u64,
}

/// A file of a job, as a line of its list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedFile {
    /// Its name in messages and results: the file name of an upload, the key of an object.
    pub name: String,
    pub key: String,
    pub etag: String,
    /// Its length in bytes.
    pub size: u64,
    /// Its media type, if it was declared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_type: Option<String>,
    /// Where it is in its object, if that is a zip archive.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub member: Option<ZipMember>,
    /// Why it cannot be read, if that was seen when it was listed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<FileProblem>,
}

/// The files of the text of a list, in their order.
pub fn files_of(text: &[u8]) -> impl Iterator<Item = serde_json::Result<ListedFile>> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(serde_json::from_slice)
}

impl ListedFile {
    /// A file of which only the place is known.
    pub fn of(name: String, SourceFile { key, etag, size, .. }: SourceFile) -> Self {
        Self { name, key, etag, size, content_type: None, member: None, problem: None }
    }

    pub fn object(&self) -> SourceFile {
        let size = self.member.map_or(self.size, |member| member.archive_bytes);
        SourceFile { file_guid: None, key: self.key.clone(), etag: self.etag.clone(), size }
    }
}

/// A file in a zip archive, as the directory of the archive describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ZipMember {
    /// Length of the archive.
    pub archive_bytes: u64,
    /// Where its header begins in the archive.
    pub offset: u64,
    /// Length of its data in the archive.
    pub bytes: u64,
    /// Length of its content.
    pub inflated_bytes: u64,
    /// The checksum of its content.
    pub crc32: u32,
    /// The number of the compression: 0 for none, 8 for deflate.
    pub method: u16,
    pub is_encrypted: bool,
}

/// The name of a head in a job over many files: files with the same dialect and columns have the same.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct LayoutId(String);

impl LayoutId {
    /// Number of digits.
    const DIGITS: usize = 16;

    /// The layout of a file with this head, and the head that is stored under it: where the records begin is left out.
    pub fn of(head: &Head) -> Result<(Self, Vec<u8>), serde_json::Error> {
        let json = serde_json::to_vec(&Head { data_start: 0, ..head.clone() })?;
        let digest = sha256_hex(&json);
        Ok((Self(digest[..Self::DIGITS].to_owned()), json))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where the chunks of a job over many files come from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// How its items are read. `None` if they are not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub layout: Option<LayoutId>,
    /// Its file. `None` in a redrive, whose items know their files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<PartFile>,
}

/// The file of a chunk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartFile {
    pub name: String,
    /// Its place in the list of the job's files, counted from 0.
    pub number: u64,
    /// The border before its text, counted over all files.
    pub start: Position,
    pub text: PartText,
}

/// The text of a file's chunks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PartText {
    /// They are ranges of this object.
    Object { key: String, etag: String },
    /// The split stores it.
    Stored,
    /// There is none: the file cannot be read from here on. Its one item says why.
    Unreadable(FileProblem),
}

/// Why a file of a job cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileProblem {
    /// For a program, such as `unreadable_file`.
    pub code: String,
    /// For a person.
    pub message: String,
}

/// Why an object of another bucket cannot be read. S3 does not always tell which it is.
pub const NOT_GIVEN_OUT: &str = "Its bucket does not give it out: it is gone, archived or encrypted with a key of others, or the policy of the bucket \
     denies it.";

impl FileProblem {
    /// That of an object of another bucket.
    pub fn not_given_out() -> Self {
        Self { code: "file_not_allowed".to_owned(), message: NOT_GIVEN_OUT.to_owned() }
    }
}

/// The param that says what becomes of a job if one of its files cannot be read.
pub const UNREADABLE_FILES: &str = "unreadableFiles";

/// What becomes of a job if one of its files cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UnreadableFiles {
    /// One item fails in place of what cannot be read.
    #[default]
    Fail,
    /// The job is stopped.
    Stop,
}

impl UnreadableFiles {
    /// That of these params.
    ///
    /// # Errors
    /// The param has another value.
    pub fn of(params: &Map<String, Value>) -> Result<Self, ParamsError> {
        match params.get(UNREADABLE_FILES) {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(Value::String(word)) if word == "fail" => Ok(Self::Fail),
            Some(Value::String(word)) if word == "stop" => Ok(Self::Stop),
            Some(_) => Err(ParamsError::new(format!("params.{UNREADABLE_FILES}"), "must be `fail` or `stop`.")),
        }
    }
}

impl PartFile {
    /// The bytes of a chunk in its own file.
    pub const fn range(&self, chunk: &Chunk) -> Range<u64> {
        let offset = self.offset(chunk.offset);
        offset..offset.saturating_add(chunk.length)
    }

    /// An offset of the job in this file.
    pub const fn offset(&self, offset: u64) -> u64 {
        offset.saturating_sub(self.start.offset)
    }

    /// A row of the job in this file.
    pub const fn row(&self, row: u64) -> u64 {
        row.saturating_sub(self.start.row).saturating_add(1)
    }
}

impl Part {
    /// The place of this row in its file.
    pub fn place(&self, row: u64) -> Option<FileRow> {
        let file = self.file.as_ref()?;
        Some(FileRow { name: file.name.clone(), row: file.row(row), layout: self.layout.clone() })
    }
}

/// The place of a row in a job over many files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileRow {
    /// The name of the file.
    pub name: String,
    /// Its 1-based row number in this file; the header is not counted.
    #[schema(minimum = 1)]
    pub row: u64,
    /// How the file is read. Files with the same format, delimiter and columns have the same layout.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub layout: Option<LayoutId>,
}

/// A place between two rows of a job over many files, for the split.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilePosition {
    /// The byte of the list at which the line of the file begins.
    pub line: u64,
    /// The place of the file in the list.
    pub number: u64,
    /// The border before its text, if some of its chunks are before this place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub begun: Option<Position>,
}

words! {
    /// How far a file of a job is.
    FileState {
        /// The split has not come to it.
        Waiting = "waiting",
        /// Some of its rows are done, or may be.
        Running = "running",
        /// Each of its rows has an outcome.
        Done = "done",
        /// The job was stopped while it was split, or right behind it: it may have more rows.
        CutShort = "cut_short",
        /// The job was stopped before the split came to it.
        Skipped = "skipped",
    }
}

/// A file of a job, with its rows by outcome.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileCounts {
    /// The name of the file.
    pub name: String,
    /// Its place among the files of the job, counted from 0.
    pub number: u64,
    /// How far it is.
    pub state: FileState,
    /// How many rows it has, as far as it is split.
    pub rows: u64,
    /// How many of them have no outcome yet.
    pub pending: u64,
    /// How many succeeded.
    pub succeeded: u64,
    /// How many failed. A file that cannot be read, or not to its end, has one failed row more.
    pub failed: u64,
    /// How many were not processed because the job was stopped.
    pub skipped: u64,
    /// Why it cannot be read, or not to its end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<FileProblem>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{ChunkMode, Dialect, Format};

    #[test]
    fn files_with_the_same_dialect_and_columns_have_the_same_layout() {
        let head = |format, data_start| Head::without_columns(Dialect { format, delimiter: b',' }, data_start);
        let of = |head: &Head| LayoutId::of(head).unwrap();
        assert_eq!(of(&head(Format::Jsonl, 0)), of(&head(Format::Jsonl, 3)));
        assert_ne!(of(&head(Format::Jsonl, 0)).0, of(&head(Format::Csv, 0)).0);
        let named = Head { columns: vec!["a".into()], ..head(Format::Csv, 2) };
        assert_ne!(of(&named).0, of(&head(Format::Csv, 2)).0);
    }

    #[test]
    fn a_row_of_the_job_has_its_number_in_the_file() {
        let (key, etag) = ("k".to_owned(), "e".to_owned());
        let start = Position { offset: 100, row: 11 };
        let file = PartFile { name: "b.csv".into(), number: 1, start, text: PartText::Object { key, etag } };
        let chunk = Chunk { offset: 104, length: 6, first_row: 11, items: 3, mode: ChunkMode::Items };
        assert_eq!(file.range(&chunk), 4..10);
        let part = Part { layout: None, file: Some(file) };
        assert_eq!(part.place(13).map(|place| (place.name, place.row)), Some(("b.csv".to_owned(), 3)));
    }
}
