//! Jobs as an operator of a stack sees them: the functions are invoked with the operator's credentials, for the owner of
//! a job.

use rowmill_api::problem::ProblemCode;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::states::Status;

use super::CommandError;
use super::connection::FunctionsArgs;
use super::jobs::newest;
use crate::api::{ApiClient, Job, JobFilter};
use crate::aws::{failed, job_key};
use crate::gateway::Gateway;

pub(super) struct Operator {
    gateway: Gateway,
    dynamodb: aws_sdk_dynamodb::Client,
    jobs_table: String,
}

impl Operator {
    pub async fn of(stack: &FunctionsArgs) -> Result<Self, CommandError> {
        let stack = stack.deployed().await?;
        let jobs_table = stack.output("JobsTable")?.to_owned();
        let gateway = Gateway::connect(stack.aws.target(), stack.name()).await;
        Ok(Self { gateway, dynamodb: stack.aws.dynamodb, jobs_table })
    }

    /// Cancels a job of whatever owner.
    pub async fn cancel(&self, job_guid: JobGuid) -> Result<Job, CommandError> {
        let request = self.dynamodb.get_item().table_name(&self.jobs_table).consistent_read(true);
        let request = request.set_key(Some(job_key(job_guid)));
        let request = request.projection_expression("#owner").expression_attribute_names("#owner", "owner");
        let row = request.send().await.map_err(failed(format!("read the job {job_guid}")))?.item;
        let owner = row.and_then(|row| Some(Owner(row.get("owner")?.as_s().ok()?.clone())));
        let owner = owner.ok_or_else(|| CommandError::Usage(format!("the stack has no job {job_guid}")))?;
        Ok(self.api(&owner).cancel_job(job_guid).await?)
    }

    /// Cancels the active jobs of an owner. Returns how many.
    pub async fn cancel_all(&self, owner: &Owner) -> Result<usize, CommandError> {
        let (api, mut cancelled) = (self.api(owner), 0);
        for status in Status::ALL.into_iter().filter(|status| !status.is_terminal() && *status != Status::Cancelling) {
            let filter = JobFilter { status: Some(status), ..JobFilter::default() };
            for job in newest(&api, &filter, usize::MAX).await? {
                match api.cancel_job(job.job_guid).await {
                    Ok(_) => cancelled += 1,
                    // It has ended since it was listed.
                    Err(error) if error.is(ProblemCode::JobEnded) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(cancelled)
    }

    /// True if the owner has a job that has not ended.
    pub async fn has_active(&self, owner: &Owner) -> Result<bool, CommandError> {
        for status in Status::ALL.into_iter().filter(|status| !status.is_terminal()) {
            let filter = JobFilter { status: Some(status), ..JobFilter::default() };
            if !newest(&self.api(owner), &filter, 1).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// All jobs with their owners. Reads the whole index, which has no other rows.
    pub async fn jobs(&self) -> Result<Vec<(Owner, JobGuid)>, CommandError> {
        let request = self.dynamodb.scan().table_name(&self.jobs_table).index_name("owner-index");
        let mut rows = request.into_paginator().items().send();
        let mut jobs = Vec::new();
        while let Some(row) = rows.next().await {
            let row = row.map_err(failed("list the jobs"))?;
            let text = |name: &str| row.get(name).and_then(|value| value.as_s().ok());
            let job = text("jobId").and_then(|job| job.parse().ok());
            jobs.extend(text("owner").cloned().map(Owner).zip(job));
        }
        Ok(jobs)
    }

    /// The API as this owner sees it, without limits.
    pub fn api(&self, owner: &Owner) -> ApiClient {
        ApiClient::invoking(self.gateway.as_operator(owner))
    }
}
