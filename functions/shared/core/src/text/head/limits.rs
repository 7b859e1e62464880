//! Limits of the head of a file.

/// Maximum number of columns. It is that of Excel, and keeps the stored names of the columns within a row of the table.
pub const COLUMNS_MAX: usize = 16_384;

/// Maximum of the params `headerRow` and `skipRows`.
pub const TITLE_ROWS_MAX: u32 = 1000;
