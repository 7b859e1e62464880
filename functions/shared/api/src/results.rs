//! The results of a job as the API and the manifest show them.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Open;
use crate::ids::JobGuid;
use crate::open::words;
use crate::status::Status;

words! {
    /// What a result file holds.
    ResultKind {
        /// The items that failed, each with the reason.
        FailedRows = "failedRows",
        /// The rows that were never processed because the job was stopped.
        UnprocessedRows = "unprocessedRows",
        /// The outputs of the items.
        Output = "output",
    }
}

/// The results as the API shows them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultsView {
    /// The job's name.
    pub job_guid: JobGuid,
    /// The attempt that composed them.
    #[schema(minimum = 1)]
    pub attempt: u32,
    /// How the job ended.
    pub status: Status,
    /// When the links expire. Ask again for new ones.
    pub expires_at: Timestamp,
    /// The files.
    pub files: Vec<FileView>,
    /// Contents that are missing from the files, each with the reason.
    #[serde(default)]
    #[schema(required)]
    pub left_out: Vec<LeftOut>,
    /// The file that lists the others, with the job as it ended.
    pub manifest: ManifestView,
}

/// A file of the results, with its link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FileView {
    /// The file.
    #[serde(flatten)]
    pub file: ResultFile,
    /// Its link.
    #[serde(flatten)]
    pub link: LinkView,
}

/// The manifest, with its link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestView {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub content_type: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// The CRC-64/NVME of its bytes: 8 bytes, big endian, in base64.
    pub crc64_nvme: String,
    /// Its link.
    #[serde(flatten)]
    pub link: LinkView,
}

/// Where a file is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkView {
    /// A name for the file that no other job's files have. A browser that follows the link saves it under another name, after
    /// the `fileName` in the metadata of the job, if there is one.
    pub file_name: String,
    /// The link, for `GET`. It holds a signature.
    pub url: String,
}

impl fmt::Debug for LinkView {
    /// Anyone who has the link may read the file, so it must not reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkView").field("file_name", &self.file_name).finish_non_exhaustive()
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
