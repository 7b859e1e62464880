use async_trait::async_trait;
use aws_sdk_dynamodb::types::{CancellationReason, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem};
use jiff::Timestamp;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::ports::{Admissions, CreateError, Created, Idempotency, NewJob, PortError, SlotsTaken};
use serde::{Deserialize, Serialize};

use super::DynamoDbJobStore;
use super::job_row::{add_trace, job_item};
use super::slots::{Shards, TRIES};
use super::spec_row::put_spec;
use super::waits::put_awaiting;
use crate::adapters::dynamodb::attributes::{expiry_seconds, from_item, number, text, to_item};
use crate::adapters::dynamodb::errors::port_error;
use crate::adapters::dynamodb::transact::{Transacted, condition_failed, transact};
use crate::observe::metrics::{self, Metric};
use crate::sdk::retry::Backoff;

const DOING: &str = "creating the job";

/// The row of an idempotency key or a dedupe key in the admission table.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyRow {
    scope: String,
    job_id: JobGuid,
    /// That of the request; empty, and no attribute, for a dedupe key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    fingerprint: String,
    expires_at: i64,
}

impl KeyRow {
    fn new(scope: String, job_id: JobGuid, fingerprint: String, expires_at: Timestamp) -> Self {
        Self { scope, job_id, fingerprint, expires_at: expiry_seconds(expires_at) }
    }
}

/// Number of counters that a new job is added to: that of its owner, and those of its type and of the system if it has
/// shared slots.
const fn slots_of(job: &Job) -> usize {
    if job.has_shared_slots() { 3 } else { 1 }
}

/// Meaning of a refused transaction.
enum Refusal {
    /// The job exists, this one or that of an earlier request.
    Created(Created),
    /// The counters of other shards have room.
    TryIn(Shards),
}

fn remembered_scope(owner: &Owner, key: &str) -> String {
    format!("idempotency#{owner}#{key}")
}

fn dedupe_scope(owner: &Owner, key: &str) -> String {
    format!("dedupe#{owner}#{key}")
}

#[async_trait]
impl Admissions for DynamoDbJobStore {
    async fn create(&self, new: &NewJob) -> Result<Created, CreateError> {
        let (owner, mut shards) = (&new.job.owner, Shards::first(new.job.job_guid, new.ceilings));
        // Job, spec, counters, the keys, and what it waits for; then the message to the splitter.
        let keys = u64::from(new.idempotency.is_some()) + u64::from(new.dedupe.is_some());
        let rows = 2 + slots_of(&new.job) as u64 + keys + new.job.awaited(&new.spec.source).len() as u64;
        let ahead = Usage::of_transaction(rows).with_sends(1);
        let usage = self.share(ahead);
        let mut backoff = Backoff::while_a_client_waits();
        for tries in 1..=TRIES {
            let mut items = vec![self.put_job(new, shards, usage)?, put_spec(DOING, &self.jobs_table, &new.spec)?];
            items.extend(self.take_slots(DOING, &new.job, new.ceilings, shards)?.into_iter().take(slots_of(&new.job)));
            if let Some(wanted) = &new.idempotency {
                let (scope, fingerprint) = (remembered_scope(owner, &wanted.key), wanted.fingerprint.clone());
                let row = KeyRow::new(scope, new.job.job_guid, fingerprint, wanted.expires_at);
                items.push(self.put_key(&row, new.job.created_at, None)?);
            }
            if let Some(wanted) = &new.dedupe {
                let scope = dedupe_scope(owner, &wanted.key);
                let row = KeyRow::new(scope, new.job.job_guid, String::new(), wanted.expires_at);
                items.push(self.put_key(&row, new.job.created_at, wanted.replaces)?);
            }
            // The last ones: no condition of theirs can fail.
            items.extend(put_awaiting(DOING, &self.jobs_table, new)?);
            let request = self.client.transact_write_items().set_transact_items(Some(items));
            // The token makes a request that is repeated after a lost reply the same transaction to DynamoDB.
            let request = request.client_request_token(shards.token(new.job.job_guid));
            match transact(DOING, request, &mut backoff).await? {
                Transacted::Applied => {
                    metrics::add(Metric::JobsCreated, 1);
                    return Ok(Created::New);
                }
                Transacted::Refused(reasons) => {
                    let refusal = self.why_refused(new, &reasons, shards, tries == TRIES).await;
                    if !matches!(refusal, Ok(Refusal::Created(Created::New) | Refusal::TryIn(_))) {
                        self.give_back(usage, ahead);
                    }
                    match refusal? {
                        Refusal::Created(created) => return Ok(created),
                        Refusal::TryIn(others) => shards = others,
                    }
                }
            }
        }
        Err(PortError::unavailable(DOING, "not admitted").into())
    }

    async fn taken(&self, owner: &Owner, job_type: &str) -> Result<SlotsTaken, PortError> {
        self.slots_taken("looking for a free slot", owner, job_type).await
    }

