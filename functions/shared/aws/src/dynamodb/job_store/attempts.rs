use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::{CancellationReason, TransactWriteItem};
use jiff::Timestamp;
use rowmill_api::cost::Usage;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job::{Job, Priority, Stop, StopCode};
use rowmill_core::ports::{Attempts, Jobs, NewAttempt, PortError, RedriveError, Stopped};

use super::job_row::{job_item, job_key, job_of, status_value, stop_text, wake_shard};
use super::slots::{Shards, TRIES};
use super::usage_row::{add_usage, usage_values};
use super::{DynamoDbJobStore, JobWritten};
use crate::dynamodb::attributes::{number, text, time};
use crate::dynamodb::transact::{RowUpdate, Transacted, condition_failed, transact};
use crate::dynamodb::write::Update;
use crate::metrics::{self, Metric};
use crate::retry::Pauses;

const STOP: Update = Update {
    doing: "stopping the job",
    change: "SET #stop = :stop, #movedAt = :now, #wakeShard = :shard, #wakeAt = :now",
    condition: "#attempt = :attempt AND #status IN (:waiting, :running, :cancelling) AND attribute_not_exists(#stop)",
};

/// For a paused job: a stop ends the pause.
const STOP_PAUSED: Update = Update {
    change: "SET #stop = :stop, #movedAt = :now, #wakeShard = :shard, #wakeAt = :now, #status = #pausedFrom \
             REMOVE #pausedFrom, #breakerPause",
    condition: "#attempt = :attempt AND #status = :paused AND attribute_not_exists(#stop)",
    ..STOP
};

const CANCEL_PAUSED: Update = Update {
    change: "SET #stop = :stop, #movedAt = :now, #wakeShard = :shard, #wakeAt = :now, #status = :cancelling \
             REMOVE #pausedFrom, #breakerPause",
    ..STOP_PAUSED
};

/// These are for the lack of capacity: no chunk has begun.
const STOP_UNBEGUN: Update = Update {
    condition: "#attempt = :attempt AND #status IN (:waiting, :running, :cancelling) AND attribute_not_exists(#stop) \
                AND attribute_not_exists(#firstChunkAt)",
    ..STOP
};

const STOP_PAUSED_UNBEGUN: Update = Update {
    condition: "#attempt = :attempt AND #status = :paused AND attribute_not_exists(#stop) \
                AND attribute_not_exists(#firstChunkAt)",
    ..STOP_PAUSED
};

const NOTE_FIRST_CHUNK: Update = Update {
    doing: "noting the first chunk",
    change: "SET #firstChunkAt = :now",
    condition: "#attempt = :attempt AND #status = :running AND attribute_not_exists(#stop) \
                AND attribute_not_exists(#firstChunkAt)",
};

/// How often a stop is written again because the job was paused or resumed since it was read.
const STOP_TRIES: usize = 4;

const CANCEL: Update = Update {
    change: "SET #stop = :stop, #movedAt = :now, #wakeShard = :shard, #wakeAt = :now, #status = :cancelling",
    ..STOP
};

const REDRIVING: &str = "starting the job's next attempt";

/// The attributes of the job row that a redrive sets, to their values in the row of [`NewAttempt::job`]. All others that it
/// does not remove stay unchanged, also those that a newer version may have written.
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
const REMOVE: &str = "REMOVE #outcome, #leaseHolder, #leaseUntil, #stop, #composing, #recoveries, #firstChunkAt, #pausedFrom, \
     #breakerPause, #resendFrom, #finishedAt, #expiresAt";

/// What a refused transaction means.
enum Refusal {
    /// This very redrive was applied before.
    Begun(Box<Job>),
    /// The counters of other shards have room.
    TryIn(Shards),
}

const AS_SEEN: &str = "#status = :seenStatus AND #attempt = :seenAttempt";

