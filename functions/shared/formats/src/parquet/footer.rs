//! The footer of a Parquet file: its columns, and the positions of their pages.
//!
//! The counts in the footer are checked before the schema parser of the crate `parquet` gets them, because that parser
//! recurses and allocates memory as the counts say.

use parquet::file::metadata::ParquetMetaDataReader;
use parquet::schema::types::SchemaDescPtr;

use super::codec::Codec;
use super::thrift::{Thrift, ThriftError, Type};
use super::{damaged_footer, unsupported};
use crate::error::{DecodeError, Place};

pub(super) const FOOTER_MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum number of columns. Each leaf of a nested column counts.
const COLUMNS_MAX: usize = 2000;

/// Maximum nesting depth of columns.
const DEPTH_MAX: usize = 32;

/// Maximum length of a column name, in bytes.
const NAME_MAX_BYTES: usize = 512;

/// Maximum number of row groups and their columns together. Each takes a few bytes in the footer and 32 in memory.
const PARTS_MAX: usize = 1_000_000;

pub(super) struct Footer {
    pub(super) schema: SchemaDescPtr,
    pub(super) row_groups: Vec<RowGroup>,
}

/// A row group: a range of rows, stored column by column.
#[derive(Default)]
pub(super) struct RowGroup {
    pub(super) rows: u64,
    pub(super) chunks: Vec<Chunk>,
}

/// The position of a column's pages in a row group.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub(super) codec: Codec,
    pub(super) values: u64,
    pub(super) start: u64,
    pub(super) bytes: u64,
}

