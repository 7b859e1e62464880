//! Counts the bytes read from a file.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use crate::error::DecodeError;
use crate::watch::Watch;

/// A reader of the file. It counts the bytes read, and keeps errors of reading apart from errors of the content.
pub(crate) struct Source<R> {
    inner: R,
    watch: Watch,
}

impl<R> Source<R> {
    pub(crate) fn new(inner: R, watch: &Watch) -> Self {
        Self { inner, watch: watch.clone() }
    }

    pub(crate) fn watch(&self) -> Watch {
        self.watch.clone()
    }

    fn recorded(watch: &Watch, error: io::Error) -> io::Error {
        match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => watch.fail(DecodeError::Source(error)),
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (watch, inner) = (&self.watch, &mut self.inner);
        let count = watch.reading(|| inner.read(buffer)).map_err(|error| Self::recorded(&self.watch, error))?;
        self.watch.add_read(count as u64);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let watch = &self.watch;
        let inner = &mut self.inner;
        watch.reading(|| inner.fill_buf()).map_err(|error| Self::recorded(watch, error))
    }

    fn consume(&mut self, count: usize) {
        self.inner.consume(count);
        self.watch.add_read(count as u64);
    }
}

impl<R: Seek> Seek for Source<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to).map_err(|error| match error.kind() {
            // A position that no file has: it comes from the content of the file, so it is not an error of reading.
            io::ErrorKind::InvalidInput => error,
            _ => Self::recorded(&self.watch, error),
        })
    }
}
