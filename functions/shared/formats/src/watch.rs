//! The state that all layers of a decoder share: limits, counters and the reason of a failure.
//!
//! The layers are stacked readers, which can only pass on an `io::Error`. So a layer that stops decoding stores the
//! reason in the [`Watch`]. The reason takes precedence over the error that the stack returns.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::DecodeError;
use crate::limits::Limits;

/// The shared state of one decoder run.
#[derive(Clone)]
pub(crate) struct Watch(Arc<State>);

struct State {
    limits: Limits,
    began: Instant,
    /// Microseconds that reading the file took.
    reading: AtomicU64,
    /// Number of bytes read from the file.
    read: AtomicU64,
    /// Number of decompressed bytes before the conversion to text.
    inflated: AtomicU64,
    /// Number of bytes of text.
    written: AtomicU64,
    /// True if the sink of the caller is running.
    in_sink: AtomicBool,
    failure: Mutex<Option<DecodeError>>,
}

impl Watch {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Arc::new(State {
            limits,
            began: Instant::now(),
            reading: AtomicU64::new(0),
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

    /// Counts the time that `read` takes as waiting for the file.
    pub(crate) fn reading<T>(&self, read: impl FnOnce() -> T) -> T {
        if self.0.limits.busy_max.is_none() {
            return read();
        }
        let began = Instant::now();
        let done = read();
        self.0.reading.fetch_add(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX), Relaxed);
        done
    }

    /// Time for which decoding has computed.
    fn busy(&self) -> Duration {
        self.0.began.elapsed().saturating_sub(Duration::from_micros(self.0.reading.load(Relaxed)))
    }

    pub(crate) fn add_read(&self, bytes: u64) {
        self.0.read.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.read.load(Relaxed)
    }

    /// Counts bytes of text that `from` bytes of the file expand to.
    pub(crate) fn add_written(&self, bytes: u64, from: u64) -> Result<(), DecodeError> {
        let written = self.0.written.fetch_add(bytes, Relaxed) + bytes;
        self.check(written, from)
    }

    /// Counts bytes decompressed from a file of `from` bytes. They do not necessarily become text.
    pub(crate) fn add_inflated(&self, bytes: u64, from: u64) -> Result<(), DecodeError> {
        let inflated = self.0.inflated.fetch_add(bytes, Relaxed) + bytes;
        self.check(inflated, from)
    }

    fn check(&self, bytes: u64, from: u64) -> Result<(), DecodeError> {
        let Limits { busy_max, expanded_max_bytes, ratio_max, ratio_from_bytes, .. } = self.0.limits;
        if let Some(busy_max) = busy_max
            && (bytes > expanded_max_bytes || self.busy() > busy_max)
        {
            return Err(DecodeError::BeginsTooLate { limit: expanded_max_bytes, seconds: busy_max.as_secs() });
        }
        if bytes > expanded_max_bytes {
            return Err(DecodeError::ExpandsTooFar { limit: expanded_max_bytes });
        }
        if bytes > ratio_from_bytes && bytes > from.max(1).saturating_mul(ratio_max) {
            return Err(DecodeError::ExpandsTooSteeply { limit: ratio_max });
        }
        Ok(())
    }

    /// Stores the reason for stopping, unless there is one already, and returns an error for the stack of readers.
    pub(crate) fn fail(&self, reason: DecodeError) -> io::Error {
        let mut failure = self.0.failure.lock();
        failure.get_or_insert(reason);
        io::Error::other("decoding was stopped")
    }

    pub(crate) fn take_failure(&self) -> Option<DecodeError> {
        self.0.failure.lock().take()
    }

    pub(crate) fn set_in_sink(&self, in_sink: bool) {
        self.0.in_sink.store(in_sink, Relaxed);
    }

    pub(crate) fn is_in_sink(&self) -> bool {
        self.0.in_sink.load(Relaxed)
    }
}
