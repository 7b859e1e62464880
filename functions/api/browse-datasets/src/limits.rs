//! The limits of a page.

pub const PAGE_DEFAULT: usize = 100;

pub const PAGE_MAX: usize = 1000;

/// The bytes of the records of a page, as JSON; a single one may exceed it. An answer of a function has at most 6 MB, in
/// which each quotation mark takes two bytes.
pub const PAGE_BYTES: usize = 2_000_000;

/// The most queries of a page. Those of a short prefix may find nothing in most partitions.
pub const PAGE_QUERIES: u32 = 256;

/// The most partitions that are read at once.
pub const PARTITIONS_AT_ONCE: u32 = 16;
