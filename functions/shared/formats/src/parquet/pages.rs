//! Reads the pages of a column under limits.
//!
//! The page reader of the crate `parquet` decompresses a page without a limit, and its decoders allocate memory for as
//! many values as a page declares. So pages are read and checked here before the decoders get them.

use std::io::{Read, Seek};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescPtr;

use super::codec::Codec;
use super::file::{File, OutOfPageMemory, Purpose, Reservation};
use super::footer::{Chunk, place};
use super::header::{Header, Kind, encoding_of};
use super::levels::{count_records, delta_run};
use super::thrift::ThriftError;
use super::{damaged, unsupported};
use crate::error::DecodeError;

/// Numbers of bytes to read for a page header. The next larger one is tried if the header is longer, because it
/// contains long statistics.
const HEADER_WINDOWS: [u64; 4] = [512, 16 * 1024, 1024 * 1024, 16 * 1024 * 1024];

/// Tolerance for old writers that declare too few bytes for the pages of a column: they did not count one header.
const UNCOUNTED_BYTES: u64 = 100;

/// Memory that a dictionary value takes in addition to its content.
const DICTIONARY_VALUE_BYTES: u64 = 32;

/// Maximum number of records that are read from a column at a time.
const BATCH_MAX: u64 = 1024;

/// Maximum number of records a column may read from its pages at a time. The pages set it, and the column reads it.
#[derive(Default)]
pub(super) struct ReadLimit {
    /// Records that begin in the pages opened so far and are not read yet.
    pub(super) unread: AtomicU64,
    /// Maximum number of records in a batch.
    pub(super) batch: AtomicU64,
}

/// The pages of one column in one row group.
pub(super) struct Pages<R> {
    file: Arc<File<R>>,
    descr: ColumnDescPtr,
    codec: Codec,
    /// From the next header to the end of the last page.
    rest: Range<u64>,
    values_left: u64,
    /// A header that was read ahead; `rest` starts after it.
    next: Option<Header>,
    read_limit: Arc<ReadLimit>,
    /// Number of values so far in the record that continues on the next page.
    open_values: u64,
    /// Memory of the dictionary and of the last page.
    reservation: Reservation,
    has_dictionary: bool,
    column: usize,
    row_group: usize,
    /// Number of rows before those of the next page.
    rows: u64,
}

impl<R: Read + Seek> Pages<R> {
    pub(super) fn new(
        file: &Arc<File<R>>,
        descr: ColumnDescPtr,
        chunk: Chunk,
        read_limit: &Arc<ReadLimit>,
        (column, row_group, rows): (usize, usize, u64),
    ) -> Self {
        Self {
            file: Arc::clone(file),
            descr,
            codec: chunk.codec,
            rest: chunk.start..chunk.start.saturating_add(chunk.bytes).saturating_add(UNCOUNTED_BYTES).min(file.size),
            values_left: chunk.values,
            next: None,
            read_limit: Arc::clone(read_limit),
            open_values: 0,
            reservation: file.reservation(),
            has_dictionary: false,
            column,
            row_group,
            rows,
        }
    }

    /// Stores the reason in the watch. The caller of the decoders takes it from there instead of their own error.
    fn fail(&self, reason: DecodeError) -> ParquetError {
        self.file.watch.fail(reason).into()
    }

    fn damaged(&self, problem: &'static str) -> ParquetError {
        self.fail(damaged(place(self.column, self.row_group), problem))
    }

    /// The header of the next page that has values.
    fn peek(&mut self) -> Result<Option<Header>> {
        while self.next.is_none() && self.values_left > 0 && !self.rest.is_empty() {
            let header = self.read_header()?;
            match header.kind {
                Kind::Other | Kind::Data { values: 0, .. } | Kind::DataV2 { values: 0, .. } => {
                    self.rest.start += header.compressed_bytes as u64;
                }
                _ => self.next = Some(header),
            }
        }
        Ok(self.next)
    }

    fn read_header(&mut self) -> Result<Header> {
        for window in HEADER_WINDOWS {
            let end = self.file.size.min(self.rest.start + window);
            let bytes = self.file.read(self.rest.start..end)?;
            match Header::read(&bytes) {
                Ok((header, length)) => {
                    self.rest.start += length as u64;
                    return Ok(header);
                }
                Err(ThriftError::Ends) if end < self.file.size => {}
                Err(_) => break,
            }
        }
        Err(self.damaged("a page header cannot be read"))
    }

