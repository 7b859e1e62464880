//! JSON Schemas of users: within bounds, compiled, and what a row breaks in the words of a user.
//!
//! The only crate of the product that calls `jsonschema`. That crate is generic in the representation of JSON, so
//! whoever calls it compiles most of it once more.

mod bounds;
mod error;
mod user_text;
mod validator;
mod violation;

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod stack_tests;

pub use bounds::Bounded;
pub use error::SchemaError;
pub use user_text::shortened;
pub use validator::{Pattern, Validator};
pub use violation::SchemaViolation;
