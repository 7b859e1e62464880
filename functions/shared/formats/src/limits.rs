//! Limits for the memory and output of decoding.

use std::time::Duration;

use rowmill_core::model::packing::PackedLimits;

/// Limits of a file. A file beyond one is an error.
///
/// The defaults keep a decoder within a function of 256 MiB of memory and its work within minutes. Those of the limits
/// that an operator can set are in [`PackedLimits`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Longest time of decoding, without the time that reading the file takes; `None`: no limit. With such
    /// a budget, a file that reaches it or `expanded_max_bytes` is refused with
    /// [`DecodeError::BeginsTooLate`](crate::DecodeError::BeginsTooLate).
    pub busy_max: Option<Duration>,
    /// Bytes of text that may come out of a file, and bytes that may be inflated on the way to it.
    pub expanded_max_bytes: u64,
    /// Bytes that may come out of each byte of the file.
    pub ratio_max: u64,
    /// Bytes of text above which the ratio counts: small files of repeated text are harmless. Default 64 MiB.
    pub ratio_from_bytes: u64,
    /// Maximum size of a part of a record that is held in memory, in bytes: a cell of a sheet, or half the limit as the
    /// number of elements in a Parquet list. Default 1 MiB, like the limit for a record of text.
    pub record_max_bytes: usize,
    /// Maximum zstd window in bytes. The window is held in memory. Default 64 MiB, which is enough for all levels up to
    /// 21 and for `--long=26`.
    pub zstd_window_max_bytes: u64,
    /// Inflated bytes of a workbook's shared strings, which are held in memory. Default 32 MiB.
    pub xlsx_shared_strings_max_bytes: u64,
    /// Cells of a sheet, empty cells with formatting included.
    pub xlsx_cells_max: u64,
    /// Decompressed bytes of the Parquet pages that are open at once: one of each column, and its dictionary. Default
    /// 128 MiB.
    pub parquet_pages_max_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self::from(PackedLimits::DEFAULT)
    }
}

impl Limits {
    /// The budget for the first rows of a file: 192 MiB and three seconds. What may lie before the first row of a good
    /// file fits: a workbook's shared strings, and a page of each column of a Parquet file, within the other limits.
    pub fn of_beginning() -> Self {
        let expanded_max_bytes = Self::default().expanded_max_bytes.min(192 * 1024 * 1024);
        Self { busy_max: Some(Duration::from_secs(3)), expanded_max_bytes, ..Self::default() }
    }
}

impl From<PackedLimits> for Limits {
    /// These limits, and the defaults of the others.
    fn from(packed: PackedLimits) -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            busy_max: None,
            expanded_max_bytes: packed.expanded_max_bytes,
            ratio_max: packed.ratio_max,
            ratio_from_bytes: 64 * MIB,
            record_max_bytes: MIB as usize,
            zstd_window_max_bytes: 64 * MIB,
            xlsx_shared_strings_max_bytes: 32 * MIB,
            xlsx_cells_max: packed.sheet_cells_max,
            parquet_pages_max_bytes: 128 * MIB,
        }
    }
}
