//! A row of a table, whose attributes a test knows to be there.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;

pub struct Row(pub(super) HashMap<String, AttributeValue>);

impl Row {
    /// True if it has an attribute of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// True if it has an attribute of this name that is true.
    pub fn flag(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value.as_bool() == Ok(&true))
    }

    /// Number of recoveries of its job in a row without a sign of life.
    pub fn recoveries(&self) -> u64 {
        if self.has("recoveries") { self.number("recoveries") } else { 0 }
    }

    /// A number of it.
    ///
    /// # Panics
    /// Where it has none of this name.
    pub fn number(&self, name: &str) -> u64 {
        let number =
            self.0.get(name).and_then(|value| value.as_n().ok()).unwrap_or_else(|| panic!("{name} in {:?}", self.0));
        number.parse().expect("a whole number")
    }

    /// A text of it.
    ///
    /// # Panics
    /// Where it has none of this name.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(|value| value.as_s().ok()).unwrap_or_else(|| panic!("{name} in {:?}", self.0))
    }

    /// A document of it.
    ///
    /// # Panics
    /// Where it has none of this name.
    pub fn json(&self, name: &str) -> Value {
        let document = self.0.get(name).unwrap_or_else(|| panic!("{name} in {:?}", self.0));
        serde_dynamo::from_attribute_value(document.clone()).expect("a document")
    }
}
