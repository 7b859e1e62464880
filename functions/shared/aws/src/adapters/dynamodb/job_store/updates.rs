use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason, TransactWriteItem};
use rowmill_core::model::cost::Usage;
use rowmill_core::model::job::{Job, Priority};
use rowmill_core::ports::{Ceilings, PortError, UpdateAnswer, Updates};

use super::DynamoDbJobStore;
use super::job_row::{JOB_ROW, job_item, job_key, job_of};
use super::slots::{Shards, TRIES, ceilings_of_row};
use super::usage_row::{add_usage, usage_values};
use crate::adapters::dynamodb::attributes::{number, text};
use crate::adapters::dynamodb::transact::{RowUpdate, Transacted, condition_failed, transact};
use crate::adapters::dynamodb::write::{Update, Written};
use crate::observe::metrics::{self, Metric};
use crate::sdk::retry::Backoff;

const DOING: &str = "updating the job";

/// Nobody has written the row since it was seen.
pub const AS_SEEN: &str = "#revision = :seen";

/// Number of the last writes that can be recognised. A write that is sent again after more than these is refused; all
/// transitions but an owner's pause, a claim and the note of a resend recognise their own effect then.
const WRITES_KEPT: u64 = 4;

#[async_trait]
impl Updates for DynamoDbJobStore {
    async fn update(&self, seen: &Job, next: &Job, ahead: Usage) -> Result<UpdateAnswer, PortError> {
        if seen.has_shared_slots() != next.has_shared_slots() {
            return self.update_with_slots(seen, next, ahead).await;
        }
        let share = self.share(Usage::of_row_writes(1) + ahead);
        let (place, token) = token_after(seen);
        let mut difference = Difference::between(DOING, seen, next)?;
        difference.set(&place, token.clone());
        let (change, mut values) = difference.written(share);
        values.push((":seen".to_owned(), number(seen.revision)));
        let update = Update { doing: DOING, change: &change, condition: AS_SEEN };
        match update.apply(self.update_row(seen.job_guid, JOB_ROW), values).await? {
            Written::Applied(row) => {
                measure(seen, next);
                Ok(UpdateAnswer::Written(job_of(DOING, row)?))
            }
            Written::Refused(row) if row.get(&place) == Some(&token) => {
                measure(seen, next);
                Ok(UpdateAnswer::WrittenBefore(job_of(DOING, row)?))
            }
            Written::Refused(row) => {
                self.give_back(share, ahead);
                Ok(UpdateAnswer::Refused(job_of(DOING, row)?))
            }
        }
    }
}

impl DynamoDbJobStore {
    /// As `update`, in one transaction with the counters of the shared slots, which the job takes or gives back.
    async fn update_with_slots(&self, seen: &Job, next: &Job, ahead: Usage) -> Result<UpdateAnswer, PortError> {
        let row = self.row(DOING, seen.job_guid, JOB_ROW).await?.ok_or(PortError::NotFound)?;
        let (mut shards, ceilings) = (Shards::of_row(&row), ceilings_of_row(&row));
        let share = self.share(Usage::of_transaction(3) + ahead);
        let (place, token) = token_after(seen);
        let mut backoff = Backoff::while_a_client_waits();
        for tries in 1..=TRIES {
            let mut difference = Difference::between(DOING, seen, next)?;
            difference.set(&place, token.clone());
            let items = self.with_slots(difference, seen, next, (shards, ceilings), share)?;
            let request = self.client.transact_write_items().set_transact_items(Some(items));
            let reasons = match transact(DOING, request, &mut backoff).await? {
                Transacted::Applied => {
                    let (revision, usage) = (seen.revision + 1, next.usage + share);
                    return Ok(UpdateAnswer::Written(Job { revision, usage, ..next.clone() }));
                }
                Transacted::Refused(reasons) => reasons,
            };
            if reasons.first().is_some_and(condition_failed) {
                let row = self.row(DOING, seen.job_guid, JOB_ROW).await?.ok_or(PortError::NotFound)?;
                if row.get(&place) == Some(&token) {
                    return Ok(UpdateAnswer::WrittenBefore(job_of(DOING, row)?));
                }
                self.give_back(share, ahead);
                return Ok(UpdateAnswer::Refused(job_of(DOING, row)?));
            }
            // In place of the owner's slot, which a job never gives back before its end.
            let owners = CancellationReason::builder().build();
            let of_slots: Vec<_> = [owners].into_iter().chain(reasons.into_iter().skip(1)).collect();
            match self.other_shards(DOING, seen, ceilings, &of_slots, shards, tries == TRIES).await? {
                Ok(others) => shards = others,
                Err(full) => {
                    self.give_back(share, ahead);
                    return Ok(UpdateAnswer::Full(full));
                }
            }
        }
        Err(PortError::unavailable(DOING, "not admitted"))
    }

