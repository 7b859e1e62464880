//! The file's own bytes, counted.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use crate::error::DecodeError;
use crate::watch::Watch;

/// The file: counts what is read of it and keeps its errors apart from those of its content.
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

    fn noted(watch: &Watch, error: io::Error) -> io::Error {
        match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => watch.fail(DecodeError::Source(error)),
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer).map_err(|error| Self::noted(&self.watch, error))?;
        self.watch.add_read(count as u64);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let watch = &self.watch;
        self.inner.fill_buf().map_err(|error| Self::noted(watch, error))
    }

    fn consume(&mut self, count: usize) {
        self.inner.consume(count);
        self.watch.add_read(count as u64);
    }
}

impl<R: Seek> Seek for Source<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to).map_err(|error| match error.kind() {
            // To where no file has a byte: its content sent us there.
            io::ErrorKind::InvalidInput => error,
            _ => Self::noted(&self.watch, error),
        })
    }
}
