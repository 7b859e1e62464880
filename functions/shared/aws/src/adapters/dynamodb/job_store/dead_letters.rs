use async_trait::async_trait;
use rowmill_core::model::dead_letter::DeadLetter;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::{DeadLetters, PortError};

use super::DynamoDbJobStore;
use super::tally_row::details_expiry;
use crate::adapters::dynamodb::attributes::{Item, number, text};
use crate::adapters::dynamodb::errors::port_error;
use crate::adapters::dynamodb::write::put_if_absent;
use crate::observe::metrics::{self, Metric};

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
        let is_new = put_if_absent(DOING, request, "jobId").await?;
        metrics::add_any(Metric::DeadLetters, is_new.into());
        Ok(())
    }

    /// The rows are sorted by message identifier, so the oldest of more than `limit` are not known.
    async fn dead_letters(&self, job: JobGuid, limit: usize) -> Result<Vec<DeadLetter>, PortError> {
        const DOING: &str = "listing the dead letters";
        let Some(page_size) = i32::try_from(limit).ok().filter(|limit| *limit > 0) else { return Ok(Vec::new()) };
        let pages = self
            .client
            .query()
            .limit(page_size)
            .table_name(&self.jobs_table)
            .consistent_read(true)
            .key_condition_expression("#job = :job AND begins_with(#row, :dead)")
            .expression_attribute_names("#job", "jobId")
            .expression_attribute_names("#row", "row")
            .expression_attribute_values(":job", text(job))
            .expression_attribute_values(":dead", text(DEAD_LETTERS))
            .into_paginator();
        let mut items = pages.items().send();
        let mut letters = Vec::new();
        while letters.len() < limit
            && let Some(item) = items.try_next().await.map_err(|error| port_error(DOING, error))?
        {
            letters.push(letter_of(DOING, &item)?);
        }
        letters.sort_by_key(|letter| letter.at);
        Ok(letters)
    }
}
