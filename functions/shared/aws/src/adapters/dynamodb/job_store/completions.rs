use async_trait::async_trait;
use aws_sdk_dynamodb::types::TransactWriteItem;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::job::states::JobOutcome;
use rowmill_core::ports::{Completion, Completions, Jobs, PortError, WriteLost};

use super::DynamoDbJobStore;
use super::job_row::{JOB_ROW, job_key};
use super::slots::Shards;
use super::updates::Difference;
use crate::adapters::dynamodb::attributes::{number, text};
use crate::adapters::dynamodb::transact::{RowUpdate, Transacted, transact};
use crate::observe::metrics::{self, Metric};
use crate::sdk::retry::Backoff;

const DOING: &str = "completing the job";

/// Attributes that the row of an ended job lacks, or has of its own. They are written even if they are as seen: the sweep
/// may have claimed the job since, or its owner may have paused it and resumed it.
const OF_ATTEMPT: [&str; 10] = [
    "leaseHolder",
    "leaseUntil",
    "composing",
    "pausedFrom",
    "pausedAt",
    "breakerPause",
    "resendFrom",
    SLOTS,
    "wakeShard",
    "wakeAt",
];

/// The attribute of a job that has given its shared slots back.
const SLOTS: &str = "slots";

// A stop is set at most once per attempt, so its presence alone tells whether it is the one seen. An untaken job may
// end because of its deadline.
const AS_SEEN: &str = "#status = :seen AND #attempt = :attempt AND attribute_not_exists(#stop)";
const AS_SEEN_STOPPED: &str = "#status = :seen AND #attempt = :attempt AND attribute_exists(#stop)";
const UNTAKEN: &str = "#status = :seen AND #attempt = :attempt AND attribute_not_exists(#stop) \
                       AND attribute_not_exists(#startedAt) AND #deadlineAt = :deadlineAt";

#[async_trait]
impl Completions for DynamoDbJobStore {
    async fn complete(&self, completion: &Completion) -> Result<(), WriteLost> {
        let seen = &completion.seen;
        // Written with the attempt that is seen: with another one, the condition does not hold.
        let row = self.row(DOING, seen.job_guid, JOB_ROW).await?.ok_or(PortError::NotFound)?;
        let mut slots = self.give_slots_back(DOING, seen, Shards::of_row(&row), completion.end.finished_at)?;
        let has_returned = row.contains_key(SLOTS);
        if has_returned {
            slots.truncate(1);
        }
        let ahead = Usage::of_transaction(1 + slots.len() as u64);
        let share = self.share(ahead);
        let mut items = vec![self.end_job(completion, has_returned, share)?];
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
    let part = match &completion.end.outcome {
        Ok(JobOutcome::Succeeded | JobOutcome::Empty) => Metric::JobsSucceeded,
        Ok(JobOutcome::Partial) => Metric::JobsPartial,
        Ok(JobOutcome::Failed) => Metric::JobsWithoutSuccess,
        Err(stop) if stop.is_cancel() => Metric::JobsCancelled,
        Err(_) => Metric::JobsFailed,
    };
    metrics::add(part, 1);
}

impl DynamoDbJobStore {
    fn end_job(
        &self,
        completion: &Completion,
        has_returned: bool,
        share: Usage,
    ) -> Result<TransactWriteItem, PortError> {
        let seen = &completion.seen;
        let difference = Difference::with(DOING, seen, &completion.job(), &OF_ATTEMPT)?;
        let (change, mut values) = difference.written(completion.usage + share);
        values.push((":seen".to_owned(), text(seen.status().as_str())));
        values.push((":attempt".to_owned(), number(seen.attempt)));
        let condition = match seen.stopped_by() {
            Some(_) => AS_SEEN_STOPPED,
            None if seen.is_untaken() => {
                values.push((":deadlineAt".to_owned(), number(seen.deadline_at.as_millisecond())));
                UNTAKEN
            }
            None => AS_SEEN,
        };
        // The sweep may give slots back, or a resume take them, since the row was read.
        let condition = match has_returned {
            true => format!("{condition} AND attribute_exists(#slots)"),
            false => format!("{condition} AND attribute_not_exists(#slots)"),
        };
        RowUpdate { table: &self.jobs_table, key: job_key(seen.job_guid), change: &change, condition: &condition }
            .with(DOING, values)
    }
}
