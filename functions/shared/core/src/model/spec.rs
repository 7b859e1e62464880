//! The spec: what a job is, fixed when it is created and never written again, so that a process reads it once.

use jiff::Timestamp;
pub use rowmill_api::request::Tolerance;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::ids::{FileGuid, JobGuid, Owner};
use crate::model::packing::Packing;
use crate::model::tally::Counts;
use crate::text::{ChunkLimits, Head};

/// The param, of every job type, that has its items checked and nothing done with them.
pub const DRY_RUN: &str = "dryRun";

/// What a job is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The job's name.
    pub job_guid: JobGuid,
    /// Whose job it is.
    pub owner: Owner,
    /// The name of its job type.
    pub job_type: String,
    /// When it was created: of two jobs that write the same record, the later one wins.
    pub created_at: Timestamp,
    /// What it runs over.
    pub source: Source,
    /// How its text is read, found out from its first bytes.
    pub head: Head,
    /// Where a chunk ends.
    pub limits: ChunkLimits,
    /// Which scanner cuts it: chunks must be the same ones whenever the file is cut again.
    pub scanner_version: u32,
    /// What the client gave the job type.
    pub params: Map<String, Value>,
    /// How many failures the job bears.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tolerance: Option<Tolerance>,
    /// How many of its chunks may be in flight at once.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_concurrency: Option<u32>,
    /// The file that the outputs of its items make up, if its type has any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<OutputFile>,
}

impl Spec {
    /// Whether the job's items are checked only, and nothing is done with them.
    pub fn is_dry_run(&self) -> bool {
        self.params.get(DRY_RUN).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// What a job runs over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// An upload of plain UTF-8 text: its chunks are ranges of it.
    File(SourceFile),
    /// An upload whose text comes out of it as a stream: its chunks are objects, which the split makes of the text.
    Packed {
        /// The upload.
        file: SourceFile,
        /// How its text comes out.
        packing: Packing,
    },
    /// The records of a dataset, as they are when the split comes to them: its chunks are objects of JSON lines.
    Dataset {
        /// Its name.
        dataset: String,
    },
}

impl Source {
    /// The upload, if there is one.
    pub const fn file(&self) -> Option<&SourceFile> {
        match self {
            Self::File(file) | Self::Packed { file, .. } => Some(file),
            Self::Dataset { .. } => None,
        }
    }

    /// Whether the split stores the text of each chunk as an object.
    pub const fn is_stored(&self) -> bool {
        !matches!(self, Self::File(_))
    }
}

/// The object a job reads, pinned to what it was when the job was created.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceFile {
    /// The upload.
    pub file_guid: FileGuid,
    /// Its key in the bucket.
    pub key: String,
    /// Its entity tag; every read is made on condition of it.
    pub etag: String,
    /// Its length in bytes.
    pub size: u64,
}

/// The file that the outputs of a job's items make up: its header, then each item's output, in row order, a line end behind
/// each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputFile {
    /// What the file is called, such as `transformed.csv`.
    pub name: String,
    /// Its media type.
    pub content_type: String,
    /// Its first line without its line end, if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub header: Option<String>,
    /// Whether it is compressed.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub gzip: bool,
}

impl Counts {
    /// Whether more items failed than a job of this tolerance allows. Skipped items were not processed, so they do not
    /// count.
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
    fn what_is_borne_is_the_last_count_that_does_not_stop_the_job() {
        let counts = |succeeded, failed| Counts { succeeded, failed, skipped: 99 };
        let none = Tolerance { percent: None, count: None, minimum_items: None };
        assert!(!counts(0, 1_000_000).exceed(&none));
        let count = Tolerance { count: Some(3), ..none };
        assert_eq!([2, 3, 4].map(|failed| counts(0, failed).exceed(&count)), [false, false, true]);
        let percent = Tolerance { percent: Some(10.0), minimum_items: Some(20), ..none };
        assert!(!counts(0, 19).exceed(&percent), "too few to say");
        assert!(!counts(18, 2).exceed(&percent), "ten percent are borne");
        assert!(counts(17, 3).exceed(&percent));
        assert!(counts(100, 1).exceed(&Tolerance { percent: Some(0.0), ..none }));
    }
}
