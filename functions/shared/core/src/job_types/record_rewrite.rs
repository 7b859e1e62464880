//! The job types whose items are the keys of stored records: each record is changed by a rule over what is stored.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;

use super::by_path;
use super::change_records::{Rewrite, change_records};
use super::import::{BATCH_ITEMS, item_error, no_records};
use crate::model::changes::RowChange;
use crate::model::records::{Dataset, RecordItem, dataset_of};
use crate::model::spec::{KeysOf, OutputFile, Source, Spec};
use crate::model::stored_record::StoredRecord;
use crate::ports::processor::{InputKind, Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use crate::ports::{PortError, Reading, RecordStore, begin_item};
use crate::text::Record;

/// What becomes of a record, with the line of the output about it, if there is one.
pub type Rule = Box<dyn Fn(Option<&StoredRecord>) -> Rewrite<Option<RowChange>> + Send + Sync>;

/// The param that names the job whose records a job changes.
pub const JOB_GUID: &str = "jobGuid";

/// A job type over the keys of stored records. No request names it: each has a route that creates its jobs.
pub struct OverKeys {
    pub name: &'static str,
    pub params: &'static [&'static str],
    /// True if its output lists what becomes of the records.
    pub lists_changes: bool,
    /// The rule of a job over these keys; none if the type is for others.
    pub rule: fn(&Spec, KeysOf) -> Option<Rule>,
    /// `None` where params are only checked.
    pub records: Option<Arc<dyn RecordStore>>,
}

impl JobType for OverKeys {
    fn name(&self) -> &str {
        self.name
    }

    fn params(&self) -> &'static [&'static str] {
        self.params
    }

    fn input(&self) -> InputKind {
        InputKind::Keys
    }

    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        let Source::Dataset { dataset, keys_of: Some(keys_of) } = &spec.source else {
            return Err(by_path(self.name));
        };
        Ok(Arc::new(RecordRewrite {
            records: self.records.clone(),
            dataset: dataset_of(&spec.owner, dataset),
            opened: OnceLock::new(),
            rule: (self.rule)(spec, *keys_of).ok_or_else(|| by_path(self.name))?,
            output: self.lists_changes.then(OutputFile::changes),
        }))
    }
}

struct RecordRewrite {
    records: Option<Arc<dyn RecordStore>>,
    dataset: String,
    /// The dataset, opened before the first batch of this process.
    opened: OnceLock<Dataset>,
    rule: Rule,
    output: Option<OutputFile>,
}

#[async_trait]
impl ItemProcessor for RecordRewrite {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let mut results = self.process_batch(std::slice::from_ref(item)).await;
        results.pop().unwrap_or_else(|| Err(unavailable(&"no result")))
    }

    async fn process_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        self.outcomes(items, Effect::Store).await
    }

    async fn dry_run(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let mut results = self.dry_run_batch(std::slice::from_ref(item)).await;
        results.pop().unwrap_or_else(|| Err(unavailable(&"no result")))
    }

    async fn dry_run_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        self.outcomes(items, Effect::None).await
    }

    fn output(&self) -> Option<OutputFile> {
        self.output.clone()
    }

    fn batch_items(&self) -> usize {
        BATCH_ITEMS
    }
}

/// Whether what the rule makes of a record is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Store,
    None,
}

impl RecordRewrite {
    async fn outcomes(&self, items: &[Item], effect: Effect) -> Vec<Result<ItemOutcome, ItemError>> {
        let keys: Vec<Result<String, ItemError>> = items.iter().map(key_of).collect();
        let known: Vec<&str> = keys.iter().flatten().map(String::as_str).collect();
        let mut changed = match self.change(&known, effect).await {
            Ok(changed) => changed.into_iter(),
            Err(error) => return items.iter().map(|_| Err(error.clone())).collect(),
        };
        let outcome = |(item, key): (&Item, Result<String, ItemError>)| {
            let key = key?;
            let found = changed.next().unwrap_or_else(|| Err(PortError::unavailable("changing records", "no result")));
            let change = found.map_err(|error| item_error(&error))?;
            Ok(match change {
                Some(change) => ItemOutcome::Output(RowChange { row: item.row, key, ..change }.to_line()),
                None => ItemOutcome::Succeeded,
            })
        };
        items.iter().zip(keys).map(outcome).collect()
    }

    async fn change(
        &self,
        keys: &[&str],
        effect: Effect,
    ) -> Result<Vec<Result<Option<RowChange>, PortError>>, ItemError> {
        let records = self.records.as_ref().ok_or_else(no_records)?;
        let dataset = match self.opened.get() {
            Some(dataset) => dataset,
            None => match records.opened(&self.dataset).await {
                Ok(Some(dataset)) => self.opened.get_or_init(|| dataset),
                Ok(None) => return Err(unavailable(&"the row of the dataset was removed")),
                Err(error) => return Err(unavailable(&error)),
            },
        };
        // What a record was a second ago does not tell what is left alone.
        let rule = |_, stored: Option<&StoredRecord>| match (self.rule)(stored) {
            Rewrite::Store(_, result) | Rewrite::Remove(result) if effect == Effect::None => Rewrite::Keep(result),
            rewrite => rewrite,
        };
        Ok(change_records(&**records, dataset, keys, Some(Reading::Latest), rule).await)
    }
}

fn key_of(item: &Item) -> Result<String, ItemError> {
    begin_item(item.row);
    let record = match &item.record {
        Record::Json(record) => serde_json::from_value(record.clone()).ok(),
        _ => None,
    };
    let not_a_record = || ItemError::permanent("not_a_record", "the item is not a record of a dataset");
    record.map(|RecordItem { key, .. }| key).ok_or_else(not_a_record)
}

fn unavailable(why: &dyn std::fmt::Display) -> ItemError {
    ItemError::transient("records_unavailable", why.to_string())
}
