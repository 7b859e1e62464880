//! Datasets and their records, on the wire.

use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::records::{Dataset, DatasetRecord, ListedDataset};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A page of datasets, in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DatasetList {
    /// The datasets of this page.
    pub datasets: Vec<DatasetView>,
    /// Where the next page begins: send it as `after`. Null if there are no more datasets.
    pub next: Option<String>,
}

/// A dataset of the caller.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DatasetView {
    /// Its name, as in the param `dataset`.
    pub name: String,
    /// The latest job that writes to it, or has written.
    pub last_import: ImportView,
    /// The path of its records.
    pub records: String,
    /// For how many seconds a record is kept after the creation of the job that wrote it. Absent: for ever.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires_in_seconds: Option<u32>,
}

/// A job that writes to a dataset.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportView {
    /// The job. It may have expired.
    pub job_guid: JobGuid,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A page of records, in no order across the dataset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RecordList {
    /// The records of this page.
    pub records: Vec<RecordView>,
    /// Where the next page begins: send it as `after`. Null if there are no more records.
    pub next: Option<String>,
}

/// A record of a dataset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordView {
    /// Its key: the text of one column, or a JSON list of the texts of several.
    pub key: String,
    /// Its fields.
    pub fields: Map<String, Value>,
    /// Which job wrote it, and from which row.
    pub written_by: WrittenBy,
    /// When it expires. Absent: never.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires_at: Option<Timestamp>,
}

/// The source of a record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WrittenBy {
    /// The job. It may have expired.
    pub job_guid: JobGuid,
    /// The number of the row in the job.
    pub row: u64,
}

impl DatasetView {
    /// The view of a listed dataset.
    pub fn of(listed: ListedDataset) -> Self {
        let ListedDataset { name, last_writer, expires_in: expires_in_seconds } = listed;
        let created_at = Timestamp::from_millisecond(last_writer.job_created_ms).unwrap_or_default();
        let last_import = ImportView { job_guid: last_writer.job_guid, created_at };
        Self { records: format!("/api/datasets/{name}/records"), name, last_import, expires_in_seconds }
    }
}

impl RecordView {
    /// The view of a record of this dataset.
    pub fn of(record: DatasetRecord, dataset: &Dataset) -> Self {
        let DatasetRecord { key, version, fields } = record;
        let expires_at = dataset.expires_at_ms(version.by).and_then(|ms| Timestamp::from_millisecond(ms).ok());
        Self { key, fields, written_by: WrittenBy { job_guid: version.by.job_guid, row: version.row }, expires_at }
    }
}
