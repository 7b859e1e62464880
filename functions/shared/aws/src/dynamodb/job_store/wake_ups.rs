use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::ports::{BoxError, Due, PortError, WakeUps};
use serde::Deserialize;

use super::{DynamoDbJobStore, JobWritten};
use crate::dynamodb::attributes::{Item, from_item, from_millis, number, time};
use crate::dynamodb::errors::port_error;
use crate::dynamodb::write::Update;

/// A job that has ended has no `wakeAt`, so nobody can claim it. A sweep whose reply was lost cannot tell its own claim from
/// another sweep's. It treats the claim as lost, and the job is due again at the time that was set.
const CLAIM: Update = Update {
    doing: "claiming a job that is due",
    change: "SET #wakeAt = :next, #recoveries = :recoveries",
    condition: "#wakeAt = :seen",
};

/// An entry of the wake index.
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

    async fn wake_later(&self, due: Due, next: Timestamp, recoveries: u32) -> Result<Option<Job>, PortError> {
        let values = vec![(":seen", time(due.at)), (":next", time(next)), (":recoveries", number(recoveries))];
        match self.move_job(due.job, &CLAIM, values).await {
            Ok(JobWritten::Applied(job)) => Ok(Some(job)),
            Ok(JobWritten::Refused(_)) | Err(PortError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
