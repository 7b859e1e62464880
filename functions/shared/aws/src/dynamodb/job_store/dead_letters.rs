use async_trait::async_trait;
use rowmill_core::model::dead_letter::DeadLetter;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::{DeadLetters, PortError};

use super::DynamoDbJobStore;
use super::tally_row::details_expiry;
use crate::dynamodb::attributes::{Item, number, text};
use crate::dynamodb::errors::port_error;
use crate::dynamodb::write::put_if_absent;

/// The prefix of the sort keys of all dead letters.
const DEAD_LETTERS: &str = "dead#";

fn letter_of(doing: &'static str, item: &Item) -> Result<DeadLetter, PortError> {
    let letter = item.get("letter").and_then(|letter| letter.as_s().ok());
    let letter = letter.ok_or_else(|| PortError::invalid(doing, "the row has no letter"))?;
    serde_json::from_str(letter).map_err(|error| PortError::invalid(doing, error))
}

#[async_trait]
impl DeadLetters for DynamoDbJobStore {
    async fn record_dead_letter(&self, job: JobGuid, letter: &DeadLetter) -> Result<(), PortError> {
        const DOING: &str = "recording a dead letter";
        let text_of_letter = serde_json::to_string(letter).map_err(|error| PortError::invalid(DOING, error))?;
        let request = self
            .client
            .put_item()
            .table_name(&self.jobs_table)
            .item("jobId", text(job))
            .item("row", text(format!("{DEAD_LETTERS}{}", letter.message_id)))
            .item("letter", text(text_of_letter))
            .item("expiresAt", number(details_expiry(job)));
        put_if_absent(DOING, request, "jobId").await?;
        Ok(())
    }

    /// The rows are sorted by message identifier, so all of them are read to find the oldest. They are small, and a job has
    /// few.
    async fn dead_letters(&self, job: JobGuid, limit: usize) -> Result<Vec<DeadLetter>, PortError> {
        const DOING: &str = "listing the dead letters";
        let pages = self
            .client
            .query()
            .table_name(&self.jobs_table)
            .consistent_read(true)
            .key_condition_expression("#job = :job AND begins_with(#row, :dead)")
            .expression_attribute_names("#job", "jobId")
            .expression_attribute_names("#row", "row")
            .expression_attribute_values(":job", text(job))
            .expression_attribute_values(":dead", text(DEAD_LETTERS))
            .into_paginator();
        let items = pages.items().send().collect::<Result<Vec<Item>, _>>().await;
        let items = items.map_err(|error| port_error(DOING, error))?;
        let letters = items.iter().map(|item| letter_of(DOING, item));
        let mut letters = letters.collect::<Result<Vec<_>, _>>()?;
        letters.sort_by_key(|letter| letter.at);
        letters.truncate(limit);
        Ok(letters)
    }
}
