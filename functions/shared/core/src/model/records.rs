//! Records: a dataset holds one per key. `import` writes them and `export` reads them.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::ids::{JobGuid, Owner};
use crate::model::stored_record::StoredRecord;

/// The stored name of an owner's dataset. Two owners may each have a dataset of the same name; a dataset's name has no
/// slash, so stored names are unique.
pub fn dataset_of(owner: &Owner, name: &str) -> String {
    format!("{owner}/{name}")
}

/// The longest key of a record, in bytes: DynamoDB's limit for a sort key.
pub const KEY_MAX_BYTES: usize = 1024;

/// The longest name of a dataset, in bytes.
const NAME_MAX_BYTES: usize = 128;

/// True if a dataset may have this name.
pub fn is_dataset_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    // A path with these names would be another one.
    let is_path = matches!(name, "." | "..");
    (1..=NAME_MAX_BYTES).contains(&name.len()) && name.chars().all(allowed) && !is_path
}

/// The owner and the name of a dataset with this stored name.
pub fn owner_and_name(dataset: &str) -> (&str, &str) {
    dataset.rsplit_once('/').unwrap_or(("", dataset))
}

/// The most partitions that a dataset may have: an export reads each of them.
pub const PARTITIONS_MAX: u32 = 4096;

/// Weight of a dataset in the percent of a job that reads it. Its partitions share it.
pub const DATASET_WEIGHT: u64 = PARTITIONS_MAX as u64;

/// A dataset, opened to read or to write it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dataset {
    /// Its stored name, see [`dataset_of`].
    pub name: String,
    /// Number of partitions of its records, to spread the load. It never changes: a record is found by the hash
    /// of its key modulo this number.
    pub partitions: u32,
    /// For how many seconds its records are kept after the creation of the job that wrote them. `None`: for ever. It never
    /// changes: then a record has expired if a later one has, so no late row brings back what a later job has replaced.
    pub expires_in: Option<u32>,
}

/// The shortest [`Dataset::expires_in`].
pub const EXPIRES_IN_MIN: u32 = 60;

/// The longest [`Dataset::expires_in`]: 3,650 days.
pub const EXPIRES_IN_MAX: u32 = 315_360_000;

impl Dataset {
    /// A dataset whose records are kept for ever.
    pub fn lasting(name: impl Into<String>, partitions: u32) -> Self {
        Self { name: name.into(), partitions, expires_in: None }
    }

    /// When the records of this job expire, in milliseconds since 1970.
    pub fn expires_at_ms(&self, writer: Writer) -> Option<i64> {
        Some(writer.job_created_ms.saturating_add(i64::from(self.expires_in?) * 1000))
    }

    /// What has expired by now.
    pub fn expired(&self, now: Timestamp) -> Expired {
        Expired(self.expires_in.map(|seconds| now.as_millisecond() - i64::from(seconds) * 1000))
    }
}

/// The records that have expired: those of jobs that were created at this time or before, in milliseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expired(Option<i64>);

impl Expired {
    /// True if a record of this writer has.
    pub fn is(self, writer: Writer) -> bool {
        self.0.is_some_and(|until| writer.job_created_ms <= until)
    }
}

/// A dataset in the list of its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedDataset {
    /// Its name, without the owner.
    pub name: String,
    /// The latest job that has written to it, or has begun to.
    pub last_writer: Writer,
    /// See [`Dataset::expires_in`].
    pub expires_in: Option<u32>,
}

/// Datasets of an owner, in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DatasetPage {
    pub datasets: Vec<ListedDataset>,
    /// The name after which the next page begins. `None` on the last page.
    pub next: Option<String>,
}

/// Records of a partition, in the order of their keys.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RecordPage {
    /// The records. A page may be empty although more follow.
    pub records: Vec<StoredRecord>,
    /// The key after which the next page begins. `None` on the last page.
    pub next: Option<String>,
}

/// A record of a dataset, to be written or as readers see it.
#[derive(Clone, PartialEq, Debug)]
pub struct DatasetRecord {
    pub key: String,
    pub version: RecordVersion,
    pub fields: Map<String, Value>,
}

/// A record as the item of a job over a dataset.
#[derive(Serialize, Deserialize)]
pub struct RecordItem {
    pub key: String,
    pub fields: Map<String, Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Upserted {
    /// The record is this version now.
    Written,
    /// The record is this version or a later one already.
    Superseded,
}

/// A job that writes records. The later one is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Writer {
    pub job_created_ms: i64,
    /// Orders two jobs of the same millisecond.
    pub job_guid: JobGuid,
}

/// The version of a record: the job and the row that wrote it. The greater version wins: the later job, then the later
/// row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RecordVersion {
    pub by: Writer,
    pub row: u64,
}

impl Writer {
    pub fn new(job_created_at: Timestamp, job_guid: JobGuid) -> Self {
        Self { job_created_ms: job_created_at.as_millisecond(), job_guid }
    }
}

/// The stored form, which sorts as text in the order of writers.
impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:014}#{}", self.job_created_ms.max(0), self.job_guid)
    }
}

/// The stored form, which sorts as text in the order of versions.
impl fmt::Display for RecordVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{:014}", self.by, self.row)
    }
}

/// A text is not the stored form of a [`Writer`] or of a [`RecordVersion`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the version of a record was not written by Rowmill")]
pub struct NotAVersion;

impl FromStr for Writer {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let (job_created_ms, job_guid) = text.split_once('#').ok_or(NotAVersion)?;
        Ok(Self {
            job_created_ms: job_created_ms.parse().map_err(|_| NotAVersion)?,
            job_guid: job_guid.parse().map_err(|_| NotAVersion)?,
        })
    }
}

impl FromStr for RecordVersion {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let (by, row) = text.rsplit_once('#').ok_or(NotAVersion)?;
        Ok(Self { by: by.parse()?, row: row.parse().map_err(|_| NotAVersion)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    proptest! {
        #[test]
        fn the_text_of_versions_sorts_like_their_values(
            a in (0..2_000_000_000_000_i64, any::<u128>(), 1..10_000_000_000_u64),
            b in (0..2_000_000_000_000_i64, any::<u128>(), 1..10_000_000_000_u64),
        ) {
            let version = |(job_created_ms, guid, row)| RecordVersion { by: Writer { job_created_ms, job_guid: JobGuid(Uuid::from_u128(guid)) }, row };
            let (a, b) = (version(a), version(b));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
            prop_assert_eq!(a.to_string().parse(), Ok(a));
        }
    }
}
