//! The items that the holder of a task gets together.

use crate::items::input::InputItem;
use crate::ports::RecordObject;
use crate::ports::processor::ItemError;
use crate::text::json_bytes;

/// Maximum size of their records together, in bytes of JSON. Lambda takes an answer of 6 MB, in which each quote takes
/// two bytes.
pub const RECORDS_MAX_BYTES: usize = 2_500_000;

/// Number of the first items whose records fit into a task together.
pub fn fitting(items: &[InputItem]) -> usize {
    let mut bytes = 0;
    let within = items.iter().take_while(|item| {
        bytes += item.record.as_ref().map_or(0, |record| json_bytes(&RecordObject(record)));
        bytes <= RECORDS_MAX_BYTES
    });
    within.count()
}

/// The error of an item that does not fit alone.
pub fn too_large() -> ItemError {
    let message =
        format!("the item does not fit into a task, whose records may have {RECORDS_MAX_BYTES} bytes of JSON");
    ItemError::permanent("item_too_large", message)
}
