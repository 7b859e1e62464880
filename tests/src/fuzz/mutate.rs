//! Mutations of a file.

use std::io::{Cursor, Read as _, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::Decoder;

/// Numbers at the edges of types, which lengths and counts are tried with.
const EDGES: [u64; 12] = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x7FFF_FFFF_FFFF_FFFF,
    0xFFFF_FFFF_FFFF_FFFF,
];

/// Texts that mean something in one of the formats.
const WORDS: [&[u8]; 16] = [
    b"\"",
    b"\"\"",
    b",",
    b";",
    b"\r\n",
    b"\n",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"{",
    b"}",
    b"[",
    b"1e999999999",
    b"\\u0000",
    b"<c r=\"XFD1048576\">",
    b"]]>",
    b"\0",
];

/// Longest input, in bytes. Longer ones are cut.
const INPUT_MAX_BYTES: usize = 256 * 1024;

/// A file with a few mutations, so that it is still near to a good one.
pub fn mutated(rng: &mut fastrand::Rng, decoder: Decoder, base: &[u8], other: &[u8]) -> Vec<u8> {
    // Most damaged archives and compressed texts end at a checksum. So often the content is mutated before it is
    // packed.
    let inner = match decoder {
        Decoder::Xlsx | Decoder::Zip if rng.u8(..4) > 0 && (decoder == Decoder::Xlsx || rng.bool()) => {
            mutated_archive(rng, base)
        }
        Decoder::Gzip if rng.bool() => Some(mutated_gzip(rng, base)),
        _ => None,
    };
    let mut input = inner.unwrap_or_else(|| {
        let mut input = base.to_vec();
        let tail = if decoder == Decoder::Parquet && rng.u8(..4) > 0 { 8.min(input.len()) } else { 0 };
        let kept = input.split_off(input.len() - tail);
        several(rng, &mut input, other);
        input.extend(kept);
        if tail == 8 {
            mend_footer_length(&mut input, base);
        }
        input
    });
    input.truncate(INPUT_MAX_BYTES);
    input
}

/// Makes the length of the footer fit again after bytes of it were added or removed.
fn mend_footer_length(input: &mut [u8], base: &[u8]) {
    let at = input.len() - 8;
    let change = input.len() as i64 - base.len() as i64;
    let Ok(bytes) = input[at..at + 4].try_into() else { return };
    let length = (i64::from(u32::from_le_bytes(bytes)) + change).clamp(0, at as i64);
    input[at..at + 4].copy_from_slice(&(length as u32).to_le_bytes());
}

fn several(rng: &mut fastrand::Rng, input: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=rng.u32(..6) {
        one(rng, input, other);
    }
}

fn one(rng: &mut fastrand::Rng, input: &mut Vec<u8>, other: &[u8]) {
    let at = rng.usize(..=input.len());
    let rest = input.len() - at;
    let longest = 1 << rng.u32(..12);
    let length = rng.usize(..=rest.min(longest));
    match rng.u8(..9) {
        0 if rest > 0 => input[at] ^= 1 << rng.u32(..8),
        1 if rest > 0 => input[at] = rng.u8(..),
        2 => {
            let edge = EDGES[rng.usize(..EDGES.len())];
            let width = 1 << rng.u32(..4);
            let bytes = if rng.bool() { edge.to_le_bytes() } else { edge.to_be_bytes() };
            let width: usize = rest.min(width);
            input[at..at + width].copy_from_slice(&bytes[..width]);
        }
        3 => drop(input.drain(at..at + length)),
        4 => drop(input.splice(at..at, WORDS[rng.usize(..WORDS.len())].iter().copied())),
        5 => {
            let piece = input[at..at + length].repeat(rng.usize(1..20));
            input.splice(at..at, piece);
        }
        6 if !other.is_empty() => {
            let from = rng.usize(..other.len());
            let piece = &other[from..other.len().min(from + 1 + length)];
            input.splice(at..at + length, piece.iter().copied());
        }
        7 => input.truncate(at.max(rng.usize(..=input.len()))),
        _ => {
            // A varint at an edge, as lengths in Thrift and Protobuf.
            let mut edge = EDGES[rng.usize(..EDGES.len())];
            let mut bytes = Vec::new();
            while edge >= 0x80 {
                bytes.push(edge as u8 | 0x80);
                edge >>= 7;
            }
            bytes.push(edge as u8);
            input.splice(at..at + rest.min(1), bytes);
        }
    }
}

/// A workbook of which one part is mutated; `None` if the base is no archive.
fn mutated_archive(rng: &mut fastrand::Rng, base: &[u8]) -> Option<Vec<u8>> {
    let mut archive = ZipArchive::new(Cursor::new(base)).ok()?;
    let chosen = rng.usize(..archive.len().max(1));
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).ok()?;
        let (name, mut content) = (part.name().ok()?.into_owned(), Vec::new());
        part.read_to_end(&mut content).ok()?;
        if index == chosen {
            several(rng, &mut content, b"<row r=\"7\"><c t=\"s\"><v>4294967295</v></c></row>");
        }
        writer.start_file(name, SimpleFileOptions::default().compression_method(CompressionMethod::Stored)).ok()?;
        writer.write_all(&content).ok()?;
    }
    writer.finish().ok().map(Cursor::into_inner)
}

/// A gzip file with other members behind it, some of them damaged.
fn mutated_gzip(rng: &mut fastrand::Rng, base: &[u8]) -> Vec<u8> {
    let mut input = base.repeat(rng.usize(1..4));
    let kept = rng.usize(..=input.len());
    let mut rest = input.split_off(kept);
    several(rng, &mut rest, base);
    input.extend(rest);
    input
}
