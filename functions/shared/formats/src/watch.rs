//! What the layers of a decode share: its limits, what it has used up, and why it failed.
//!
//! Readers are stacked here in ways that let only an `io::Error` through. So whoever stops a decode leaves the reason with
//! the [`Watch`], where it is looked for before the error that came through the stack.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::DecodeError;
use crate::limits::Limits;

/// The shared state of one decode.
#[derive(Clone)]
pub(crate) struct Watch(Arc<State>);

struct State {
    limits: Limits,
    /// Bytes of the file that were read.
    read: AtomicU64,
    /// Bytes that were inflated on the way to the text.
    inflated: AtomicU64,
    /// Bytes of text.
    written: AtomicU64,
    /// Whether the caller's own code is running.
    in_sink: AtomicBool,
    failure: Mutex<Option<DecodeError>>,
}

impl Watch {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Arc::new(State {
            limits,
            read: AtomicU64::new(0),
            inflated: AtomicU64::new(0),
            written: AtomicU64::new(0),
            in_sink: AtomicBool::new(false),
            failure: Mutex::new(None),
        }))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn add_read(&self, bytes: u64) {
        self.0.read.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.read.load(Relaxed)
    }

    /// Counts text that comes out of `from` bytes of the file.
    pub(crate) fn add_written(&self, bytes: u64, from: u64) -> Result<(), DecodeError> {
        let written = self.0.written.fetch_add(bytes, Relaxed) + bytes;
        self.check(written, from)
    }

    /// Counts bytes inflated from a file of `from` bytes, which may never become text.
    pub(crate) fn add_inflated(&self, bytes: u64, from: u64) -> Result<(), DecodeError> {
        let inflated = self.0.inflated.fetch_add(bytes, Relaxed) + bytes;
        self.check(inflated, from)
    }

    fn check(&self, bytes: u64, from: u64) -> Result<(), DecodeError> {
        let Limits { expanded_max_bytes, ratio_max, ratio_from_bytes, .. } = self.0.limits;
        if bytes > expanded_max_bytes {
            return Err(DecodeError::ExpandsTooFar { limit: expanded_max_bytes });
        }
        if bytes > ratio_from_bytes && bytes > from.max(1).saturating_mul(ratio_max) {
            return Err(DecodeError::ExpandsTooSteeply { limit: ratio_max });
        }
        Ok(())
    }

    /// Leaves the reason for which everything has to stop; the first one counts.
    pub(crate) fn fail(&self, reason: DecodeError) -> io::Error {
        let mut failure = self.0.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(reason);
        io::Error::other("the decode was stopped")
    }

    /// The reason that was left, if there is one.
    pub(crate) fn take_failure(&self) -> Option<DecodeError> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn set_in_sink(&self, in_sink: bool) {
        self.0.in_sink.store(in_sink, Relaxed);
    }

    pub(crate) fn is_in_sink(&self) -> bool {
        self.0.in_sink.load(Relaxed)
    }
}
