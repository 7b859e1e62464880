use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::tally::ChunkAddress;
use rowmill_core::ports::{CheckpointMoved, Checkpoints, PortError};

use super::DynamoDbJobStore;
use super::tally_row::details_expiry;
use crate::adapters::dynamodb::attributes::{Item, number, text};
use crate::adapters::dynamodb::write::{Update, Written};

/// The first move, which creates the row.
const BEGIN: Update = Update {
    doing: "beginning a checkpoint",
    change: "SET #rev = :rev, #checkpoint = :checkpoint, #expiresAt = :expires",
    condition: "attribute_not_exists(#rev)",
};

const MOVE: Update = Update { doing: "moving a checkpoint", condition: "#rev = :before", ..BEGIN };

/// An update of a row, with its values.
type Move = (&'static Update<'static>, Vec<(&'static str, AttributeValue)>);

/// The update of the row of a checkpoint.
pub(super) fn move_of(job: JobGuid, moved: &Checkpoint) -> Result<Move, PortError> {
    let update = if moved.rev == 1 { &BEGIN } else { &MOVE };
    let checkpoint = serde_json::to_string(moved).map_err(|error| PortError::invalid(update.doing, error))?;
    let mut values =
        vec![(":rev", number(moved.rev)), (":checkpoint", text(checkpoint)), (":expires", number(details_expiry(job)))];
    if moved.rev != 1 {
        values.push((":before", number(i64::from(moved.rev) - 1)));
    }
    Ok((update, values))
}

pub(super) fn checkpoint_key(chunk: ChunkAddress) -> String {
    format!("checkpoint#{}#{:08}#{:02}", chunk.attempt, chunk.tally, chunk.index)
}

fn checkpoint_of(doing: &'static str, item: &Item) -> Result<Checkpoint, PortError> {
    let checkpoint = item.get("checkpoint").and_then(|checkpoint| checkpoint.as_s().ok());
    let checkpoint = checkpoint.ok_or_else(|| PortError::invalid(doing, "the row has no checkpoint"))?;
    serde_json::from_str(checkpoint).map_err(|error| PortError::invalid(doing, error))
}

#[async_trait]
impl Checkpoints for DynamoDbJobStore {
    async fn checkpoint(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError> {
        const DOING: &str = "reading a checkpoint";
        let item = self.row(DOING, job, &checkpoint_key(chunk)).await?;
        item.map(|item| checkpoint_of(DOING, &item)).transpose()
    }

    /// An update and not a put, so that the function needs no permission to put rows.
    async fn move_checkpoint(&self, job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError> {
        let (update, values) = move_of(job, moved)?;
        match update.apply(self.update_row(job, &checkpoint_key(moved.chunk)), values).await {
            Ok(Written::Applied(_)) => Ok(CheckpointMoved::Won),
            Ok(Written::Refused(item)) => {
                let there = checkpoint_of(update.doing, &item)?;
                // Our own move: its reply was lost. A worker may have two requests under way, with one token.
                let own = there == *moved;
                Ok(if own { CheckpointMoved::Won } else { CheckpointMoved::Lost(there) })
            }
            Err(PortError::NotFound) => Ok(CheckpointMoved::Lost(Checkpoint::blank(moved.chunk, moved.at))),
            Err(error) => Err(error),
        }
    }
}
