//! Properties of every input.

use std::cell::Cell;
use std::io::{BufReader, Cursor, Read};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use encoding_rs::Encoding;
use rowmill_core::model::packing::{Charset, Compression, Packing, TextPacking};
use rowmill_core::text::{
    Chunk, ChunkCutter, ChunkLimits, ChunkMode, Dialect, Format, Head, Position, TextParams, Utf8Watch, read_head,
    read_items,
};
use rowmill_formats::{DecodeError, Hints, Limits, decode_file, decode_prefix, decode_stream, detect, members};

use serde_json::Value;
use zip::ZipArchive;

use super::Decoder;
use super::memory::peak_of;
use crate::oracle;

const MIB: usize = 1024 * 1024;

/// The most memory that an input may take, in bytes. Only measured if the process has the counting allocator.
const PEAK_MAX_BYTES: usize = 96 * MIB;

/// The longest time that an input may take. Far more than any takes, because the machine may be busy.
const TIME_MAX: Duration = Duration::from_secs(20);

thread_local! {
    /// Where Rowmill's own code panicked, although a decoder caught it.
    static PANICKED: Cell<Option<String>> = const { Cell::new(None) };
}

/// Small limits, so that an input takes little time.
fn limits() -> Limits {
    Limits {
        expanded_max_bytes: 32 * MIB as u64,
        ratio_from_bytes: 4 * MIB as u64,
        zstd_window_max_bytes: 8 * MIB as u64,
        xlsx_shared_strings_max_bytes: 4 * MIB as u64,
        xlsx_cells_max: 500_000,
        parquet_pages_max_bytes: 16 * MIB as u64,
        ..Limits::default()
    }
}

/// Decodes an input.
///
/// # Errors
/// The violated property, in words.
pub fn check(decoder: Decoder, input: &[u8]) -> Result<(), String> {
    note_own_panics();
    PANICKED.take();
    let began = Instant::now();
    let (result, peak) = peak_of(|| catch_unwind(AssertUnwindSafe(|| decode(decoder, input))));
    let elapsed = began.elapsed();
    if let Some(place) = PANICKED.take() {
        return Err(format!("panicked at {place}"));
    }
    result.map_err(|_| "panicked".to_owned())??;
    if peak > PEAK_MAX_BYTES {
        return Err(format!("took {peak} bytes of memory"));
    }
    if elapsed > TIME_MAX {
        return Err(format!("took {} seconds", elapsed.as_secs()));
    }
    Ok(())
}

/// Parsers of other crates may panic on damaged files, which `decode_file` catches. Rowmill's own code may not.
fn note_own_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // It sets a hook of its own when it is first called.
        let ((), _) = peak_of(|| ());
        std::panic::set_hook(Box::new(|panic| {
            let Some(place) = panic.location() else { return };
            if place.file().contains("functions/") || place.file().contains("tests/src") {
                PANICKED.set(Some(format!("{place}: {panic}")));
            }
        }));
    });
}

fn decode(decoder: Decoder, input: &[u8]) -> Result<(), String> {
    // The detection of every input ends.
    let _ = detect(&input[..input.len().min(4096)], &Hints::default());
    match decoder {
        Decoder::Parquet => file(&Packing::Parquet, input),
        Decoder::Xlsx => {
            file(&Packing::Xlsx { sheet: None, title_rows: u32::from(input.len().is_multiple_of(3)) }, input)
        }
        Decoder::Zip => zip(input),
        Decoder::Gzip => compressed(Compression::Gzip, input),
        Decoder::Zstd => compressed(Compression::Zstd, input),
        Decoder::Csv => text(Format::Csv, input),
        Decoder::Jsonl => text(Format::Jsonl, input),
        Decoder::Json => json_array(input),
        Decoder::Charset => charset(input),
    }
}

fn file(packing: &Packing, input: &[u8]) -> Result<(), String> {
    let mut decoded = Vec::new();
    let result = decode_file(packing, Cursor::new(input.to_vec()), &limits(), |block| {
        let room = MIB.saturating_sub(decoded.len()).min(block.bytes.len());
        decoded.extend_from_slice(&block.bytes[..room]);
        ControlFlow::Continue(())
    });
    no_source_error(result.err())?;
    let format = if *packing == Packing::Parquet { Format::Jsonl } else { Format::Csv };
    text(format, &decoded)
}

/// Most files in an archive that are decoded.
const MEMBERS_READ: usize = 20;

