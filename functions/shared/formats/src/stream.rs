//! Decodes compressed text, and text in other charsets, as a stream.

use std::io::{self, BufRead, Read};
use std::ops::ControlFlow;

use rowmill_core::model::packing::{Compression, TextPacking};

use crate::blocks::{Block, Blocks, Stopped};
use crate::charset::Transcoder;
use crate::error::{DecodeError, Place};
use crate::filled::Filled;
use crate::gzip::Members;
use crate::json_array::ElementLines;
use crate::limits::Limits;
use crate::source::Source;
use crate::watch::Watch;

/// Size of a read from a decoder, in bytes.
const STEP_BYTES: usize = 64 * 1024;

/// A summary of a file that was decoded to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decoded {
    /// Where bytes begin that are no part of the compressed data and were ignored, in bytes from the start of the file.
    pub ignored_from: Option<u64>,
}

/// Decodes text to its end, or until `sink` returns a break, which is not an error. `sink` gets [`Block`]s.
///
/// All members of a gzip file and all frames of a zstd file are read. A truncated file is an error. So is data after
/// the last frame of a zstd file, or after a JSON array. Bytes after the last member of a gzip file that do not begin another one are ignored,
/// as gzip does; [`Decoded`] says where they begin. The byte-order mark of UTF-16 is dropped. An unpaired surrogate
/// becomes bytes that are not UTF-8, so that its item fails.
///
/// Memory: about 500 KiB. For zstd also the window, up to [`Limits::zstd_window_max_bytes`].
///
/// # Errors
/// See [`DecodeError`]. The blocks passed to `sink` before the error are the text up to that point.
pub fn decode_stream(
    packing: TextPacking,
    source: impl BufRead,
    limits: &Limits,
    sink: impl FnMut(Block<'_>) -> ControlFlow<()>,
) -> Result<Decoded, DecodeError> {
    let watch = Watch::new(*limits);
    let mut blocks = Blocks::new(&watch, None, sink);
    let compression = packing.compression;
    let decoded = with_decoder(compression, Source::new(Filled::new(source), &watch), limits, |decoder| {
        pump(decoder, packing, |text| {
            blocks.set_consumed(watch.read());
            blocks.write(text)
        })
    });
    let decoded = match decoded {
        Ok((Ok(()), decoded)) => blocks.finish().map(|()| decoded),
        Ok((Err(stopped), _)) => Err(stopped),
        Err(error) => Err(Stopped::Failed(decoder_error(error, compression, &watch))),
    };
    match decoded {
        Ok(decoded) => Ok(decoded),
        Err(Stopped::Enough) => Ok(Decoded::default()),
        Err(Stopped::Failed(error)) => Err(error),
    }
}

/// Decodes the first bytes of a file, so that its head can be read. Returns the text and whether it is the whole text.
///
/// `whole` says that `prefix` is the whole file; otherwise the prefix can end anywhere. At most `max_bytes` of text are
/// decoded.
pub fn decode_prefix(
    packing: TextPacking,
    prefix: &[u8],
    whole: bool,
    max_bytes: usize,
) -> Result<(Vec<u8>, bool), DecodeError> {
    let limits = Limits { ratio_from_bytes: u64::MAX, ..Limits::default() };
    let watch = Watch::new(limits);
    let mut text = Vec::new();
    let compression = packing.compression;
    let decoded = with_decoder(compression, Source::new(Filled::new(prefix), &watch), &limits, |decoder| {
        pump(decoder, packing, |piece| {
            text.extend_from_slice(&piece[..piece.len().min(max_bytes + 1 - text.len())]);
            if text.len() > max_bytes { Err(Stopped::Enough) } else { Ok(()) }
        })
    });
    let all = match decoded {
        Ok((Ok(()), _)) => whole,
        Ok((Err(Stopped::Enough), _)) => false,
        // The prefix ends inside a character or an array.
        Ok((Err(Stopped::Failed(_)), _)) if !whole => false,
        Ok((Err(Stopped::Failed(error)), _)) => return Err(error),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !whole => false,
        Err(error) => return Err(decoder_error(error, compression, &watch)),
    };
    text.truncate(max_bytes);
    Ok((text, all))
}

/// Calls `with` with a decoder of the source. Returns its result, and what is worth telling if it read to the end.
fn with_decoder<S: BufRead, T>(
    compression: Option<Compression>,
    mut source: Source<S>,
    limits: &Limits,
    with: impl FnOnce(&mut dyn Read) -> io::Result<T>,
) -> io::Result<(T, Decoded)> {
    match compression {
        None => Ok((with(&mut source)?, Decoded::default())),
        Some(Compression::Gzip) => {
            let watch = source.watch();
            let mut members = Members::new(source);
            let done = with(&mut members)?;
            let ignored_from = members.ignored().map(|looked_at| watch.read() - looked_at);
            Ok((done, Decoded { ignored_from }))
        }
        Some(Compression::Zstd) => {
            let watch = source.watch();
            let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
            decoder.window_log_max(limits.zstd_window_max_bytes.max(1024).ilog2())?;
            let done = with(&mut decoder)?;
            // The decoder accepts an empty file because it contains no unfinished frame. It is truncated all the same.
            if watch.read() > 0 { Ok((done, Decoded::default())) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        }
    }
}

/// Passes the output of the decoder, as lines of UTF-8, to `write`. The outer error comes from the decoder.
pub(crate) fn pump(
    decoder: &mut dyn Read,
    packing: TextPacking,
    mut write: impl FnMut(&[u8]) -> Result<(), Stopped>,
) -> io::Result<Result<(), Stopped>> {
    let mut transcoder = Transcoder::new(packing.charset);
    let mut elements = packing.json_array.then(ElementLines::new);
    let mut write = |text: &[u8]| match &mut elements {
        None => write(text),
        Some(elements) => write(elements.push(text)?),
    };
    let mut step = vec![0; STEP_BYTES];
    loop {
        let count = match decoder.read(&mut step) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if let Err(stopped) = write(transcoder.push(&step[..count])) {
            return Ok(Err(stopped));
        }
    }
    let finished = transcoder.finish().map_err(Stopped::Failed).and_then(&mut write);
    Ok(finished.and_then(|()| elements.map_or(Ok(()), |elements| Ok(elements.finish()?))))
}

/// Interprets an error of a decoder.
fn decoder_error(error: io::Error, compression: Option<Compression>, watch: &Watch) -> DecodeError {
    if let Some(failure) = watch.take_failure() {
        return failure;
    }
    let format = match compression {
        Some(Compression::Gzip) => "gzip file",
        Some(Compression::Zstd) => "zstd file",
        None => "file",
    };
    let at = Place::Byte(watch.read());
    let problem = if error.kind() == io::ErrorKind::UnexpectedEof {
        "data is missing at its end"
    } else if compression == Some(Compression::Zstd) && error.to_string().contains("requires too much memory") {
        return DecodeError::WindowTooLarge { limit: watch.limits().zstd_window_max_bytes };
    } else {
        "its data cannot be decompressed, or is followed by other data"
    };
    DecodeError::Corrupt { format, at, problem, source: Some(Box::new(error)) }
}
