//! The results of a job: the files for its owner that exist from the end of an attempt on, and their keys.
//!
//! The files are composed before the attempt ends, each under the id of the run that stores it. The manifest names the
//! files with these ids, and the transaction that ends the attempt names the manifest. So the results of an ended job
//! are always complete, and a run that was given up can neither show nor change a file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::model::causes::{Cause, CauseCount};
use crate::model::changes::Changes;
use crate::model::ids::{JobGuid, RunId};
use crate::model::keys;
use crate::words::{Open, words};

/// The name of the manifest, the file that lists the others.
pub const MANIFEST: &str = "manifest.json";

/// The name of the file of failed rows, without its extension.
pub const FAILED_ROWS: &str = "failed-rows";

/// The name of the file of unprocessed rows, without its extension.
pub const UNPROCESSED_ROWS: &str = "unprocessed-rows";

/// The name of the file that lists the files of a job.
pub const FILES: &str = "files.jsonl";

/// The location of the results of an attempt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    pub attempt: u32,
    /// The id in the key of the manifest.
    pub manifest: RunId,
    /// The most frequent causes that the manifest has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CauseCount>,
}

impl Results {
    /// The key of a file that the manifest lists.
    pub fn file_key(&self, job: JobGuid, file: &ManifestFile) -> String {
        keys::result_file(job, self.attempt, &file.by, &file.file.name)
    }

    pub fn manifest_key(&self, job: JobGuid) -> String {
        keys::result_file(job, self.attempt, &self.manifest.to_string(), MANIFEST)
    }
}

words! {
    /// What a result file holds.
    ResultKind {
        /// The items that failed, each with the reason.
        FailedRows = "failedRows",
        /// The rows that were never processed because the job was stopped.
        UnprocessedRows = "unprocessedRows",
        /// The outputs of the items.
        Output = "output",
        /// The files of the job, each with the counts of its rows.
        Files = "files",
    }
}

impl ResultKind {
    /// True if it is of use only if its job has ended well. The rows that a job leaves are there however it ends.
    pub const fn needs_good_end(self) -> bool {
        matches!(self, Self::Output)
    }
}

/// Where the results of a job are copied to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultsTo {
    /// An external bucket that the stack may write to.
    pub bucket: String,
    /// What the keys begin with. Behind it stand the type and the name of the job, its attempt, and the name of the file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
}

impl ResultsTo {
    /// What the keys of the copies of this attempt begin with. A late copy of an earlier attempt replaces nothing.
    pub fn place(&self, job_type: &str, job: JobGuid, attempt: u32) -> String {
        keys::in_bucket(&self.bucket, &format!("{}{job_type}-{job}/{attempt}/", self.prefix))
    }
}

words! {
    /// How far the copy of the results is.
    CopyState {
        /// It is not whole yet.
        Pending = "pending",
        /// Each file is stored, the manifest as the last one.
        Stored = "stored",
        /// It was given up.
        Failed = "failed",
    }
}

/// The content of `manifest.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The version of this file's form. It goes up with every change that a reader must know.
    pub schema_version: u32,
    /// The job as it ended, in the form of the API.
    pub job: Value,
    /// The files.
    pub files: Vec<ManifestFile>,
    /// Contents that are missing from the files, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_out: Vec<LeftOut>,
    /// The causes of the failed items, the most frequent one first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub causes: Vec<Cause>,
    /// Number of failed items of other causes.
    #[serde(default)]
    pub other_causes: u64,
    /// What the rows would change, if the job is a dry run of an import.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub changes: Option<Changes>,
    /// What the keys of the copies of these files begin with, if they are copied: `s3://{bucket}/…/`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub copied_to: Option<String>,
}

/// A file in the manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestFile {
    /// The file.
    #[serde(flatten)]
    pub file: ResultFile,
    /// The run that stored it: a part of its key in the bucket.
    pub by: String,
}

/// A file of the results.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultFile {
    /// Its name, unique among the results of a job.
    pub name: String,
    /// What it holds.
    #[schema(value_type = ResultKind)]
    pub kind: Open<ResultKind>,
    /// Its media type.
    pub content_type: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// How many items it holds, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub items: Option<u64>,
    /// The CRC-64/NVME of its bytes: 8 bytes, big endian, in base64, as S3 writes it.
    pub crc64_nvme: String,
}

/// Content that is missing from a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeftOut {
    /// The file it is missing from.
    pub file: String,
    /// What is missing, and why.
    pub message: String,
}

/// A CRC-64/NVME in the format of [`ResultFile`].
pub fn crc64_text(crc: u64) -> String {
    STANDARD.encode(crc.to_be_bytes())
}

/// The names of the columns that follow the input's columns in a failed-rows file: `row`, `code`, `message`, `column`.
/// If the input has a column of one of these names, all four get the prefix `rowmill_`, repeated until no name is
/// taken.
pub fn failed_rows_columns(input: &[String]) -> [String; 4] {
    let mut names = ["row", "code", "message", "column"].map(str::to_owned);
    while names.iter().any(|name| input.contains(name)) {
        names = names.map(|name| format!("rowmill_{name}"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rowmill_columns_are_never_named_like_input_columns() {
        let input = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(failed_rows_columns(&input(&["a", "b"])), ["row", "code", "message", "column"]);
        let prefixed = failed_rows_columns(&input(&["code", "b"]));
        assert_eq!(prefixed, ["rowmill_row", "rowmill_code", "rowmill_message", "rowmill_column"]);
        assert_eq!(failed_rows_columns(&input(&["row", "rowmill_column"]))[0], "rowmill_rowmill_row");
    }

    #[test]
    fn a_checksum_has_the_format_of_s3() {
        assert_eq!(crc64_text(0xae8b_1486_0a79_9888), "rosUhgp5mIg=");
    }
}
