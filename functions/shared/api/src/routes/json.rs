//! The JSON of a request or an answer, as a route names it.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

/// A type that is the JSON of a request or of an answer.
pub trait Body: Serialize + ToSchema {
    /// Its example in the document.
    fn example() -> Self;
}

/// The JSON of a [`Body`]: its schemas and its example.
#[derive(Clone, Copy)]
pub struct Json {
    name: fn() -> Cow<'static, str>,
    schemas: fn() -> Vec<(String, RefOr<Schema>)>,
    example: fn() -> Value,
}

impl Json {
    /// The JSON of this type.
    pub const fn of<T: Body>() -> Self {
        Self { name: T::name, schemas: schemas_of::<T>, example: example_of::<T> }
    }

    /// The name of its schema.
    pub fn name(&self) -> Cow<'static, str> {
        (self.name)()
    }

    /// Its schema and all schemas that this one uses, by name.
    pub fn schemas(&self) -> Vec<(String, RefOr<Schema>)> {
        (self.schemas)()
    }

    pub fn example(&self) -> Value {
        (self.example)()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

fn schemas_of<T: Body>() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    schemas
}

fn example_of<T: Body>() -> Value {
    serde_json::to_value(T::example()).expect("an example is JSON")
}