#[async_trait]
impl Attempts for DynamoDbJobStore {
    async fn stop(&self, job: JobGuid, attempt: u32, stop: &Stop) -> Result<Stopped, PortError> {
        let is_cancel = stop.code == StopCode::Cancelled;
        let text_of_stop = stop_text(stop).map_err(|error| PortError::invalid(STOP.doing, error))?;
        let values = vec![
            (":attempt", number(attempt)),
            (":stop", text(text_of_stop)),
            (":now", time(stop.at)),
            (":shard", number(wake_shard(job))),
        ];
        let status = |name, status| (name, status_value(status));
        let mut is_paused = false;
        for _ in 0..STOP_TRIES {
            let mut values = values.clone();
            let update = match (is_paused, stop.code) {
                (false, StopCode::Cancelled) => &CANCEL,
                (false, StopCode::CapacityExceeded) => &STOP_UNBEGUN,
                (false, _) => &STOP,
                (true, StopCode::Cancelled) => &CANCEL_PAUSED,
                (true, StopCode::CapacityExceeded) => &STOP_PAUSED_UNBEGUN,
                (true, _) => &STOP_PAUSED,
            };
            if is_paused {
                values.push(status(":paused", Status::Paused));
            } else {
                values.push(status(":waiting", Status::Waiting));
                values.push(status(":running", Status::Running));
            }
            if is_cancel || !is_paused {
                values.push(status(":cancelling", Status::Cancelling));
            }
            match self.move_job(job, update, values).await? {
                JobWritten::Applied(job) => return Ok(Stopped::Now(job)),
                JobWritten::Refused(job) if job.is_past(attempt) => return Ok(Stopped::Not(job)),
                // Our own stop: its reply was lost.
                JobWritten::Refused(job) if job.stop.as_ref() == Some(stop) => return Ok(Stopped::Now(job)),
                JobWritten::Refused(job) if job.stop.is_some() => return Ok(Stopped::Not(job)),
                JobWritten::Refused(job) if stop.code == StopCode::CapacityExceeded && job.first_chunk_at.is_some() => {
                    return Ok(Stopped::Not(job));
                }
                JobWritten::Refused(job) => is_paused = job.is_paused(),
            }
        }
        Err(PortError::unavailable(STOP.doing, "the job is paused and resumed all the time"))
    }

    async fn note_first_chunk(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, PortError> {
        let values =
            vec![(":attempt", number(attempt)), (":now", time(now)), (":running", status_value(Status::Running))];
        Ok(match self.move_job(job, &NOTE_FIRST_CHUNK, values).await? {
            JobWritten::Applied(job) => {
                // When a redrive was asked for is not stored. The time of a pause is the owner's own. Low jobs may wait.
                if job.attempt == 1 && job.pauses == 0 && job.priority != Priority::Low {
                    let delay = Duration::try_from(now.duration_since(job.created_at));
                    metrics::time(Metric::DispatchDelay, delay.unwrap_or_default());
                }
                job
            }
            JobWritten::Refused(job) => job,
        })
    }

    async fn redrive(&self, attempt: &NewAttempt) -> Result<Job, RedriveError> {
        let seen = &attempt.seen;
        if !seen.status.is_terminal() {
            return Err(RedriveError::Moved(Box::new(self.job(seen.job_guid).await?)));
        }
        let next = attempt.job();
        let mut shards = Shards::first(seen.job_guid, attempt.ceilings);
        // The job and three counters; then the message to the splitter.
        let usage = self.share(Usage::of_transaction(4).with_sends(1));
        let mut pauses = Pauses::while_a_client_waits();
        for tries in 1..=TRIES {
            let mut items = vec![self.move_to_attempt(seen, &next, shards, usage)?];
            items.extend(self.take_slots(REDRIVING, seen, attempt.ceilings, shards)?);
            let request = self.client.transact_write_items().set_transact_items(Some(items));
            match transact(REDRIVING, request, &mut pauses).await? {
                Transacted::Applied => {
                    metrics::add(Metric::JobsRedriven, 1);
                    return Ok(next);
                }
                Transacted::Refused(reasons) => {
                    match self.why_not_begun(attempt, &reasons, shards, tries == TRIES).await? {
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
    /// The reasons are in the order of the items. That the job has moved on is checked before a reached limit: this redrive
    /// itself may have moved it, and its own slot may fill the limit.
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
        seen: &Job,
        next: &Job,
        shards: Shards,
        usage: Usage,
    ) -> Result<TransactWriteItem, PortError> {
        let mut next = job_item(REDRIVING, next)?;
        let set = SET.iter().filter_map(|name| Some((format!(":{name}"), next.remove(*name)?)));
        let mut values: Vec<_> = set.collect();
        values.push((":seenStatus".to_owned(), text(seen.status.as_str())));
        values.push((":seenAttempt".to_owned(), number(seen.attempt)));
        let of_shards = shards.attributes();
        let set = SET.into_iter().chain(of_shards.iter().map(|(name, _)| name.as_str()));
        let set: Vec<String> = set.map(|name| format!("#{name} = :{name}")).collect();
        let change = format!("SET {} {REMOVE} ADD {}", set.join(", "), add_usage!());
        values.extend(usage_values(usage).map(|(name, units)| (name.to_owned(), units)));
        values.extend(of_shards.into_iter().map(|(name, shard)| (format!(":{name}"), shard)));
        let key = job_key(seen.job_guid);
        RowUpdate { table: &self.jobs_table, key, change: &change, condition: AS_SEEN }.with(REDRIVING, values)
    }
}
