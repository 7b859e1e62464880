use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;

use super::lock;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::records::{
    Dataset, DatasetPage, DatasetRecord, Expired, ListedDataset, RecordPage, Upserted, Writer, dataset_of,
    owner_and_name,
};
use rowmill_core::model::stored_record::{Before, History, StoredRecord};
use rowmill_core::ports::{Clock, KeyRange, PortError, PortResult, Reading, RecordStore, Replacement};

/// With `lags` a recent reading of records by their keys sees each one as it was before its last write.
/// Nothing expires without a clock.
#[derive(Default)]
pub struct InMemoryRecordStore {
    table: Mutex<Table>,
    lags: AtomicBool,
    clock: OnceLock<Arc<dyn Clock>>,
}

#[derive(Debug, Default)]
struct Table {
    /// By their names.
    datasets: BTreeMap<String, Dataset>,
    /// The latest writers, by owner and name of the dataset.
    writers: BTreeMap<(String, String), Writer>,
    /// By dataset, partition and key.
    records: BTreeMap<Place, StoredRecord>,
    /// What was there before the last write.
    before: BTreeMap<Place, Option<StoredRecord>>,
}

/// The dataset, the partition and the key of a record.
type Place = (String, u32, String);

impl Table {
    fn put(&mut self, place: Place, record: StoredRecord) {
        let before = self.records.insert(place.clone(), record);
        self.before.insert(place, before);
    }
}

impl InMemoryRecordStore {
    /// From now on recent readings lag behind.
    pub fn lag(&self) {
        self.lags.store(true, Ordering::SeqCst);
    }

    /// From now on records expire by this clock.
    pub fn expire_by(&self, clock: Arc<dyn Clock>) {
        self.clock.get_or_init(|| clock);
    }

    /// A record as a read of this dataset sees it now.
    fn read(&self, dataset: &Dataset, record: &StoredRecord) -> StoredRecord {
        let expired = self.clock.get().map(|clock| dataset.expired(clock.now()));
        StoredRecord { expired: expired.unwrap_or_default(), ..record.clone() }
    }

    /// The records of a dataset that readers see, by key.
    pub fn dataset(&self, name: &str) -> Vec<DatasetRecord> {
        let table = lock(&self.table);
        let Some(dataset) = table.datasets.get(name) else { return Vec::new() };
        let of_dataset = table.records.iter().filter(|((of, ..), _)| of == name);
        let mut records: Vec<_> = of_dataset.filter_map(|(_, record)| self.read(dataset, record).visible()).collect();
        records.sort_by(|a, b| a.key.cmp(&b.key));
        records
    }
}

#[async_trait]
impl RecordStore for InMemoryRecordStore {
    async fn open(&self, if_new: &Dataset, writer: Writer) -> PortResult<Dataset> {
        let table = &mut *lock(&self.table);
        let dataset = table.datasets.entry(if_new.name.clone()).or_insert_with(|| if_new.clone()).clone();
        let (owner, listed) = owner_and_name(&dataset.name);
        let last = table.writers.entry((owner.to_owned(), listed.to_owned())).or_insert(writer);
        *last = (*last).max(writer);
        Ok(dataset)
    }

    async fn opened(&self, name: &str) -> PortResult<Option<Dataset>> {
        Ok(lock(&self.table).datasets.get(name).cloned())
    }

    async fn upsert(&self, dataset: &Dataset, upserts: &[DatasetRecord]) -> Vec<Result<Upserted, PortError>> {
        let mut table = lock(&self.table);
        let mut write = |upsert: &DatasetRecord| {
            let place = (dataset.name.clone(), partition_of(dataset, &upsert.key), upsert.key.clone());
            let there = table.records.get(&place);
            if there.is_some_and(|there| there.latest.version >= upsert.version) {
                return Upserted::Superseded;
            }
            let mut history = there.and_then(|there| there.history.clone());
            if let Some(History { before: Before::Record { fields, .. }, .. }) = &mut history {
                fields.clear();
            }
            let latest = upsert.clone();
            table.put(place, StoredRecord { latest, revision: 0, history, expired: Expired::default() });
            Upserted::Written
        };
        upserts.iter().map(|upsert| Ok(write(upsert))).collect()
    }

