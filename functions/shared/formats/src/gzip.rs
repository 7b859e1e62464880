//! Reads the members of a gzip file.
//!
//! Like `gzip -d`, it ignores bytes behind the last member that do not begin another one, such as zeros that a tape or
//! a block device padded the file with. It notes where they begin, so that the job can tell its owner.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The first two bytes of a member.
const MAGIC: [u8; 2] = [0x1F, 0x8B];

/// The text of all members of a gzip file, one after the other.
pub(crate) struct Members<R> {
    state: State<R>,
    /// Number of bytes looked at behind the last member, if they do not begin another one.
    ignored: Option<u64>,
}

enum State<R> {
    Member(Box<GzDecoder<Ahead<R>>>),
    Ended,
}

impl<R: BufRead> Members<R> {
    pub(crate) fn new(file: R) -> Self {
        Self { state: State::Member(Box::new(GzDecoder::new(Ahead::new(file)))), ignored: None }
    }

    /// Number of bytes read behind the last member, if bytes follow it that gzip ignores. Known at the end of the text.
    pub(crate) const fn ignored(&self) -> Option<u64> {
        self.ignored
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let State::Member(member) = &mut self.state {
            match member.read(buffer)? {
                0 if !buffer.is_empty() => {}
                count => return Ok(count),
            }
            let State::Member(member) = std::mem::replace(&mut self.state, State::Ended) else { break };
            let mut rest = member.into_inner();
            match rest.look_ahead()? {
                MagicSeen::Member => self.state = State::Member(Box::new(GzDecoder::new(rest))),
                MagicSeen::OtherBytes => self.ignored = Some(rest.ahead.len() as u64),
                MagicSeen::End => {}
            }
        }
        Ok(0)
    }
}

/// The bytes behind a member.
enum MagicSeen {
    Member,
    OtherBytes,
    End,
}

/// A reader that can look two bytes ahead, however few bytes its source returns at once.
struct Ahead<R> {
    inner: R,
    ahead: Vec<u8>,
}

impl<R: BufRead> Ahead<R> {
    const fn new(inner: R) -> Self {
        Self { inner, ahead: Vec::new() }
    }

    fn look_ahead(&mut self) -> io::Result<MagicSeen> {
        while self.ahead.len() < MAGIC.len() {
            let byte = match self.inner.fill_buf() {
                Ok(bytes) => bytes.first().copied(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let Some(byte) = byte else { break };
            self.inner.consume(1);
            self.ahead.push(byte);
        }
        Ok(match self.ahead.as_slice() {
            [] => MagicSeen::End,
            ahead if ahead == MAGIC => MagicSeen::Member,
            _ => MagicSeen::OtherBytes,
        })
    }
}

impl<R: BufRead> Read for Ahead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Ahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.ahead.is_empty() { self.inner.fill_buf() } else { Ok(&self.ahead) }
    }

    fn consume(&mut self, count: usize) {
        match self.ahead.is_empty() {
            true => self.inner.consume(count),
            false => drop(self.ahead.drain(..count.min(self.ahead.len()))),
        }
    }
}
