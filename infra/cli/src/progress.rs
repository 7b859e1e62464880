//! What goes on: lines on standard error, since standard output belongs to results, and bytes that are counted on their way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether anybody wants to hear it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A person watches.
    Shown,
    /// A test or a program that only wants the result.
    Hidden,
}

impl Progress {
    /// Tells one line.
    pub fn line(self, text: impl std::fmt::Display) {
        if self == Self::Shown {
            eprintln!("{text}");
        }
    }
}

/// Counts bytes on their way, and tells somebody about it. Those that must travel again are counted back first.
pub struct ByteProgress {
    moved: AtomicU64,
    tell: Box<dyn Fn(u64) + Send + Sync>,
}

impl ByteProgress {
    /// A count from 0; `tell` gets the bytes moved so far at every change.
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
