//! The text of a file: its format, its records and their content, and the check against a schema.
//!
//! A job takes four steps:
//!
//! 1. [`read_head`] examines the first bytes of the file and determines its [`Dialect`] and columns.
//! 2. [`ChunkCutter`] finds the record boundaries in the stream of bytes and cuts chunks at them.
//! 3. [`read_items`] reads the records of one chunk.
//! 4. [`RowSchema`] turns a record into a checked object.
//!
//! The cutter and the item reader find record boundaries independently of each other.
//! This is intended: if they disagree on the number of items in a chunk, the file has changed.

pub mod bad_record;
pub mod cut;
pub mod format;
pub mod head;
pub mod items;
pub mod schema;

mod csv;
mod json;
mod likely_charset;
mod scan;

pub use self::csv::{Cells, escape_formula, split_cells, unescape_formula};
pub use bad_record::BadRecord;
pub use cut::{Chunk, ChunkCutter, ChunkLimits, ChunkMode, Position, SCANNER_VERSION, UnterminatedQuote};
pub use format::{Dialect, Format};
pub use head::{COLUMNS_MAX, Head, HeadError, TITLE_ROWS_MAX, TextParams, declared_format, read_head, title_rows};
pub use items::{CharsetHint, Items, RawItem, Record, read_items};
pub use json::{RESERVED_NAMES, has_reserved_name, json_bytes};
pub use likely_charset::{Utf8Watch, likely_charset};
pub use rowmill_schema::shortened;
pub use schema::{ColumnType, RowSchema, SchemaError, SchemaViolation, common_type, type_of_cell, type_of_value};

#[cfg(test)]
mod cut_tests;
#[cfg(test)]
mod items_tests;
#[cfg(test)]
mod test_files;
