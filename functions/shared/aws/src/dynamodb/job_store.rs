use std::ops::Range;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::dead_letter::DeadLetter;
use rowmill_core::model::ids::{JobGuid, Owner, RunId};
use rowmill_core::model::job::{Job, Lease, Stop, StopCode};
use rowmill_core::model::spec::Spec;
use rowmill_core::model::states::Status;
use rowmill_core::model::tally::{ChunkAddress, Commit, Tally, Totals};
use rowmill_core::ports::{
    CheckpointMoved, Committed, Completion, CreateError, Created, Due, JobFilter, JobPage, JobStore, Leased,
    NewAttempt, NewJob, PortError, RedriveError, Stopped, WriteLost,
};
use rowmill_core::text::Position;

use super::attributes::{Item, number, text, time};
use super::errors::port_error;
use super::job_row::{JOB_ROW, SPEC_ROW, job_of, stop_text, wake_shard};
use super::write::{Update, Written};

/// The jobs and admission tables in DynamoDB.
#[derive(Clone, Debug)]
pub struct DynamoDbJobStore {
    pub(super) client: Client,
    pub(super) jobs_table: String,
    /// None in a function that neither begins nor ends attempts.
    pub(super) admission_table: Option<String>,
}

impl DynamoDbJobStore {
    /// The store in these tables. Without an admission table, attempts can be neither begun nor ended.
    pub const fn new(client: Client, jobs_table: String, admission_table: Option<String>) -> Self {
        Self { client, jobs_table, admission_table }
    }

    /// The row of this job and sort key, strongly consistent.
    pub(super) async fn row(&self, doing: &'static str, job: JobGuid, row: &str) -> Result<Option<Item>, PortError> {
        let request = self.client.get_item().table_name(&self.jobs_table).consistent_read(true);
        let output = request.key("jobId", text(job)).key("row", text(row)).send().await;
        Ok(output.map_err(|error| port_error(doing, error))?.item)
    }

    /// An update of the row of this job and sort key.
    pub(super) fn update(&self, job: JobGuid, row: &str) -> UpdateItemFluentBuilder {
        self.client.update_item().table_name(&self.jobs_table).key("jobId", text(job)).key("row", text(row))
    }

    /// A conditional update of the job row.
    pub(super) async fn move_job(
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
}

/// What became of a conditional update of the job row, with the job as it is now.
pub(super) enum JobWritten {
    /// It was applied.
    Applied(Job),
    /// Its condition did not hold.
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
    change: "SET #splitDone = :true, #atEnd = :atEnd, #dispatched = #tallies, #movedAt = :now REMOVE #leaseHolder, #leaseUntil",
    condition: "#attempt = :attempt AND #leaseHolder = :holder",
};

const PAUSE_COMPOSITION: Update = Update {
    doing: "pausing the composition",
    change: "SET #composing = :state, #movedAt = :now REMOVE #leaseHolder, #leaseUntil",
    condition: "#attempt = :attempt AND #leaseHolder = :holder",
};

const STOP: Update = Update {
    doing: "stopping the job",
    change: "SET #stop = :stop, #movedAt = :now, #wakeShard = :shard, #wakeAt = :now",
    condition: "#attempt = :attempt AND #status IN (:waiting, :running, :cancelling) AND attribute_not_exists(#stop)",
};

const CANCEL: Update = Update {
    change: "SET #stop = :stop, #movedAt = :now, #wakeShard = :shard, #wakeAt = :now, #status = :cancelling",
    ..STOP
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

    async fn put_tally(&self, job: JobGuid, tally: &Tally) -> Result<Tally, PortError> {
        self.put_tally_row(job, tally).await
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

    async fn finish_split(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        at_end: bool,
        now: Timestamp,
    ) -> Result<Job, WriteLost> {
        let values = vec![
            (":attempt", number(attempt)),
            (":holder", text(holder)),
            (":now", time(now)),
            (":true", AttributeValue::Bool(true)),
            (":atEnd", AttributeValue::Bool(at_end)),
        ];
        self.move_job(job, &FINISH_SPLIT, values).await?.into()
    }

    async fn pause_composition(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        state: RunId,
        now: Timestamp,
    ) -> Result<(), WriteLost> {
        let values = vec![
            (":attempt", number(attempt)),
            (":holder", text(holder)),
            (":state", text(state)),
            (":now", time(now)),
        ];
        Result::from(self.move_job(job, &PAUSE_COMPOSITION, values).await?).map(drop)
    }

    async fn stop(&self, job: JobGuid, attempt: u32, stop: &Stop) -> Result<Stopped, PortError> {
        let update = if stop.code == StopCode::Cancelled { &CANCEL } else { &STOP };
        let text_of_stop = stop_text(stop).map_err(|error| PortError::invalid(update.doing, error))?;
        let values = vec![
            (":attempt", number(attempt)),
            (":stop", text(text_of_stop)),
            (":now", time(stop.at)),
            (":shard", number(wake_shard(job))),
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
        self.note_final_tallies(job, attempt, tallies).await
    }

    async fn commit(&self, job: JobGuid, commit: &Commit) -> Result<Committed, PortError> {
        self.commit_chunk(job, commit).await
    }

    async fn skip_rest(&self, job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError> {
        self.close_tally(job, seen, at).await
    }

    async fn tally(&self, job: JobGuid, attempt: u32, number: u32) -> Result<Tally, PortError> {
        self.read_tally(job, attempt, number).await
    }

    async fn tallies(&self, job: JobGuid, attempt: u32, numbers: Range<u32>) -> Result<Vec<Tally>, PortError> {
        self.read_tallies(job, attempt, numbers).await
    }

    async fn fold(&self, job: JobGuid, tally: &Tally) -> Result<Totals, PortError> {
        self.fold_tally(job, tally).await
    }

    async fn totals(&self, job: JobGuid, attempt: u32) -> Result<Totals, PortError> {
        self.read_totals(job, attempt).await
    }

    async fn touch(&self, job: JobGuid, attempt: u32, tally: u32, at: Timestamp) -> Result<(), PortError> {
        self.touch_tally(job, attempt, tally, at).await
    }

    async fn checkpoint(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError> {
        self.read_checkpoint(job, chunk).await
    }

    async fn move_checkpoint(&self, job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError> {
        self.swap_checkpoint(job, moved).await
    }

    async fn record_dead_letter(&self, job: JobGuid, letter: &DeadLetter) -> Result<(), PortError> {
        self.put_dead_letter(job, letter).await
    }

    async fn dead_letters(&self, job: JobGuid, limit: usize) -> Result<Vec<DeadLetter>, PortError> {
        self.list_dead_letters(job, limit).await
    }

    async fn due(&self, shard: u32, now: Timestamp, limit: usize) -> Result<Vec<Due>, PortError> {
        self.list_due(shard, now, limit).await
    }

    async fn wake_later(&self, due: Due, next: Timestamp, recoveries: u32) -> Result<Option<Job>, PortError> {
        self.claim(due, next, recoveries).await
    }

    async fn redrive(&self, attempt: &NewAttempt) -> Result<Job, RedriveError> {
        self.begin_attempt(attempt).await
    }

    async fn complete(&self, completion: &Completion) -> Result<(), WriteLost> {
        self.complete_attempt(completion).await
    }
}
