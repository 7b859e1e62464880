use async_trait::async_trait;
use rowmill_core::model::blocks::{AT, Principal, REASON, scope};
use rowmill_core::ports::{Block, Blocks, PortError};

use super::DynamoDbQuotas;
use crate::adapters::dynamodb::attributes::{from_millis, text};
use crate::adapters::dynamodb::errors::port_error;

const DOING: &str = "looking for a block of the caller";

#[async_trait]
impl Blocks for DynamoDbQuotas {
    async fn block(&self, principal: &Principal) -> Result<Option<Block>, PortError> {
        let request = self.client.get_item().table_name(&self.admission_table);
        let output = request.key("scope", text(scope(principal))).send().await;
        let Some(row) = output.map_err(|error| port_error(DOING, error))?.item else { return Ok(None) };
        // A row that cannot be read blocks all the same: only an operator writes one.
        let at = row.get(AT).and_then(|at| at.as_n().ok()?.parse().ok()).unwrap_or_default();
        let at = from_millis(at).map_err(|error| PortError::invalid(DOING, error))?;
        let reason = row.get(REASON).and_then(|reason| reason.as_s().ok()).cloned();
        Ok(Some(Block { at, reason }))
    }
}
