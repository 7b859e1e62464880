use async_trait::async_trait;

use crate::model::records::{Dataset, RecordPage, Upsert, Upserted};
use crate::ports::{PortError, PortResult};

/// The records that `import` writes: one per dataset and key.
#[async_trait]
pub trait RecordStore: Send + Sync {
    /// Opens a dataset to write to it. The first that opens it decides that it has `if_new` partitions. All others get
    /// that number.
    ///
    /// # Errors
    /// `Unavailable`; open it again. `Invalid` if its number of partitions was not written by Rowmill.
    async fn open(&self, name: &str, if_new: u32) -> PortResult<Dataset>;

    /// A dataset to read. `None` if nobody has opened it to write to it: then it has no records.
    async fn opened(&self, name: &str) -> PortResult<Option<Dataset>>;

    /// Writes each of these records unless a later version is stored. The results are in the order of the upserts. No
    /// two upserts may have the same key.
    ///
    /// # Errors
    /// Per record: `Unavailable` if it may or may not be written; write it again.
    async fn upsert(&self, dataset: &Dataset, upserts: &[Upsert]) -> Vec<Result<Upserted, PortError>>;

    /// Reads records of a partition of a dataset (0 to its number of partitions, exclusive) in key order, behind key
    /// `after`: at most `limit`, and fewer if they are big. A record that is written during the read may appear in its
    /// old or its new version.
    ///
    /// # Errors
    /// `Unavailable`; `Invalid` if a record was not written by Rowmill.
    async fn page(
        &self,
        dataset: &Dataset,
        partition: u32,
        after: Option<&str>,
        limit: usize,
    ) -> PortResult<RecordPage>;
}
