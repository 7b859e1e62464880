use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use rowmill_core::model::breaker::{Breaker, KEPT_FOR};
use rowmill_core::ports::{BreakerMoved, Breakers, PortError};

use super::attributes::{Item, expiry_seconds, number, text};
use super::errors::port_error;
use super::write::{Update, Written};

const BEGIN: Update = Update {
    doing: "beginning a breaker",
    change: "SET #rev = :rev, #breaker = :breaker, #expiresAt = :expires",
    condition: "attribute_not_exists(#rev)",
};

const MOVE: Update = Update { doing: "moving a breaker", condition: "#rev = :before", ..BEGIN };

/// The breakers of the job types in the admission table.
#[derive(Clone, Debug)]
pub struct DynamoDbBreakers {
    client: Client,
    admission_table: String,
}

impl DynamoDbBreakers {
    pub const fn new(client: Client, admission_table: String) -> Self {
        Self { client, admission_table }
    }
}

fn scope(job_type: &str) -> String {
    format!("breaker#{job_type}")
}

fn breaker_of(doing: &'static str, item: &Item) -> Result<Breaker, PortError> {
    let breaker = item.get("breaker").and_then(|breaker| breaker.as_s().ok());
    let breaker = breaker.ok_or_else(|| PortError::invalid(doing, "the row has no breaker"))?;
    serde_json::from_str(breaker).map_err(|error| PortError::invalid(doing, error))
}

#[async_trait]
impl Breakers for DynamoDbBreakers {
    async fn breaker(&self, job_type: &str) -> Result<Option<Breaker>, PortError> {
        const DOING: &str = "reading a breaker";
        let request = self.client.get_item().table_name(&self.admission_table).consistent_read(true);
        let output = request.key("scope", text(scope(job_type))).send().await;
        let item = output.map_err(|error| port_error(DOING, error))?.item;
        item.map(|item| breaker_of(DOING, &item)).transpose()
    }

    async fn move_breaker(&self, job_type: &str, next: &Breaker) -> Result<BreakerMoved, PortError> {
        let update = if next.rev == 1 { &BEGIN } else { &MOVE };
        let breaker = serde_json::to_string(next).map_err(|error| PortError::invalid(update.doing, error))?;
        let mut values = vec![
            (":rev", number(next.rev)),
            (":breaker", text(breaker)),
            (":expires", number(expiry_seconds(next.at + KEPT_FOR))),
        ];
        if next.rev != 1 {
            values.push((":before", number(next.rev - 1)));
        }
        let request = self.client.update_item().table_name(&self.admission_table).key("scope", text(scope(job_type)));
        match update.apply(request, values).await {
            Ok(Written::Applied(_)) => Ok(BreakerMoved::Won),
            Ok(Written::Refused(item)) => {
                let there = breaker_of(update.doing, &item)?;
                // Our own move: its reply was lost.
                Ok(if there == *next { BreakerMoved::Won } else { BreakerMoved::Lost(Some(there)) })
            }
            // It has expired.
            Err(PortError::NotFound) => Ok(BreakerMoved::Lost(None)),
            Err(error) => Err(error),
        }
    }
}
