//! Decodes files that need random access.

use std::io::{BufReader, Read, Seek};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use rowmill_core::model::packing::Packing;

use crate::blocks::{Block, Stopped};
use crate::error::{DecodeError, Place};
use crate::limits::Limits;
use crate::stream::{Decoded, decode_stream};
use crate::watch::Watch;
use crate::{members, parquet, xlsx};

/// Decodes a file to its end, or until `sink` returns a break, which is not an error.
///
/// A sheet becomes CSV with commas, quoted where needed. Its first row that is not empty is the header, and rows
/// without a value are omitted. A Parquet file becomes one JSON object per row, with the columns in the order of the
/// file. Text is decoded as by [`decode_stream`](crate::decode_stream). `sink` gets [`Block`]s.
///
/// Memory: less than 1 MiB. For a sheet also the shared strings of its workbook. For Parquet also the open pages of all
/// columns, up to [`Limits::parquet_pages_max_bytes`].
///
/// # Errors
/// See [`DecodeError`]. The blocks passed to `sink` before the error are the text up to that point.
///
/// # Panics
/// Only if `sink` panics.
pub fn decode_file(
    packing: &Packing,
    file: impl Read + Seek + Send + 'static,
    limits: &Limits,
    sink: impl FnMut(Block<'_>) -> ControlFlow<()>,
) -> Result<Decoded, DecodeError> {
    if let Packing::Text(packing) = packing {
        return decode_stream(*packing, BufReader::new(file), limits, sink);
    }
    let watch = Watch::new(*limits);
    // The parsers of other crates panic on some damaged files. Such a file must not end the process. Unwind safety:
    // nothing that a panic could leave inconsistent outlives the closure, except the sink, and its panics are resumed.
    let decoded = catch_unwind(AssertUnwindSafe(|| match packing {
        Packing::Xlsx { sheet, title_rows } => xlsx::decode(file, sheet.as_deref(), *title_rows, &watch, sink),
        Packing::Member { member, text } => members::decode(file, (member, *text), &watch, sink),
        _ => parquet::decode(file, &watch, sink),
    }));
    match decoded {
        Ok(Ok(()) | Err(Stopped::Enough)) => Ok(Decoded::default()),
        Ok(Err(Stopped::Failed(error))) => Err(error),
        Err(panic) if watch.is_in_sink() => resume_unwind(panic),
        Err(_) => Err(DecodeError::Corrupt {
            format: match packing {
                Packing::Parquet => "Parquet file",
                Packing::Member { .. } => "zip archive",
                _ => "workbook",
            },
            at: Place::Somewhere,
            problem: "its structure is inconsistent",
            source: None,
        }),
    }
}
