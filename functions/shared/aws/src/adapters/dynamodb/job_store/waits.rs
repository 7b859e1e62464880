use async_trait::async_trait;
use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::{AWAITING_MAX, NewJob, PortError, Waits};
use uuid::Uuid;

use super::DynamoDbJobStore;
use super::spec_row::{PUT_FOUND, SPEC_ROW, spec_of, spec_text};
use super::tally_row::details_expiry;
use crate::adapters::dynamodb::attributes::{number, text};
use crate::adapters::dynamodb::errors::port_error;
use crate::adapters::dynamodb::write::Written;

/// The prefix of the sort keys of the rows of waiting jobs. They stand under the name of what is awaited.
const AWAITING: &str = "awaiting#";

#[async_trait]
impl Waits for DynamoDbJobStore {
    async fn awaiting(&self, awaited: Uuid) -> Result<Vec<JobGuid>, PortError> {
        const DOING: &str = "listing the jobs that wait";
        let query = self
            .client
            .query()
            .limit(i32::try_from(AWAITING_MAX).unwrap_or(i32::MAX))
            .table_name(&self.jobs_table)
            .consistent_read(true)
            .key_condition_expression("#job = :awaited AND begins_with(#row, :awaiting)")
            .expression_attribute_names("#job", "jobId")
            .expression_attribute_names("#row", "row")
            .expression_attribute_values(":awaited", text(awaited))
            .expression_attribute_values(":awaiting", text(AWAITING));
        let page = query.send().await.map_err(|error| port_error(DOING, error))?;
        let keys = page.items.unwrap_or_default().into_iter().filter_map(|item| item.get("row")?.as_s().ok().cloned());
        Ok(keys.filter_map(|key| key.strip_prefix(AWAITING)?.parse().ok()).collect())
    }

    async fn put_found(&self, found: &Spec) -> Result<Spec, PortError> {
        let values = [(":spec", spec_text(PUT_FOUND.doing, found)?)];
        match PUT_FOUND.apply(self.update_row(found.job_guid, SPEC_ROW), values).await? {
            Written::Applied(row) | Written::Refused(row) => spec_of(PUT_FOUND.doing, &row),
        }
    }
}

/// Notes what a new job waits for, as items of its transaction.
pub fn put_awaiting(doing: &'static str, jobs_table: &str, new: &NewJob) -> Result<Vec<TransactWriteItem>, PortError> {
    let put = |awaited: Uuid| {
        let put = Put::builder()
            .table_name(jobs_table)
            .item("jobId", text(awaited))
            .item("row", text(format!("{AWAITING}{}", new.job.job_guid)))
            .item("expiresAt", number(details_expiry(new.job.job_guid)));
        let put = put.build().map_err(|error| PortError::invalid(doing, error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    };
    new.job.awaited(&new.spec.source).into_iter().map(put).collect()
}
