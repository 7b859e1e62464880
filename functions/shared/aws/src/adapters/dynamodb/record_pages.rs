use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::try_join_all;
use rowmill_core::model::records::{Dataset, DatasetRecord, Expired, RecordPage};
use rowmill_core::model::stored_record::{History, Revision, StoredRecord};
use rowmill_core::ports::{KeyRange, PortError, Reading};
use serde_json::{Map, Number, Value};

use super::attributes::{Item, text};
use super::batch_get::{BATCH_KEYS, batch_get};
use super::errors::port_error;
use super::record_statements::{BEFORE, BEFORE_RECORD, HISTORY, bucket_name, bucket_of};
use super::record_store::DynamoDbRecordStore;

const DOING: &str = "reading records";

impl DynamoDbRecordStore {
    pub(super) async fn query(
        &self,
        dataset: &Dataset,
        partition: u32,
        KeyRange { prefix, after }: KeyRange<'_>,
        limit: usize,
        reading: Reading,
    ) -> Result<RecordPage, PortError> {
        let bucket = bucket_name(&dataset.name, partition.into());
        let start = after.map(|after| key(&bucket, after));
        let (keys, prefix) = match prefix {
            "" => ("#bucket = :bucket", None),
            prefix => ("#bucket = :bucket AND begins_with(#key, :prefix)", Some(text(prefix))),
        };
        let values = [(":bucket", Some(text(&bucket))), (":prefix", prefix)];
        let values = values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let request = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression(keys)
            .consistent_read(reading == Reading::Latest)
            .projection_expression("#key, #fields, #version, #history, #before")
            .expression_attribute_names("#bucket", "bucket")
            .expression_attribute_names("#key", "key")
            .expression_attribute_names("#fields", "fields")
            .expression_attribute_names("#version", "version")
            .expression_attribute_names("#history", HISTORY)
            .expression_attribute_names("#before", BEFORE)
            .set_expression_attribute_values(Some(values))
            .set_exclusive_start_key(start)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX));
        let output = request.send().await.map_err(|error| port_error(DOING, error))?;
        let expired = dataset.expired(self.clock.now());
        let records = output.items.unwrap_or_default().into_iter().map(|item| record_of(item, expired));
        let records = records.collect::<Result<_, _>>()?;
        let next = output.last_evaluated_key.filter(|key| !key.is_empty());
        let next = next.map(|key| key_of(&key)).transpose()?;
        Ok(RecordPage { records, next })
    }

    pub(super) async fn get(&self, dataset: &Dataset, name: &str) -> Result<Option<DatasetRecord>, PortError> {
        let key = key(&bucket_of(dataset, name), name);
        let request = self.client.get_item().table_name(&self.table).consistent_read(true).set_key(Some(key));
        let output = request.send().await.map_err(|error| port_error(DOING, error))?;
        let expired = dataset.expired(self.clock.now());
        Ok(output.item.map(|item| record_of(item, expired)).transpose()?.and_then(StoredRecord::visible))
    }

    pub(super) async fn get_many(
        &self,
        dataset: &Dataset,
        names: &[&str],
        reading: Reading,
    ) -> Result<Vec<StoredRecord>, PortError> {
        let reads = names.chunks(BATCH_KEYS).map(|names| {
            let keys = names.iter().map(|name| key(&bucket_of(dataset, name), name)).collect();
            batch_get(DOING, &self.client, &self.table, keys, reading == Reading::Latest)
        });
        let found = try_join_all(reads).await?;
        let expired = dataset.expired(self.clock.now());
        found.into_iter().flatten().map(|item| record_of(item, expired)).collect()
    }
}

/// The key of a row of the table.
pub(super) fn key(bucket: &str, key: &str) -> Item {
    Item::from([("bucket".to_owned(), text(bucket)), ("key".to_owned(), text(key))])
}

/// The sort key of a row.
pub(super) fn key_of(item: &Item) -> Result<String, PortError> {
    let key = item.get("key").and_then(|key| key.as_s().ok());
    key.cloned().ok_or_else(|| PortError::invalid(DOING, "a record has no key"))
}

fn record_of(mut item: Item, expired: Expired) -> Result<StoredRecord, PortError> {
    let key = key_of(&item)?;
    let version = item.get("version").and_then(|version| version.as_s().ok()).map(|version| version.parse());
    let Some(Ok(Revision { version, number: revision })) = version else {
        return Err(PortError::invalid(DOING, "a record has no version"));
    };
    let fields = map_of(&mut item, "fields")?.unwrap_or_default();
    let history: Option<History> = match map_of(&mut item, HISTORY)? {
        None => None,
        Some(history) => {
            let mut history = Value::Object(history);
            if let Some(Value::Object(record)) = history.pointer_mut(BEFORE_RECORD) {
                record.insert("fields".to_owned(), map_of(&mut item, BEFORE)?.unwrap_or_default().into());
            }
            let history = serde_json::from_value(history);
            Some(history.map_err(|error| PortError::invalid(DOING, error))?)
        }
    };
    Ok(StoredRecord { latest: DatasetRecord { key, version, fields }, revision, history, expired })
}

fn map_of(item: &mut Item, attribute: &str) -> Result<Option<Map<String, Value>>, PortError> {
    match item.remove(attribute).map(value_of) {
        None | Some(Some(Value::Null)) => Ok(None),
        Some(Some(Value::Object(map))) => Ok(Some(map)),
        Some(_) => Err(PortError::invalid(DOING, "a record has a field of an unknown type")),
    }
}

/// The value of an attribute. Numbers keep all their digits. `None` for a type that no record has.
fn value_of(attribute: AttributeValue) -> Option<Value> {
    Some(match attribute {
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::Bool(value) => Value::Bool(value),
        AttributeValue::S(text) => Value::String(text),
        AttributeValue::N(digits) => Value::Number(Number::from_str(&digits).ok()?),
        AttributeValue::L(list) => Value::Array(list.into_iter().map(value_of).collect::<Option<_>>()?),
        AttributeValue::M(map) => {
            let fields = map.into_iter().map(|(name, field)| Some((name, value_of(field)?)));
            Value::Object(fields.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
