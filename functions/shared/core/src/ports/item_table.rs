use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::model::records::{RecordVersion, Upserted};
use crate::ports::PortResult;

/// The attribute that Rowmill adds to the items of an [`ItemTable`]: the text of the version, which sorts as versions do.
pub const VERSION_ATTRIBUTE: &str = "rowmillVersion";

/// A table of the application, into which jobs import.
#[async_trait]
pub trait ItemTable: Send + Sync {
    /// Puts each of these items in the place of the one with its key, unless that has its version or a later one. An item
    /// without a version is replaced. The results are in their order.
    ///
    /// # Errors
    /// Per item: `Invalid` if the table refuses it. `Unavailable` or `Denied` if it may or may not be there; put it again.
    async fn put(&self, items: &[TableItem]) -> Vec<PortResult<Upserted>>;
}

/// An item of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct TableItem {
    pub version: RecordVersion,
    /// Its attributes, with those of its key.
    pub attributes: Map<String, Value>,
}
