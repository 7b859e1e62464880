use async_trait::async_trait;

use crate::model::ids::Owner;
use crate::model::records::{Dataset, DatasetPage, DatasetRecord, RecordPage, Upserted, Writer};
use crate::model::stored_record::{Revision, StoredRecord};
use crate::ports::{PortError, PortResult};

/// The records that `import` writes: one per dataset and key. A record that has expired may be removed at any time. Until
/// then it is read with the mark of it, which [`StoredRecord::visible`] heeds.
#[async_trait]
pub trait RecordStore: Send + Sync {
    /// Opens a dataset so that this job can write to it, and lists it. The first that opens it decides how it is: as
    /// `if_new`. All others get that.
    ///
    /// # Errors
    /// `Unavailable`; open it again. `Invalid` if its row was not written by Rowmill.
    async fn open(&self, if_new: &Dataset, writer: Writer) -> PortResult<Dataset>;

    /// A dataset to read. `None` if nobody has opened it to write to it: then it has no records.
    async fn opened(&self, name: &str) -> PortResult<Option<Dataset>>;

    /// Writes each of these records unless a later version is stored, and keeps no history of it. The results are in
    /// their order. No two may have the same key.
    ///
    /// # Errors
    /// Per record: `Unavailable` if it may or may not be written; write it again.
    async fn upsert(&self, dataset: &Dataset, records: &[DatasetRecord]) -> Vec<Result<Upserted, PortError>>;

    /// Stores or removes each of these records, unless its key has another revision now than was seen. The results are in
    /// their order: whether it is done. No two may have the same key.
    ///
    /// # Errors
    /// Per record: `Invalid` if the table cannot hold it. `Unavailable` if it may or may not be done.
    async fn replace(&self, dataset: &Dataset, replacements: &[Replacement]) -> Vec<PortResult<bool>>;

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
        keys: KeyRange<'_>,
        limit: usize,
        reading: Reading,
    ) -> PortResult<RecordPage>;

    /// The record with this key that readers see, as the last write has left it.
    ///
    /// # Errors
    /// `Unavailable`; `Invalid` if it was not written by Rowmill.
    async fn record(&self, dataset: &Dataset, key: &str) -> PortResult<Option<DatasetRecord>>;

    /// Those of the records with these keys that are there, in any order. No two keys may be the same.
    ///
    /// # Errors
    /// `Unavailable`; `Invalid` if one was not written by Rowmill.
    async fn records(&self, dataset: &Dataset, keys: &[&str], reading: Reading) -> PortResult<Vec<StoredRecord>>;

    /// Takes a dataset off the list of its owner, unless a later job than this one has opened it. Its records stay, and it
    /// can be opened.
    async fn unlist(&self, name: &str, by: Writer) -> PortResult<()>;

    /// The datasets of an owner that a job has opened, behind name `after`: at most `limit`.
    ///
    /// # Errors
    /// `Unavailable`; `Invalid` if its row was not written by Rowmill.
    async fn datasets(&self, owner: &Owner, after: Option<&str>, limit: usize) -> PortResult<DatasetPage>;
}

/// A record to store in place of what was seen, or to remove.
#[derive(Clone, PartialEq, Debug)]
pub struct Replacement {
    pub key: String,
    /// `None` removes what was seen.
    pub record: Option<StoredRecord>,
    /// `None` if its key had no record.
    pub seen: Option<Revision>,
}

/// Which writes a read sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// A record that was written in the last second may appear in its old version, or not at all.
    Recent,
    /// All before it, at twice the price.
    Latest,
}

/// Keys of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeyRange<'a> {
    /// What they begin with. Empty: anything.
    pub prefix: &'a str,
    /// The key before the first of them.
    pub after: Option<&'a str>,
}

impl<'a> KeyRange<'a> {
    /// All behind this key.
    pub const fn behind(after: Option<&'a str>) -> Self {
        Self { prefix: "", after }
    }
}
