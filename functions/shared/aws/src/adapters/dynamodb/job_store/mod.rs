//! The job store in DynamoDB: one file per trait of the port, and one per kind of row.

mod admissions;
mod attempts;
mod attribute;
mod checkpoints;
mod completions;
mod dead_letters;
mod erasures;
pub(super) mod job_row;
mod jobs;
mod permits;
mod slots;
mod spec_row;
mod tallies;
mod tally_row;
mod updates;
mod usage_row;
mod waits;
mod wake_ups;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::PortError;

use super::attributes::{Item, text};
use super::errors::port_error;
use crate::sdk::usage_shares::UsageShares;

/// The jobs and admission tables in DynamoDB.
#[derive(Clone, Debug)]
pub struct DynamoDbJobStore {
    pub(super) client: Client,
    pub(super) jobs_table: String,
    /// None in a function that neither starts nor ends attempts.
    pub(super) admission_table: Option<String>,
    /// Usage meter; `None` outside of Lambda.
    shares: Option<&'static UsageShares>,
}

impl DynamoDbJobStore {
    /// The store in these tables. Without an admission table it can neither start nor end attempts.
    pub const fn new(client: Client, jobs_table: String, admission_table: Option<String>) -> Self {
        Self { client, jobs_table, admission_table, shares: None }
    }

    /// The store whose writes carry these shares of what the process has used.
    #[must_use]
    pub fn metered(self, shares: &'static UsageShares) -> Self {
        Self { shares: Some(shares), ..self }
    }

    /// Usage of the process for which no job has paid, to be stored with a job by a write that uses `ahead`.
    fn share(&self, ahead: Usage) -> Usage {
        self.shares.map_or(Usage::NONE, |shares| shares.take(ahead))
    }

    /// Gives a share back: another run's write was first. `later` is what it paid ahead that does not follow.
    fn give_back(&self, share: Usage, later: Usage) {
        if let Some(shares) = self.shares {
            shares.give_back(share, later);
        }
    }

    /// Reads the row with this sort key, strongly consistent.
    pub(super) async fn row(&self, doing: &'static str, job: JobGuid, row: &str) -> Result<Option<Item>, PortError> {
        let request = self.client.get_item().table_name(&self.jobs_table).consistent_read(true);
        let output = request.key("jobId", text(job)).key("row", text(row)).send().await;
        Ok(output.map_err(|error| port_error(doing, error))?.item)
    }

    /// An update of the row with this sort key.
    pub(super) fn update_row(&self, job: JobGuid, row: &str) -> UpdateItemFluentBuilder {
        self.client.update_item().table_name(&self.jobs_table).key("jobId", text(job)).key("row", text(row))
    }
}
