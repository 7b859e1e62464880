//! Records: a dataset holds one per key. `import` writes them and `export` reads them.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::ids::{JobGuid, Owner};

/// The stored name of an owner's dataset. Two owners may each have a dataset of the same name; a dataset's name has no
/// slash, so stored names are unique.
pub fn dataset_of(owner: &Owner, name: &str) -> String {
    format!("{owner}/{name}")
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
}

/// Records of a partition, in the order of their keys.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RecordPage {
    /// The records. A page may be empty although more follow.
    pub records: Vec<StoredRecord>,
    /// The key after which the next page begins. `None` on the last page.
    pub next: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StoredRecord {
    pub key: String,
    pub fields: Map<String, Value>,
}

/// A record to be written.
#[derive(Clone, PartialEq, Debug)]
pub struct Upsert {
    pub key: String,
    pub version: RecordVersion,
    pub fields: Map<String, Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Upserted {
    /// The record is this version now.
    Written,
    /// The record is this version or a later one already.
    Superseded,
}

/// The version of a record: the job and the row that wrote it. The greater version wins: the later job, then the later
/// row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RecordVersion {
    pub job_created_ms: i64,
    /// The job, which orders two jobs of the same millisecond.
    pub job_guid: JobGuid,
    pub row: u64,
}

impl RecordVersion {
    /// The version of this row of this job.
    pub fn new(job_created_at: Timestamp, job_guid: JobGuid, row: u64) -> Self {
        Self { job_created_ms: job_created_at.as_millisecond(), job_guid, row }
    }
}

/// The stored form, which sorts as text in the order of versions.
impl fmt::Display for RecordVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:014}#{}#{:014}", self.job_created_ms.max(0), self.job_guid, self.row)
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
            let version = |(job_created_ms, guid, row)| RecordVersion { job_created_ms, job_guid: JobGuid(Uuid::from_u128(guid)), row };
            let (a, b) = (version(a), version(b));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }
    }
}