fn zip(input: &[u8]) -> Result<(), String> {
    let members = match members(Cursor::new(input), &limits()) {
        Ok(members) => members,
        Err(error) => return no_source_error(Some(error)),
    };
    let mut other = ZipArchive::new(Cursor::new(input));
    for (name, member) in members.iter().take(MEMBERS_READ) {
        let (packing, mut text) = (Packing::Member { member: *member, text: TextPacking::default() }, Vec::new());
        let result = decode_file(&packing, Cursor::new(input.to_vec()), &limits(), |block| {
            text.extend_from_slice(&block.bytes[..MIB.saturating_sub(text.len()).min(block.bytes.len())]);
            ControlFlow::Continue(())
        });
        let is_only = members.iter().filter(|(other, _)| other == name).count() == 1;
        if result.is_ok()
            && is_only
            && let Ok(other) = &mut other
            && let Ok(file) = other.by_name(name)
        {
            let mut expected = Vec::new();
            if file.take(MIB as u64).read_to_end(&mut expected).is_ok() && expected != text {
                return Err(format!("other bytes of `{name}` than the crate zip reads"));
            }
        }
        no_source_error(result.err())?;
    }
    Ok(())
}

fn compressed(compression: Compression, input: &[u8]) -> Result<(), String> {
    let compressed = TextPacking { compression: Some(compression), ..TextPacking::default() };
    let decoded = |capacity: usize| {
        let (mut bytes, mut hash) = (0_u64, 0_u64);
        let reader = BufReader::with_capacity(capacity, input);
        let result = decode_stream(compressed, reader, &limits(), |block| {
            bytes += block.bytes.len() as u64;
            hash = block.bytes.iter().fold(hash, |hash, byte| hash.wrapping_mul(31).wrapping_add((*byte).into()));
            ControlFlow::Continue(())
        });
        (bytes, hash, result.map_err(|error| (error.code(), error)))
    };
    let (big, small) = (decoded(8192), decoded(5));
    let same = (big.0, big.1) == (small.0, small.1)
        && big.2.as_ref().map_err(|(code, _)| *code) == small.2.as_ref().map_err(|(code, _)| *code);
    if !same && big.2.is_ok() {
        return Err("the text depends on how the bytes arrive".to_owned());
    }
    no_source_error(big.2.err().map(|(_, error)| error))?;
    let prefix = decode_prefix(compressed, input, true, 1000);
    no_source_error(prefix.err())
}

/// The text of these bytes, or the code of the error behind what was read of it.
fn text_of(packing: TextPacking, bytes: &[u8]) -> Result<(Vec<u8>, Result<(), &'static str>), String> {
    let decoded = |capacity: usize| {
        let mut text = Vec::new();
        let reader = BufReader::with_capacity(capacity, bytes);
        let result = decode_stream(packing, reader, &limits(), |block| {
            text.extend_from_slice(block.bytes);
            ControlFlow::Continue(())
        });
        (text, result.map(drop).map_err(|error| error.code()))
    };
    let (whole, pieces) = (decoded(8192), decoded(3));
    if whole == pieces { Ok(whole) } else { Err("the text depends on how the bytes arrive".into()) }
}

/// The lines of an array are its elements; and whatever is no array is refused, unless only an element is bad.
fn json_array(input: &[u8]) -> Result<(), String> {
    let packing = TextPacking { json_array: true, ..TextPacking::default() };
    let (lines, result) = text_of(packing, input)?;
    let input = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    let parsed = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    let found: Result<Vec<_>, _> = lines.split_inclusive(|byte| *byte == b'\n').map(parsed).collect();
    match (serde_json::from_slice::<Vec<Value>>(input), result, found) {
        (Ok(elements), Ok(()), Ok(found)) if elements == found => {}
        (Ok(_), ..) => return Err("the lines are not the elements".into()),
        // The elements are parsed at a depth of one less.
        (Err(error), Ok(()), Ok(_)) if !error.to_string().contains("recursion limit") => {
            return Err("what is no array was read as one".into());
        }
        (Err(_), ..) => {}
    }
    text(Format::Jsonl, &lines)
}

fn no_source_error(error: Option<DecodeError>) -> Result<(), String> {
    match error {
        Some(error) if error.is_source() => Err(format!("an error of reading: {error}")),
        // The message can be written.
        error => {
            error.map_or(Ok(()), |error| if error.to_string().is_empty() { Err("no message".into()) } else { Ok(()) })
        }
    }
}

