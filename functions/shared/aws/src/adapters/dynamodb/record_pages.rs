use std::collections::HashMap;
use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_core::model::records::{Dataset, RecordPage, StoredRecord};
use rowmill_core::ports::PortError;
use serde_json::{Number, Value};

use super::attributes::{Item, text};
use super::errors::port_error;
use super::record_statements::bucket_name;
use super::record_store::DynamoDbRecordStore;

const DOING: &str = "reading records";

impl DynamoDbRecordStore {
    /// Reads with eventual consistency at half the price: an export need not contain the writes of the last second.
    pub(super) async fn query(
        &self,
        dataset: &Dataset,
        partition: u32,
        after: Option<&str>,
        limit: usize,
    ) -> Result<RecordPage, PortError> {
        let bucket = bucket_name(&dataset.name, partition.into());
        let start =
            after.map(|key| HashMap::from([("bucket".to_owned(), text(&bucket)), ("key".to_owned(), text(key))]));
        let request = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("#bucket = :bucket")
            .projection_expression("#key, #fields")
            .expression_attribute_names("#bucket", "bucket")
            .expression_attribute_names("#key", "key")
            .expression_attribute_names("#fields", "fields")
            .expression_attribute_values(":bucket", text(&bucket))
            .set_exclusive_start_key(start)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX));
        let output = request.send().await.map_err(|error| port_error(DOING, error))?;
        let records = output.items.unwrap_or_default().into_iter().map(record_of).collect::<Result<_, _>>()?;
        let next = output.last_evaluated_key.filter(|key| !key.is_empty());
        let next = next.map(|key| key_of(&key)).transpose()?;
        Ok(RecordPage { records, next })
    }
}

fn key_of(item: &Item) -> Result<String, PortError> {
    let key = item.get("key").and_then(|key| key.as_s().ok());
    key.cloned().ok_or_else(|| PortError::invalid(DOING, "a record has no key"))
}

fn record_of(mut item: Item) -> Result<StoredRecord, PortError> {
    let key = key_of(&item)?;
    let fields = item.remove("fields").unwrap_or_else(|| AttributeValue::M(HashMap::new()));
    match value_of(fields) {
        Some(Value::Object(fields)) => Ok(StoredRecord { key, fields }),
        _ => Err(PortError::invalid(DOING, "a record has a field of an unknown type")),
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
