//! The limits of a page.

use std::time::Duration;

use rowmill_core::items::audit::AuditLimits;

/// The most jobs in a page. Each costs a read of its tallies.
pub const JOBS_PAGE_MAX: usize = 100;

pub const ITEMS_PAGE_MAX: usize = 1000;

/// The most tasks in a page. Each costs a read of its checkpoint.
pub const TASKS_PAGE_MAX: usize = 100;

/// When a page of an audit ends. One tally is always read whole: up to 64 run outputs, each with the failed rows of a
/// chunk and up to 4 MiB of outputs. Nobody has measured the largest ones against the 29 s of a
/// request.
pub const AUDIT_LIMITS: AuditLimits =
    AuditLimits { objects: 256, bytes: 64 * 1024 * 1024, time: Duration::from_secs(10) };
