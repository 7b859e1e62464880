//! Converts the rows of a Parquet file to JSON Lines.
//!
//! The crate `parquet` parses the schema and decodes values. Reading pages and assembling rows is done here, because
//! the crate's own row reader has no limits, loses the unit of nanoseconds, and (as it documents) some repeated fields.
//! [`value`] describes how values are converted.

mod codec;
mod column;
mod decimal;
mod file;
mod footer;
mod header;
mod levels;
mod pages;
mod rows;
mod thrift;
mod value;

use std::io::{Read, Seek};
use std::ops::ControlFlow;
use std::sync::Arc;

use column::Column;
use file::File;
use footer::{FOOTER_MAX_BYTES, Footer};
use parquet::errors::ParquetError;
use rows::Rows;

use crate::blocks::{Block, Blocks, Stopped};
use crate::error::{DecodeError, Place};
use crate::source::Source;
use crate::watch::Watch;

/// The last bytes of a file: the length of its footer (4 bytes) and the magic number of the format (4 bytes).
const TAIL_BYTES: u64 = 8;

/// Writes the rows as JSON Lines to `sink`.
pub(crate) fn decode<R: Read + Seek + Send + 'static>(
    file: R,
    watch: &Watch,
    sink: impl FnMut(Block<'_>) -> ControlFlow<()>,
) -> Result<(), Stopped> {
    let read_error = |error| watch.take_failure().unwrap_or(DecodeError::Source(error));
    let file = Arc::new(File::open(Source::new(file, watch), watch).map_err(read_error)?);
    let footer = Footer::read(&footer_bytes(&file)?)?;
    let root = rows::root(&footer.schema)?;
    let mut blocks = Blocks::new(watch, Some(file.size), sink);
    let mut rows = Rows::new(&mut blocks, watch.limits().record_max_bytes);
    let total = footer.row_groups.iter().fold(0_u64, |total, group| total.saturating_add(group.rows));
    let mut row = 0;
    for (index, group) in footer.row_groups.iter().enumerate() {
        let count = footer.schema.num_columns();
        let columns = footer.schema.columns().iter().zip(&group.chunks).enumerate();
        let mut columns: Vec<Column> = columns
            .map(|(column, (descr, chunk))| Column::open(&file, descr, *chunk, (column, count), (index, row)))
            .collect();
        for _ in 0..group.rows {
            row += 1;
            if !next_row(&mut columns)? {
                return Err(damaged(footer::place(0, index), "it has fewer rows than it declares").into());
            }
            rows.row(&root, &mut columns, consumed(file.size, row, total))?;
        }
        if next_row(&mut columns)? {
            return Err(damaged(footer::place(0, index), "it has more rows than it declares").into());
        }
    }
    blocks.finish()
}

/// An estimate of the consumed bytes: the share of the file size that corresponds to the share of the rows.
fn consumed(size: u64, row: u64, total: u64) -> u64 {
    (u128::from(size) * u128::from(row) / u128::from(total.max(1))) as u64
}

/// Moves all columns to their next row. Returns whether there is one.
fn next_row(columns: &mut [Column]) -> Result<bool, DecodeError> {
    let mut with_record = 0;
    for column in columns.iter_mut() {
        with_record += usize::from(column.next_record()?);
    }
    match with_record {
        0 => Ok(false),
        all if all == columns.len() => Ok(true),
        _ => Err(damaged(Place::Somewhere, "its columns differ in length")),
    }
}

fn footer_bytes<R: Read + Seek>(file: &File<R>) -> Result<Vec<u8>, DecodeError> {
    let read_error = |error| file.watch.take_failure().unwrap_or(DecodeError::Source(error));
    let Some(tail_start) = file.size.checked_sub(TAIL_BYTES) else {
        return Err(damaged_footer(None));
    };
    let tail = file.read(tail_start..file.size).map_err(read_error)?;
    match &tail[4..] {
        b"PAR1" => {}
        b"PARE" => return Err(unsupported("is encrypted", "Write it without encryption.")),
        _ => return Err(damaged(Place::Byte(file.size), "the end of the footer is missing")),
    }
    let length = tail[..4].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    if length > FOOTER_MAX_BYTES {
        let what = format!("has a footer of more than {FOOTER_MAX_BYTES} bytes");
        return Err(unsupported(what, "Write it with fewer row groups."));
    }
    let Some(start) = tail_start.checked_sub(length) else {
        return Err(damaged_footer(None));
    };
    file.read(start..tail_start).map_err(read_error)
}

fn damaged_footer(error: Option<ParquetError>) -> DecodeError {
    DecodeError::Corrupt {
        format: "Parquet file",
        at: Place::Footer,
        problem: "the description of its columns cannot be read",
        source: error.map(Into::into),
    }
}

fn damaged(at: Place, problem: &'static str) -> DecodeError {
    DecodeError::Corrupt { format: "Parquet file", at, problem, source: None }
}

fn unsupported(what: impl Into<String>, advice: &'static str) -> DecodeError {
    DecodeError::UnsupportedParquet { what: what.into(), advice }
}