    async fn replace(&self, dataset: &Dataset, replacements: &[Replacement]) -> Vec<PortResult<bool>> {
        let mut table = lock(&self.table);
        let mut write = |Replacement { key, record, seen }: &Replacement| {
            let place = (dataset.name.clone(), partition_of(dataset, key), key.clone());
            let is_as_seen = table.records.get(&place).map(StoredRecord::at) == *seen;
            match record {
                _ if !is_as_seen => {}
                Some(record) => table.put(place, record.clone()),
                None => {
                    let before = table.records.remove(&place);
                    table.before.insert(place, before);
                }
            }
            is_as_seen
        };
        replacements.iter().map(|replacement| Ok(write(replacement))).collect()
    }

    async fn page(
        &self,
        dataset: &Dataset,
        partition: u32,
        KeyRange { prefix, after }: KeyRange<'_>,
        limit: usize,
        _: Reading,
    ) -> PortResult<RecordPage> {
        let records = &lock(&self.table).records;
        let from = (dataset.name.clone(), partition, after.unwrap_or_default().to_owned());
        let of_partition = records.range(from..).take_while(|((of, at, _), _)| (of, *at) == (&dataset.name, partition));
        let mut found = of_partition
            .filter(|((.., key), _)| key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after));
        let page: Vec<StoredRecord> =
            found.by_ref().take(limit).map(|(_, record)| self.read(dataset, record)).collect();
        let next = found.next().and(page.last()).map(|last| last.latest.key.clone());
        Ok(RecordPage { records: page, next })
    }

    async fn record(&self, dataset: &Dataset, key: &str) -> PortResult<Option<DatasetRecord>> {
        let place = (dataset.name.clone(), partition_of(dataset, key), key.to_owned());
        Ok(lock(&self.table).records.get(&place).and_then(|record| self.read(dataset, record).visible()))
    }

    async fn records(&self, dataset: &Dataset, keys: &[&str], reading: Reading) -> PortResult<Vec<StoredRecord>> {
        let (table, lags) = (lock(&self.table), self.lags.load(Ordering::SeqCst));
        let found = |key: &&str| {
            let place = (dataset.name.clone(), partition_of(dataset, key), (*key).to_owned());
            let record = match reading {
                Reading::Recent if lags => table.before.get(&place)?.as_ref(),
                Reading::Recent | Reading::Latest => table.records.get(&place),
            };
            record.map(|record| self.read(dataset, record))
        };
        Ok(keys.iter().filter_map(found).collect())
    }

    async fn unlist(&self, name: &str, by: Writer) -> PortResult<()> {
        let (owner, listed) = owner_and_name(name);
        let place = (owner.to_owned(), listed.to_owned());
        let writers = &mut lock(&self.table).writers;
        if writers.get(&place).is_some_and(|last| *last < by) {
            writers.remove(&place);
        }
        Ok(())
    }

    async fn datasets(&self, owner: &Owner, after: Option<&str>, limit: usize) -> PortResult<DatasetPage> {
        let table = lock(&self.table);
        let writers = &table.writers;
        let from = (owner.as_str().to_owned(), after.unwrap_or_default().to_owned());
        let of_owner = writers.range(from..).take_while(|((of, _), _)| of == owner.as_str());
        let mut found = of_owner.filter(|((_, name), _)| after.is_none_or(|after| name.as_str() > after));
        let listed = |((_, name), last_writer): (&(String, String), &Writer)| ListedDataset {
            name: name.clone(),
            last_writer: *last_writer,
            expires_in: table.datasets.get(&dataset_of(owner, name)).and_then(|dataset| dataset.expires_in),
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
