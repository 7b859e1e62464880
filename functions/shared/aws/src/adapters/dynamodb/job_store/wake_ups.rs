use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::{BoxError, Due, PortError, WakeUps};
use serde::Deserialize;

use super::DynamoDbJobStore;
use super::job_row::JOB_ROW;
use crate::adapters::dynamodb::attributes::{Item, from_item, from_millis, number, time};
use crate::adapters::dynamodb::errors::port_error;
use crate::adapters::dynamodb::write::Update;

const PUT_OFF: Update = Update {
    doing: "putting off a job whose row cannot be read",
    change: "SET #wakeAt = :next ADD #revision :one",
    condition: "#wakeAt = :seen",
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WakeEntry {
    job_id: JobGuid,
    wake_at: i64,
}

fn due_of(doing: &'static str, item: Item) -> Result<Due, PortError> {
    let entry: WakeEntry = from_item(doing, item)?;
    let at = from_millis(entry.wake_at).map_err(|error: BoxError| PortError::invalid(doing, error))?;
    Ok(Due { job: entry.job_id, at })
}

#[async_trait]
impl WakeUps for DynamoDbJobStore {
    async fn due(&self, shard: u32, now: Timestamp, limit: usize) -> Result<Vec<Due>, PortError> {
        const DOING: &str = "looking for jobs that are due";
        let mut due = Vec::new();
        if limit == 0 {
            return Ok(due);
        }
        // The index is sorted by `wakeAt`, so the longest due come first.
        let mut pages = self
            .client
            .query()
            .table_name(&self.jobs_table)
            .index_name("wake-index")
            .key_condition_expression("#shard = :shard AND #wakeAt <= :now")
            .expression_attribute_names("#shard", "wakeShard")
            .expression_attribute_names("#wakeAt", "wakeAt")
            .expression_attribute_values(":shard", number(shard))
            .expression_attribute_values(":now", time(now))
            .into_paginator()
            .page_size(i32::try_from(limit).unwrap_or(i32::MAX))
            .items()
            .send();
        while due.len() < limit
            && let Some(item) = pages.try_next().await.map_err(|error| port_error(DOING, error))?
        {
            due.push(due_of(DOING, item)?);
        }
        Ok(due)
    }

    async fn put_off(&self, due: Due, next: Timestamp) -> Result<(), PortError> {
        let values = [(":seen", time(due.at)), (":next", time(next)), (":one", number(1))];
        match PUT_OFF.apply(self.update_row(due.job, JOB_ROW), values).await {
            Ok(_) | Err(PortError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
