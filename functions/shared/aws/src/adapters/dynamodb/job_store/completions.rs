use async_trait::async_trait;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};
use rowmill_api::cost::Usage;
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::ports::{Completion, Completions, Jobs, PortError, WriteLost};

use super::DynamoDbJobStore;
use super::job_row::{JOB_ROW, job_key, results_text, status_value, stop_text};
use super::slots::Shards;
use super::usage_row::{add_usage, usage_values};
use crate::adapters::dynamodb::attributes::{expiry_seconds, number, text, time};
use crate::adapters::dynamodb::transact::{RowUpdate, Transacted, transact};
use crate::observe::metrics::{self, Metric};
use crate::sdk::retry::Backoff;

const DOING: &str = "completing the job";

const END: &str = "SET #status = :status, #succeeded = :succeeded, #failed = :failed, #skipped = :skipped, \
                   #completions = #completions + :one, #revision = #revision + :one, #finishedAt = :now, #movedAt = :now, #expiresAt = :expires";
const UNLEASE: &str = "REMOVE #leaseHolder, #leaseUntil, #composing, #pausedFrom, #pausedAt, #breakerPause, #resendFrom, \
                       #wakeShard, #wakeAt";

// A stop is set at most once per attempt, so its presence alone tells whether it is the one seen.
const AS_SEEN: &str = "#status = :seen AND #attempt = :attempt AND attribute_not_exists(#stop)";
const AS_SEEN_STOPPED: &str = "#status = :seen AND #attempt = :attempt AND attribute_exists(#stop)";
const UNTAKEN: &str = "#status = :seen AND #attempt = :attempt AND attribute_not_exists(#stop) \
                       AND attribute_not_exists(#leaseHolder) \
                       AND (attribute_not_exists(#pausedFrom) OR #pausedFrom = :waiting)";

#[async_trait]
impl Completions for DynamoDbJobStore {
    async fn complete(&self, completion: &Completion) -> Result<(), WriteLost> {
        let seen = &completion.seen;
        let may_end = if completion.untaken.is_some() { seen.is_untaken() } else { seen.status != Status::Waiting };
        if !may_end {
            return Err(WriteLost::Condition(Box::new(self.job(seen.job_guid).await?)));
        }
        // Written with the attempt that is seen: with another one, the condition does not hold.
        let shards = Shards::of_row(&self.row(DOING, seen.job_guid, JOB_ROW).await?.ok_or(PortError::NotFound)?);
        let slots = self.give_slots_back(DOING, seen, shards, completion.finished_at)?;
        let ahead = Usage::of_transaction(1 + slots.len() as u64);
        let share = self.share(ahead);
        let mut items = vec![self.end_job(completion, share)?];
        items.extend(slots);
        let request = self.client.transact_write_items().set_transact_items(Some(items));
        match transact(DOING, request, &mut Backoff::while_a_job_ends()).await? {
            Transacted::Applied => {
                measure(completion);
                Ok(())
            }
            Transacted::Refused(_) => {
                let job = self.job(seen.job_guid).await?;
                // Our own completion: its reply was lost.
                if completion.has_ended(&job) {
                    return Ok(());
                }
                self.give_back(share, ahead);
                Err(WriteLost::Condition(Box::new(job)))
            }
        }
    }
}

/// Counts an end that took effect.
fn measure(completion: &Completion) {
    metrics::add(Metric::JobsEnded, 1);
    let part = match (completion.status, completion.outcome) {
        (Status::Completed, Some(JobOutcome::Succeeded | JobOutcome::Empty)) => Metric::JobsSucceeded,
        (Status::Completed, Some(JobOutcome::Partial)) => Metric::JobsPartial,
        (Status::Completed, _) => Metric::JobsWithoutSuccess,
        (Status::Cancelled, _) => Metric::JobsCancelled,
        _ => Metric::JobsFailed,
    };
    metrics::add(part, 1);
}

impl DynamoDbJobStore {
    fn end_job(&self, completion: &Completion, share: Usage) -> Result<TransactWriteItem, PortError> {
        let seen = &completion.seen;
        // Remove what this attempt does not have: an earlier attempt may have left it.
        let parts = [("outcome", completion.outcome.is_some()), ("results", completion.results.is_some())];
        let set: String = parts.iter().filter(|part| part.1).map(|part| format!(", #{0} = :{0}", part.0)).collect();
        let unset: String = parts.iter().filter(|part| !part.1).map(|part| format!(", #{}", part.0)).collect();
        let of_untaken = if completion.untaken.is_some() { ", #stop = :stop, #splitDone = :true" } else { "" };
        let change = format!("{END}{set}{of_untaken} {UNLEASE}{unset} ADD {}", add_usage!());
        let condition = match (&completion.untaken, &seen.stop) {
            (Some(_), _) => UNTAKEN,
            (None, Some(_)) => AS_SEEN_STOPPED,
            (None, None) => AS_SEEN,
        };
        let mut values = vec![
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
        values.extend(usage_values(completion.usage + share));
        if let Some(results) = &completion.results {
            values.push((":results", text(results_text(results).map_err(|error| PortError::invalid(DOING, error))?)));
        }
        if let Some(stop) = &completion.untaken {
            values.push((":stop", text(stop_text(stop).map_err(|error| PortError::invalid(DOING, error))?)));
            values.push((":true", AttributeValue::Bool(true)));
            values.push((":waiting", status_value(Status::Waiting)));
        }
        if let Some(outcome) = completion.outcome {
            let outcome = serde_dynamo::to_attribute_value(outcome);
            values.push((":outcome", outcome.map_err(|error| PortError::invalid(DOING, error))?));
        }
        RowUpdate { table: &self.jobs_table, key: job_key(seen.job_guid), change: &change, condition }
            .with(DOING, values)
    }
}
