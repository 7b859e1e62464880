//! Reads zip archives: workbooks, and archives whose members are the files of a job.
//!
//! No zip crate is used, because those believe the declared number of files and allocate memory for it. All that is
//! needed here is to find a member and to decompress it under a limit.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::bufread::DeflateDecoder;
use memchr::memmem;

use rowmill_core::model::files::ZipMember;

use crate::error::{DecodeError, Place};
use crate::source::Source;
use crate::watch::Watch;

/// Maximum size of the archive's directory, in bytes. A member needs about 100 bytes.
const DIRECTORY_MAX_BYTES: u64 = 4 * 1024 * 1024;

const END_MAGIC: &[u8] = b"PK\x05\x06";
const END_BYTES: usize = 22;
const END_64_LOCATOR_MAGIC: &[u8] = b"PK\x06\x07";
const END_64_LOCATOR_BYTES: usize = 20;
const END_64_MAGIC: &[u8] = b"PK\x06\x06";
const END_64_BYTES: usize = 56;
const ENTRY_MAGIC: &[u8] = b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
const LOCAL_MAGIC: &[u8] = b"PK\x03\x04";
/// Length of the header before the data of a member, without the name and the extra field.
pub(crate) const LOCAL_BYTES: usize = 30;
/// Marks a 32-bit field whose real value is in the ZIP64 extra field.
const IN_EXTRA_FIELD: u64 = 0xFFFF_FFFF;

/// What an archive is to its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Workbook,
    /// Its members are files.
    Files,
}

impl Kind {
    pub(crate) fn damaged(self, problem: &'static str) -> DecodeError {
        let format = if self == Self::Workbook { "workbook" } else { "zip archive" };
        DecodeError::Corrupt { format, at: Place::Somewhere, problem, source: None }
    }

    fn directory_too_long(self) -> DecodeError {
        let (what, limit) = ("bytes in its archive directory", DIRECTORY_MAX_BYTES);
        match self {
            Self::Workbook => DecodeError::SheetTooLarge { what, limit },
            Self::Files => DecodeError::UnsupportedZip { what: format!("has more than the maximum of {limit} {what}") },
        }
    }

    fn unsupported(self, what: &'static str) -> DecodeError {
        match self {
            Self::Workbook => DecodeError::UnsupportedXlsx { what },
            Self::Files => DecodeError::UnsupportedZip { what: what.to_owned() },
        }
    }
}

/// An archive, and the members that its directory lists.
pub(crate) struct Archive<R> {
    kind: Kind,
    file: Source<R>,
    size: u64,
    members: Vec<(String, ZipMember)>,
    watch: Watch,
}

/// Where the directory of an archive is, and how many members it lists.
struct Directory {
    offset: u64,
    length: u64,
    entries: u64,
}

impl<R: Read + Seek> Archive<R> {
    /// Reads the directory at the end of the file.
    pub(crate) fn open(kind: Kind, file: Source<R>, watch: &Watch) -> Result<Self, DecodeError> {
        let mut archive = Self::of_members(kind, file, 0, watch);
        archive.size = archive.file.seek(SeekFrom::End(0)).map_err(|error| archive.read_error(error))?;
        let Directory { offset, length, entries } = archive.directory()?;
        let directory = archive.read_at(offset, length as usize)?;
        archive.members = archive.listed(&directory)?;
        // A workbook is used as far as it can be read.
        if kind == Kind::Files && archive.members.len() as u64 != entries {
            return Err(kind.damaged("its directory does not list all of its files"));
        }
        Ok(archive)
    }

