use async_trait::async_trait;

use crate::ports::PortError;

/// Lists the objects of external buckets.
#[async_trait]
pub trait ObjectLists: Send + Sync {
    /// The objects of this bucket whose keys begin with `prefix` and come after `after`, by key: up to a thousand.
    ///
    /// # Errors
    /// `NotFound` if there is no such bucket; `Denied`.
    async fn list(&self, bucket: &str, prefix: &str, after: Option<&str>) -> Result<ObjectPage, PortError>;
}

/// A page of objects.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ObjectPage {
    pub objects: Vec<ListedObject>,
    /// True if more objects follow the last one.
    pub has_more: bool,
}

/// An object in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedObject {
    pub key: String,
    /// Its entity tag, with the quotes.
    pub etag: String,
    /// Its length in bytes.
    pub size: u64,
}
