use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;

use super::lock;
use crate::model::records::{RECORD_PARTITIONS, RecordPage, StoredRecord, Upsert, Upserted};
use crate::ports::{PortError, PortResult, RecordStore};

/// The records table in memory.
#[derive(Debug, Default)]
pub struct InMemoryRecordStore(Mutex<BTreeMap<(String, String), Upsert>>);

impl InMemoryRecordStore {
    /// The records of a dataset, by key.
    pub fn dataset(&self, dataset: &str) -> Vec<Upsert> {
        let records = lock(&self.0);
        records.iter().filter(|((of, _), _)| of == dataset).map(|(_, record)| record.clone()).collect()
    }
}

#[async_trait]
impl RecordStore for InMemoryRecordStore {
    async fn upsert(&self, dataset: &str, upserts: &[Upsert]) -> Vec<Result<Upserted, PortError>> {
        let mut records = lock(&self.0);
        let mut write = |upsert: &Upsert| {
            let place = (dataset.to_owned(), upsert.key.clone());
            if records.get(&place).is_some_and(|there| there.version >= upsert.version) {
                return Upserted::Superseded;
            }
            records.insert(place, upsert.clone());
            Upserted::Written
        };
        upserts.iter().map(|upsert| Ok(write(upsert))).collect()
    }

    async fn page(&self, dataset: &str, partition: u32, after: Option<&str>, limit: usize) -> PortResult<RecordPage> {
        let records = lock(&self.0);
        let wanted = |key: &str| partition_of(key) == partition && after.is_none_or(|after| key > after);
        let mut found = records.iter().filter(|((of, key), _)| of == dataset && wanted(key));
        let stored = |record: &Upsert| StoredRecord { key: record.key.clone(), fields: record.fields.clone() };
        let page: Vec<StoredRecord> = found.by_ref().take(limit).map(|(_, record)| stored(record)).collect();
        let next = found.next().and(page.last()).map(|last| last.key.clone());
        Ok(RecordPage { records: page, next })
    }
}

/// Any even spread will do.
fn partition_of(key: &str) -> u32 {
    key.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())) % RECORD_PARTITIONS
}