    fn read_page(&mut self, header: Header) -> Result<Page> {
        let purpose = if matches!(header.kind, Kind::Dictionary { .. }) { Purpose::Dictionary } else { Purpose::Page };
        // An uncompressed page has its stored size, even if it declares a smaller one.
        let reserved = self.reservation.set(purpose, header.bytes.max(header.compressed_bytes) as u64);
        self.check_memory(reserved)?;
        let buf = Bytes::from(self.content(&header)?);
        match header.kind {
            Kind::Dictionary { values, encoding } => self.dictionary_page(buf, values, encoding),
            Kind::Data { values, encoding, def_encoding, rep_encoding } => {
                let encoding = self.encoding(encoding)?;
                let (rep, data) = self.split_levels(&buf, def_encoding, rep_encoding)?;
                self.check_values(values, encoding, rep, data)?;
                let (def_level_encoding, rep_level_encoding) = (Encoding::RLE, Encoding::RLE);
                let statistics = None;
                Ok(Page::DataPage {
                    buf: buf.clone(),
                    num_values: values,
                    encoding,
                    def_level_encoding,
                    rep_level_encoding,
                    statistics,
                })
            }
            Kind::DataV2 { values, nulls, rows, encoding, def_bytes, rep_bytes, .. } => {
                let encoding = self.encoding(encoding)?;
                let levels_bytes = def_bytes as usize + rep_bytes as usize;
                let Some((levels, data)) = buf.split_at_checked(levels_bytes) else {
                    return Err(self.too_short());
                };
                self.check_values(values, encoding, &levels[..rep_bytes as usize], data)?;
                Ok(Page::DataPageV2 {
                    buf: buf.clone(),
                    num_values: values,
                    encoding,
                    num_nulls: nulls,
                    num_rows: rows,
                    def_levels_byte_len: def_bytes,
                    rep_levels_byte_len: rep_bytes,
                    is_compressed: false,
                    statistics: None,
                })
            }
            Kind::Other => Err(self.damaged("a page has an unknown type")),
        }
    }

    fn dictionary_page(&mut self, buf: Bytes, values: u32, encoding: i64) -> Result<Page> {
        if std::mem::replace(&mut self.has_dictionary, true) {
            return Err(self.damaged("it has two dictionaries"));
        }
        let reserved = self.reservation.add(Purpose::Dictionary, u64::from(values) * DICTIONARY_VALUE_BYTES);
        self.check_memory(reserved)?;
        let encoding = self.encoding(encoding)?;
        Ok(Page::DictionaryPage { buf, num_values: values, encoding, is_sorted: false })
    }

