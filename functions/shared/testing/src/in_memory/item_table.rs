use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::lock;
use rowmill_core::model::records::{RecordVersion, Upserted};
use rowmill_core::ports::{ItemTable, PortError, PortResult, TableItem};

/// A table with the key `id`, a text, and the sort key `n`, a number.
#[derive(Debug, Default)]
pub struct InMemoryItemTable(Mutex<BTreeMap<Key, Stored>>);

type Key = (String, String);

/// The version, if Rowmill has put the item, and its attributes.
type Stored = (Option<RecordVersion>, Map<String, Value>);

impl InMemoryItemTable {
    /// Stores what the application itself writes.
    ///
    /// # Panics
    /// Without a key.
    pub fn store(&self, attributes: Map<String, Value>) {
        let key = key_of(&attributes).expect("a key");
        lock(&self.0).insert(key, (None, attributes));
    }

    /// Its items without their versions, in the order of their keys.
    pub fn items(&self) -> Vec<Map<String, Value>> {
        lock(&self.0).values().map(|(_, attributes)| attributes.clone()).collect()
    }
}

fn key_of(attributes: &Map<String, Value>) -> Option<Key> {
    let number = attributes.get("n").filter(|number| number.is_number())?;
    Some((attributes.get("id")?.as_str()?.to_owned(), number.to_string()))
}

#[async_trait]
impl ItemTable for InMemoryItemTable {
    async fn put(&self, items: &[TableItem]) -> Vec<PortResult<Upserted>> {
        let mut table = lock(&self.0);
        let put = |TableItem { version, attributes }: &TableItem| {
            let key = key_of(attributes);
            let key = key.ok_or_else(|| PortError::invalid("putting an item", "its key has another type"))?;
            if table.get(&key).is_some_and(|(there, _)| *there >= Some(*version)) {
                return Ok(Upserted::Superseded);
            }
            table.insert(key, (Some(*version), attributes.clone()));
            Ok(Upserted::Written)
        };
        items.iter().map(put).collect()
    }
}
