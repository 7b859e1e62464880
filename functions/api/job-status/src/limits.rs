//! The limits of a page.

/// The most jobs in a page. Each costs a read of its tallies.
pub const JOBS_PAGE_MAX: usize = 100;

/// The most items in a page.
pub const ITEMS_PAGE_MAX: usize = 1000;