    /// The write of the row, then those of the counters of the type and of the system.
    fn with_slots(
        &self,
        mut difference: Difference,
        seen: &Job,
        next: &Job,
        (shards, ceilings): (Shards, Ceilings),
        share: Usage,
    ) -> Result<Vec<TransactWriteItem>, PortError> {
        let slots = if next.has_shared_slots() {
            shards.attributes(ceilings).into_iter().for_each(|(name, value)| difference.set(&name, value));
            self.take_slots(DOING, seen, ceilings, shards)?
        } else {
            self.give_slots_back(DOING, seen, shards, next.moved_at)?
        };
        let (change, mut values) = difference.written(share);
        values.push((":seen".to_owned(), number(seen.revision)));
        let key = job_key(seen.job_guid);
        let row = RowUpdate { table: &self.jobs_table, key, change: &change, condition: AS_SEEN };
        Ok([row.with(DOING, values)?].into_iter().chain(slots.into_iter().skip(1)).collect())
    }
}

/// The attribute and the token by which the write after `seen` is recognised. The SDK sends a request again whose reply
/// it has not got: its condition fails then, but the token is in the row.
fn token_after(seen: &Job) -> (String, AttributeValue) {
    (format!("write{}", seen.revision % WRITES_KEPT), text(fastrand::u64(..)))
}

/// The difference of two rows, as parts of an update expression. Attributes that are in neither of them stay as they
/// are: the trace, the shards, the tokens of other writes, and those of another version.
#[derive(Default)]
pub struct Difference {
    set: Vec<String>,
    /// The attributes to remove.
    gone: BTreeSet<String>,
    values: Vec<(String, AttributeValue)>,
}

impl Difference {
    /// Without usage and revision: each write adds to them, whatever they are by then.
    pub fn between(doing: &'static str, seen: &Job, next: &Job) -> Result<Self, PortError> {
        Self::with(doing, seen, next, &[])
    }

    /// The same. `others` are attributes that other writes may have changed since: they become those of the next row in any
    /// case.
    pub fn with(doing: &'static str, seen: &Job, next: &Job, others: &[&str]) -> Result<Self, PortError> {
        let next = Job { usage: seen.usage, revision: seen.revision, ..next.clone() };
        let (seen, next) = (job_item(doing, seen)?, job_item(doing, &next)?);
        let named = seen.keys().map(String::as_str).chain(others.iter().copied());
        let gone = named.filter(|name| !next.contains_key(*name)).map(str::to_owned).collect();
        let mut difference = Self { gone, ..Self::default() };
        for (name, value) in next {
            if others.contains(&name.as_str()) || seen.get(&name) != Some(&value) {
                difference.set(&name, value);
            }
        }
        Ok(difference)
    }

    pub fn set(&mut self, name: &str, value: AttributeValue) {
        self.set.push(format!("#{name} = :{name}"));
        self.values.push((format!(":{name}"), value));
    }

    /// The update expression with its values. The write adds this usage, and 1 to the revision.
    pub fn written(mut self, usage: Usage) -> (String, Vec<(String, AttributeValue)>) {
        let gone: Vec<String> = self.gone.iter().map(|name| format!("#{name}")).collect();
        let remove = if gone.is_empty() { String::new() } else { format!(" REMOVE {}", gone.join(", ")) };
        let change = format!("SET {}{remove} ADD #revision :one, {}", self.set.join(", "), add_usage!());
        self.values.push((":one".to_owned(), number(1)));
        self.values.extend(usage_values(usage).map(|(name, units)| (name.to_owned(), units)));
        (change, self.values)
    }
}

/// Counts a transition that took effect.
fn measure(seen: &Job, next: &Job) {
    metrics::add_any(Metric::JobsStarted, (seen.started_at.is_none() && next.started_at.is_some()).into());
    // When a redrive was asked for is not stored. The time of a pause is the owner's own. Low jobs may wait.
    let is_timed = next.attempt == 1 && next.epoch == 0 && next.priority != Priority::Low;
    if let (None, Some(at), true) = (seen.first_chunk_at, next.first_chunk_at, is_timed) {
        let delay = Duration::try_from(at.duration_since(next.created_at));
        metrics::time(Metric::DispatchDelay, delay.unwrap_or_default());
    }
}