    async fn remembered(
        &self,
        owner: &Owner,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<(JobGuid, String)>, PortError> {
        let row = self.key_row("looking for the idempotency key", remembered_scope(owner, key)).await?;
        // DynamoDB deletes expired rows up to days late.
        let row = row.filter(|row| row.expires_at > now.as_second());
        Ok(row.map(|row| (row.job_id, row.fingerprint)))
    }

    async fn remember(
        &self,
        owner: &Owner,
        wanted: &Idempotency,
        job: JobGuid,
        now: Timestamp,
    ) -> Result<JobGuid, CreateError> {
        const DOING: &str = "remembering the idempotency key";
        let (scope, fingerprint) = (remembered_scope(owner, &wanted.key), wanted.fingerprint.clone());
        let row = KeyRow::new(scope, job, fingerprint, wanted.expires_at);
        let request = self.client.transact_write_items().transact_items(self.put_key(&row, now, None)?);
        let there = match transact(DOING, request, &mut Backoff::while_a_client_waits()).await? {
            Transacted::Applied => return Ok(job),
            // Its only item is refused.
            Transacted::Refused(reasons) => self.holder(row.scope, &reasons[0]).await?,
        };
        if there.fingerprint == wanted.fingerprint { Ok(there.job_id) } else { Err(CreateError::KeyReused) }
    }

    async fn deduped(&self, owner: &Owner, key: &str, now: Timestamp) -> Result<Option<JobGuid>, PortError> {
        let row = self.key_row("looking for the dedupe key", dedupe_scope(owner, key)).await?;
        Ok(row.filter(|row| row.expires_at > now.as_second()).map(|row| row.job_id))
    }
}

impl DynamoDbJobStore {
    /// The reasons are in the order of the items. The job's own row is checked first: if it exists, this very job was
    /// created earlier, before DynamoDB forgot the transaction. A known idempotency key is checked before a reached
    /// limit, so that a repeated request finds its job even without room for another.
    async fn why_refused(
        &self,
        new: &NewJob,
        reasons: &[CancellationReason],
        shards: Shards,
        is_last: bool,
    ) -> Result<Refusal, CreateError> {
        let failed = |place: usize| reasons.get(place).is_some_and(condition_failed);
        if failed(0) {
            return Ok(Refusal::Created(Created::New));
        }
        let keys = 2 + slots_of(&new.job);
        if let (true, Some(wanted)) = (failed(keys), &new.idempotency) {
            let there = self.holder(remembered_scope(&new.job.owner, &wanted.key), &reasons[keys]).await?;
            return match there.fingerprint == wanted.fingerprint {
                true if there.job_id == new.job.job_guid => Ok(Refusal::Created(Created::New)),
                true => Ok(Refusal::Created(Created::Before(there.job_id))),
                false => Err(CreateError::KeyReused),
            };
        }
        let place = keys + usize::from(new.idempotency.is_some());
        if let (true, Some(wanted)) = (failed(place), &new.dedupe) {
            let there = self.holder(dedupe_scope(&new.job.owner, &wanted.key), &reasons[place]).await?;
            // Another job has it, or this one after a lost reply.
            let is_ours = there.job_id == new.job.job_guid;
            return Ok(Refusal::Created(if is_ours { Created::New } else { Created::Same(there.job_id) }));
        }
        let of_slots = reasons.get(2..keys).unwrap_or_default();
        let others = self.other_shards(DOING, &new.job, new.ceilings, of_slots, shards, is_last).await?;
        others.map(Refusal::TryIn).map_err(CreateError::Full)
    }

    /// The row of a key that is taken.
    async fn holder(&self, scope: String, refused: &CancellationReason) -> Result<KeyRow, PortError> {
        let row = match &refused.item {
            Some(item) => Some(from_item(DOING, item.clone())?),
            None => self.key_row(DOING, scope).await?,
        };
        row.ok_or_else(|| PortError::unavailable(DOING, "the row of the key disappeared after the conflict with it"))
    }

    async fn key_row(&self, doing: &'static str, scope: String) -> Result<Option<KeyRow>, PortError> {
        let request = self.client.get_item().table_name(self.admission_table(doing)?).consistent_read(true);
        let output = request.key("scope", text(scope)).send().await;
        let item = output.map_err(|error| port_error(doing, error))?.item;
        item.map(|item| from_item(doing, item)).transpose()
    }

    fn put_job(&self, new: &NewJob, shards: Shards, usage: Usage) -> Result<TransactWriteItem, PortError> {
        let mut item = job_item(DOING, &Job { usage, ..new.job.clone() })?;
        add_trace(&mut item, &new.job);
        item.extend(shards.attributes(new.ceilings));
        let put = Put::builder().table_name(&self.jobs_table).set_item(Some(item));
        let put = put.condition_expression("attribute_not_exists(jobId)").build();
        Ok(TransactWriteItem::builder().put(put.map_err(|error| PortError::invalid(DOING, error))?).build())
    }

    /// Puts the row of a key if there is none, if the one there has expired, or if it names the job to replace.
    fn put_key(&self, row: &KeyRow, now: Timestamp, replaces: Option<JobGuid>) -> Result<TransactWriteItem, PortError> {
        let mut put = Put::builder()
            .table_name(self.admission_table(DOING)?)
            .set_item(Some(to_item(DOING, row)?))
            .expression_attribute_names("#scope", "scope")
            .expression_attribute_names("#expiresAt", "expiresAt")
            .expression_attribute_values(":now", number(now.as_second()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let mut condition = "attribute_not_exists(#scope) OR #expiresAt <= :now".to_owned();
        if let Some(replaces) = replaces {
            condition.push_str(" OR #jobId = :replaces");
            put = put.expression_attribute_names("#jobId", "jobId");
            put = put.expression_attribute_values(":replaces", text(replaces));
        }
        let put = put.condition_expression(condition).build();
        Ok(TransactWriteItem::builder().put(put.map_err(|error| PortError::invalid(DOING, error))?).build())
    }
}
