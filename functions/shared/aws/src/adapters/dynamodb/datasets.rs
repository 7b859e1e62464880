//! Number of partitions of a dataset: a row of the records table, put by the first that opens the dataset to write.

use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_core::model::records::{Dataset, PARTITIONS_MAX};
use rowmill_core::ports::PortError;

use super::attributes::{Item, number, text};
use super::errors::port_error;
use super::record_store::DynamoDbRecordStore;
use super::write::put_if_absent;

const DOING: &str = "opening a dataset";

/// The sort key of the row, and behind the name of the dataset its partition key. It is no number, so it is no bucket.
const DATASET_ROW: &str = "dataset";

/// The attribute that holds the number of partitions.
const PARTITIONS: &str = "partitions";

impl DynamoDbRecordStore {
    pub(super) async fn open_dataset(&self, name: &str, if_new: u32) -> Result<Dataset, PortError> {
        if let Some(dataset) = self.opened_dataset(name).await? {
            return Ok(dataset);
        }
        let put = self.client.put_item().table_name(&self.table).set_item(Some(key(name)));
        let put = put.item(PARTITIONS, number(if_new.clamp(1, PARTITIONS_MAX)));
        // The row is there now, by this put or another one, and its number counts.
        put_if_absent(DOING, put, "bucket").await?;
        let opened = self.opened_dataset(name).await?;
        opened.ok_or_else(|| PortError::unavailable(DOING, "the row of the dataset was removed"))
    }

    pub(super) async fn opened_dataset(&self, name: &str) -> Result<Option<Dataset>, PortError> {
        let request = self.client.get_item().table_name(&self.table).consistent_read(true).set_key(Some(key(name)));
        let output = request.send().await.map_err(|error| port_error(DOING, error))?;
        output.item.map(|item| dataset_of(name, &item)).transpose()
    }
}

fn key(name: &str) -> Item {
    let bucket = format!("{name}#{DATASET_ROW}");
    Item::from([("bucket".to_owned(), text(bucket)), ("key".to_owned(), text(DATASET_ROW))])
}

fn dataset_of(name: &str, item: &Item) -> Result<Dataset, PortError> {
    let partitions = item.get(PARTITIONS).and_then(|number: &AttributeValue| number.as_n().ok()?.parse().ok());
    match partitions.filter(|number| (1..=PARTITIONS_MAX).contains(number)) {
        Some(partitions) => Ok(Dataset { name: name.to_owned(), partitions }),
        None => Err(PortError::invalid(DOING, "its row has no valid number of partitions")),
    }
}
