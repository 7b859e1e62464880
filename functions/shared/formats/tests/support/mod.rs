//! Functions that the tests share.
#![allow(dead_code)]

pub mod forged;
pub mod memory;
pub mod parquet;
pub mod thrift;
pub mod zip;

use std::io::Cursor;
use std::ops::ControlFlow;

use rowmill_core::model::packing::{Charset, Compression, Packing, TextPacking};
use rowmill_formats::{BLOCK_MAX_BYTES, DecodeError, Limits, decode_file, decode_stream};

pub fn packed(compression: Option<Compression>, charset: Option<Charset>) -> TextPacking {
    TextPacking { compression, charset, ..TextPacking::default() }
}

/// Decodes a stream to its text and checks the documented properties of the blocks.
pub fn stream_text(packing: TextPacking, bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, DecodeError> {
    let (mut text, mut consumed) = (Vec::new(), None);
    let decoded = decode_stream(packing, bytes, limits, |block| {
        assert!((1..=BLOCK_MAX_BYTES).contains(&block.bytes.len()));
        assert!(consumed <= Some(block.consumed) && block.consumed <= bytes.len() as u64);
        consumed = Some(block.consumed);
        text.extend_from_slice(block.bytes);
        ControlFlow::Continue(())
    })?;
    let whole = decoded.ignored_from.is_some() || consumed.is_none_or(|consumed| consumed == bytes.len() as u64);
    assert!(whole, "{consumed:?} of {}", bytes.len());
    Ok(text)
}

/// Decodes a workbook or a Parquet file to its text, with the same checks.
pub fn file_text(packing: &Packing, bytes: Vec<u8>, limits: &Limits) -> Result<String, DecodeError> {
    let (mut text, mut consumed, size) = (Vec::new(), None, bytes.len() as u64);
    decode_file(packing, Cursor::new(bytes), limits, |block| {
        assert!((1..=BLOCK_MAX_BYTES).contains(&block.bytes.len()));
        assert!(consumed <= Some(block.consumed) && block.consumed <= size);
        consumed = Some(block.consumed);
        text.extend_from_slice(block.bytes);
        ControlFlow::Continue(())
    })?;
    assert!(consumed.is_none_or(|consumed| consumed == size), "{consumed:?} of {size}");
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The size of the text of a workbook or a Parquet file in bytes, without storing the text.
pub fn file_text_bytes(packing: &Packing, bytes: Vec<u8>, limits: &Limits) -> Result<u64, DecodeError> {
    let mut text_bytes = 0;
    decode_file(packing, Cursor::new(bytes), limits, |block| {
        text_bytes += block.bytes.len() as u64;
        ControlFlow::Continue(())
    })?;
    Ok(text_bytes)
}

/// Small limits, so that small files can exceed them.
pub fn tight() -> Limits {
    Limits { ratio_from_bytes: 1024 * 1024, ..Limits::default() }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

pub fn utf16(text: &str, charset: Charset) -> Vec<u8> {
    let bytes = if charset == Charset::UTF_16LE { u16::to_le_bytes } else { u16::to_be_bytes };
    text.encode_utf16().flat_map(bytes).collect()
}
