use std::ops::Range;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_core::ids::{JobGuid, Owner, RunId};
use rowmill_core::job::{Job, Lease, Stop, StopCode};
use rowmill_core::ports::{
    Committed, Completion, CreateError, Created, JobFilter, JobPage, JobStore, Leased, NewJob, PortError, Stopped,
    WriteLost,
};
use rowmill_core::spec::Spec;
use rowmill_core::states::Status;
use rowmill_core::tally::{CHUNKS_PER_TALLY, Commit, Tally, Totals};
use rowmill_core::text::Position;

use super::attributes::{Item, binary, number, text, time};
use super::errors::port_error;
use super::job_row::{JOB_ROW, SPEC_ROW, job_of, stop_text};
use super::tally_row::{details_expiry, mark_name, tally_item, tally_key, tally_of, totals_key, totals_of};
use super::write::{Update, Written, put_if_absent};

/// The jobs and admission tables in DynamoDB.
#[derive(Clone, Debug)]
pub struct DynamoDbJobStore {
    pub(super) client: Client,
    pub(super) jobs_table: String,
    /// None in a function that neither creates nor ends jobs.
    pub(super) admission_table: Option<String>,
}

impl DynamoDbJobStore {
    /// The store in these tables. Without an admission table, jobs can be neither created nor ended.
    pub const fn new(client: Client, jobs_table: String, admission_table: Option<String>) -> Self {
        Self { client, jobs_table, admission_table }
    }

    /// The row of this job and sort key, strongly consistent.
    async fn row(&self, doing: &'static str, job: JobGuid, row: &str) -> Result<Option<Item>, PortError> {
        let request = self.client.get_item().table_name(&self.jobs_table).consistent_read(true);
        let output = request.key("jobId", text(job)).key("row", text(row)).send().await;
        Ok(output.map_err(|error| port_error(doing, error))?.item)
    }

    fn update(&self, job: JobGuid, row: &str) -> UpdateItemFluentBuilder {
        self.client.update_item().table_name(&self.jobs_table).key("jobId", text(job)).key("row", text(row))
    }

