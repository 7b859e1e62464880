use async_trait::async_trait;

use crate::model::records::{RecordPage, Upsert, Upserted};
use crate::ports::{PortError, PortResult};

/// The records that `import` writes: one per dataset and key.
#[async_trait]
pub trait RecordStore: Send + Sync {
    /// Writes each of these records unless a later version is stored. The results are in the order of the upserts. No two
    /// upserts may have the same key.
    ///
    /// # Errors
    /// Per record: `Unavailable` if it may or may not be written; write it again.
    async fn upsert(&self, dataset: &str, upserts: &[Upsert]) -> Vec<Result<Upserted, PortError>>;

    /// Reads records of a partition of a dataset (0 to [`RECORD_PARTITIONS`], exclusive) in key order, behind key `after`: at
    /// most `limit`, and fewer if they are big. A record that is written during the read may appear in its old or its new
    /// version.
    ///
    /// [`RECORD_PARTITIONS`]: crate::model::records::RECORD_PARTITIONS
    ///
    /// # Errors
    /// `Unavailable`; `Invalid` if a record was not written by Rowmill.
    async fn page(&self, dataset: &str, partition: u32, after: Option<&str>, limit: usize) -> PortResult<RecordPage>;
}
