//! The results of a job as the API and the manifest show them.

use std::fmt;

use jiff::Timestamp;
use rowmill_core::model::causes::Cause;
use rowmill_core::model::changes::Changes;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::results::{CopyState, LeftOut, ResultFile};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
    /// The causes of the failed items, the most frequent one first: at most 100.
    #[serde(default)]
    #[schema(required)]
    pub causes: Vec<Cause>,
    /// How many items failed for other causes.
    #[serde(default)]
    #[schema(required)]
    pub other_causes: u64,
    /// What the rows would change, if the job is a dry run of an import; otherwise null.
    #[serde(default)]
    #[schema(required)]
    pub changes: Option<Changes>,
    /// The file that lists the others, with the job as it ended.
    pub manifest: ManifestView,
    /// The copy of the files, if the job was created with `resultsTo`; otherwise null.
    #[serde(default)]
    #[schema(required)]
    pub copy: Option<CopyView>,
}

/// The copy of the results in an external bucket.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CopyView {
    /// What the keys begin with, each followed by the name of a file: `s3://{bucket}/…/`.
    pub to: String,
    /// How far it is.
    pub state: CopyState,
    /// Why it was given up; otherwise null.
    pub problem: Option<String>,
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
    /// A name for the file that no other job's files have. A browser that follows the link saves it under another name,
    /// after the `fileName` in the metadata of the job, if there is one.
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
