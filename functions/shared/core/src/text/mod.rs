//! The text of a file: what its format is, where its records begin and end, what they hold, and whether they keep a
//! schema.
//!
//! The four steps in the order a job takes them: [`read_head`] looks at the first bytes of the file and fixes its
//! [`Dialect`] and columns; [`ChunkCutter`] finds record borders in the stream of bytes and cuts chunks on them;
//! [`read_items`] reads the records of one chunk; [`RowSchema`] turns a record into a checked object.
//!
//! The cutter and the item reader find record borders independently, by `memchr` and by `csv-core`. That is on purpose:
//! a chunk whose item count differs between the two is a chunk of a file that has changed.

pub mod bad_record;
pub mod cut;
pub mod format;
pub mod head;
pub mod items;
pub mod schema;

mod cells;
mod coerce;
mod formula;
mod json_line;
mod scan;

pub use bad_record::BadRecord;
pub use cells::{Cells, split_cells};
pub use cut::{Chunk, ChunkCutter, ChunkLimits, ChunkMode, Position, SCANNER_VERSION, UnterminatedQuote};
pub use format::{Dialect, Format};
pub use formula::{escape_formula, unescape_formula};
pub use head::{Head, HeadError, TextParams, read_head};
pub use items::{Items, RawItem, Record, read_items};
pub use schema::{RowSchema, SchemaError, SchemaViolation};

/// The bytes a UTF-8 file may begin with to say that it is one.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod cut_tests;
#[cfg(test)]
mod head_tests;
#[cfg(test)]
mod items_tests;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod test_files;
