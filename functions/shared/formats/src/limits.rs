//! How much a file may take.

/// How much a file may take; what it asks beyond that is an error.
///
/// The defaults keep a decoder within a function of 256 MiB of memory and its work within minutes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most bytes of text that may come out of a file; as many may be inflated on the way. Default 20 GiB.
    pub expanded_max_bytes: u64,
    /// The most bytes that may come out of a byte of the file. Text compresses to a tenth or a fiftieth, a bomb to a
    /// thousandth and less. Default 250.
    pub ratio_max: u64,
    /// The ratio is looked at only above so many bytes, since small files of repeated text are harmless. Default 64 MiB.
    pub ratio_from_bytes: u64,
    /// The longest piece of a record that is held in memory at once: a cell of a sheet; twice the elements of a Parquet
    /// list. Default 1 MiB, as a record of text.
    pub record_max_bytes: usize,
    /// The largest window of zstd, which is held in memory. Default 64 MiB: enough for all levels up to 21 and for
    /// `--long=26`.
    pub zstd_window_max_bytes: u64,
    /// The most bytes, inflated, of a workbook's shared strings, which are held in memory. Default 32 MiB.
    pub xlsx_shared_strings_max_bytes: u64,
    /// The most cells of a sheet, empty ones that are there for their formatting included. Default 20 million.
    pub xlsx_cells_max: u64,
    /// The most bytes, decompressed, of the Parquet pages that are open at once: one of each column, and its dictionary.
    /// Default 128 MiB.
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