    /// An archive of this length, of which the members are known.
    pub(crate) fn of_members(kind: Kind, file: Source<R>, size: u64, watch: &Watch) -> Self {
        Self { kind, file, size, members: Vec::new(), watch: watch.clone() }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The members in the order of the directory, with their paths.
    pub(crate) fn members(&self) -> &[(String, ZipMember)] {
        &self.members
    }

    /// The member with this path. Paths in workbooks are case-insensitive.
    pub(crate) fn find(&self, path: &str) -> Option<ZipMember> {
        let path = normalized(path);
        self.members.iter().find(|(name, _)| normalized(name) == path).map(|(_, member)| *member)
    }

    /// A reader of the decompressed member.
    pub(crate) fn read<'a>(&'a mut self, member: &ZipMember) -> Result<Part<'a, R>, DecodeError> {
        if member.is_encrypted {
            return Err(self.kind.unsupported("is encrypted"));
        }
        let header = self.read_at(member.offset, LOCAL_BYTES)?;
        if !header.starts_with(LOCAL_MAGIC) {
            return Err(self.kind.damaged("a part is missing at the position in the directory"));
        }
        let start = member.offset + LOCAL_BYTES as u64 + number(&header, 26, 2) + number(&header, 28, 2);
        self.file.seek(SeekFrom::Start(start)).map_err(|error| self.read_error(error))?;
        let watch = self.watch.clone();
        let compressed = BufReader::with_capacity(64 * 1024, (&mut self.file).take(member.bytes));
        let content = match member.method {
            0 => Content::Stored(compressed),
            8 => Content::Deflated(Box::new(DeflateDecoder::new(compressed))),
            _ => return Err(self.kind.unsupported("is compressed with a method other than deflate")),
        };
        Ok(Part {
            content,
            crc32: crc32fast::Hasher::new(),
            expected_crc32: member.crc32,
            compressed_bytes: member.bytes,
            // The sum of these lengths is what an archive of files may expand to.
            left: (self.kind == Kind::Files).then_some(member.inflated_bytes),
            expands_from: if self.kind == Kind::Workbook { self.size } else { member.bytes },
            watch,
        })
    }

    /// The place of the directory.
    fn directory(&mut self) -> Result<Directory, DecodeError> {
        let tail_bytes = self.size.min((END_BYTES + usize::from(u16::MAX) + END_64_LOCATOR_BYTES) as u64);
        let tail_offset = self.size - tail_bytes;
        let tail = self.read_at(tail_offset, tail_bytes as usize)?;
        // The end record ends with a comment, and the comment ends the file.
        let at = memmem::rfind_iter(&tail, END_MAGIC)
            .find(|&at| {
                at + END_BYTES <= tail.len() && at + END_BYTES + number(&tail, at + 20, 2) as usize == tail.len()
            })
            .ok_or_else(|| self.kind.damaged("the end of its directory is missing"))?;
        let mut entries = number(&tail, at + 10, 2);
        let (mut length, mut offset) = (number(&tail, at + 12, 4), number(&tail, at + 16, 4));
        let locator = at.checked_sub(END_64_LOCATOR_BYTES).filter(|&at| tail[at..].starts_with(END_64_LOCATOR_MAGIC));
        if let Some(locator) = locator {
            let end = self.read_at(number(&tail, locator + 8, 8), END_64_BYTES)?;
            if !end.starts_with(END_64_MAGIC) {
                return Err(self.kind.damaged("its directory is missing at the declared position"));
            }
            (entries, length, offset) = (number(&end, 32, 8), number(&end, 40, 8), number(&end, 48, 8));
        }
        if length > DIRECTORY_MAX_BYTES {
            return Err(self.kind.directory_too_long());
        }
        Ok(Directory { offset, length, entries })
    }

    fn read_at(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, DecodeError> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(self.kind.damaged("it refers to a position after its end"));
        }
        let mut bytes = vec![0; length];
        let read = self.file.seek(SeekFrom::Start(offset)).and_then(|_| self.file.read_exact(&mut bytes));
        read.map(|()| bytes).map_err(|error| self.read_error(error))
    }

    fn read_error(&self, error: io::Error) -> DecodeError {
        self.watch.take_failure().unwrap_or_else(|| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
                self.kind.damaged("it refers to a position after its end")
            }
            _ => DecodeError::Source(error),
        })
    }

    /// Parses the members in a directory.
    fn listed(&self, mut directory: &[u8]) -> Result<Vec<(String, ZipMember)>, DecodeError> {
        let mut members = Vec::new();
        while directory.starts_with(ENTRY_MAGIC) && directory.len() >= ENTRY_BYTES {
            let field = |at| number(directory, at, 2) as usize;
            let (name_bytes, extra_bytes, comment_bytes) = (field(28), field(30), field(32));
            let name_end = ENTRY_BYTES + name_bytes;
            let extra_end = name_end + extra_bytes;
            let end = extra_end + comment_bytes;
            if directory.len() < end {
                return Err(self.kind.damaged("its directory ends inside an entry"));
            }
            let mut large = large_numbers(&directory[name_end..extra_end]);
            let mut large_or = |at| match number(directory, at, 4) {
                IN_EXTRA_FIELD => large.next().unwrap_or(IN_EXTRA_FIELD),
                number => number,
            };
            // The extra field has these numbers in this order, each one only if it did not fit into its 32-bit field.
            let (inflated_bytes, bytes, offset) = (large_or(24), large_or(20), large_or(42));
            let member = ZipMember {
                archive_bytes: self.size,
                offset,
                bytes,
                inflated_bytes,
                crc32: number(directory, 16, 4) as u32,
                method: number(directory, 10, 2) as u16,
                is_encrypted: number(directory, 8, 2) & 1 == 1,
            };
            members.push((String::from_utf8_lossy(&directory[ENTRY_BYTES..name_end]).into_owned(), member));
            directory = &directory[end..];
        }
        Ok(members)
    }
}

