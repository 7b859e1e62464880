use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::Import;
use super::test_spec::spec;
use crate::model::ids::Owner;
use crate::model::records::{Dataset, DatasetPage, DatasetRecord, RecordPage, Upserted, Writer};
use crate::model::stored_record::StoredRecord;
use crate::ports::processor::{Item, ItemError, ItemOutcome, JobType};
use crate::ports::{KeyRange, PortError, Reading, RecordStore, Replacement};
use crate::text::{Format, Record};

/// Records what it receives. The field `then` of each record decides the answer.
#[derive(Default)]
struct Recording(Mutex<Vec<Value>>);

#[async_trait]
impl RecordStore for Recording {
    async fn open(&self, if_new: &Dataset, _: Writer) -> Result<Dataset, PortError> {
        Ok(if_new.clone())
    }

    async fn opened(&self, name: &str) -> Result<Option<Dataset>, PortError> {
        Ok(Some(Dataset::lasting(name, 1)))
    }

    async fn upsert(&self, _dataset: &Dataset, upserts: &[DatasetRecord]) -> Vec<Result<Upserted, PortError>> {
        let answer = |upsert: &DatasetRecord| {
            self.0.lock().unwrap().push(upsert.fields["n"].clone());
            match upsert.fields["then"].as_str() {
                Some("refuse") => Err(PortError::invalid("writing", "not like this")),
                Some("outage") => Err(PortError::unavailable("writing", "not now")),
                _ => Ok(Upserted::Written),
            }
        };
        upserts.iter().map(answer).collect()
    }

    async fn replace(&self, dataset: &Dataset, replacements: &[Replacement]) -> Vec<Result<bool, PortError>> {
        let rows: Vec<DatasetRecord> =
            replacements.iter().filter_map(|with| Some(with.record.as_ref()?.latest.clone())).collect();
        let upserted = self.upsert(dataset, &rows).await;
        upserted.into_iter().map(|result| result.map(|_| true)).collect()
    }

    async fn page(&self, _: &Dataset, _: u32, _: KeyRange<'_>, _: usize, _: Reading) -> Result<RecordPage, PortError> {
        Ok(RecordPage::default())
    }

    async fn record(&self, _: &Dataset, _: &str) -> Result<Option<DatasetRecord>, PortError> {
        Ok(None)
    }

    async fn records(&self, _: &Dataset, _: &[&str], _: Reading) -> Result<Vec<StoredRecord>, PortError> {
        Ok(Vec::new())
    }

    async fn unlist(&self, _: &str, _: Writer) -> Result<(), PortError> {
        Ok(())
    }

    async fn datasets(&self, _: &Owner, _: Option<&str>, _: usize) -> Result<DatasetPage, PortError> {
        Ok(DatasetPage::default())
    }
}

async fn import(rows: &[(&str, &str)]) -> (Vec<Result<ItemOutcome, ItemError>>, Vec<Value>) {
    import_with(&json!({ "dataset": "d", "key": "key" }), rows).await
}

async fn import_with(params: &Value, rows: &[(&str, &str)]) -> (Vec<Result<ItemOutcome, ItemError>>, Vec<Value>) {
    let records = Arc::new(Recording::default());
    let spec = spec("import", Format::Jsonl, &[], params);
    let processor = Import::new(Some(records.clone())).prepare(&spec).unwrap();
    let item = |(row, (key, then)): (u64, &(&str, &str))| Item {
        job_guid: spec.job_guid,
        row,
        record: Record::Json(json!({ "key": key, "then": then, "n": row })),
    };
    let items: Vec<Item> = (1..).zip(rows).map(item).collect();
    let outcomes = processor.process_batch(&items).await;
    let mut written = records.0.lock().unwrap().clone();
    written.sort_by_key(Value::as_u64);
    (outcomes, written)
}

#[tokio::test]
async fn of_several_rows_with_the_same_key_only_the_last_is_written() {
    let (outcomes, written) = import(&[("a", ""), ("b", ""), ("a", ""), ("a", "")]).await;
    let (superseded, succeeded) = (Ok(ItemOutcome::Superseded), Ok(ItemOutcome::Succeeded));
    assert_eq!(outcomes, [superseded.clone(), succeeded.clone(), superseded, succeeded]);
    assert_eq!(written, [2, 4]);
}

#[tokio::test]
async fn if_a_row_is_refused_the_earlier_row_with_its_key_is_written() {
    let (outcomes, written) = import(&[("a", ""), ("a", ""), ("a", "refuse")]).await;
    assert_eq!(outcomes[..2], [Ok(ItemOutcome::Superseded), Ok(ItemOutcome::Succeeded)]);
    assert_eq!(outcomes[2].as_ref().unwrap_err().code, "record_refused");
    assert_eq!(written, [2, 3], "the earlier row is written instead");
}

#[tokio::test]
async fn in_an_outage_all_rows_of_the_key_are_retried() {
    let (outcomes, _) = import(&[("a", ""), ("a", "outage"), ("b", "")]).await;
    let transient = |outcome: &Result<ItemOutcome, ItemError>| outcome.as_ref().is_err_and(|error| error.transient);
    assert_eq!(outcomes.iter().map(transient).collect::<Vec<_>>(), [true, true, false]);
}

#[tokio::test]
async fn a_row_without_a_key_fails_with_the_name_of_the_column() {
    let (outcomes, written) = import(&[("", ""), ("b", "")]).await;
    let error = outcomes[0].as_ref().unwrap_err();
    assert_eq!((error.code.as_str(), error.column.as_deref()), ("missing_key", Some("key")));
    assert_eq!(written, [2]);
}

#[tokio::test]
async fn each_row_that_succeeds_leaves_its_key_if_outputs_are_wanted() {
    let params = json!({ "dataset": "d", "key": "key", "outputs": true });
    let (outcomes, written) = import_with(&params, &[("a", ""), ("b", "refuse"), ("a", "")]).await;
    let output = |row: u64| Ok(ItemOutcome::Output(json!({ "row": row, "key": "a" }).to_string()));
    assert_eq!((&outcomes[0], &outcomes[2]), (&output(1), &output(3)), "also the row that a later one replaces");
    assert_eq!(outcomes[1].as_ref().unwrap_err().code, "record_refused");
    assert_eq!(written, [2, 3]);
}
