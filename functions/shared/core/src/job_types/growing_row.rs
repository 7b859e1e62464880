//! A row while it is transformed. Its size is checked before each change: a short mapping cannot fill the memory.

use serde_json::{Map, Value};

use crate::ports::processor::ItemError;
use crate::text::json_bytes;

/// The code of an item that grows beyond the largest size of a row.
pub(super) const ROW_TOO_LARGE: &str = "row_too_large";

/// A row with a largest size.
#[derive(Debug)]
pub(super) struct GrowingRow {
    fields: Map<String, Value>,
    /// The names and the values of the fields.
    bytes: usize,
    max_bytes: usize,
}

impl GrowingRow {
    /// A row with these fields.
    ///
    /// # Errors
    /// [`ROW_TOO_LARGE`].
    pub(super) fn new(fields: Map<String, Value>, max_bytes: usize) -> Result<Self, ItemError> {
        let bytes = fields.iter().map(|(name, value)| name.len() + value_bytes(value)).sum();
        let row = Self { fields, bytes, max_bytes };
        row.check(bytes).map(|()| row)
    }

    pub(super) const fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    pub(super) fn into_fields(self) -> Map<String, Value> {
        self.fields
    }

    /// Sets a field to a value of so many bytes. The value is made only if there is room for it.
    ///
    /// # Errors
    /// [`ROW_TOO_LARGE`].
    pub(super) fn set(
        &mut self,
        name: &str,
        value_bytes: usize,
        value: impl FnOnce(&Map<String, Value>) -> Value,
    ) -> Result<(), ItemError> {
        // The field it replaces is still there while the value is made.
        self.check(self.bytes.saturating_add(name.len()).saturating_add(value_bytes))?;
        let value = value(&self.fields);
        self.remove(name);
        self.bytes += name.len() + value_bytes;
        self.fields.insert(name.to_owned(), value);
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Value> {
        let value = self.fields.remove(name)?;
        self.bytes -= (name.len() + value_bytes(&value)).min(self.bytes);
        Some(value)
    }

    /// Renames a field, if the row has it. `false` if there is already a field of the new name.
    ///
    /// # Errors
    /// [`ROW_TOO_LARGE`].
    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<bool, ItemError> {
        let Some(value) = self.remove(from) else { return Ok(true) };
        if self.fields.contains_key(to) {
            return Ok(false);
        }
        let bytes = value_bytes(&value);
        self.set(to, bytes, |_| value).map(|()| true)
    }

    fn check(&self, bytes: usize) -> Result<(), ItemError> {
        if bytes <= self.max_bytes {
            return Ok(());
        }
        let message = format!("the row grows to more than the maximum of {} bytes", self.max_bytes);
        Err(ItemError::permanent(ROW_TOO_LARGE, message))
    }
}

/// The size of a value: the bytes of a text, or of other values as JSON.
pub(super) fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        value => json_bytes(value),
    }
}
