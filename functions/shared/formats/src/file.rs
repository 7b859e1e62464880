//! Files that are read here and there rather than from beginning to end.

use std::io::{BufReader, Read, Seek};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use rowmill_core::model::packing::Packing;

use crate::blocks::{Block, Stopped};
use crate::error::{DecodeError, Place};
use crate::limits::Limits;
use crate::stream::decode_stream;
use crate::watch::Watch;
use crate::{parquet, xlsx};

/// Decodes a file to its end, or until `sink` breaks, which ends it well.
///
/// A sheet becomes CSV with commas, quoted where needed; its first row that is not empty is the header, and rows without a
/// value are left out. A Parquet file becomes a JSON object a row, with the columns in the order of the file. A file of
/// text is read as by [`decode_stream`](crate::decode_stream). See [`Block`] for what `sink` gets.
///
/// Memory: under 1 MiB, for a sheet its workbook's shared strings as well, for Parquet the pages that are open at once,
/// up to [`Limits::parquet_pages_max_bytes`].
///
/// # Errors
/// See [`DecodeError`]. What was handed on before is the text up to there.
///
/// # Panics
/// Only if `sink` does.
pub fn decode_file(
    packing: &Packing,
    file: impl Read + Seek + Send + 'static,
    limits: &Limits,
    sink: impl FnMut(Block<'_>) -> ControlFlow<()>,
) -> Result<(), DecodeError> {
    if let Packing::Text { compression, charset } = packing {
        return decode_stream(*compression, *charset, BufReader::new(file), limits, sink);
    }
    let watch = Watch::new(*limits);
    // The parsers of others panic on some damaged files, as parsers do, and such a file must not take the process with it.
    // Nothing outlives the closure that a panic could have left in pieces, but for the sink, whose panics go on.
    let decoded = catch_unwind(AssertUnwindSafe(|| match packing {
        Packing::Xlsx { sheet } => xlsx::decode(file, sheet.as_deref(), &watch, sink),
        _ => parquet::decode(file, &watch, sink),
    }));
    match decoded {
        Ok(Ok(()) | Err(Stopped::Enough)) => Ok(()),
        Ok(Err(Stopped::Failed(error))) => Err(error),
        Err(panic) if watch.is_in_sink() => resume_unwind(panic),
        Err(_) => Err(DecodeError::Corrupt {
            format: if *packing == Packing::Parquet { "Parquet file" } else { "workbook" },
            at: Place::Somewhere,
            problem: "it contradicts itself",
            source: None,
        }),
    }
}
