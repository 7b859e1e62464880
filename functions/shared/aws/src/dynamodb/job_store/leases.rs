use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::job::Lease;
use rowmill_core::model::job::states::Status;
use rowmill_core::ports::{Leased, Leases, PortError};

use super::job_row::status_value;
use super::{DynamoDbJobStore, JobWritten};
use crate::dynamodb::attributes::{number, text, time};
use crate::dynamodb::write::Update;
use crate::metrics::{self, Metric};

/// Takes the lease of a job that has not ended. The first update is for a waiting or running job, which runs from then on;
/// the second for a cancelling job, and for a paused one whose split has ended: these keep their status. They are two
/// updates, since one cannot choose what it sets.
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
        condition: "#attempt = :attempt AND (#status = :cancelling OR (#status = :paused AND #splitDone = :true)) \
                    AND (attribute_not_exists(#leaseHolder) OR #leaseUntil <= :now OR #leaseHolder = :holder)",
    },
];

const RELEASE: Update = Update {
    doing: "releasing the lease",
    change: "REMOVE #leaseHolder, #leaseUntil",
    condition: "#leaseHolder = :holder",
};

#[async_trait]
impl Leases for DynamoDbJobStore {
    async fn lease(&self, job: JobGuid, attempt: u32, lease: Lease, now: Timestamp) -> Result<Leased, PortError> {
        let [take, take_to_end] = &TAKE_LEASE;
        let values = vec![
            (":holder", text(lease.holder)),
            (":until", time(lease.until)),
            (":now", time(now)),
            (":attempt", number(attempt)),
        ];
        let statuses = [(":waiting", status_value(Status::Waiting)), (":running", status_value(Status::Running))];
        let taken = self.move_job(job, take, values.iter().cloned().chain(statuses).collect()).await?;
        match taken {
            JobWritten::Applied(job) => {
                // Set by this write, not by an earlier one. A redrive leaves it as it is.
                let is_first = job.started_at.map(|at| at.as_millisecond()) == Some(now.as_millisecond());
                metrics::add_any(Metric::JobsStarted, is_first.into());
                Ok(Leased::Taken(job))
            }
            JobWritten::Refused(seen)
                if matches!(seen.status, Status::Cancelling | Status::Paused) && seen.may_be_leased(attempt) =>
            {
                let status = [
                    (":cancelling", status_value(Status::Cancelling)),
                    (":paused", status_value(Status::Paused)),
                    (":true", AttributeValue::Bool(true)),
                ];
                let taken = self.move_job(job, take_to_end, values.into_iter().chain(status).collect()).await?;
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
}
