//! The spec of a job: it is written when the job is created, or when the file that it waits for is found. It never
//! changes after that, so a process reads it once.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::files::FileList;
use crate::model::ids::{FileGuid, JobGuid, Owner};
use crate::model::packing::Packing;
use crate::model::records::Writer;
use crate::model::results::{ResultKind, ResultsTo};
use crate::model::stored_record::as_text;
use crate::model::tally::Counts;
use crate::text::{ChunkLimits, Head};

/// The param of every job type that only checks the items.
pub const DRY_RUN: &str = "dryRun";

/// The fixed part of a job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    pub job_guid: JobGuid,
    pub owner: Owner,
    pub job_type: String,
    /// When it was created. Of two jobs that write the same record, the later one wins.
    pub created_at: Timestamp,
    pub source: Source,
    /// The files that its one item lists, if it does not read them itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub inputs: Option<FileList>,
    /// The format of its text, as detected from its first bytes.
    pub head: Head,
    pub limits: ChunkLimits,
    /// The version of the scanner that splits it: chunks must be the same whenever the file is split again.
    pub scanner_version: u32,
    pub params: Map<String, Value>,
    /// Maximum number of its chunks in flight.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_concurrency: Option<u32>,
    /// The output file, if the job type has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<OutputFile>,
    /// Where its results are copied to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub results_to: Option<ResultsTo>,
    /// The other settings of its request, in the form of the API: so that the same can be asked for again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request: Option<Value>,
    /// Number of partitions a dataset gets if this job is the first to write to it.
    pub new_dataset_partitions: u32,
}

impl Spec {
    pub fn is_dry_run(&self) -> bool {
        self.params.get(DRY_RUN).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// The failed items that a job tolerates before it is stopped.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tolerance {
    /// A higher percentage of failed items among the processed ones stops the job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub percent: Option<f64>,
    /// More failed items than this stop the job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub count: Option<u64>,
    /// The percentage is ignored until this many items are processed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub minimum_items: Option<u64>,
}

/// The input of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// Plain UTF-8 text: an upload, or the items that came with the request. Its chunks are ranges of it.
    File(SourceFile),
    /// An upload that is unpacked to text. Its chunks are objects, which the split stores.
    Packed { file: SourceFile, packing: Packing },
    /// The records of a dataset as the split reads them. Its chunks are objects of JSON lines.
    Dataset {
        dataset: String,
        /// If only keys are read: of which records.
        #[serde(flatten)]
        keys_of: Option<KeysOf>,
    },
    /// Many files, each with a head of its own.
    Files(FileList),
    /// A file that does not exist yet. What is found takes its place before the split, see
    /// [`Waits::put_found`](crate::ports::Waits::put_found).
    Awaited(AwaitedFile),
}

/// Records whose keys alone a job reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum KeysOf {
    /// Those that this job has written.
    #[serde(rename = "of")]
    Job(JobGuid),
    /// All that are stored, also those that readers do not see.
    #[serde(rename = "stored")]
    Stored,
    /// Those that this import has not got.
    #[serde(rename = "missingIn")]
    MissingIn(#[serde(with = "as_text")] Writer),
}

/// A file that did not exist when the job was created.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AwaitedFile {
    /// An upload that is fetched.
    Upload(FileGuid),
    /// A result file of a job that has not ended.
    Result { job: JobGuid, kind: ResultKind },
    /// The files in an upload that is a zip archive, which are not listed yet.
    Archive(FileGuid),
    /// The objects that an upload lists (an input manifest), which are not looked at yet.
    Manifest(FileGuid),
    /// The objects of a bucket, which are not listed yet.
    Objects { bucket: String, prefix: String, suffix: String },
}

impl Source {
    /// The object that the job reads, if there is one.
    pub const fn file(&self) -> Option<&SourceFile> {
        match self {
            Self::File(file) | Self::Packed { file, .. } => Some(file),
            Self::Dataset { .. } | Self::Files(_) | Self::Awaited(_) => None,
        }
    }

    /// The upload that the job reads, or will read.
    pub fn upload(&self) -> Option<FileGuid> {
        match self {
            Self::Awaited(AwaitedFile::Upload(file_guid) | AwaitedFile::Archive(file_guid)) => Some(*file_guid),
            _ => self.file()?.file_guid,
        }
    }

    /// Number of its files, if they are many.
    pub const fn files(&self) -> Option<u64> {
        match self {
            Self::Files(list) => Some(list.files),
            _ => None,
        }
    }

    pub const fn is_awaited(&self) -> bool {
        matches!(self, Self::Awaited(_))
    }

    /// True if the split stores the text of chunks as objects.
    pub const fn is_stored(&self) -> bool {
        matches!(self, Self::Packed { .. } | Self::Dataset { .. } | Self::Files(_))
    }
}

/// The object that a job reads, pinned to its state when the job was created.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceFile {
    /// The upload; `None` if the object holds the items of the request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file_guid: Option<FileGuid>,
    pub key: String,
    /// Its entity tag, the condition of every read.
    pub etag: String,
    /// Its length in bytes.
    pub size: u64,
}

/// The output file of a job: its header, then each item's output in row order, each with a line end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputFile {
    /// Its name, such as `transformed.csv`.
    pub name: String,
    pub content_type: String,
    /// Its first line without its line end, if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub header: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub gzip: bool,
    /// True if its lines are [changes](crate::model::changes::RowChange), which are counted.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub has_changes: bool,
}

impl OutputFile {
    /// One JSON object for each item.
    pub fn lines() -> Self {
        let (name, content_type) = ("outputs.jsonl".to_owned(), "application/x-ndjson".to_owned());
        Self { name, content_type, header: None, gzip: false, has_changes: false }
    }

    /// One [change](crate::model::changes::RowChange) for each item.
    pub fn changes() -> Self {
        Self { name: "changes.jsonl".to_owned(), has_changes: true, ..Self::lines() }
    }
}

impl Counts {
    /// True if more items failed than this tolerance allows. Skipped items do not count.
    pub fn exceed(self, tolerance: &Tolerance) -> bool {
        let processed = self.succeeded + self.failed;
        let by_count = tolerance.count.is_some_and(|count| self.failed > count);
        let by_percent = tolerance.percent.is_some_and(|percent| {
            let enough = processed >= tolerance.minimum_items.unwrap_or(0);
            enough && self.failed as f64 * 100.0 > percent * processed as f64
        });
        by_count || by_percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_stopped_if_failures_exceed_its_tolerance() {
        let counts = |succeeded, failed| Counts { succeeded, failed, skipped: 99 };
        let none = Tolerance { percent: None, count: None, minimum_items: None };
        assert!(!counts(0, 1_000_000).exceed(&none));
        let count = Tolerance { count: Some(3), ..none };
        assert_eq!([2, 3, 4].map(|failed| counts(0, failed).exceed(&count)), [false, false, true]);
        let percent = Tolerance { percent: Some(10.0), minimum_items: Some(20), ..none };
        assert!(!counts(0, 19).exceed(&percent), "too few to say");
        assert!(!counts(18, 2).exceed(&percent), "ten percent are tolerated");
        assert!(counts(17, 3).exceed(&percent));
        assert!(counts(100, 1).exceed(&Tolerance { percent: Some(0.0), ..none }));
    }
}
