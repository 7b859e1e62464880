//! Writes zip archives for the tests, valid and forged ones.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::{Read, Write};

/// A file in the archive. Its fields can be forged.
pub struct Part {
    pub name: String,
    pub method: u16,
    pub crc32: u32,
    pub compressed: Vec<u8>,
    pub size: u32,
}

impl Part {
    pub fn deflated(name: &str, content: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        let compressed = encoder.finish().unwrap();
        Self {
            name: name.to_owned(),
            method: 8,
            crc32: crc32fast::hash(content),
            compressed,
            size: content.len() as u32,
        }
    }

    pub fn stored(name: &str, content: &[u8]) -> Self {
        let compressed = content.to_vec();
        Self {
            name: name.to_owned(),
            method: 0,
            crc32: crc32fast::hash(content),
            compressed,
            size: content.len() as u32,
        }
    }
}

pub fn archive(parts: &[Part]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for part in parts {
        let offset = bytes.len() as u32;
        let mut common = Vec::new();
        common.extend(20_u16.to_le_bytes());
        common.extend([0, 0]);
        common.extend(part.method.to_le_bytes());
        common.extend([0; 4]);
        common.extend(part.crc32.to_le_bytes());
        common.extend((part.compressed.len() as u32).to_le_bytes());
        common.extend(part.size.to_le_bytes());
        common.extend((part.name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(part.name.as_bytes());
        bytes.extend(&part.compressed);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(part.name.as_bytes());
    }
    let start = bytes.len() as u32;
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend((parts.len() as u16).to_le_bytes().repeat(2));
    bytes.extend((directory.len() as u32).to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

/// The decompressed parts of a valid archive.
pub fn contents(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let number = |at: usize, length: usize| {
        bytes[at..at + length].iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
    };
    let end = bytes.len() - 22;
    let mut at = number(end + 16, 4);
    let mut contents = Vec::new();
    for _ in 0..number(end + 10, 2) {
        let name = String::from_utf8(bytes[at + 46..][..number(at + 28, 2)].to_vec()).unwrap();
        let local = number(at + 42, 4);
        let start = local + 30 + number(local + 26, 2) + number(local + 28, 2);
        let compressed = &bytes[start..][..number(at + 20, 4)];
        let mut content = Vec::new();
        match number(at + 10, 2) {
            0 => content.extend(compressed),
            _ => _ = flate2::read::DeflateDecoder::new(compressed).read_to_end(&mut content).unwrap(),
        }
        contents.push((name, content));
        at += 46 + number(at + 28, 2) + number(at + 30, 2) + number(at + 32, 2);
    }
    contents
}

/// The archive with its parts rewritten.
pub fn rewritten(bytes: &[u8], rewrite: impl Fn(&str, Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let parts = contents(bytes).into_iter().map(|(name, content)| {
        let content = rewrite(&name, content);
        Part::deflated(&name, &content)
    });
    archive(&parts.collect::<Vec<_>>())
}
