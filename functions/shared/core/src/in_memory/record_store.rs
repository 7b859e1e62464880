use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;

use super::lock;
use crate::ports::{PortError, RecordStore, Upsert, Upserted};

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
}
