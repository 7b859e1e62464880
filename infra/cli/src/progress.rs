//! Progress: lines on standard error (standard output is for results), and a counter for transferred bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// For a person.
    Shown,
    /// For tests and programs that only need the result.
    Hidden,
}

impl Progress {
    /// Prints one line.
    pub fn line(self, text: impl std::fmt::Display) {
        if self == Self::Shown {
            eprintln!("{text}");
        }
    }
}

/// Counts transferred bytes and reports each change. Bytes that must be sent again are subtracted first.
pub struct ByteProgress {
    moved: AtomicU64,
    tell: Box<dyn Fn(u64) + Send + Sync>,
}

impl ByteProgress {
    /// A counter from 0. `tell` gets the number of bytes after each change.
    pub fn new(tell: impl Fn(u64) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { moved: AtomicU64::new(0), tell: Box::new(tell) })
    }

    pub(crate) fn add(&self, bytes: u64) {
        (self.tell)(self.moved.fetch_add(bytes, Ordering::Relaxed) + bytes);
    }

    pub(crate) fn take_back(&self, bytes: u64) {
        (self.tell)(self.moved.fetch_sub(bytes, Ordering::Relaxed) - bytes);
    }
}
