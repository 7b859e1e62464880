use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::KeysAndAttributes;
use rowmill_core::ports::PortError;

use super::attributes::Item;
use super::errors::port_error;
use crate::sdk::retry::Backoff;

/// The maximum number of keys in a BatchGetItem.
pub const BATCH_KEYS: usize = 100;

/// The rows of these keys that exist, in any order: at most [`BATCH_KEYS`].
pub async fn batch_get(
    doing: &'static str,
    client: &Client,
    table: &str,
    mut keys: Vec<Item>,
    consistent: bool,
) -> Result<Vec<Item>, PortError> {
    let (mut found, mut backoff) = (Vec::new(), Backoff::after_conflict());
    while !keys.is_empty() {
        let wanted = KeysAndAttributes::builder().consistent_read(consistent).set_keys(Some(keys)).build();
        let wanted = wanted.map_err(|error| PortError::invalid(doing, error))?;
        let output = client.batch_get_item().request_items(table, wanted).send().await;
        let output = output.map_err(|error| port_error(doing, error))?;
        found.extend(output.responses.into_iter().flatten().flat_map(|(_, items)| items));
        let left = output.unprocessed_keys.unwrap_or_default().remove(table);
        keys = left.map(|left| left.keys).unwrap_or_default();
        if !keys.is_empty() && !backoff.wait().await {
            return Err(PortError::unavailable(doing, "DynamoDB keeps leaving keys unprocessed"));
        }
    }
    Ok(found)
}
