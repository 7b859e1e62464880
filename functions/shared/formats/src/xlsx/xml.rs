//! Reads the XML of a workbook's parts piece by piece, under limits.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesEnd, BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use crate::error::{DecodeError, Place, shortened};
use crate::watch::Watch;
use crate::zip::Part;

/// Maximum nesting depth of elements. Real workbooks have little nesting.
const DEPTH_MAX: usize = 64;

/// Maximum size of a part that is not a sheet, in bytes, because its text can be held in memory.
pub(super) const SMALL_PART_MAX_BYTES: u64 = 16 * 1024 * 1024;

/// A reader of the elements and texts of a part, in their order.
pub(super) struct Xml<'a, R> {
    reader: Reader<Bounded<BufReader<Part<'a, R>>>>,
    buffer: Vec<u8>,
    depth: usize,
    part: &'a str,
    watch: Watch,
}

pub(super) enum Piece<'a> {
    Start(BytesStart<'a>),
    End(BytesEnd<'a>),
    /// A piece of text; more may follow.
    Text(Cow<'a, str>),
    Eof,
}

impl<'a, R: Read> Xml<'a, R> {
    /// Reads a part. `too_large` makes the error if the part is longer than `max_bytes`.
    pub(super) fn new(
        content: Part<'a, R>,
        part: &'a str,
        watch: &Watch,
        max_bytes: u64,
        too_large: fn(u64) -> DecodeError,
    ) -> Self {
        let bounded = Bounded {
            inner: BufReader::with_capacity(64 * 1024, content),
            since_event: 0,
            event_max_bytes: watch.limits().record_max_bytes,
            left: max_bytes.saturating_add(1),
            too_large: (max_bytes, too_large),
            watch: watch.clone(),
        };
        let mut reader = Reader::from_reader(bounded);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.check_end_names = false;
        Self { reader, buffer: Vec::with_capacity(4096), depth: 0, part, watch: watch.clone() }
    }

    pub(super) fn next(&mut self) -> Result<Piece<'_>, DecodeError> {
        self.buffer.clear();
        self.reader.get_mut().since_event = 0;
        let event = match self.reader.read_event_into(&mut self.buffer) {
            Ok(event) => event,
            Err(error) => return Err(xml_error(error, self.part, &self.watch)),
        };
        match event {
            Event::Start(start) => {
                self.depth += 1;
                match self.depth > DEPTH_MAX {
                    true => Err(damaged(self.part, "its elements are nested too deeply")),
                    false => Ok(Piece::Start(start)),
                }
            }
            Event::End(end) => {
                self.depth = self.depth.saturating_sub(1);
                Ok(Piece::End(end))
            }
            Event::Text(text) => Ok(Piece::Text(text.xml10_content())),
            Event::CData(text) => Ok(Piece::Text(text.xml10_content())),
            Event::GeneralRef(reference) => match resolved(&reference) {
                Some(text) => Ok(Piece::Text(text)),
                None => Err(damaged(self.part, "it refers to an entity that is not defined")),
            },
            Event::DocType(_) => Err(damaged(self.part, "it declares a document type")),
            Event::Eof => Ok(Piece::Eof),
            Event::Comment(_) | Event::PI(_) | Event::Decl(_) | Event::Empty(_) => Ok(Piece::Text(Cow::Borrowed(""))),
        }
    }

    /// The share of the part that was read, from 0 to 1.
    pub(super) fn progress(&self) -> f64 {
        self.reader.get_ref().inner.get_ref().progress()
    }

    pub(super) fn damaged(&self, problem: &'static str) -> DecodeError {
        damaged(self.part, problem)
    }
}

fn damaged(part: &str, problem: &'static str) -> DecodeError {
    DecodeError::Corrupt { format: "workbook", at: Place::Part(shortened(part)), problem, source: None }
}

fn xml_error(error: quick_xml::Error, part: &str, watch: &Watch) -> DecodeError {
    if let Some(failure) = watch.take_failure() {
        return failure;
    }
    let problem = match &error {
        quick_xml::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => "data is missing at its end",
        quick_xml::Error::Io(_) => "its data cannot be decompressed, or the checksum does not match",
        _ => "it is not well-formed XML",
    };
    let (at, source) = (Place::Part(shortened(part)), Some(error.into()));
    DecodeError::Corrupt { format: "workbook", at, problem, source }
}

fn resolved(reference: &BytesRef<'_>) -> Option<Cow<'static, str>> {
    match reference.resolve_char_ref() {
        Ok(Some(char)) => Some(Cow::Owned(char.to_string())),
        Ok(None) => resolve_predefined_entity(reference).map(Cow::Borrowed),
        Err(_) => None,
    }
}

/// The value of the attribute with this local name.
pub(super) fn attribute<'e>(element: &'e BytesStart<'_>, local_name: &str) -> Option<Cow<'e, str>> {
    let mut attributes = element.attributes();
    let found = attributes.with_checks(false).flatten().find(|found| found.key.local_name().as_ref() == local_name)?;
    Some(found.normalized_value(XmlVersion::Implicit1_0).unwrap_or(found.value))
}

/// Limits the size of the whole part, and of each tag and text, because the parser holds these in memory.
struct Bounded<B> {
    inner: B,
    since_event: usize,
    event_max_bytes: usize,
    left: u64,
    too_large: (u64, fn(u64) -> DecodeError),
    watch: Watch,
}

impl<B: BufRead> Read for Bounded<B> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(buffer.len());
        buffer[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<B: BufRead> BufRead for Bounded<B> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.since_event > self.event_max_bytes {
            let limit = self.event_max_bytes as u64;
            return Err(self
                .watch
                .fail(DecodeError::SheetTooLarge { what: "bytes in one of its texts or tags", limit }));
        }
        if self.left == 0 {
            let (limit, too_large) = self.too_large;
            return Err(self.watch.fail(too_large(limit)));
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.since_event += count;
        self.left = self.left.saturating_sub(count as u64);
        self.inner.consume(count);
    }
}
