//! The file that all columns read, and the memory that their open pages share.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::source::Source;
use crate::watch::Watch;

/// The file. All columns read from it in turn.
pub(super) struct File<R> {
    source: Mutex<Source<R>>,
    pub(super) size: u64,
    pub(super) watch: Watch,
    page_memory: Arc<PageMemory>,
}

impl<R: Read + Seek> File<R> {
    pub(super) fn open(mut source: Source<R>, watch: &Watch) -> std::io::Result<Self> {
        let size = source.seek(SeekFrom::End(0))?;
        let limit = watch.limits().parquet_pages_max_bytes;
        let page_memory = Arc::new(PageMemory { limit, reserved: AtomicU64::new(0) });
        Ok(Self { source: Mutex::new(source), size, watch: watch.clone(), page_memory })
    }

    /// Reads the bytes of this range, which must be in the file.
    pub(super) fn read(&self, range: Range<u64>) -> std::io::Result<Vec<u8>> {
        let mut source = self.source.lock();
        let mut bytes = vec![0; (range.end - range.start) as usize];
        source.seek(SeekFrom::Start(range.start))?;
        source.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// A reservation for the pages of one column, without any memory yet.
    pub(super) fn reservation(&self) -> Reservation {
        Reservation { memory: Arc::clone(&self.page_memory), dictionary: 0, page: 0 }
    }
}

/// The memory of the open pages of all columns together.
struct PageMemory {
    /// [`Limits::parquet_pages_max_bytes`](crate::Limits::parquet_pages_max_bytes).
    limit: u64,
    reserved: AtomicU64,
}

/// The memory of one column's open pages, released on drop.
pub(super) struct Reservation {
    memory: Arc<PageMemory>,
    dictionary: u64,
    page: u64,
}

/// The purpose of memory that a column reserves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    Dictionary,
    /// Its current data page, which replaces the page before.
    Page,
}

/// The open pages need more memory than this limit, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OutOfPageMemory(pub(super) u64);

impl Reservation {
    /// Changes what is reserved for a purpose to this number of bytes.
    pub(super) fn set(&mut self, purpose: Purpose, bytes: u64) -> Result<(), OutOfPageMemory> {
        let PageMemory { limit, reserved } = &*self.memory;
        let own = match purpose {
            Purpose::Dictionary => &mut self.dictionary,
            Purpose::Page => &mut self.page,
        };
        let others = reserved.fetch_sub(*own, Relaxed) - *own;
        *own = bytes.min(limit + 1);
        reserved.fetch_add(*own, Relaxed);
        if others + *own > *limit { Err(OutOfPageMemory(*limit)) } else { Ok(()) }
    }

    /// Adds to what is reserved for a purpose.
    pub(super) fn add(&mut self, purpose: Purpose, bytes: u64) -> Result<(), OutOfPageMemory> {
        let own = match purpose {
            Purpose::Dictionary => self.dictionary,
            Purpose::Page => self.page,
        };
        self.set(purpose, own.saturating_add(bytes))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.reserved.fetch_sub(self.dictionary + self.page, Relaxed);
    }
}
