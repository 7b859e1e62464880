//! Products: files that workers store beside the outputs of items.
//!
//! A product belongs to an item and to the lease in which it was stored: its key has the token of the lease. An output
//! names it, so it is named exactly if the outcome of that lease counts. Nobody finds the others; they expire with the
//! results.

use std::fmt;
use std::str::FromStr;

use crate::model::ids::{JobGuid, RunId};
use crate::model::keys;

/// Longest product, in bytes.
pub const PRODUCT_MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// Media type of a product whose worker names none.
pub const OCTET_STREAM: &str = "application/octet-stream";

/// Most products of an item.
pub const PRODUCTS_MAX: usize = 16;

/// Longest name of a product, in characters.
pub const NAME_MAX_CHARS: usize = 128;

/// Field of an output that lists the products of its item.
pub const PRODUCTS_FIELD: &str = "products";

/// Names a product of a job: `{row}.{token}.{name}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProductId {
    /// The row of its item.
    pub row: u64,
    /// The token of the lease in which it was stored.
    pub by: RunId,
    /// ASCII letters, digits, `.`, `_` and `-`, not a `.` first: safe in keys, paths and file systems.
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a product's name has 1 to {NAME_MAX_CHARS} ASCII letters, digits, `.`, `_` and `-`, and no `.` first")]
pub struct InvalidProductName;

impl ProductId {
    /// # Errors
    /// The name is not allowed.
    pub fn new(row: u64, by: RunId, name: &str) -> Result<Self, InvalidProductName> {
        let is_allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
        let fits = (1..=NAME_MAX_CHARS).contains(&name.len()) && !name.starts_with('.');
        let is_name = fits && name.bytes().all(is_allowed);
        is_name.then(|| Self { row, by, name: name.to_owned() }).ok_or(InvalidProductName)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn key(&self, job: JobGuid) -> String {
        keys::product(job, self.row, self.by, &self.name)
    }
}

impl fmt::Display for ProductId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.row, self.by, self.name)
    }
}

impl FromStr for ProductId {
    type Err = InvalidProductName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().ok_or(InvalidProductName);
        let row = part()?.parse().map_err(|_| InvalidProductName)?;
        let by = part()?.parse().map_err(|_| InvalidProductName)?;
        Self::new(row, by, part()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn a_product_is_named_by_its_row_its_lease_and_its_name() {
        let (by, job) = (RunId::from_bytes([7; RunId::BYTES]), fixtures::job().job_guid);
        let id = ProductId::new(7, by, "frame.12.png").unwrap();
        assert_eq!(id.to_string().parse::<ProductId>().unwrap(), id);
        assert_eq!(id.key(job), format!("results/{job}/products/7/{by}/frame.12.png"));
    }

    #[test]
    fn a_name_can_leave_no_folder() {
        let by = RunId::from_bytes([7; RunId::BYTES]);
        for name in ["", ".", "..", ".x", "a/b", "a\\b", "a b", "ä", "a%2fb", &"x".repeat(NAME_MAX_CHARS + 1)] {
            assert_eq!(ProductId::new(7, by, name), Err(InvalidProductName), "{name}");
        }
        for text in ["", "7", "7.x.a", &format!("7.{by}"), &format!("7.{by}."), &format!("x.{by}.a")] {
            assert!(text.parse::<ProductId>().is_err(), "{text}");
        }
    }
}
