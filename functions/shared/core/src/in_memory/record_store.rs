use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;

use super::lock;
use crate::model::records::{Dataset, RecordPage, StoredRecord, Upsert, Upserted};
use crate::ports::{PortError, PortResult, RecordStore};

#[derive(Debug, Default)]
pub struct InMemoryRecordStore(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// The numbers of partitions that are recorded.
    partitions: BTreeMap<String, u32>,
    /// By dataset, partition and key.
    records: BTreeMap<(String, u32, String), Upsert>,
}

impl InMemoryRecordStore {
    /// The records of a dataset, by key.
    pub fn dataset(&self, name: &str) -> Vec<Upsert> {
        let table = lock(&self.0);
        let mut records: Vec<_> =
            table.records.iter().filter(|((of, ..), _)| of == name).map(|(_, record)| record.clone()).collect();
        records.sort_by(|a, b| a.key.cmp(&b.key));
        records
    }
}

#[async_trait]
impl RecordStore for InMemoryRecordStore {
    async fn open(&self, name: &str, if_new: u32) -> PortResult<Dataset> {
        let partitions = *lock(&self.0).partitions.entry(name.to_owned()).or_insert(if_new);
        Ok(Dataset { name: name.to_owned(), partitions })
    }

    async fn opened(&self, name: &str) -> PortResult<Option<Dataset>> {
        let partitions = lock(&self.0).partitions.get(name).copied();
        Ok(partitions.map(|partitions| Dataset { name: name.to_owned(), partitions }))
    }

    async fn upsert(&self, dataset: &Dataset, upserts: &[Upsert]) -> Vec<Result<Upserted, PortError>> {
        let records = &mut lock(&self.0).records;
        let mut write = |upsert: &Upsert| {
            let place = (dataset.name.clone(), partition_of(dataset, &upsert.key), upsert.key.clone());
            if records.get(&place).is_some_and(|there| there.version >= upsert.version) {
                return Upserted::Superseded;
            }
            records.insert(place, upsert.clone());
            Upserted::Written
        };
        upserts.iter().map(|upsert| Ok(write(upsert))).collect()
    }

    async fn page(
        &self,
        dataset: &Dataset,
        partition: u32,
        after: Option<&str>,
        limit: usize,
    ) -> PortResult<RecordPage> {
        let records = &lock(&self.0).records;
        let from = (dataset.name.clone(), partition, after.unwrap_or_default().to_owned());
        let of_partition = records.range(from..).take_while(|((of, at, _), _)| (of, *at) == (&dataset.name, partition));
        let mut found = of_partition.filter(|((.., key), _)| after.is_none_or(|after| key.as_str() > after));
        let stored = |record: &Upsert| StoredRecord { key: record.key.clone(), fields: record.fields.clone() };
        let page: Vec<StoredRecord> = found.by_ref().take(limit).map(|(_, record)| stored(record)).collect();
        let next = found.next().and(page.last()).map(|last| last.key.clone());
        Ok(RecordPage { records: page, next })
    }
}

/// Any even spread will do.
fn partition_of(dataset: &Dataset, key: &str) -> u32 {
    key.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())) % dataset.partitions
}