/// The 64-bit numbers in the ZIP64 extra field of an entry.
fn large_numbers(mut extra: &[u8]) -> impl Iterator<Item = u64> {
    const ZIP_64: u64 = 1;
    let mut numbers: &[u8] = &[];
    while extra.len() >= 4 {
        let (id, length) = (number(extra, 0, 2), number(extra, 2, 2) as usize);
        let Some(content) = extra.get(4..4 + length) else { break };
        if id == ZIP_64 {
            numbers = content;
        }
        extra = &extra[4 + length..];
    }
    numbers.chunks_exact(8).map(|bytes| number(bytes, 0, 8))
}

/// The little-endian number of `length` bytes at `at`. The bytes must exist.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn normalized(path: &str) -> String {
    path.trim_start_matches('/').replace('\\', "/").to_ascii_lowercase()
}

/// A reader that decompresses a part. Reading its end fails if the checksum does not match.
pub(crate) struct Part<'a, R> {
    content: Content<'a, R>,
    crc32: crc32fast::Hasher,
    expected_crc32: u32,
    compressed_bytes: u64,
    /// Number of bytes that may follow, if that is known.
    left: Option<u64>,
    /// Number of bytes of the file that the text is made from.
    expands_from: u64,
    watch: Watch,
}

type Compressed<'a, R> = BufReader<io::Take<&'a mut Source<R>>>;

enum Content<'a, R> {
    Stored(Compressed<'a, R>),
    Deflated(Box<DeflateDecoder<Compressed<'a, R>>>),
}

impl<R: Read> Part<'_, R> {
    pub(crate) fn expands_from(&self) -> u64 {
        self.expands_from
    }

    /// The share of this part that was read, from 0 to 1.
    pub(crate) fn progress(&self) -> f64 {
        let left = match &self.content {
            Content::Stored(compressed) => compressed.get_ref().limit(),
            Content::Deflated(decoder) => decoder.get_ref().get_ref().limit(),
        };
        1.0 - left as f64 / self.compressed_bytes.max(1) as f64
    }
}

impl<R: Read> Read for Part<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.content {
            Content::Stored(compressed) => compressed.read(buffer)?,
            Content::Deflated(decoder) => decoder.read(buffer)?,
        };
        if count == 0 && !buffer.is_empty() && self.crc32.clone().finalize() != self.expected_crc32 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum does not match"));
        }
        if let Some(left) = &mut self.left {
            let rest = left.checked_sub(count as u64);
            *left = rest.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is longer than declared"))?;
        }
        self.crc32.update(&buffer[..count]);
        self.watch.add_inflated(count as u64, self.expands_from).map_err(|error| self.watch.fail(error))?;
        Ok(count)
    }
}
