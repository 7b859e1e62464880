use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_api::cost::Usage;
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job::{Job, JobWarning};
use rowmill_core::ports::{PortError, Splits, WriteLost};
use rowmill_core::text::Position;

use super::DynamoDbJobStore;
use super::job_row::{status_value, warnings_value};
use super::usage_row::{add_usage, usage_values};
use crate::dynamodb::attributes::{number, text, time};
use crate::dynamodb::write::Update;

const COUNT_TALLY: Update = Update {
    doing: "counting a tally",
    change: concat!(
        "SET #tallies = :next, #dispatched = :number, #cursorOffset = :offset, #cursorRow = :row, #movedAt = :now ADD ",
        add_usage!()
    ),
    condition: "#attempt = :attempt AND #leaseHolder = :holder AND #tallies = :number AND #splitDone = :false \
                AND attribute_not_exists(#stop) AND #status <> :paused",
};

const WARN: Update = Update {
    doing: "noting the warnings",
    change: "SET #warnings = :warnings, #movedAt = :now",
    condition: "#attempt = :attempt AND #leaseHolder = :holder",
};

const PAUSE_SPLIT: Update = Update {
    doing: "pausing the split",
    change: concat!("SET #dispatched = #tallies, #movedAt = :now REMOVE #leaseHolder, #leaseUntil ADD ", add_usage!()),
    condition: "#attempt = :attempt AND #leaseHolder = :holder",
};

const FINISH_SPLIT: Update = Update {
    doing: "finishing the split",
    change: concat!(
        "SET #splitDone = :true, #atEnd = :atEnd, #dispatched = #tallies, #movedAt = :now \
         REMOVE #leaseHolder, #leaseUntil ADD ",
        add_usage!()
    ),
    condition: "#attempt = :attempt AND #leaseHolder = :holder",
};

#[async_trait]
impl Splits for DynamoDbJobStore {
    async fn count_tally(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        tally: u32,
        next: Position,
        now: Timestamp,
    ) -> Result<(), WriteLost> {
        let mut values = vec![
            (":attempt", number(attempt)),
            (":holder", text(holder)),
            (":number", number(tally)),
            (":next", number(i64::from(tally) + 1)),
            (":offset", number(next.offset)),
            (":row", number(next.row)),
            (":now", time(now)),
            (":false", AttributeValue::Bool(false)),
            (":paused", status_value(Status::Paused)),
        ];
        values.extend(usage_values(self.share(Usage::of_row_writes(1))));
        Result::from(self.move_job(job, &COUNT_TALLY, values).await?).map(drop)
    }

    async fn warn(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        warnings: &[JobWarning],
        now: Timestamp,
    ) -> Result<(), WriteLost> {
        let warnings = warnings_value(warnings).map_err(|error| PortError::invalid(WARN.doing, error))?;
        let values = vec![
            (":attempt", number(attempt)),
            (":holder", text(holder)),
            (":warnings", warnings),
            (":now", time(now)),
        ];
        Result::from(self.move_job(job, &WARN, values).await?).map(drop)
    }

    async fn pause_split(&self, job: JobGuid, attempt: u32, holder: RunId, now: Timestamp) -> Result<(), WriteLost> {
        let mut values = vec![(":attempt", number(attempt)), (":holder", text(holder)), (":now", time(now))];
        // The message to the next invocation follows.
        values.extend(usage_values(self.share(Usage::of_row_writes(1).with_sends(1))));
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
        let mut values = vec![
            (":attempt", number(attempt)),
            (":holder", text(holder)),
            (":now", time(now)),
            (":true", AttributeValue::Bool(true)),
            (":atEnd", AttributeValue::Bool(at_end)),
        ];
        // The number of tallies is written to the totals next.
        values.extend(usage_values(self.share(Usage::of_row_writes(2))));
        self.move_job(job, &FINISH_SPLIT, values).await?.into()
    }
}
