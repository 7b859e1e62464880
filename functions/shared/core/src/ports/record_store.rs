use async_trait::async_trait;

use crate::model::records::{RecordPage, Upsert, Upserted};
use crate::ports::PortError;

/// The records that `import` writes: per dataset, one for each key.
#[async_trait]
pub trait RecordStore: Send + Sync {
    /// Writes each of these records unless a later version of it is there. The results are in the order of the upserts;
    /// no two of them may have the same key.
    ///
    /// # Errors
    /// Per record: `Unavailable`, with nothing known about whether it was written; writing it again is right.
    async fn upsert(&self, dataset: &str, upserts: &[Upsert]) -> Vec<Result<Upserted, PortError>>;

    /// Records of a partition of a dataset (0 to [`RECORD_PARTITIONS`], excluded) in the order of their keys, behind key
    /// `after`: at most `limit` of them, and fewer where they are big. A record that is written meanwhile may be in it as it
    /// was or as it is.
    ///
    /// # Errors
    /// `Unavailable`; `Invalid` where a record was not written by Rowmill.
    async fn page(
        &self,
        dataset: &str,
        partition: u32,
        after: Option<&str>,
        limit: usize,
    ) -> Result<RecordPage, PortError>;
}
