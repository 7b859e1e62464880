use std::collections::HashMap;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::{DeleteRequest, WriteRequest};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::{Erasures, Jobs, PortError, PortResult};

use super::DynamoDbJobStore;
use super::job_row::{JOB_ROW, job_key};
use crate::adapters::dynamodb::attributes::{Item, text};
use crate::adapters::dynamodb::errors::port_error;
use crate::sdk::retry::Backoff;

const DOING: &str = "erasing the rows of a job";

/// Number of rows of a page. More than the job row, so that each page has other rows to erase.
const PAGE_ROWS: i32 = 250;

/// The maximum number of rows in a BatchWriteItem.
const BATCH_ROWS: usize = 25;

#[async_trait]
impl Erasures for DynamoDbJobStore {
    async fn erase_rows(&self, job: JobGuid) -> PortResult<bool> {
        match self.job(job).await {
            Ok(job) if job.deleted_at.is_none() => return Ok(false),
            // Rows without a job row belong to a job that has expired.
            Ok(_) | Err(PortError::NotFound) => {}
            Err(error) => return Err(error),
        }
        let request = self
            .client
            .query()
            .table_name(&self.jobs_table)
            .consistent_read(true)
            .key_condition_expression("#job = :job")
            .projection_expression("#job, #row")
            .expression_attribute_names("#job", "jobId")
            .expression_attribute_names("#row", "row")
            .expression_attribute_values(":job", text(job))
            .limit(PAGE_ROWS);
        let page = request.send().await.map_err(|error| port_error(DOING, error))?;
        let is_last = page.last_evaluated_key.is_none_or(|key| key.is_empty());
        let others = page.items.unwrap_or_default().into_iter().filter(|key| key.get("row") != Some(&text(JOB_ROW)));
        for batch in others.collect::<Vec<_>>().chunks(BATCH_ROWS) {
            self.erase(batch).await?;
        }
        if is_last {
            let request = self.client.delete_item().table_name(&self.jobs_table).set_key(Some(job_key(job)));
            request.send().await.map_err(|error| port_error(DOING, error))?;
        }
        Ok(is_last)
    }
}

impl DynamoDbJobStore {
    async fn erase(&self, keys: &[Item]) -> PortResult<()> {
        let request = |key: &Item| {
            let request = DeleteRequest::builder().set_key(Some(key.clone())).build();
            let request = request.map_err(|error| PortError::invalid(DOING, error))?;
            Ok(WriteRequest::builder().delete_request(request).build())
        };
        let mut left = keys.iter().map(request).collect::<PortResult<Vec<_>>>()?;
        let mut backoff = Backoff::after_conflict();
        while !left.is_empty() {
            let requests = HashMap::from([(self.jobs_table.clone(), left)]);
            let output = self.client.batch_write_item().set_request_items(Some(requests)).send().await;
            let output = output.map_err(|error| port_error(DOING, error))?;
            left = output.unprocessed_items.unwrap_or_default().remove(&self.jobs_table).unwrap_or_default();
            if !left.is_empty() && !backoff.wait().await {
                return Err(PortError::unavailable(DOING, "DynamoDB keeps leaving rows unprocessed"));
            }
        }
        Ok(())
    }
}
