//! The header of a Parquet page.

use parquet::basic::Encoding;

use super::thrift::{Thrift, ThriftError};

/// The type and size of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) bytes: usize,
    pub(super) compressed_bytes: usize,
    pub(super) crc32: Option<u32>,
}

/// The type of a page.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A dictionary: the values that data pages refer to.
    Dictionary { values: u32, encoding: i64 },
    /// A version 1 data page: levels and values, compressed together.
    Data { values: u32, encoding: i64, def_encoding: i64, rep_encoding: i64 },
    /// A version 2 data page: uncompressed levels, and values that can be compressed.
    DataV2 { values: u32, nulls: u32, rows: u32, encoding: i64, def_bytes: u32, rep_bytes: u32, is_compressed: bool },
    /// A page that is not needed.
    Other,
}

impl Header {
    /// Reads the header at the start of `bytes`. Returns the header and its length in bytes.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, usize), ThriftError> {
        let mut thrift = Thrift::new(bytes);
        let (mut kind, mut size, mut compressed) = (None, None, None);
        let mut header = Self { kind: Kind::Other, bytes: 0, compressed_bytes: 0, crc32: None };
        thrift.fields(|thrift, id, _| {
            match id {
                1 => kind = Some(thrift.integer()?),
                2 => size = Some(length(thrift)?),
                3 => compressed = Some(length(thrift)?),
                4 => header.crc32 = Some(thrift.integer()? as u32),
                5 => header.kind = read_data(thrift)?,
                7 => header.kind = read_dictionary(thrift)?,
                8 => header.kind = read_data_v2(thrift)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let (Some(kind), Some(size), Some(compressed)) = (kind, size, compressed) else {
            return Err(ThriftError::Malformed);
        };
        header.bytes = size as usize;
        header.compressed_bytes = compressed as usize;
        match (kind, header.kind) {
            (0, Kind::Data { .. }) | (2, Kind::Dictionary { .. }) | (3, Kind::DataV2 { .. }) => {}
            (0 | 2 | 3, _) => return Err(ThriftError::Malformed),
            _ => header.kind = Kind::Other,
        }
        Ok((header, thrift.at()))
    }

    /// The number of values in a data page; 0 for other pages.
    pub(super) fn values(&self) -> u32 {
        match self.kind {
            Kind::Data { values, .. } | Kind::DataV2 { values, .. } => values,
            Kind::Dictionary { .. } | Kind::Other => 0,
        }
    }
}

/// The encoding with this number, if it is supported.
pub(super) fn encoding_of(number: i64) -> Option<Encoding> {
    match number {
        0 => Some(Encoding::PLAIN),
        2 => Some(Encoding::PLAIN_DICTIONARY),
        3 => Some(Encoding::RLE),
        5 => Some(Encoding::DELTA_BINARY_PACKED),
        6 => Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        7 => Some(Encoding::DELTA_BYTE_ARRAY),
        8 => Some(Encoding::RLE_DICTIONARY),
        9 => Some(Encoding::BYTE_STREAM_SPLIT),
        _ => None,
    }
}

fn read_data(thrift: &mut Thrift<'_>) -> Result<Kind, ThriftError> {
    let (mut values, mut encoding, mut def_encoding, mut rep_encoding) = (None, -1, -1, -1);
    thrift.fields(|thrift, id, _| {
        match id {
            1 => values = Some(length(thrift)?),
            2 => encoding = thrift.integer()?,
            3 => def_encoding = thrift.integer()?,
            4 => rep_encoding = thrift.integer()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let values = values.ok_or(ThriftError::Malformed)?;
    Ok(Kind::Data { values, encoding, def_encoding, rep_encoding })
}

fn read_dictionary(thrift: &mut Thrift<'_>) -> Result<Kind, ThriftError> {
    let (mut values, mut encoding) = (None, -1);
    thrift.fields(|thrift, id, _| {
        match id {
            1 => values = Some(length(thrift)?),
            2 => encoding = thrift.integer()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(Kind::Dictionary { values: values.ok_or(ThriftError::Malformed)?, encoding })
}

fn read_data_v2(thrift: &mut Thrift<'_>) -> Result<Kind, ThriftError> {
    let (mut numbers, mut encoding, mut is_compressed) = ([0; 7], -1, true);
    thrift.fields(|thrift, id, kind| {
        match id {
            1..=3 | 5 | 6 => numbers[id as usize] = length(thrift)?,
            4 => encoding = thrift.integer()?,
            7 => is_compressed = Thrift::boolean(kind),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let [_, values, nulls, rows, _, def_bytes, rep_bytes] = numbers;
    Ok(Kind::DataV2 { values, nulls, rows, encoding, def_bytes, rep_bytes, is_compressed })
}

/// Reads a 32-bit number that is not negative.
fn length(thrift: &mut Thrift<'_>) -> Result<u32, ThriftError> {
    i32::try_from(thrift.integer()?).ok().and_then(|number| number.try_into().ok()).ok_or(ThriftError::Malformed)
}
