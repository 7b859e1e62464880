//! JSON: [`line`] parses a line of JSON Lines, [`reserved`] finds names that no object may have, [`size`] measures
//! values.

pub(super) mod line;

mod reserved;
mod size;

pub use reserved::{RESERVED_NAMES, has_reserved_name};
pub use size::json_bytes;
