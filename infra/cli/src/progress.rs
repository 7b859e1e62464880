//! Progress: lines on standard error (standard output is for results), and a counter for transferred bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// For a person.
    Shown,
    /// For tests and programs that only need the result.
    Hidden,
}

impl Progress {
    pub fn line(self, text: impl std::fmt::Display) {
        if self == Self::Shown {
            eprintln!("{text}");
        }
    }
}

/// Progress of a transfer, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transferred {
    /// Sent or received.
    pub moved: u64,
    /// Bytes that the storage has confirmed. Of a download: none.
    pub stored: u64,
}

/// Counts transferred bytes and reports each change. Bytes that must be sent again are subtracted first.
pub struct ByteProgress {
    moved: AtomicU64,
    stored: AtomicU64,
    tell: Box<dyn Fn(Transferred) + Send + Sync>,
}

impl ByteProgress {
    /// A counter from 0. `tell` gets the number of bytes that are moved after each change.
    pub fn new(tell: impl Fn(u64) + Send + Sync + 'static) -> Arc<Self> {
        Self::watched(move |transferred| tell(transferred.moved))
    }

    /// A counter from 0. `tell` gets its state after each change.
    pub fn watched(tell: impl Fn(Transferred) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { moved: AtomicU64::new(0), stored: AtomicU64::new(0), tell: Box::new(tell) })
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
        self.tell();
    }

    pub(crate) fn take_back(&self, bytes: u64) {
        self.moved.fetch_sub(bytes, Ordering::Relaxed);
        self.tell();
    }

    /// Counts bytes that were moved before as stored.
    pub(crate) fn add_stored(&self, bytes: u64) {
        self.stored.fetch_add(bytes, Ordering::Relaxed);
        self.tell();
    }

    /// Sets both counts to what the storage says. Nothing may be on its way.
    pub(crate) fn set_stored(&self, bytes: u64) {
        self.moved.store(bytes, Ordering::Relaxed);
        self.stored.store(bytes, Ordering::Relaxed);
        self.tell();
    }

    fn tell(&self) {
        let [moved, stored] = [&self.moved, &self.stored].map(|count| count.load(Ordering::Relaxed));
        (self.tell)(Transferred { moved, stored });
    }
}
