use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;

use super::lock;
use crate::model::ids::Owner;
use crate::model::records::{
    Dataset, DatasetPage, DatasetRecord, ListedDataset, RecordPage, Upserted, Writer, owner_and_name,
};
use crate::ports::{KeyRange, PortError, PortResult, RecordStore};

#[derive(Debug, Default)]
pub struct InMemoryRecordStore(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// The numbers of partitions that are recorded.
    partitions: BTreeMap<String, u32>,
    /// The latest writers, by owner and name of the dataset.
    writers: BTreeMap<(String, String), Writer>,
    /// By dataset, partition and key.
    records: BTreeMap<(String, u32, String), DatasetRecord>,
}

impl InMemoryRecordStore {
    /// The records of a dataset, by key.
    pub fn dataset(&self, name: &str) -> Vec<DatasetRecord> {
        let table = lock(&self.0);
        let mut records: Vec<_> =
            table.records.iter().filter(|((of, ..), _)| of == name).map(|(_, record)| record.clone()).collect();
        records.sort_by(|a, b| a.key.cmp(&b.key));
        records
    }
}

#[async_trait]
impl RecordStore for InMemoryRecordStore {
    async fn open(&self, name: &str, if_new: u32, writer: Writer) -> PortResult<Dataset> {
        let table = &mut *lock(&self.0);
        let partitions = *table.partitions.entry(name.to_owned()).or_insert(if_new);
        let (owner, listed) = owner_and_name(name);
        let last = table.writers.entry((owner.to_owned(), listed.to_owned())).or_insert(writer);
        *last = (*last).max(writer);
        Ok(Dataset { name: name.to_owned(), partitions })
    }

    async fn opened(&self, name: &str) -> PortResult<Option<Dataset>> {
        let partitions = lock(&self.0).partitions.get(name).copied();
        Ok(partitions.map(|partitions| Dataset { name: name.to_owned(), partitions }))
    }

    async fn upsert(&self, dataset: &Dataset, upserts: &[DatasetRecord]) -> Vec<Result<Upserted, PortError>> {
        let records = &mut lock(&self.0).records;
        let mut write = |upsert: &DatasetRecord| {
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
        KeyRange { prefix, after }: KeyRange<'_>,
        limit: usize,
    ) -> PortResult<RecordPage> {
        let records = &lock(&self.0).records;
        let from = (dataset.name.clone(), partition, after.unwrap_or_default().to_owned());
        let of_partition = records.range(from..).take_while(|((of, at, _), _)| (of, *at) == (&dataset.name, partition));
        let mut found = of_partition
            .filter(|((.., key), _)| key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after));
        let page: Vec<DatasetRecord> = found.by_ref().take(limit).map(|(_, record)| record.clone()).collect();
        let next = found.next().and(page.last()).map(|last| last.key.clone());
        Ok(RecordPage { records: page, next })
    }

    async fn record(&self, dataset: &Dataset, key: &str) -> PortResult<Option<DatasetRecord>> {
        let place = (dataset.name.clone(), partition_of(dataset, key), key.to_owned());
        Ok(lock(&self.0).records.get(&place).cloned())
    }

    async fn records(&self, dataset: &Dataset, keys: &[&str]) -> PortResult<Vec<DatasetRecord>> {
        let records = &lock(&self.0).records;
        let place = |key: &&str| (dataset.name.clone(), partition_of(dataset, key), (*key).to_owned());
        Ok(keys.iter().filter_map(|key| records.get(&place(key)).cloned()).collect())
    }

    async fn datasets(&self, owner: &Owner, after: Option<&str>, limit: usize) -> PortResult<DatasetPage> {
        let writers = &lock(&self.0).writers;
        let from = (owner.as_str().to_owned(), after.unwrap_or_default().to_owned());
        let of_owner = writers.range(from..).take_while(|((of, _), _)| of == owner.as_str());
        let mut found = of_owner.filter(|((_, name), _)| after.is_none_or(|after| name.as_str() > after));
        let listed = |((_, name), last_writer): (&(String, String), &Writer)| ListedDataset {
            name: name.clone(),
            last_writer: *last_writer,
        };
        let datasets: Vec<ListedDataset> = found.by_ref().take(limit).map(listed).collect();
        let next = found.next().and(datasets.last()).map(|last| last.name.clone());
        Ok(DatasetPage { datasets, next })
    }
}

/// Any even spread will do.
fn partition_of(dataset: &Dataset, key: &str) -> u32 {
    key.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())) % dataset.partitions
}
