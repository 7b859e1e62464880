//! A view of the API together with the JSON it was read from.

use std::fmt;
use std::ops::Deref;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A view as the API sent it.
///
/// The command reads the typed view. `--json` prints the JSON, so that the fields of a later version are not lost.
#[derive(Clone, PartialEq)]
pub struct Shown<T> {
    view: T,
    json: Value,
}

impl<T> Shown<T> {
    /// The entries of a list, each with its own JSON. `field` is the name of the list in the JSON.
    pub fn entries<E>(mut self, field: &str, list: impl FnOnce(T) -> Vec<E>) -> Vec<Shown<E>> {
        let json = match self.json[field].take() {
            Value::Array(entries) => entries,
            _ => Vec::new(),
        };
        list(self.view).into_iter().zip(json).map(|(view, json)| Shown { view, json }).collect()
    }

    /// A field of the JSON, which the view need not have.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.json.get(name)
    }

    /// Takes something out of the view. The JSON loses these fields, so that they are never printed.
    pub fn take<P>(&mut self, fields: &[&str], part: impl FnOnce(&mut T) -> P) -> P {
        if let Value::Object(json) = &mut self.json {
            for field in fields {
                json.remove(*field);
            }
        }
        part(&mut self.view)
    }
}

impl<T> Deref for Shown<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.view
    }
}

impl<T: fmt::Debug> fmt::Debug for Shown<T> {
    /// Only the view: it hides the signatures that its JSON may hold.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}

impl<T> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(to)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Shown<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(from)?;
        let view = T::deserialize(&json).map_err(D::Error::custom)?;
        Ok(Self { view, json })
    }
}

#[cfg(test)]
mod tests {
    use rowmill_api::job::JobPage;
    use rowmill_core::model::job::states::Status;
    use serde_json::json;

    use super::*;
    use crate::fixtures::job_json;

    #[test]
    fn a_job_keeps_the_fields_that_this_version_does_not_know() {
        let later = job_json(json!({"status": "running", "percent": 37, "later": 1}));
        let page: Shown<JobPage> = serde_json::from_value(json!({"jobs": [later.clone()], "next": null})).unwrap();
        let jobs = page.entries("jobs", |page| page.jobs);
        assert_eq!((jobs[0].status, jobs[0].percent), (Status::Running, 37));
        assert_eq!(serde_json::to_value(&jobs).unwrap(), json!([later]));
    }
}