    /// A conditional update of the job row.
    async fn move_job(
        &self,
        job: JobGuid,
        update: &Update,
        values: Vec<(&'static str, AttributeValue)>,
    ) -> Result<JobWritten, PortError> {
        Ok(match update.apply(self.update(job, JOB_ROW), values).await? {
            Written::Applied(item) => JobWritten::Applied(job_of(update.doing, item)?),
            Written::Refused(item) => JobWritten::Refused(job_of(update.doing, item)?),
        })
    }

    /// An update of an attempt's totals, which are there from their first update on.
    async fn move_totals(
        &self,
        job: JobGuid,
        attempt: u32,
        update: &Update,
        mut values: Vec<(&'static str, AttributeValue)>,
    ) -> Result<Totals, PortError> {
        values.push((":expires", number(details_expiry(job).unwrap_or(i64::from(u32::MAX)))));
        let (Written::Applied(item) | Written::Refused(item)) =
            update.apply(self.update(job, &totals_key(attempt)), values).await?;
        totals_of(update.doing, attempt, item)
    }
}

/// What became of a conditional update of the job row, with the job as it is now.
enum JobWritten {
    Applied(Job),
    Refused(Job),
}

impl From<JobWritten> for Result<Job, WriteLost> {
    fn from(written: JobWritten) -> Self {
        match written {
            JobWritten::Applied(job) => Ok(job),
            JobWritten::Refused(job) => Err(WriteLost::Condition(Box::new(job))),
        }
    }
}

/// Taking the lease of a job in any status but a terminal one. A waiting job runs from then on; a cancelling one is taken
/// up to be ended, and stays cancelling. Both are one update each, since an update cannot choose what it sets.
const TAKE_LEASE: [Update; 2] = [
    Update {
        doing: "taking the lease",
        change: "SET #leaseHolder = :holder, #leaseUntil = :until, #startedAt = if_not_exists(#startedAt, :now), \
                 #movedAt = :now, #status = :running",
        condition: "#attempt = :attempt AND #status IN (:waiting, :running) \
                    AND (attribute_not_exists(#leaseHolder) OR #leaseUntil <= :now OR #leaseHolder = :holder)",
    },
    Update {
        doing: "taking the lease",
        change: "SET #leaseHolder = :holder, #leaseUntil = :until, #startedAt = if_not_exists(#startedAt, :now), \
                 #movedAt = :now",
        condition: "#attempt = :attempt AND #status = :cancelling \
                    AND (attribute_not_exists(#leaseHolder) OR #leaseUntil <= :now OR #leaseHolder = :holder)",
    },
];

const RELEASE: Update = Update {
    doing: "releasing the lease",
    change: "REMOVE #leaseHolder, #leaseUntil",
    condition: "#leaseHolder = :holder",
};

const COUNT_TALLY: Update = Update {
    doing: "counting a tally",
    change: "SET #tallies = :next, #dispatched = :number, #cursorOffset = :offset, #cursorRow = :row, #movedAt = :now",
    condition: "#attempt = :attempt AND #leaseHolder = :holder AND #tallies = :number AND #splitDone = :false \
                AND attribute_not_exists(#stop)",
};

const PAUSE_SPLIT: Update = Update {
    doing: "pausing the split",
    change: "SET #dispatched = #tallies, #movedAt = :now REMOVE #leaseHolder, #leaseUntil",
    condition: "#attempt = :attempt AND #leaseHolder = :holder",
};

const FINISH_SPLIT: Update = Update {
    doing: "finishing the split",
    change: "SET #splitDone = :true, #dispatched = #tallies, #movedAt = :now REMOVE #leaseHolder, #leaseUntil",
    condition: "#attempt = :attempt AND #leaseHolder = :holder",
};

const STOP: Update = Update {
    doing: "stopping the job",
    change: "SET #stop = :stop, #movedAt = :now",
    condition: "#attempt = :attempt AND #status IN (:waiting, :running, :cancelling) AND attribute_not_exists(#stop)",
};

const CANCEL: Update = Update { change: "SET #stop = :stop, #movedAt = :now, #status = :cancelling", ..STOP };

const SET_FINAL: Update = Update {
    doing: "noting the number of tallies",
    change: "SET #final = :final, #expiresAt = :expires",
    condition: "",
};

const FOLD: Update = Update {
    doing: "folding a tally",
    change: "SET #expiresAt = :expires ADD #closed :numbers, #items :items, #succeeded :succeeded, #failed :failed, \
             #skipped :skipped, #bytes :bytes",
    condition: "attribute_not_exists(#closed) OR NOT contains(#closed, :number)",
};

fn status(status: Status) -> AttributeValue {
    text(status.as_str())
}

#[async_trait]
impl JobStore for DynamoDbJobStore {
    async fn create(&self, job: &NewJob) -> Result<Created, CreateError> {
        self.create_job(job).await
    }

    async fn remembered(
        &self,
        owner: &Owner,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<(JobGuid, String)>, PortError> {
        self.remembered_request(owner, key, now).await
    }

    async fn job(&self, job: JobGuid) -> Result<Job, PortError> {
        const DOING: &str = "reading the job";
        job_of(DOING, self.row(DOING, job, JOB_ROW).await?.ok_or(PortError::NotFound)?)
    }

    async fn spec(&self, job: JobGuid) -> Result<Spec, PortError> {
        const DOING: &str = "reading the spec";
        let item = self.row(DOING, job, SPEC_ROW).await?.ok_or(PortError::NotFound)?;
        let spec = item.get("spec").and_then(|spec| spec.as_s().ok());
        let spec = spec.ok_or_else(|| PortError::invalid(DOING, "the row has no spec"))?;
        serde_json::from_str(spec).map_err(|error| PortError::invalid(DOING, error))
    }

    async fn jobs(&self, owner: &Owner, filter: &JobFilter, now: Timestamp) -> Result<JobPage, PortError> {
        self.list_jobs(owner, filter, now).await
    }

    async fn lease(&self, job: JobGuid, attempt: u32, lease: Lease, now: Timestamp) -> Result<Leased, PortError> {
        let [take, take_cancelling] = &TAKE_LEASE;
        let values = vec![
            (":holder", text(lease.holder)),
            (":until", time(lease.until)),
            (":now", time(now)),
            (":attempt", number(attempt)),
        ];
        let statuses = [(":waiting", status(Status::Waiting)), (":running", status(Status::Running))];
        let taken = self.move_job(job, take, values.iter().cloned().chain(statuses).collect()).await?;
        match taken {
            JobWritten::Applied(job) => Ok(Leased::Taken(job)),
            JobWritten::Refused(seen) if seen.status == Status::Cancelling && !seen.is_past(attempt) => {
                let status = [(":cancelling", status(Status::Cancelling))];
                let taken = self.move_job(job, take_cancelling, values.into_iter().chain(status).collect()).await?;
                Ok(match taken {
                    JobWritten::Applied(job) => Leased::Taken(job),
                    JobWritten::Refused(job) => Leased::Refused(job),
                })
            }
            JobWritten::Refused(job) => Ok(Leased::Refused(job)),
        }
    }

    async fn release(&self, job: JobGuid, holder: RunId) -> Result<(), PortError> {
        match self.move_job(job, &RELEASE, vec![(":holder", text(holder))]).await {
            Ok(_) | Err(PortError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn put_tally(&self, job: JobGuid, tally: &Tally) -> Result<(), PortError> {
        const DOING: &str = "putting a tally";
        let item = tally_item(DOING, job, tally)?;
        let request = self.client.put_item().table_name(&self.jobs_table).set_item(Some(item));
        put_if_absent(DOING, request, "jobId").await?;
        Ok(())
    }

    async fn count_tally(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        tally: u32,
        next: Position,
        now: Timestamp,
    ) -> Result<(), WriteLost> {
        let values = vec![
            (":attempt", number(attempt)),
            (":holder", text(holder)),
            (":number", number(tally)),
            (":next", number(i64::from(tally) + 1)),
            (":offset", number(next.offset)),
            (":row", number(next.row)),
            (":now", time(now)),
            (":false", AttributeValue::Bool(false)),
        ];
        Result::from(self.move_job(job, &COUNT_TALLY, values).await?).map(drop)
    }

    async fn pause_split(&self, job: JobGuid, attempt: u32, holder: RunId, now: Timestamp) -> Result<(), WriteLost> {
        let values = vec![(":attempt", number(attempt)), (":holder", text(holder)), (":now", time(now))];
        Result::from(self.move_job(job, &PAUSE_SPLIT, values).await?).map(drop)
    }

    async fn finish_split(&self, job: JobGuid, attempt: u32, holder: RunId, now: Timestamp) -> Result<Job, WriteLost> {
        let values = vec![
            (":attempt", number(attempt)),
            (":holder", text(holder)),
            (":now", time(now)),
            (":true", AttributeValue::Bool(true)),
        ];
        self.move_job(job, &FINISH_SPLIT, values).await?.into()
    }

    async fn stop(&self, job: JobGuid, attempt: u32, stop: &Stop) -> Result<Stopped, PortError> {
        let update = if stop.code == StopCode::Cancelled { &CANCEL } else { &STOP };
        let text_of_stop = stop_text(stop).map_err(|error| PortError::invalid(update.doing, error))?;
        let values = vec![
            (":attempt", number(attempt)),
            (":stop", text(text_of_stop)),
            (":now", time(stop.at)),
            (":waiting", status(Status::Waiting)),
            (":running", status(Status::Running)),
            (":cancelling", status(Status::Cancelling)),
        ];
        Ok(match self.move_job(job, update, values).await? {
            JobWritten::Applied(job) => Stopped::Now(job),
            // Our own stop, whose reply was lost.
            JobWritten::Refused(job) if !job.is_past(attempt) && job.stop.as_ref() == Some(stop) => Stopped::Now(job),
            JobWritten::Refused(job) => Stopped::Not(job),
        })
    }

    async fn set_final_tallies(&self, job: JobGuid, attempt: u32, tallies: u32) -> Result<Totals, PortError> {
        self.move_totals(job, attempt, &SET_FINAL, vec![(":final", number(tallies))]).await
    }

    async fn commit(&self, job: JobGuid, commit: &Commit) -> Result<Committed, PortError> {
        const DOING: &str = "committing a chunk";
        let chunk = commit.chunk;
        let index = usize::from(chunk.index);
        if index >= CHUNKS_PER_TALLY {
            return Err(PortError::invalid(DOING, format!("a tally has no place {index}")));
        }
        let update = Update {
            doing: DOING,
            change: "SET #mark = :mark, #at = :at ADD #done :one, #succeeded :succeeded, #failed :failed, \
                     #skipped :skipped, #bytes :bytes",
            condition: "attribute_exists(#expected) AND attribute_not_exists(#mark) AND #done < #expected",
        };
        let values = [
            (":mark", binary(commit.mark.to_bytes())),
            (":at", time(commit.at)),
            (":one", number(1)),
            (":succeeded", number(commit.counts.succeeded)),
            (":failed", number(commit.counts.failed)),
            (":skipped", number(commit.counts.skipped)),
            (":bytes", number(commit.bytes)),
        ];
        let request = self.update(job, &tally_key(chunk.attempt, chunk.tally));
        match update.apply_to_mark(request, values, mark_name(index)).await? {
            Written::Applied(item) => Ok(Committed::Won(tally_of(DOING, item)?)),
            Written::Refused(item) => {
                let tally = tally_of(DOING, item)?;
                // Our own mark is our own commit, whose reply was lost.
                let own = tally.mark(chunk.index).is_some_and(|mark| mark.run == commit.mark.run);
                Ok(if own { Committed::Won(tally) } else { Committed::Lost(tally) })
            }
        }
    }

    async fn skip_rest(&self, job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError> {
        let update = Update {
            doing: "closing a tally",
            change: "SET #done = #expected, #at = :at ADD #skipped :rest",
            condition: "attribute_exists(#expected) AND #done = :done",
        };
        let rest = seen.items.saturating_sub(seen.counts.sum());
        let values = [(":done", number(seen.done)), (":at", time(at)), (":rest", number(rest))];
        let request = self.update(job, &tally_key(seen.attempt, seen.number));
        match update.apply(request, values).await? {
            Written::Applied(item) | Written::Refused(item) => tally_of(update.doing, item),
        }
    }

    async fn tally(&self, job: JobGuid, attempt: u32, tally: u32) -> Result<Tally, PortError> {
        const DOING: &str = "reading a tally";
        let item = self.row(DOING, job, &tally_key(attempt, tally)).await?;
        tally_of(DOING, item.ok_or(PortError::NotFound)?)
    }

    async fn tallies(&self, job: JobGuid, attempt: u32, numbers: Range<u32>) -> Result<Vec<Tally>, PortError> {
        const DOING: &str = "reading the tallies";
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let pages = self
            .client
            .query()
            .table_name(&self.jobs_table)
            .consistent_read(true)
            .key_condition_expression("#job = :job AND #row BETWEEN :first AND :last")
            .expression_attribute_names("#job", "jobId")
            .expression_attribute_names("#row", "row")
            .expression_attribute_values(":job", text(job))
            .expression_attribute_values(":first", text(tally_key(attempt, numbers.start)))
            .expression_attribute_values(":last", text(tally_key(attempt, numbers.end - 1)))
            .into_paginator();
        let items = pages.items().send().collect::<Result<Vec<Item>, _>>().await;
        let items = items.map_err(|error| port_error(DOING, error))?;
        items.into_iter().map(|item| tally_of(DOING, item)).collect()
    }

    async fn fold(&self, job: JobGuid, tally: &Tally) -> Result<Totals, PortError> {
        debug_assert!(tally.is_closed(), "an open tally may still move");
        let values = vec![
            (":number", number(tally.number)),
            (":numbers", AttributeValue::Ns(vec![tally.number.to_string()])),
            (":items", number(tally.items)),
            (":succeeded", number(tally.counts.succeeded)),
            (":failed", number(tally.counts.failed)),
            (":skipped", number(tally.counts.skipped)),
            (":bytes", number(tally.bytes)),
        ];
        self.move_totals(job, tally.attempt, &FOLD, values).await
    }

    async fn totals(&self, job: JobGuid, attempt: u32) -> Result<Totals, PortError> {
        const DOING: &str = "reading the totals";
        let item = self.row(DOING, job, &totals_key(attempt)).await?;
        totals_of(DOING, attempt, item.unwrap_or_default())
    }

    async fn complete(&self, completion: &Completion) -> Result<(), WriteLost> {
        self.complete_attempt(completion).await
    }
}
