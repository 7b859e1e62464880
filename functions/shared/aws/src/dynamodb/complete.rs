use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use rowmill_core::ports::{Completion, JobStore, PortError, WriteLost};
use rowmill_core::states::Status;

use super::attributes::{expiry_seconds, names, number, text, time};
use super::create::scopes;
use super::job_row::JOB_ROW;
use super::job_store::DynamoDbJobStore;
use super::transact::{Transacted, transact};

const DOING: &str = "completing the job";

const END: &str = "SET #status = :status, #succeeded = :succeeded, #failed = :failed, #skipped = :skipped, \
                   #completions = #completions + :one, #finishedAt = :now, #movedAt = :now, #expiresAt = :expires";
const UNLEASE: &str = "REMOVE #leaseHolder, #leaseUntil, #wakeShard, #wakeAt";

// A stop is set once within an attempt, so whether there is one says whether it is the one seen.
const AS_SEEN: &str = "#status = :seen AND #attempt = :attempt AND attribute_not_exists(#stop)";
const AS_SEEN_STOPPED: &str = "#status = :seen AND #attempt = :attempt AND attribute_exists(#stop)";

impl DynamoDbJobStore {
    pub(super) async fn complete_attempt(&self, completion: &Completion) -> Result<(), WriteLost> {
        let seen = &completion.seen;
        if seen.status == Status::Waiting {
            return Err(WriteLost::Condition(Box::new(self.job(seen.job_guid).await?)));
        }
        let mut items = vec![self.end_job(completion)?];
        for scope in scopes(seen) {
            items.push(self.give_slot_back(&scope)?);
        }
        let request = self.client.transact_write_items().set_transact_items(Some(items));
        match transact(DOING, request).await? {
            Transacted::Applied => Ok(()),
            Transacted::Refused(_) => {
                let job = self.job(seen.job_guid).await?;
                // Our own completion, whose reply was lost.
                if completion.has_ended(&job) { Ok(()) } else { Err(WriteLost::Condition(Box::new(job))) }
            }
        }
    }

    fn end_job(&self, completion: &Completion) -> Result<TransactWriteItem, PortError> {
        let seen = &completion.seen;
        let (change, outcome) = match completion.outcome {
            Some(outcome) => (format!("{END}, #outcome = :outcome {UNLEASE}"), Some(outcome)),
            None => (format!("{END} {UNLEASE}, #outcome"), None),
        };
        let condition = if seen.stop.is_some() { AS_SEEN_STOPPED } else { AS_SEEN };
        let values = [
            (":status", text(completion.status.as_str())),
            (":succeeded", number(completion.counts.succeeded)),
            (":failed", number(completion.counts.failed)),
            (":skipped", number(completion.counts.skipped)),
            (":one", number(1)),
            (":now", time(completion.finished_at)),
            (":expires", number(expiry_seconds(completion.expires_at))),
            (":seen", text(seen.status.as_str())),
            (":attempt", number(seen.attempt)),
        ];
        let mut update = Update::builder()
            .table_name(&self.jobs_table)
            .key("jobId", text(seen.job_guid))
            .key("row", text(JOB_ROW))
            .condition_expression(condition);
        for (placeholder, name) in names(&change).chain(names(condition)) {
            update = update.expression_attribute_names(placeholder, name);
        }
        for (placeholder, value) in values {
            update = update.expression_attribute_values(placeholder, value);
        }
        if let Some(outcome) = outcome {
            let outcome: AttributeValue =
                serde_dynamo::to_attribute_value(outcome).map_err(|error| PortError::invalid(DOING, error))?;
            update = update.expression_attribute_values(":outcome", outcome);
        }
        let update = update.update_expression(change).build().map_err(|error| PortError::invalid(DOING, error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    /// Without a condition: nothing may keep a job from ending, least of all a counter.
    fn give_slot_back(&self, scope: &str) -> Result<TransactWriteItem, PortError> {
        let update = Update::builder()
            .table_name(self.admission_table(DOING)?)
            .key("scope", text(scope))
            .update_expression("ADD #active :one_less")
            .expression_attribute_names("#active", "active")
            .expression_attribute_values(":one_less", number(-1))
            .build();
        Ok(TransactWriteItem::builder().update(update.map_err(|error| PortError::invalid(DOING, error))?).build())
    }
}
