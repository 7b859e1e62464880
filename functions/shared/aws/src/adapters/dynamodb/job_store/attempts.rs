use async_trait::async_trait;
use aws_sdk_dynamodb::types::{CancellationReason, TransactWriteItem};
use rowmill_core::model::cost::Usage;
use rowmill_core::model::job::Job;
use rowmill_core::ports::{Attempts, Jobs, NewAttempt, PortError, RedriveError};

use super::DynamoDbJobStore;
use super::job_row::{job_key, job_of};
use super::slots::{Shards, TRIES};
use super::updates::{AS_SEEN, Difference};
use crate::adapters::dynamodb::attributes::number;
use crate::adapters::dynamodb::transact::{RowUpdate, Transacted, condition_failed, transact};
use crate::observe::metrics::{self, Metric};
use crate::sdk::retry::Backoff;

const REDRIVING: &str = "starting the job's next attempt";

/// Meaning of a refused transaction.
enum Refusal {
    /// This very redrive was applied before.
    Begun(Box<Job>),
    /// The counters of other shards have room.
    TryIn(Shards),
}

#[async_trait]
impl Attempts for DynamoDbJobStore {
    async fn redrive(&self, attempt: &NewAttempt) -> Result<Job, RedriveError> {
        let seen = &attempt.seen;
        let Some(next) = attempt.job() else {
            return Err(RedriveError::Moved(Box::new(self.job(seen.job_guid).await?)));
        };
        let mut shards = Shards::first(seen.job_guid, attempt.ceilings);
        // The job and three counters; then the message to the splitter.
        let ahead = Usage::of_transaction(4).with_sends(1);
        let usage = self.share(ahead);
        let mut backoff = Backoff::while_a_client_waits();
        for tries in 1..=TRIES {
            let mut items = vec![self.move_to_attempt(attempt, &next, shards, usage)?];
            items.extend(self.take_slots(REDRIVING, seen, attempt.ceilings, shards)?);
            let request = self.client.transact_write_items().set_transact_items(Some(items));
            match transact(REDRIVING, request, &mut backoff).await? {
                Transacted::Applied => {
                    metrics::add(Metric::JobsRedriven, 1);
                    return Ok(next);
                }
                Transacted::Refused(reasons) => {
                    let refusal = self.why_not_begun(attempt, &reasons, shards, tries == TRIES).await;
                    match refusal.inspect_err(|_| self.give_back(usage, ahead))? {
                        Refusal::Begun(job) => return Ok(*job),
                        Refusal::TryIn(others) => shards = others,
                    }
                }
            }
        }
        Err(PortError::unavailable(REDRIVING, "not admitted").into())
    }
}

impl DynamoDbJobStore {
    /// The reasons are in the order of the items. That the job has moved on is checked before a reached limit: this
    /// redrive itself may have moved it, and its own slot may fill the limit.
    async fn why_not_begun(
        &self,
        attempt: &NewAttempt,
        reasons: &[CancellationReason],
        shards: Shards,
        is_last: bool,
    ) -> Result<Refusal, RedriveError> {
        let (of_job, of_slots) = reasons.split_at(reasons.len().min(1));
        let Some(reason) = of_job.first().filter(|reason| condition_failed(reason)) else {
            let others =
                self.other_shards(REDRIVING, &attempt.seen, attempt.ceilings, of_slots, shards, is_last).await?;
            return others.map(Refusal::TryIn).map_err(RedriveError::Full);
        };
        let job = match &reason.item {
            Some(item) => job_of(REDRIVING, item.clone())?,
            None => self.job(attempt.seen.job_guid).await?,
        };
        if attempt.was_applied(&job) {
            Ok(Refusal::Begun(Box::new(job)))
        } else {
            Err(RedriveError::Moved(Box::new(job)))
        }
    }

    fn move_to_attempt(
        &self,
        attempt: &NewAttempt,
        next: &Job,
        shards: Shards,
        usage: Usage,
    ) -> Result<TransactWriteItem, PortError> {
        let seen = &attempt.seen;
        let mut difference = Difference::between(REDRIVING, seen, next)?;
        for (name, shard) in shards.attributes(attempt.ceilings) {
            difference.set(&name, shard);
        }
        let (change, mut values) = difference.written(usage);
        values.push((":seen".to_owned(), number(seen.revision)));
        let key = job_key(seen.job_guid);
        RowUpdate { table: &self.jobs_table, key, change: &change, condition: AS_SEEN }.with(REDRIVING, values)
    }
}
