//! A Parquet file's rows as JSON lines.
//!
//! The crate `parquet` reads the schema and decodes values; pages are read and rows put together here. Its own row reader
//! does neither under limits, loses the unit of nanoseconds and, by its own word, some repeated fields. What a value becomes
//! is in [`value`].

mod codec;
mod column;
mod decimal;
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
use footer::{FOOTER_MAX_BYTES, Footer};
use pages::File;
use parquet::errors::ParquetError;
use rows::Rows;

use crate::blocks::{Block, Blocks, Stopped};
use crate::error::{DecodeError, Place};
use crate::source::Source;
use crate::watch::Watch;

/// Bytes at the end of a file: the length of its footer and the name of its format.
const TAIL_BYTES: u64 = 8;

/// Hands the rows on as JSON lines.
pub(crate) fn decode<R: Read + Seek + Send + 'static>(
    file: R,
    watch: &Watch,
    sink: impl FnMut(Block<'_>) -> ControlFlow<()>,
) -> Result<(), Stopped> {
    let unread = |error| watch.take_failure().unwrap_or(DecodeError::Source(error));
    let file = Arc::new(File::open(Source::new(file, watch), watch).map_err(unread)?);
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
                return Err(damaged_group(index, "it has fewer rows than it says").into());
            }
            rows.row(&root, &mut columns, consumed(file.size, row, total))?;
        }
        if next_row(&mut columns)? {
            return Err(damaged_group(index, "it has more rows than it says").into());
        }
    }
    blocks.finish()
}

/// The part of the file's size that fits the part of its rows.
fn consumed(size: u64, row: u64, total: u64) -> u64 {
    (u128::from(size) * u128::from(row) / u128::from(total.max(1))) as u64
}

/// Takes all columns to their next row, and says whether there is one.
fn next_row(columns: &mut [Column]) -> Result<bool, DecodeError> {
    let mut there = 0;
    for column in columns.iter_mut() {
        there += usize::from(column.next_record()?);
    }
    match there {
        0 => Ok(false),
        all if all == columns.len() => Ok(true),
        _ => Err(DecodeError::Corrupt {
            format: "Parquet file",
            at: Place::Somewhere,
            problem: "its columns differ in length",
            source: None,
        }),
    }
}

fn footer_bytes<R: Read + Seek>(file: &File<R>) -> Result<Vec<u8>, DecodeError> {
    let unread = |error| file.watch.take_failure().unwrap_or(DecodeError::Source(error));
    let Some(tail_start) = file.size.checked_sub(TAIL_BYTES) else {
        return Err(damaged_footer(None));
    };
    let tail = file.read(tail_start..file.size).map_err(unread)?;
    match &tail[4..] {
        b"PAR1" => {}
        b"PARE" => return Err(unsupported("is encrypted", "Write it without encryption.")),
        _ => {
            return Err(DecodeError::Corrupt {
                format: "Parquet file",
                at: Place::Byte(file.size),
                problem: "it ends before its footer does",
                source: None,
            });
        }
    }
    let length = tail[..4].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    if length > FOOTER_MAX_BYTES {
        let what = format!("has a footer of more than {FOOTER_MAX_BYTES} bytes");
        return Err(unsupported(what, "Write it with fewer row groups."));
    }
    let Some(start) = tail_start.checked_sub(length) else {
        return Err(damaged_footer(None));
    };
    file.read(start..tail_start).map_err(unread)
}

fn damaged_footer(error: Option<ParquetError>) -> DecodeError {
    DecodeError::Corrupt {
        format: "Parquet file",
        at: Place::Footer,
        problem: "the description of its columns cannot be read",
        source: error.map(Into::into),
    }
}

fn damaged_group(row_group: usize, problem: &'static str) -> DecodeError {
    DecodeError::Corrupt { format: "Parquet file", at: footer::place(0, row_group), problem, source: None }
}

fn unsupported(what: impl Into<String>, advice: &'static str) -> DecodeError {
    DecodeError::UnsupportedParquet { what: what.into(), advice }
}
