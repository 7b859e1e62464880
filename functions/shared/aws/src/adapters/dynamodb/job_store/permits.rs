use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job_type_limits::CONCURRENCY_MAX;
use rowmill_core::model::permit::{Permit, PermitSeen};
use rowmill_core::model::task::TaskId;
use rowmill_core::ports::{Permits, PortError};

use super::DynamoDbJobStore;
use super::checkpoints::{checkpoint_key, move_of};
use crate::adapters::dynamodb::attributes::{Item, text};
use crate::adapters::dynamodb::errors::port_error;
use crate::adapters::dynamodb::transact::{RowUpdate, Transacted, transact};
use crate::adapters::dynamodb::write::Update;
use crate::sdk::retry::Backoff;

const LEASING: &str = "leasing a task with a permit";

/// The key of the row of the permits of a type.
fn permits_key(job_type: &str) -> Item {
    Item::from([("scope".to_owned(), text(format!("permits#{job_type}")))])
}

fn attribute(number: u32) -> String {
    format!("p{number}")
}

/// The value of a permit that is taken: the task and the token.
fn value(task: TaskId, token: impl ToString) -> AttributeValue {
    text(format!("{task} {}", token.to_string()))
}

fn permit_of(number: u32, row: &Item) -> Option<Permit> {
    let (task, token) = row.get(&attribute(number))?.as_s().ok()?.split_once(' ')?;
    Some(Permit { number, task: task.parse().ok()?, token: token.parse().ok()? })
}

#[async_trait]
impl Permits for DynamoDbJobStore {
    async fn permits(&self, job_type: &str) -> Result<Vec<Permit>, PortError> {
        const DOING: &str = "reading permits";
        let request = self.client.get_item().table_name(self.admission_table(DOING)?).consistent_read(true);
        let output = request.set_key(Some(permits_key(job_type))).send().await;
        let row = output.map_err(|error| port_error(DOING, error))?.item.unwrap_or_default();
        Ok((0..CONCURRENCY_MAX).filter_map(|number| permit_of(number, &row)).collect())
    }

    async fn lease_with_permit(
        &self,
        job: JobGuid,
        leased: &Checkpoint,
        permit: &PermitSeen,
    ) -> Result<bool, PortError> {
        let Some(token) = leased.by else { return Ok(false) };
        let (update, values) = move_of(job, leased)?;
        let key = Item::from([("jobId".to_owned(), text(job)), ("row".to_owned(), text(checkpoint_key(leased.chunk)))]);
        let of_checkpoint =
            RowUpdate { table: &self.jobs_table, key, change: update.change, condition: update.condition };
        let task = TaskId { job, chunk: leased.chunk };
        let mut taken = vec![(":permit", value(task, token))];
        taken.extend(permit.token.map(|seen| (":seen", text(seen))));
        let name = attribute(permit.number);
        let change = format!("SET #{name} = :permit");
        // A task and a token make up a permit. The token alone tells one from another.
        let condition = match permit.token {
            Some(_) => format!("contains(#{name}, :seen)"),
            None => format!("attribute_not_exists(#{name})"),
        };
        let (table, key) = (self.admission_table(LEASING)?, permits_key(&permit.job_type));
        let of_permit = RowUpdate { table, key, change: &change, condition: &condition };
        let items = [of_checkpoint.with(LEASING, values)?, of_permit.with(LEASING, taken)?];
        let request = self.client.transact_write_items().set_transact_items(Some(items.into()));
        // DynamoDB knows a request of the SDK that is sent again.
        match transact(LEASING, request, &mut Backoff::while_a_client_waits()).await? {
            Transacted::Applied => Ok(true),
            Transacted::Refused(_) => Ok(false),
        }
    }

    async fn give_permit_back(&self, job_type: &str, seen: &Permit) -> Result<(), PortError> {
        const DOING: &str = "giving a permit back";
        let name = attribute(seen.number);
        let (change, condition) = (format!("REMOVE #{name}"), format!("#{name} = :seen"));
        let update = Update { doing: DOING, change: &change, condition: &condition };
        let request = self.client.update_item().table_name(self.admission_table(DOING)?);
        let request = request.set_key(Some(permits_key(job_type)));
        match update.apply(request, [(":seen", value(seen.task, seen.token))]).await {
            // Another one has it by now.
            Ok(_) | Err(PortError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
