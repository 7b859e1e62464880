use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_core::ids::JobGuid;
use rowmill_core::ledger::Ledger;
use rowmill_core::ports::{LedgerMoved, PortError};
use rowmill_core::tally::ChunkAddress;

use super::attributes::{Item, number, text};
use super::job_store::DynamoDbJobStore;
use super::tally_row::details_expiry;
use super::write::{Update, Written};

/// The first move, which makes the row.
const BEGIN: Update = Update {
    doing: "beginning a ledger",
    change: "SET #rev = :rev, #ledger = :ledger, #expiresAt = :expires",
    condition: "attribute_not_exists(#rev)",
};

const MOVE: Update = Update { doing: "moving a ledger", condition: "#rev = :before", ..BEGIN };

/// The sort key of a chunk's ledger.
fn ledger_key(chunk: ChunkAddress) -> String {
    format!("ledger#{}#{:08}#{:02}", chunk.attempt, chunk.tally, chunk.index)
}

fn ledger_of(doing: &'static str, item: &Item) -> Result<Ledger, PortError> {
    let ledger = item.get("ledger").and_then(|ledger| ledger.as_s().ok());
    let ledger = ledger.ok_or_else(|| PortError::invalid(doing, "the row has no ledger"))?;
    serde_json::from_str(ledger).map_err(|error| PortError::invalid(doing, error))
}

impl DynamoDbJobStore {
    pub(super) async fn read_ledger(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Ledger>, PortError> {
        const DOING: &str = "reading a ledger";
        let item = self.row(DOING, job, &ledger_key(chunk)).await?;
        item.map(|item| ledger_of(DOING, &item)).transpose()
    }

    /// An update rather than a put, so that a function needs no right to put rows for it.
    pub(super) async fn swap_ledger(&self, job: JobGuid, moved: &Ledger) -> Result<LedgerMoved, PortError> {
        let update = if moved.rev == 1 { &BEGIN } else { &MOVE };
        let ledger = serde_json::to_string(moved).map_err(|error| PortError::invalid(update.doing, error))?;
        let mut values: Vec<(&str, AttributeValue)> =
            vec![(":rev", number(moved.rev)), (":ledger", text(ledger)), (":expires", number(details_expiry(job)))];
        if moved.rev != 1 {
            values.push((":before", number(i64::from(moved.rev) - 1)));
        }
        match update.apply(self.update(job, &ledger_key(moved.chunk)), values).await {
            Ok(Written::Applied(_)) => Ok(LedgerMoved::Won),
            Ok(Written::Refused(item)) => {
                let there = ledger_of(update.doing, &item)?;
                // Our own move, whose reply was lost.
                let own = there.rev == moved.rev && there.by == moved.by;
                Ok(if own { LedgerMoved::Won } else { LedgerMoved::Lost(there) })
            }
            Err(PortError::NotFound) => Ok(LedgerMoved::Lost(Ledger::blank(moved.chunk, moved.at))),
            Err(error) => Err(error),
        }
    }
}
