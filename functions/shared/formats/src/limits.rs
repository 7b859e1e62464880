//! Limits for the memory and output of decoding.

/// Limits for decoding a file. A file that exceeds a limit is an error.
///
/// With the defaults a decoder fits into a function with 256 MiB of memory and finishes within minutes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum size of the decoded text in bytes. The same limit applies separately to all decompressed data. Default
    /// 20 GiB.
    pub expanded_max_bytes: u64,
    /// Maximum ratio of decoded bytes to bytes of the file. Text compresses to between 1/10 and 1/50 of its size, a
    /// decompression bomb to 1/1000 or less. Default 250.
    pub ratio_max: u64,
    /// The ratio is only checked above this number of bytes, because small files with repeated text are harmless.
    /// Default 64 MiB.
    pub ratio_from_bytes: u64,
    /// Maximum size of a part of a record that is held in memory, in bytes: a cell of a sheet, or half the limit as the
    /// number of elements in a Parquet list. Default 1 MiB, like the limit for a record of text.
    pub record_max_bytes: usize,
    /// Maximum zstd window in bytes. The window is held in memory. Default 64 MiB, which is enough for all levels up to
    /// 21 and for `--long=26`.
    pub zstd_window_max_bytes: u64,
    /// Maximum decompressed size of a workbook's shared strings in bytes. They are held in memory. Default 32 MiB.
    pub xlsx_shared_strings_max_bytes: u64,
    /// Maximum number of cells in a sheet, including empty cells that only have formatting. Default 20 million.
    pub xlsx_cells_max: u64,
    /// Maximum decompressed size of the open Parquet pages in bytes: one page and one dictionary per column. Default
    /// 128 MiB.
    pub parquet_pages_max_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            expanded_max_bytes: 20 * 1024 * MIB,
            ratio_max: 250,
            ratio_from_bytes: 64 * MIB,
            record_max_bytes: MIB as usize,
            zstd_window_max_bytes: 64 * MIB,
            xlsx_shared_strings_max_bytes: 32 * MIB,
            xlsx_cells_max: 20_000_000,
            parquet_pages_max_bytes: 128 * MIB,
        }
    }
}