/// Reads the head, cuts and reads the items, and compares their number with the `csv` crate's.
fn text(format: Format, input: &[u8]) -> Result<(), String> {
    let params = TextParams { skip_rows: (input.len().is_multiple_of(5)).then_some(1), ..TextParams::default() };
    // Whether the content tells the format.
    let _ = read_head(input, true, &params, None, None);
    let params =
        TextParams { format: Some(format), ..if format == Format::Csv { params } else { TextParams::default() } };
    let head = match read_head(input, true, &params, None, None) {
        Ok(head) => head,
        Err(error) if !error.to_string().is_empty() => return Ok(()),
        Err(_) => return Err("no message".into()),
    };
    let mut utf8 = Utf8Watch::default();
    input.chunks(7).for_each(|piece| utf8.push(piece));
    utf8.finish();
    let invalid = std::str::from_utf8(input).err().map(|error| error.valid_up_to() as u64);
    if utf8.found().map(|(byte, _)| byte) != invalid {
        return Err(format!("the first byte that is not UTF-8 is {invalid:?}, not {:?}", utf8.found()));
    }
    let chunks = cut(input, &head, input.len().max(1))?;
    if chunks != cut(input, &head, 3)? {
        return Err("the chunks depend on how the bytes arrive".into());
    }
    items(input, &head, &chunks)
}

fn cut(input: &[u8], head: &Head, step: usize) -> Result<Vec<Chunk>, String> {
    let limits = ChunkLimits { max_items: 3, max_bytes: 64, max_record_bytes: 4096 };
    let from = Position { offset: head.data_start, row: 1 };
    let mut cutter = ChunkCutter::new(&head.dialect, limits, from);
    let rest = input.get(head.data_start as usize..).ok_or("the items begin behind the end")?;
    let mut chunks = Vec::new();
    rest.chunks(step).for_each(|piece| cutter.push(piece, &mut chunks));
    let _ = cutter.finish(&mut chunks);
    Ok(chunks)
}

fn items(input: &[u8], head: &Head, chunks: &[Chunk]) -> Result<(), String> {
    let columns: Arc<[String]> = head.columns.clone().into();
    let Dialect { format, delimiter } = head.dialect;
    for chunk in chunks {
        let bytes = oracle::range(input, chunk.offset..chunk.offset + chunk.length);
        let mut found = 0;
        for item in read_items(chunk, bytes, &head.dialect, &columns) {
            found += 1;
            if let Err(bad) = item.record
                && bad.message.is_empty()
            {
                return Err("a bad record without a message".into());
            }
        }
        if found != chunk.items {
            return Err(format!("{found} items in the chunk at {}, which has {}", chunk.offset, chunk.items));
        }
        if format == Format::Csv && chunk.mode == ChunkMode::Items && delimiter != b'"' {
            let mut reader =
                csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(bytes);
            // The crate takes a byte-order mark at the start of its input for one, but here it is content.
            let records =
                if bytes.starts_with(b"\xef\xbb\xbf") { found.into() } else { reader.byte_records().count() as u64 };
            if records != u64::from(found) {
                return Err(format!("{found} items at {}, but {records} for the csv crate", chunk.offset));
            }
        }
    }
    Ok(())
}

/// The first byte chooses the charset, the rest is the text.
fn charset(input: &[u8]) -> Result<(), String> {
    const LABELS: [&str; 12] = [
        "shift_jis",
        "gb18030",
        "windows-1250",
        "euc-jp",
        "iso-2022-jp",
        "big5",
        "euc-kr",
        "utf-16le",
        "utf-16be",
        "koi8-u",
        "windows-1252",
        "x-user-defined",
    ];
    let Some((first, bytes)) = input.split_first() else { return Ok(()) };
    let encoding = Encoding::for_label(LABELS[usize::from(*first) % LABELS.len()].as_bytes()).ok_or("a known label")?;
    let charset = Charset::of(encoding);
    let packing = TextPacking { charset, ..TextPacking::default() };
    let whole = text_of(packing, bytes)?;
    if encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE {
        return Ok(());
    }
    // The crate writes U+FFFD where Rowmill writes a byte that is not UTF-8.
    let (expected, _) = encoding.decode_without_bom_handling(bytes);
    match String::from_utf8_lossy(&whole.0) == expected {
        true => Ok(()),
        false => Err(format!("another text than encoding_rs decodes from {}", encoding.name())),
    }
}
