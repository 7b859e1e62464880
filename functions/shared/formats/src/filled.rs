//! Full blocks of a source, however its bytes arrive.

use std::io::{self, BufRead, Read};

const BLOCK_BYTES: usize = 64 * 1024;

/// Reads a source in blocks of the same length; only the last one is shorter.
///
/// libzstd accepts some damaged frames if it sees all of their bytes at once, and refuses them otherwise. With full
/// blocks the result depends on the file alone, so each function that decodes it finds the same text.
pub struct Filled<R> {
    source: R,
    block: Vec<u8>,
    position: usize,
    /// An error behind the bytes in `block`.
    error: Option<io::Error>,
}

impl<R: Read> Filled<R> {
    pub const fn new(source: R) -> Self {
        Self { source, block: Vec::new(), position: 0, error: None }
    }

    fn refill(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.block.resize(BLOCK_BYTES, 0);
        let (mut length, mut failed) = (0, None);
        while length < BLOCK_BYTES {
            match self.source.read(&mut self.block[length..]) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        self.block.truncate(length);
        self.position = 0;
        match failed {
            Some(error) if length == 0 => Err(error),
            failed => {
                self.error = failed;
                Ok(())
            }
        }
    }
}

impl<R: Read> BufRead for Filled<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.position == self.block.len() {
            self.refill()?;
        }
        Ok(&self.block[self.position..])
    }

    fn consume(&mut self, count: usize) {
        self.position += count;
    }
}

impl<R: Read> Read for Filled<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(to)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that gives a few bytes at a time, and fails behind them if it is told to.
    struct Drops<'a> {
        bytes: &'a [u8],
        fails: bool,
    }

    impl Read for Drops<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            if self.bytes.is_empty() && self.fails {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            let count = to.len().min(7).min(self.bytes.len());
            to[..count].copy_from_slice(&self.bytes[..count]);
            self.bytes = &self.bytes[count..];
            Ok(count)
        }
    }

    #[test]
    fn blocks_are_full_except_for_the_last() {
        let bytes: Vec<u8> = (0..=255).cycle().take(BLOCK_BYTES + 100).collect();
        let mut filled = Filled::new(Drops { bytes: &bytes, fails: false });
        assert_eq!(filled.fill_buf().unwrap(), &bytes[..BLOCK_BYTES]);
        filled.consume(BLOCK_BYTES);
        assert_eq!(filled.fill_buf().unwrap(), &bytes[BLOCK_BYTES..]);
        filled.consume(100);
        assert!(filled.fill_buf().unwrap().is_empty());
    }

    #[test]
    fn an_error_comes_behind_the_bytes_before_it() {
        let mut filled = Filled::new(Drops { bytes: b"0123456789", fails: true });
        assert_eq!(filled.fill_buf().unwrap(), b"0123456789");
        filled.consume(10);
        assert_eq!(filled.fill_buf().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }
}
