use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use futures::stream::{self, StreamExt};
use rowmill_core::model::records::{RecordVersion, Upserted};
use rowmill_core::ports::{ItemTable, PortError, PortResult, TableItem, VERSION_ATTRIBUTE};

use super::attributes::{Item, text};
use super::errors::{past_conflicts, port_error};
use super::record_statements::{ITEM_MAX_BYTES, map};

const DOING: &str = "importing into a table";

/// The number of items that are put at the same time.
const PUTS_AT_ONCE: usize = 16;

/// A table of the application in DynamoDB, of this account and region.
///
/// Each item is put on its own: the batch request of DynamoDB takes no conditions, and PartiQL cannot replace a whole
/// item.
#[derive(Debug)]
pub struct DynamoDbItemTable {
    client: Client,
    table: String,
}

impl DynamoDbItemTable {
    pub const fn new(client: Client, table: String) -> Self {
        Self { client, table }
    }

    async fn put_one(&self, item: &TableItem) -> PortResult<Upserted> {
        let (attributes, bytes) = map(&item.attributes).map_err(|error| PortError::invalid(DOING, error))?;
        // As a map it takes a byte for each attribute more, and three for itself.
        if bytes > ITEM_MAX_BYTES + attributes.len() + 3 {
            let error = format!("the item takes {bytes} bytes, more than the {ITEM_MAX_BYTES} it may have");
            return Err(PortError::invalid(DOING, error));
        }
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(attributes))
            .item(VERSION_ATTRIBUTE, text(item.version.to_string()))
            .condition_expression("attribute_not_exists(#version) OR #version < :version")
            .expression_attribute_names("#version", VERSION_ATTRIBUTE)
            .expression_attribute_values(":version", text(item.version.to_string()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match past_conflicts(|| put.clone().send()).await {
            Ok(_) => Ok(Upserted::Written),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(refused)) => superseded(refused.item()),
                Some(PutItemError::ItemCollectionSizeLimitExceededException(_)) => {
                    Err(PortError::invalid(DOING, error))
                }
                _ => Err(port_error(DOING, error)),
            },
        }
    }
}

/// The answer if the condition has failed on this item. What the application has put in the place of a version is none.
fn superseded(there: Option<&Item>) -> PortResult<Upserted> {
    let version = there.and_then(|there| there.get(VERSION_ATTRIBUTE));
    let is_version = |version: &AttributeValue| version.as_s().is_ok_and(|text| text.parse::<RecordVersion>().is_ok());
    match version {
        Some(version) if !is_version(version) => Err(PortError::invalid(DOING, "the item has no valid version")),
        _ => Ok(Upserted::Superseded),
    }
}

#[async_trait]
impl ItemTable for DynamoDbItemTable {
    async fn put(&self, items: &[TableItem]) -> Vec<PortResult<Upserted>> {
        let is_down = AtomicBool::new(false);
        let put = async |item| {
            // The others would wait and fail too.
            if is_down.load(Ordering::Relaxed) {
                return Err(PortError::unavailable(DOING, "the table does not take an item before it"));
            }
            let result = self.put_one(item).await;
            if matches!(result, Err(PortError::Unavailable { .. } | PortError::Denied { .. })) {
                is_down.store(true, Ordering::Relaxed);
            }
            result
        };
        let puts: Vec<_> = items.iter().map(put).collect();
        stream::iter(puts).buffered(PUTS_AT_ONCE).collect().await
    }
}
