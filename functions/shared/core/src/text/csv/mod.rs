//! The records of CSV text and their cells.
//!
//! | module | holds |
//! |---|---|
//! | [`records`] | reads the records of a chunk |
//! | [`cell_reader`] | splits a record into cells with `csv-core` |
//! | [`cells`] | the cells of a record |
//! | [`formula`] | protection against cells that a spreadsheet would run as formulas |

pub(super) mod cell_reader;
pub(super) mod records;

mod cells;
mod formula;

pub use cell_reader::split_cells;
pub use cells::Cells;
pub use formula::{escape_formula, unescape_formula};
