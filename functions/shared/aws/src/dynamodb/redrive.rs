use aws_sdk_dynamodb::types::{CancellationReason, TransactWriteItem};
use rowmill_core::model::job::Job;
use rowmill_core::ports::{JobStore, NewAttempt, PortError, RedriveError};

use super::attributes::{number, text};
use super::job_row::{job_item, job_key, job_of};
use super::job_store::DynamoDbJobStore;
use super::transact::{RowUpdate, Transacted, condition_failed, transact};

const DOING: &str = "starting the job's next attempt";

/// What of the job row a new attempt sets, to what the row of [`NewAttempt::job`] holds. What it neither sets nor removes
/// stays as it is, what a newer version may have put there too.
const SET: [&str; 13] = [
    "status",
    "attempt",
    "tallies",
    "dispatched",
    "cursorOffset",
    "cursorRow",
    "splitDone",
    "atEnd",
    "redrive",
    "movedAt",
    "deadlineAt",
    "wakeShard",
    "wakeAt",
];
const REMOVE: &str =
    "REMOVE #outcome, #leaseHolder, #leaseUntil, #stop, #composing, #recoveries, #finishedAt, #expiresAt";

const AS_SEEN: &str = "#status = :seenStatus AND #attempt = :seenAttempt";

impl DynamoDbJobStore {
    pub(super) async fn begin_attempt(&self, attempt: &NewAttempt) -> Result<Job, RedriveError> {
        let seen = &attempt.seen;
        if !seen.status.is_terminal() {
            return Err(RedriveError::Moved(Box::new(self.job(seen.job_guid).await?)));
        }
        let next = attempt.job();
        let mut items = vec![self.move_to_attempt(seen, &next)?];
        items.extend(self.take_slots(DOING, seen, attempt.ceilings)?);
        let request = self.client.transact_write_items().set_transact_items(Some(items));
        match transact(DOING, request).await? {
            Transacted::Applied => Ok(next),
            Transacted::Refused(reasons) => self.why_not_begun(attempt, &reasons).await,
        }
    }

    /// The reasons stand in the order of the items. That the job has moved on is said before that there is no room: it may
    /// have moved on by this very redrive, whose own slot fills the ceiling.
    async fn why_not_begun(&self, attempt: &NewAttempt, reasons: &[CancellationReason]) -> Result<Job, RedriveError> {
        let (of_job, of_slots) = reasons.split_at(reasons.len().min(1));
        let Some(reason) = of_job.first().filter(|reason| condition_failed(reason)) else {
            return Err(RedriveError::Full(self.full(DOING, &attempt.seen, of_slots).await?));
        };
        let job = match &reason.item {
            Some(item) => job_of(DOING, item.clone())?,
            None => self.job(attempt.seen.job_guid).await?,
        };
        if attempt.was_applied(&job) { Ok(job) } else { Err(RedriveError::Moved(Box::new(job))) }
    }

    fn move_to_attempt(&self, seen: &Job, next: &Job) -> Result<TransactWriteItem, PortError> {
        let mut next = job_item(DOING, next)?;
        let set = SET.iter().filter_map(|name| Some((format!(":{name}"), next.remove(*name)?)));
        let mut values: Vec<_> = set.collect();
        values.push((":seenStatus".to_owned(), text(seen.status.as_str())));
        values.push((":seenAttempt".to_owned(), number(seen.attempt)));
        let change = format!("SET {} {REMOVE}", SET.map(|name| format!("#{name} = :{name}")).join(", "));
        let key = job_key(seen.job_guid);
        RowUpdate { table: &self.jobs_table, key, change: &change, condition: AS_SEEN }.with(DOING, values)
    }
}
