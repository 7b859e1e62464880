//! Two rows of the records table for each dataset: one that says how it is, put by the first that opens the dataset to
//! write, and one in the list of its owner, with its latest writer.

use rowmill_core::model::ids::Owner;
use rowmill_core::model::records::{Dataset, DatasetPage, ListedDataset, PARTITIONS_MAX, Writer, owner_and_name};
use rowmill_core::ports::PortError;

use super::attributes::{Item, number, text};
use super::errors::port_error;
use super::record_pages;
use super::record_store::DynamoDbRecordStore;
use super::write::{Update, put_if_absent};

const DOING: &str = "opening a dataset";

const LISTING: &str = "listing datasets";

/// The sort key of the row, and behind the name of the dataset its partition key. It is no number, so it is no bucket.
const DATASET_ROW: &str = "dataset";

/// The attribute that holds the number of partitions.
const PARTITIONS: &str = "partitions";

/// The attribute of both rows that holds for how many seconds records are kept, if not for ever.
const EXPIRES_IN: &str = "expiresIn";

/// Behind the name of an owner, the partition key of the list of its datasets. The sort keys are their names.
const LIST: &str = "datasets";

/// The attribute that holds the latest writer of a listed dataset.
const WRITER: &str = "writer";

impl DynamoDbRecordStore {
    pub(super) async fn open_dataset(&self, if_new: &Dataset) -> Result<Dataset, PortError> {
        let Dataset { name, partitions, expires_in } = if_new;
        if let Some(dataset) = self.opened_dataset(name).await? {
            return Ok(dataset);
        }
        let put = self.client.put_item().table_name(&self.table).set_item(Some(key(name)));
        let put = put.item(PARTITIONS, number((*partitions).clamp(1, PARTITIONS_MAX)));
        let put = expires_in.iter().fold(put, |put, seconds| put.item(EXPIRES_IN, number(*seconds)));
        // The row is there now, by this put or another one, and what it says counts.
        put_if_absent(DOING, put, "bucket").await?;
        let opened = self.opened_dataset(name).await?;
        opened.ok_or_else(|| PortError::unavailable(DOING, "the row of the dataset was removed"))
    }

    pub(super) async fn opened_dataset(&self, name: &str) -> Result<Option<Dataset>, PortError> {
        let request = self.client.get_item().table_name(&self.table).consistent_read(true).set_key(Some(key(name)));
        let output = request.send().await.map_err(|error| port_error(DOING, error))?;
        output.item.map(|item| dataset_of(name, &item)).transpose()
    }

    /// Lists the dataset with this writer, unless a later one stands there.
    pub(super) async fn list_dataset(&self, dataset: &Dataset, writer: Writer) -> Result<(), PortError> {
        let (owner, name) = owner_and_name(&dataset.name);
        let request = self.client.update_item().table_name(&self.table);
        let request = request.set_key(Some(record_pages::key(&list_of(owner), name)));
        let update = Update {
            doing: LISTING,
            change: if dataset.expires_in.is_some() {
                "SET #writer = :writer, #expiresIn = :expiresIn"
            } else {
                "SET #writer = :writer"
            },
            condition: "attribute_not_exists(#writer) OR #writer < :writer",
        };
        // If it is refused, this writer or a later one stands there.
        let expires_in = dataset.expires_in.map(|seconds| (":expiresIn", number(seconds)));
        update.apply(request, [(":writer", text(writer.to_string()))].into_iter().chain(expires_in)).await?;
        Ok(())
    }

    /// Removes the dataset from the list, unless a later writer stands there.
    pub(super) async fn unlist_dataset(&self, name: &str, by: Writer) -> Result<(), PortError> {
        let (owner, name) = owner_and_name(name);
        let request = self.client.delete_item().table_name(&self.table);
        let request = request.set_key(Some(record_pages::key(&list_of(owner), name)));
        let request = request.condition_expression("attribute_not_exists(#writer) OR #writer < :writer");
        let request = request.expression_attribute_names("#writer", WRITER);
        let request = request.expression_attribute_values(":writer", text(by.to_string()));
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                Some(refused) if refused.is_conditional_check_failed_exception() => Ok(()),
                _ => Err(port_error(LISTING, error)),
            },
        }
    }

    pub(super) async fn listed_datasets(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<DatasetPage, PortError> {
        let list = list_of(owner.as_str());
        let request = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("#bucket = :bucket")
            .expression_attribute_names("#bucket", "bucket")
            .expression_attribute_values(":bucket", text(&list))
            .set_exclusive_start_key(after.map(|name| record_pages::key(&list, name)))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX));
        let output = request.send().await.map_err(|error| port_error(LISTING, error))?;
        let datasets = output.items.unwrap_or_default().iter().map(listed).collect::<Result<_, _>>()?;
        let next = output.last_evaluated_key.filter(|key| !key.is_empty());
        let next = next.map(|key| record_pages::key_of(&key)).transpose()?;
        Ok(DatasetPage { datasets, next })
    }
}

fn key(name: &str) -> Item {
    record_pages::key(&format!("{name}#{DATASET_ROW}"), DATASET_ROW)
}

fn list_of(owner: &str) -> String {
    format!("{owner}#{LIST}")
}

fn listed(item: &Item) -> Result<ListedDataset, PortError> {
    let writer = item.get(WRITER).and_then(|writer| writer.as_s().ok()?.parse().ok());
    let last_writer = writer.ok_or_else(|| PortError::invalid(LISTING, "a dataset has no valid writer"))?;
    Ok(ListedDataset { name: record_pages::key_of(item)?, last_writer, expires_in: number_of(item, EXPIRES_IN) })
}

fn dataset_of(name: &str, item: &Item) -> Result<Dataset, PortError> {
    let (partitions, expires_in) = (number_of(item, PARTITIONS), number_of(item, EXPIRES_IN));
    match partitions.filter(|number| (1..=PARTITIONS_MAX).contains(number)) {
        Some(partitions) => Ok(Dataset { name: name.to_owned(), partitions, expires_in }),
        None => Err(PortError::invalid(DOING, "its row has no valid number of partitions")),
    }
}

fn number_of(item: &Item, attribute: &str) -> Option<u32> {
    item.get(attribute).and_then(|number| number.as_n().ok()?.parse().ok())
}
