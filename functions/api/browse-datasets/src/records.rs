//! Pages of datasets and of their records.
//!
//! The records of a dataset lie in partitions by the hash of their keys, so a page reads one partition after the other.
//! It reads more and more of them at once as long as they do not fill it: a dataset of few records, or one prefix, is
//! found with few waits, and a page of a full partition reads little in vain.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use futures::future::try_join_all;
use rowmill_api::dataset::{DatasetList, DatasetView, RecordList, RecordView};
use rowmill_core::model::chunk_index::RecordPosition;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::records::{Dataset, KEY_MAX_BYTES, dataset_of, is_dataset_name};
use rowmill_core::model::stored_record::StoredRecord;
use rowmill_core::ports::{KeyRange, PortError, Reading, RecordStore};
use rowmill_core::text::json_bytes;

use crate::limits::{PAGE_BYTES, PAGE_QUERIES, PARTITIONS_AT_ONCE};

/// The use cases and the port they work through.
pub struct Datasets {
    pub records: Arc<dyn RecordStore>,
}

/// Which records a page has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Only the one with this key.
    pub key: Option<String>,
    /// What the keys begin with.
    pub prefix: String,
    pub at: At,
    pub limit: usize,
}

/// Where a page begins. Its text is the `next` of a page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct At(RecordPosition);

impl Datasets {
    /// The datasets of this owner behind a name: at most `limit`. `None` if nobody gave out this `after`.
    pub async fn list(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Option<DatasetList>, PortError> {
        if after.is_some_and(|after| !is_dataset_name(after)) {
            return Ok(None);
        }
        let page = self.records.datasets(owner, after, limit).await?;
        Ok(Some(DatasetList { datasets: page.datasets.into_iter().map(DatasetView::of).collect(), next: page.next }))
    }

    /// Records of a dataset of this owner.
    ///
    /// # Errors
    /// `NotFound` if nothing was written to a dataset of this name.
    pub async fn records(&self, owner: &Owner, name: &str, wanted: &Wanted) -> Result<RecordList, PortError> {
        // Another text could be the stored name of a dataset of another owner.
        if !is_dataset_name(name) {
            return Err(PortError::NotFound);
        }
        let dataset = self.records.opened(&dataset_of(owner, name)).await?.ok_or(PortError::NotFound)?;
        let Wanted { key, prefix, at, limit } = wanted;
        // A key that no record can have is not asked for.
        if key.as_ref().is_some_and(|key| !may_be_key(key) || !key.starts_with(prefix)) || prefix.len() > KEY_MAX_BYTES
        {
            return Ok(RecordList { records: Vec::new(), next: None });
        }
        match key {
            Some(key) => {
                let record = self.records.record(&dataset, key).await?;
                Ok(RecordList {
                    records: record.into_iter().map(|record| RecordView::of(record, &dataset)).collect(),
                    next: None,
                })
            }
            None => self.page(&dataset, prefix, at.0.clone(), *limit).await,
        }
    }

    async fn page(
        &self,
        dataset: &Dataset,
        prefix: &str,
        mut at: RecordPosition,
        limit: usize,
    ) -> Result<RecordList, PortError> {
        let (mut records, mut bytes, mut queries, mut at_once) = (Vec::new(), 0, 0, 1);
        while at.partition < dataset.partitions && queries < PAGE_QUERIES && records.len() < limit {
            let partitions = at.partition..dataset.partitions.min(at.partition + at_once);
            queries += at_once;
            let reads = partitions.clone().map(|partition| {
                let after = at.after.as_deref().filter(|_| partition == at.partition);
                self.records.page(
                    dataset,
                    partition,
                    KeyRange { prefix, after },
                    limit - records.len(),
                    Reading::Recent,
                )
            });
            let pages = try_join_all(reads).await?;
            at_once = PARTITIONS_AT_ONCE.min(at_once * 2);
            for (partition, page) in partitions.zip(pages) {
                for record in page.records.into_iter().filter_map(StoredRecord::visible) {
                    bytes += record.key.len() + json_bytes(&record.fields);
                    if records.len() == limit || (bytes > PAGE_BYTES && !records.is_empty()) {
                        return Ok(RecordList { records, next: Some(At(at).to_string()) });
                    }
                    at = RecordPosition { partition, after: Some(record.key.clone()) };
                    records.push(RecordView::of(record, dataset));
                }
                if page.next.is_some() {
                    at = RecordPosition { partition, after: page.next };
                    at_once = 1;
                    break;
                }
                at = RecordPosition { partition: partition + 1, after: None };
            }
        }
        let next = (at.partition < dataset.partitions).then(|| At(at).to_string());
        Ok(RecordList { records, next })
    }
}

impl At {
    /// The key before the page, if it begins within a partition.
    pub fn after(&self) -> Option<&str> {
        self.0.after.as_deref()
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.partition)?;
        self.0.after.as_ref().map_or(Ok(()), |after| write!(f, ".{after}"))
    }
}

impl FromStr for At {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (partition, after) =
            text.split_once('.').map_or((text, None), |(partition, after)| (partition, Some(after)));
        let partition = partition.parse().map_err(|_| ())?;
        match after {
            Some(key) if !may_be_key(key) => Err(()),
            after => Ok(Self(RecordPosition { partition, after: after.map(str::to_owned) })),
        }
    }
}

