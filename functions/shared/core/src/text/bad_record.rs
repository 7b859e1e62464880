//! Why a record is not well-formed, with stable codes.

/// Code of a record with more or fewer cells than there are columns.
pub const RAGGED_ROW: &str = "ragged_row";
pub const INVALID_UTF8: &str = "invalid_utf8";
/// Code of a line that is not one JSON object.
pub const INVALID_JSON: &str = "invalid_json";
/// Code of a record that exceeds the maximum length.
pub const ROW_TOO_LONG: &str = "row_too_long";

/// Why a record is not well-formed. This fails the item, not the job. The message does not quote the content.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct BadRecord {
    /// [`RAGGED_ROW`], [`INVALID_UTF8`], [`INVALID_JSON`] or [`ROW_TOO_LONG`].
    pub code: &'static str,
    /// The column with the problem, if it is a single column.
    pub column: Option<String>,
    /// The error and its place, for the user.
    pub message: String,
}
