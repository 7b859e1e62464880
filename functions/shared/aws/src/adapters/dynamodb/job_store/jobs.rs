use std::collections::HashMap;

use async_trait::async_trait;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use jiff::Timestamp;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::{JobFilter, JobPage, Jobs, PortError};

use super::DynamoDbJobStore;
use super::job_row::{JOB_ROW, job_of};
use super::spec_row::{SPEC_ROW, spec_of};
use crate::adapters::dynamodb::attributes::{Item, text};
use crate::adapters::dynamodb::batch_get::{BATCH_KEYS, batch_get};
use crate::adapters::dynamodb::errors::port_error;

const DOING: &str = "listing the jobs";

#[async_trait]
impl Jobs for DynamoDbJobStore {
    async fn job(&self, job: JobGuid) -> Result<Job, PortError> {
        const DOING: &str = "reading the job";
        job_of(DOING, self.row(DOING, job, JOB_ROW).await?.ok_or(PortError::NotFound)?)
    }

    async fn spec(&self, job: JobGuid) -> Result<Spec, PortError> {
        const DOING: &str = "reading the spec";
        let item = self.row(DOING, job, SPEC_ROW).await?.ok_or(PortError::NotFound)?;
        spec_of(DOING, &item)
    }

    /// The index finds the jobs, eventually consistent and with few attributes. Their rows are then read strongly
    /// consistent, so that the list is current. It looks for one job more than the limit: does another page follow?
    async fn jobs(&self, owner: &Owner, filter: &JobFilter, now: Timestamp) -> Result<JobPage, PortError> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut from = None;
        while filter.limit > 0 && jobs.len() <= filter.limit {
            // DynamoDB filters after it has read up to the limit, so a small limit would need many queries.
            let filtered = filter.state.is_some() || filter.job_type.is_some();
            // So would one after a page of jobs that are gone.
            let wanted =
                if filtered || from.is_some() { BATCH_KEYS } else { (filter.limit + 1 - jobs.len()).min(BATCH_KEYS) };
            let page_items = i32::try_from(wanted).unwrap_or(i32::MAX);
            let query = self.query(owner, filter).limit(page_items).set_exclusive_start_key(from);
            let page = query.send().await.map_err(|error| port_error(DOING, error))?;
            let found = self.read_jobs(&page.items.unwrap_or_default()).await?;
            jobs.extend(found.into_iter().filter(|job| filter.matches(owner, job, now)));
            from = page.last_evaluated_key;
            if from.is_none() {
                break;
            }
        }
        let more = jobs.len() > filter.limit;
        jobs.truncate(filter.limit);
        let next = jobs.last().filter(|_| more).map(|job| job.job_guid);
        Ok(JobPage { jobs, next })
    }
}

impl DynamoDbJobStore {
    fn query(&self, owner: &Owner, filter: &JobFilter) -> QueryFluentBuilder {
        let mut query = self
            .client
            .query()
            .table_name(&self.jobs_table)
            .index_name("owner-index")
            .scan_index_forward(false)
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":owner", text(owner));
        let mut key = "#owner = :owner".to_owned();
        if let Some(after) = filter.after {
            key.push_str(" AND #job < :after");
            query =
                query.expression_attribute_names("#job", "jobId").expression_attribute_values(":after", text(after));
        }
        let mut conditions = Vec::new();
        // The index does not have the outcome. The row, which may be newer than the index, decides anyway.
        if let Some(state) = filter.state {
            conditions.push("#status = :status");
            query = query
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":status", text(state.status().as_str()));
        }
        if let Some(job_type) = &filter.job_type {
            conditions.push("#jobType = :jobType");
            query = query
                .expression_attribute_names("#jobType", "jobType")
                .expression_attribute_values(":jobType", text(job_type));
        }
        let condition = (!conditions.is_empty()).then(|| conditions.join(" AND "));
        query.key_condition_expression(key).set_filter_expression(condition)
    }

    /// Reads the jobs of these index entries, in their order.
    async fn read_jobs(&self, entries: &[Item]) -> Result<Vec<Job>, PortError> {
        let ids: Vec<_> = entries.iter().filter_map(|entry| entry.get("jobId")).collect();
        let key = |id: &_| HashMap::from([("jobId".to_owned(), Clone::clone(id)), ("row".to_owned(), text(JOB_ROW))]);
        let keys = ids.iter().map(|id| key(*id)).collect();
        let rows = batch_get(DOING, &self.client, &self.jobs_table, keys, true).await?;
        let jobs = rows.into_iter().map(|row| job_of(DOING, row).map(|job| (job.job_guid, job)));
        let mut found: HashMap<JobGuid, Job> = jobs.collect::<Result<_, _>>()?;
        let guids = ids.iter().filter_map(|id| id.as_s().ok()?.parse::<JobGuid>().ok());
        Ok(guids.filter_map(|guid| found.remove(&guid)).collect())
    }
}