/// True if the records table can hold this key.
fn may_be_key(key: &str) -> bool {
    (1..=KEY_MAX_BYTES).contains(&key.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rowmill_core::model::ids::JobGuid;
    use rowmill_core::model::records::{DatasetRecord, RecordVersion, Writer};
    use rowmill_testing::in_memory::InMemoryRecordStore;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    const WRITER: Writer = Writer { job_created_ms: 1_750_000_000_000, job_guid: JobGuid(Uuid::from_u128(1)) };

    fn owner() -> Owner {
        Owner("me".to_owned())
    }

    fn one(key: &str) -> Wanted {
        Wanted { key: Some(key.to_owned()), prefix: String::new(), at: At::default(), limit: 1 }
    }

    /// A dataset of records with these keys, each with a text of this length.
    async fn filled(partitions: u32, keys: impl Iterator<Item = String>, bytes: usize) -> Datasets {
        let records = Arc::new(InMemoryRecordStore::default());
        let dataset = records.open(&Dataset::lasting(dataset_of(&owner(), "d"), partitions), WRITER).await.unwrap();
        let fields = json!({ "text": "x".repeat(bytes) }).as_object().cloned().unwrap();
        let record =
            |(row, key)| DatasetRecord { key, version: RecordVersion { by: WRITER, row }, fields: fields.clone() };
        let written = records.upsert(&dataset, &(1..).zip(keys).map(record).collect::<Vec<_>>()).await;
        assert!(written.iter().all(Result::is_ok));
        Datasets { records }
    }

    /// The keys of all pages, and the number of these.
    async fn keys(datasets: &Datasets, prefix: &str, limit: usize) -> (Vec<String>, usize) {
        let (mut keys, mut pages, mut at) = (Vec::new(), 0, At::default());
        loop {
            let wanted = Wanted { key: None, prefix: prefix.to_owned(), at, limit };
            let page = datasets.records(&owner(), "d", &wanted).await.unwrap();
            assert!(page.records.len() <= limit);
            pages += 1;
            keys.extend(page.records.into_iter().map(|record| record.key));
            let Some(next) = page.next else { return (keys, pages) };
            at = next.parse().unwrap();
        }
    }

    #[tokio::test]
    async fn each_record_is_on_one_page() {
        for (partitions, count, limit) in
            [(1, 50, 7), (16, 50, 7), (16, 50, 50), (300, 50, 7), (300, 5, 100), (16, 0, 3)]
        {
            let datasets = filled(partitions, (0..count).map(|n| format!("k{n}")), 10).await;
            let (keys, _) = keys(&datasets, "", limit).await;
            let each: BTreeSet<&String> = keys.iter().collect();
            assert_eq!((keys.len(), each.len()), (count, count), "{partitions} partitions, {limit} on a page");
        }
    }

    #[tokio::test]
    async fn a_prefix_is_found_in_all_partitions_with_few_pages() {
        let datasets = filled(256, (0..500).map(|n| format!("{n}")), 10).await;
        let (found, pages) = keys(&datasets, "49", 100).await;
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>().len(), 11, "49 and 490 to 499");
        assert!(pages <= 2, "{pages} pages");
    }

    #[tokio::test]
    async fn a_page_has_a_bounded_number_of_bytes_and_at_least_one_record() {
        let datasets = filled(2, (0..9).map(|n| format!("{n}")), 700_000).await;
        let (keys, pages) = keys(&datasets, "", 100).await;
        assert_eq!((keys.len(), pages), (9, 5), "two records of 0.7 MB on a page");
        let datasets = filled(1, ["a", "b"].into_iter().map(str::to_owned), PAGE_BYTES).await;
        assert_eq!(self::keys(&datasets, "", 100).await.1, 2);
    }

    #[tokio::test]
    async fn one_key_is_one_record_with_the_row_that_wrote_it() {
        let datasets = filled(16, (0..9).map(|n| format!("a/{n}")), 10).await;
        let of = async |key: &str| datasets.records(&owner(), "d", &one(key)).await.unwrap().records;
        let [record] = of("a/3").await.try_into().unwrap();
        assert_eq!(
            (record.key.as_str(), record.written_by.job_guid, record.written_by.row),
            ("a/3", WRITER.job_guid, 4)
        );
        assert_eq!(of("a/33").await, []);
        assert_eq!(of(&"a".repeat(1025)).await, [], "no key is so long");
        assert_eq!(keys(&datasets, &"a".repeat(1025), 9).await, (Vec::new(), 1));
    }

    #[tokio::test]
    async fn datasets_of_others_are_not_found_by_any_name() {
        let datasets = filled(1, std::iter::once("k".to_owned()), 10).await;
        datasets.records.open(&Dataset::lasting("me/too/d", 1), WRITER).await.unwrap();
        for name in ["other", "too/d", "../me/d", "d#0", "", "me/d"] {
            let found = datasets.records(&owner(), name, &one("k")).await;
            assert!(matches!(found, Err(PortError::NotFound)), "{name}: {found:?}");
        }
        let others = datasets.records(&Owner("you".to_owned()), "d", &one("k")).await;
        assert!(matches!(others, Err(PortError::NotFound)), "{others:?}");
        let list = datasets.list(&owner(), None, 9).await.unwrap().unwrap();
        assert_eq!(list.datasets.iter().map(|dataset| dataset.name.as_str()).collect::<Vec<_>>(), ["d"]);
    }

    #[test]
    fn the_text_of_a_place_reads_back_or_is_refused() {
        for after in [None, Some("a"), Some("ключ/1.5"), Some("[\"a\",\"b\"]")] {
            let at = At(RecordPosition { partition: 4095, after: after.map(str::to_owned) });
            assert_eq!(at.to_string().parse(), Ok(at));
        }
        for text in ["", "x", "-1", "99999999999", "1.", &format!("1.{}", "k".repeat(1025))] {
            assert_eq!(text.parse::<At>(), Err(()), "{text}");
        }
    }
}