impl Footer {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut row_groups = Vec::new();
        let mut problem = None;
        let mut columns = None;
        let read = Thrift::new(bytes).fields(|thrift, id, _| {
            match id {
                2 => columns = Some(checked_schema(thrift, &mut problem)?),
                4 => row_groups = read_row_groups(thrift, &mut problem)?,
                8 => problem = problem.take().or_else(|| Some(encrypted())),
                _ => return Ok(false),
            }
            Ok(true)
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        let Some(columns) = columns.filter(|_| read.is_ok()) else {
            return Err(damaged_footer(None));
        };
        if row_groups.iter().any(|group: &RowGroup| group.chunks.len() != columns) {
            return Err(damaged_footer(None));
        }
        let schema = ParquetMetaDataReader::decode_schema(bytes).map_err(|error| damaged_footer(Some(error)))?;
        match schema.num_columns() == columns {
            true => Ok(Self { schema, row_groups }),
            false => Err(damaged_footer(None)),
        }
    }
}

fn encrypted() -> DecodeError {
    unsupported("is encrypted", "Write it without encryption.")
}

/// Skips the schema and counts its columns. Checks that the schema is a tree and within the limits.
fn checked_schema(thrift: &mut Thrift<'_>, problem: &mut Option<DecodeError>) -> Result<usize, ThriftError> {
    let (elements, _) = thrift.list()?;
    // The number of children still expected in each open group.
    let mut open: Vec<u64> = Vec::new();
    let mut columns = 0;
    for index in 0..elements {
        let (mut is_column, mut name_bytes, mut children) = (false, 0, 0_u64);
        thrift.fields(|thrift, id, _| {
            match id {
                1 => {
                    thrift.integer()?;
                    is_column = true;
                }
                4 => name_bytes = thrift.binary()?.len(),
                5 => children = thrift.integer()?.try_into().map_err(|_| ThriftError::Malformed)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        match open.last_mut() {
            Some(left) => *left -= 1,
            None if index == 0 => {}
            None => return Err(ThriftError::Malformed),
        }
        match (children, is_column) {
            (0, true) => columns += 1,
            (0, false) | (_, true) => return Err(ThriftError::Malformed),
            (children, false) if children > elements as u64 => return Err(ThriftError::Malformed),
            (children, false) => open.push(children),
        }
        let too_large = [
            (columns > COLUMNS_MAX, format!("has more than {COLUMNS_MAX} columns")),
            (open.len() > DEPTH_MAX, format!("has columns nested deeper than {DEPTH_MAX} levels")),
            (name_bytes > NAME_MAX_BYTES, format!("has a column with a name longer than {NAME_MAX_BYTES} bytes")),
        ];
        if let Some((_, what)) = too_large.into_iter().find(|(exceeds, _)| *exceeds) {
            *problem = Some(unsupported(what, "Write only the columns that you need to another file."));
            return Err(ThriftError::Malformed);
        }
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    if open.is_empty() && columns > 0 { Ok(columns) } else { Err(ThriftError::Malformed) }
}

fn read_row_groups(thrift: &mut Thrift<'_>, problem: &mut Option<DecodeError>) -> Result<Vec<RowGroup>, ThriftError> {
    let (count, kind) = thrift.list()?;
    if count > 0 && kind != Type::STRUCT {
        return Err(ThriftError::Malformed);
    }
    let mut parts = Parts { left: PARTS_MAX, problem };
    (0..count).map(|_| read_row_group(thrift, &mut parts)).collect()
}

/// Counts the row groups and their columns, and holds what is wrong with them.
struct Parts<'a> {
    left: usize,
    problem: &'a mut Option<DecodeError>,
}

impl Parts<'_> {
    fn count(&mut self) -> Result<(), ThriftError> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => {
                let what = format!("has more than {PARTS_MAX} row groups and columns of row groups together");
                *self.problem = Some(unsupported(what, "Write it with larger row groups."));
                return Err(ThriftError::Malformed);
            }
        }
        Ok(())
    }
}

fn read_row_group(thrift: &mut Thrift<'_>, parts: &mut Parts<'_>) -> Result<RowGroup, ThriftError> {
    parts.count()?;
    let mut group = RowGroup::default();
    thrift.fields(|thrift, id, _| {
        match id {
            1 => {
                let (count, kind) = thrift.list()?;
                if count > 0 && kind != Type::STRUCT {
                    return Err(ThriftError::Malformed);
                }
                group.chunks = (0..count).map(|_| read_chunk(thrift, parts)).collect::<Result<_, _>>()?;
            }
            3 => group.rows = not_negative(thrift)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(group)
}

fn read_chunk(thrift: &mut Thrift<'_>, parts: &mut Parts<'_>) -> Result<Chunk, ThriftError> {
    parts.count()?;
    let mut chunk = None;
    let mut found = None;
    thrift.fields(|thrift, id, _| {
        match id {
            1 => {
                if !thrift.binary()?.is_empty() {
                    found = Some(unsupported("has its data in other files", "Write it as one file."));
                }
            }
            3 => chunk = Some(read_chunk_metadata(thrift, &mut found)?),
            8 | 9 => {
                found = Some(encrypted());
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if let Some(found) = found {
        parts.problem.get_or_insert(found);
        return Err(ThriftError::Malformed);
    }
    chunk.ok_or(ThriftError::Malformed)
}

fn read_chunk_metadata(thrift: &mut Thrift<'_>, found: &mut Option<DecodeError>) -> Result<Chunk, ThriftError> {
    let mut codec = Codec::Uncompressed;
    let (mut values, mut bytes, mut first_data, mut dictionary) = (0, 0, 0, 0);
    thrift.fields(|thrift, id, _| {
        match id {
            4 => match Codec::of(thrift.integer()?) {
                Ok(known) => codec = known,
                Err(name) => {
                    let advice = "Write it with Snappy, gzip, Zstandard, LZ4 or Brotli, or without compression.";
                    *found = Some(unsupported(format!("is compressed with {name}"), advice));
                }
            },
            5 => values = not_negative(thrift)?,
            7 => bytes = not_negative(thrift)?,
            9 => first_data = not_negative(thrift)?,
            11 => dictionary = not_negative(thrift)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    // Some writers without a dictionary write zero as its position.
    let start = if dictionary > 0 { dictionary.min(first_data) } else { first_data };
    Ok(Chunk { codec, values, start, bytes })
}

fn not_negative(thrift: &mut Thrift<'_>) -> Result<u64, ThriftError> {
    thrift.integer()?.try_into().map_err(|_| ThriftError::Malformed)
}

/// The position for an error message, from 0-based indexes.
pub(super) fn place(column: usize, row_group: usize) -> Place {
    Place::Column { column: column + 1, row_group: row_group + 1 }
}
