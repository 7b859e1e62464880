use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_core::model::breaker::BreakerPause;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::model::job::states::Status;
use rowmill_core::ports::{Pauses, PortError, Resent, WriteLost};

use super::job_row::{breaker_pause_text, status_value, wake_shard};
use super::{DynamoDbJobStore, JobWritten};
use crate::dynamodb::attributes::{number, text, time};
use crate::dynamodb::write::Update;

const PAUSE: Update = Update {
    doing: "pausing the job",
    change: "SET #pausedFrom = #status, #status = :paused, #movedAt = :now REMOVE #resendFrom ADD #pauses :one",
    condition: "#attempt = :attempt AND #status IN (:waiting, :running) AND attribute_not_exists(#stop)",
};

const PAUSE_BY_BREAKER: Update = Update {
    change: "SET #pausedFrom = #status, #status = :paused, #movedAt = :now, #breakerPause = :reason, \
             #wakeShard = :shard, #wakeAt = :look REMOVE #resendFrom ADD #pauses :one",
    ..PAUSE
};

/// For a job that the breaker has paused: from then on it is paused by its owner.
const TAKE_OVER: Update = Update {
    change: "SET #movedAt = :now REMOVE #breakerPause ADD #pauses :one",
    condition: "#attempt = :attempt AND #status = :paused AND attribute_exists(#breakerPause)",
    ..PAUSE
};

const RESUME: Update = Update {
    doing: "resuming the job",
    change: "SET #status = #pausedFrom, #resendFrom = :zero, #movedAt = :now, #wakeShard = :shard, #wakeAt = :now \
             REMOVE #pausedFrom, #breakerPause, #recoveries ADD #pauses :one",
    condition: "#attempt = :attempt AND #status = :paused",
};

const RESUME_BY_BREAKER: Update = Update {
    condition: "#attempt = :attempt AND #status = :paused AND #pauses = :pauses AND attribute_exists(#breakerPause)",
    ..RESUME
};

const NOTE_RESENT: Update = Update {
    doing: "noting which chunks are sent again",
    change: "SET #resendFrom = :next, #movedAt = :now",
    condition: "#pauses = :pauses AND #resendFrom = :from",
};

const NOTE_ALL_RESENT: Update = Update { change: "SET #movedAt = :now REMOVE #resendFrom", ..NOTE_RESENT };

#[async_trait]
impl Pauses for DynamoDbJobStore {
    async fn pause(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost> {
        match self.move_job(job, &PAUSE, pause_values(attempt, now)).await? {
            JobWritten::Refused(seen)
                if seen.attempt == attempt && seen.is_paused() && seen.breaker_pause.is_some() =>
            {
                self.take_over(job, attempt, now).await
            }
            JobWritten::Refused(job) if job.attempt == attempt && job.is_paused() => Ok(job),
            written => written.into(),
        }
    }

    async fn pause_by_breaker(
        &self,
        job: JobGuid,
        attempt: u32,
        pause: &BreakerPause,
        look_at: Timestamp,
    ) -> Result<Job, WriteLost> {
        let reason = breaker_pause_text(pause).map_err(|error| PortError::invalid(PAUSE.doing, error))?;
        let mut values = pause_values(attempt, pause.at);
        values.extend([(":look", time(look_at)), (":reason", text(reason)), (":shard", number(wake_shard(job)))]);
        match self.move_job(job, &PAUSE_BY_BREAKER, values).await? {
            JobWritten::Refused(job) if job.attempt == attempt && job.is_paused() => Ok(job),
            written => written.into(),
        }
    }

    async fn resume(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost> {
        self.move_job(job, &RESUME, resume_values(job, attempt, now)).await?.into()
    }

    async fn resume_by_breaker(
        &self,
        job: JobGuid,
        attempt: u32,
        pauses: u32,
        now: Timestamp,
    ) -> Result<Job, WriteLost> {
        let mut values = resume_values(job, attempt, now);
        values.push((":pauses", number(pauses)));
        self.move_job(job, &RESUME_BY_BREAKER, values).await?.into()
    }

    async fn note_resent(&self, job: JobGuid, resent: Resent, now: Timestamp) -> Result<bool, PortError> {
        let mut values = vec![(":pauses", number(resent.pauses)), (":from", number(resent.from)), (":now", time(now))];
        let update = match resent.next {
            Some(next) => {
                values.push((":next", number(next)));
                &NOTE_RESENT
            }
            None => &NOTE_ALL_RESENT,
        };
        Ok(match self.move_job(job, update, values).await? {
            JobWritten::Applied(_) => true,
            JobWritten::Refused(job) => resent.was_noted(&job),
        })
    }
}

impl DynamoDbJobStore {
    async fn take_over(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost> {
        let values = vec![
            (":attempt", number(attempt)),
            (":now", time(now)),
            (":one", number(1)),
            (":paused", status_value(Status::Paused)),
        ];
        match self.move_job(job, &TAKE_OVER, values).await? {
            // Its own write, whose reply was lost, or another request's.
            JobWritten::Refused(job) if job.attempt == attempt && job.is_paused() => Ok(job),
            written => written.into(),
        }
    }
}

fn pause_values(attempt: u32, now: Timestamp) -> Vec<(&'static str, AttributeValue)> {
    vec![
        (":attempt", number(attempt)),
        (":now", time(now)),
        (":one", number(1)),
        (":waiting", status_value(Status::Waiting)),
        (":running", status_value(Status::Running)),
        (":paused", status_value(Status::Paused)),
    ]
}

fn resume_values(job: JobGuid, attempt: u32, now: Timestamp) -> Vec<(&'static str, AttributeValue)> {
    vec![
        (":attempt", number(attempt)),
        (":now", time(now)),
        (":one", number(1)),
        (":zero", number(0)),
        (":shard", number(wake_shard(job))),
        (":paused", status_value(Status::Paused)),
    ]
}
