use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::model::states::Status;
use rowmill_core::ports::{Pauses, PortError, Resent, WriteLost};

use super::job_row::{status_value, wake_shard};
use super::{DynamoDbJobStore, JobWritten};
use crate::dynamodb::attributes::{number, time};
use crate::dynamodb::write::Update;

const PAUSE: Update = Update {
    doing: "pausing the job",
    change: "SET #pausedFrom = #status, #status = :paused, #movedAt = :now REMOVE #resendFrom ADD #pauses :one",
    condition: "#attempt = :attempt AND #status IN (:waiting, :running) AND attribute_not_exists(#stop)",
};

const RESUME: Update = Update {
    doing: "resuming the job",
    change: "SET #status = #pausedFrom, #resendFrom = :zero, #movedAt = :now, #wakeShard = :shard, #wakeAt = :now \
             REMOVE #pausedFrom, #recoveries ADD #pauses :one",
    condition: "#attempt = :attempt AND #status = :paused",
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
        let values = vec![
            (":attempt", number(attempt)),
            (":now", time(now)),
            (":one", number(1)),
            (":waiting", status_value(Status::Waiting)),
            (":running", status_value(Status::Running)),
            (":paused", status_value(Status::Paused)),
        ];
        match self.move_job(job, &PAUSE, values).await? {
            JobWritten::Refused(job) if job.attempt == attempt && job.is_paused() => Ok(job),
            written => written.into(),
        }
    }

    async fn resume(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost> {
        let values = vec![
            (":attempt", number(attempt)),
            (":now", time(now)),
            (":one", number(1)),
            (":zero", number(0)),
            (":shard", number(wake_shard(job))),
            (":paused", status_value(Status::Paused)),
        ];
        self.move_job(job, &RESUME, values).await?.into()
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