    /// Splits a version 1 page into its repetition levels and the data after both kinds of levels.
    fn split_levels<'p>(&self, page: &'p [u8], def_encoding: i64, rep_encoding: i64) -> Result<(&'p [u8], &'p [u8])> {
        let (mut rest, mut rep) = (page, &page[..0]);
        let kinds = [(self.descr.max_rep_level(), rep_encoding), (self.descr.max_def_level(), def_encoding)];
        for (index, (max_level, encoding)) in kinds.into_iter().enumerate() {
            if max_level == 0 {
                continue;
            }
            if encoding_of(encoding) != Some(Encoding::RLE) {
                return Err(self.unsupported_encoding(encoding));
            }
            let levels = split_prefixed(&mut rest).ok_or_else(|| self.too_short())?;
            if index == 0 {
                rep = levels;
            }
        }
        Ok((rep, rest))
    }

    fn too_short(&self) -> ParquetError {
        self.damaged("a page is shorter than it declares")
    }

    /// The decompressed content of the page whose header was just read.
    fn content(&mut self, header: &Header) -> Result<Vec<u8>> {
        let end = self.rest.start.checked_add(header.compressed_bytes as u64).filter(|&end| end <= self.file.size);
        let Some(end) = end else { return Err(self.damaged("a page is longer than the file")) };
        let limit = self.file.watch.limits().parquet_pages_max_bytes;
        if header.compressed_bytes as u64 > limit {
            return Err(self.out_of_memory(OutOfPageMemory(limit)));
        }
        let stored = self.file.read(self.rest.start..end)?;
        self.rest.start = end;
        if header.crc32.is_some_and(|crc32| crc32 != crc32fast::hash(&stored)) {
            return Err(self.damaged("the checksum of a page does not match"));
        }
        let levels_bytes = match header.kind {
            Kind::DataV2 { is_compressed: false, .. } => return Ok(stored),
            Kind::DataV2 { def_bytes, rep_bytes, .. } => def_bytes as usize + rep_bytes as usize,
            _ => 0,
        };
        if self.codec == Codec::Uncompressed {
            return Ok(stored);
        }
        let mut content = Vec::with_capacity(header.bytes);
        let size = header.bytes.checked_sub(levels_bytes);
        let (Some(size), Some((levels, values))) = (size, stored.split_at_checked(levels_bytes)) else {
            return Err(self.too_short());
        };
        content.extend_from_slice(levels);
        // A page without values may have no compressed data at all.
        if size > 0
            && let Err(cause) = self.codec.decompress(values, size, &mut content)
        {
            let at = place(self.column, self.row_group);
            let problem = "a page cannot be decompressed";
            return Err(self.fail(DecodeError::Corrupt { format: "Parquet file", at, problem, source: Some(cause) }));
        }
        self.file.watch.add_inflated(content.len() as u64, self.file.size).map_err(|error| self.fail(error))?;
        Ok(content)
    }

    /// Checks that the decoders do not need too much memory for a page, and sets how much they may read at a time.
    fn check_values(&mut self, values: u32, encoding: Encoding, rep: &[u8], data: &[u8]) -> Result<()> {
        let values = u64::from(values);
        self.values_left = self.values_left.saturating_sub(values);
        let (mut begun, mut batch) = (values, BATCH_MAX);
        let max_rep = self.descr.max_rep_level();
        if max_rep > 0 {
            let bits = 16 - (max_rep as u16).leading_zeros();
            let Some(records) = count_records(rep, bits, values, self.open_values) else {
                return Err(self.damaged("a page has fewer levels than it declares"));
            };
            let limit = self.file.watch.limits().record_max_bytes as u64 / 2;
            if records.longest > limit {
                let row = self.rows + records.begun.max(1);
                return Err(self.fail(DecodeError::RecordTooLong { what: "A list", row, limit, unit: "elements" }));
            }
            (begun, self.open_values) = (records.begun, records.open);
            batch = (64 * 1024 / records.longest.max(1)).clamp(1, BATCH_MAX);
        }
        match encoding {
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY if !self.has_dictionary => {
                return Err(self.damaged("a page refers to a missing dictionary"));
            }
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                let lengths = delta_run(data).map(|(count, _)| count);
                self.reserve_lengths(lengths)?;
            }
            Encoding::DELTA_BYTE_ARRAY => {
                let prefixes = delta_run(data);
                let suffixes = prefixes.and_then(|(_, end)| delta_run(&data[end..]));
                self.reserve_lengths(prefixes.zip(suffixes).and_then(|((one, _), (other, _))| one.checked_add(other)))?;
                // Each value can repeat everything before it in the page.
                batch = batch.min(4 * 1024 * 1024 / data.len().max(1) as u64).max(1);
            }
            _ => {}
        }
        self.rows += begun;
        self.read_limit.unread.fetch_add(begun, Relaxed);
        self.read_limit.batch.store(batch, Relaxed);
        Ok(())
    }

    /// Reserves memory for the lengths that the decoder stores for the values of a page: 4 bytes each.
    fn reserve_lengths(&mut self, count: Option<u64>) -> Result<()> {
        match count.and_then(|count| count.checked_mul(4)) {
            Some(bytes) => {
                let reserved = self.reservation.add(Purpose::Page, bytes);
                self.check_memory(reserved)
            }
            None => Err(self.damaged("the lengths in a page cannot be read")),
        }
    }

    fn check_memory(&self, reserved: std::result::Result<(), OutOfPageMemory>) -> Result<()> {
        reserved.map_err(|error| self.out_of_memory(error))
    }

    fn out_of_memory(&self, OutOfPageMemory(limit): OutOfPageMemory) -> ParquetError {
        let advice = "Write it with smaller pages or row groups, or with fewer columns.";
        self.fail(unsupported(format!("needs more than {limit} bytes of pages in memory at the same time"), advice))
    }

    fn encoding(&self, number: i64) -> Result<Encoding> {
        match encoding_of(number) {
            Some(Encoding::RLE) if self.descr.physical_type() != PhysicalType::BOOLEAN => {
                Err(self.unsupported_encoding(number))
            }
            Some(encoding) => Ok(encoding),
            None => Err(self.unsupported_encoding(number)),
        }
    }

    fn unsupported_encoding(&self, number: i64) -> ParquetError {
        let what = format!("has a column (number {}) with encoding number {number}", self.column + 1);
        self.fail(unsupported(what, "Write it with the encodings PLAIN and RLE_DICTIONARY."))
    }
}

/// Splits off bytes that are preceded by their length.
fn split_prefixed<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(bytes.split_off(..4)?.try_into().ok()?);
    bytes.split_off(..length as usize)
}

impl<R: Read + Seek + Send> PageReader for Pages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.peek()?;
        self.next.take().map(|header| self.read_page(header)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Ok(self.peek()?.map(|header| PageMetadata {
            num_rows: match header.kind {
                Kind::DataV2 { rows, .. } => Some(rows as usize),
                _ => None,
            },
            num_levels: Some(header.values() as usize),
            is_dict: matches!(header.kind, Kind::Dictionary { .. }),
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        if let Some(header) = self.peek()? {
            self.next = None;
            self.rest.start += header.compressed_bytes as u64;
            self.values_left = self.values_left.saturating_sub(header.values().into());
        }
        Ok(())
    }
}

impl<R: Read + Seek + Send> Iterator for Pages<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
