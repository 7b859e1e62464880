//! Decompresses Parquet pages. No codec uses more memory for its output than the size that the page declares,
//! and Brotli uses a window of at most 16 MiB beside it.

use std::io::Read;

use brotli_decompressor::BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW;
use flate2::bufread::MultiGzDecoder;

/// Size of a read of compressed bytes.
const READ_BYTES: usize = 4096;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Compression of a column's pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Codec {
    Uncompressed,
    Snappy,
    Gzip,
    Brotli,
    Zstd,
    Lz4Raw,
    /// LZ4 with the framing of Hadoop or without framing: writers differed before [`Codec::Lz4Raw`] was defined.
    Lz4,
}

impl Codec {
    /// The codec with this number. The error is the name of an unsupported codec.
    pub(super) fn of(number: i64) -> Result<Self, &'static str> {
        match number {
            0 => Ok(Self::Uncompressed),
            1 => Ok(Self::Snappy),
            2 => Ok(Self::Gzip),
            3 => Err("LZO"),
            4 => Ok(Self::Brotli),
            5 => Ok(Self::Lz4),
            6 => Ok(Self::Zstd),
            7 => Ok(Self::Lz4Raw),
            _ => Err("a codec newer than this reader"),
        }
    }

    /// Decompresses `input`, which must give exactly `size` bytes, and appends them to `output`.
    pub(super) fn decompress(self, input: &[u8], size: usize, output: &mut Vec<u8>) -> Result<(), Cause> {
        let start = output.len();
        let written = match self {
            Self::Uncompressed => {
                output.extend_from_slice(input);
                input.len()
            }
            Self::Gzip => MultiGzDecoder::new(input).take(size as u64 + 1).read_to_end(output)?,
            Self::Brotli => {
                let mut decoder = brotli_decompressor::Decompressor::new(input, READ_BYTES);
                // A large window, which is no part of RFC 7932, would take up to a gibibyte.
                decoder.set_parameter(BROTLI_DECODER_PARAM_LARGE_WINDOW, 0);
                decoder.take(size as u64 + 1).read_to_end(output)?
            }
            Self::Snappy if snap::raw::decompress_len(input)? != size => {
                return Err("the size differs from the declared size of the page".into());
            }
            _ => {
                output.resize(start + size, 0);
                let output = &mut output[start..];
                match self {
                    Self::Snappy => snap::raw::Decoder::new().decompress(input, output)?,
                    Self::Zstd => zstd::bulk::decompress_to_buffer(input, output)?,
                    Self::Lz4 => match hadoop_lz4(input, output) {
                        Some(written) => written,
                        None => lz4_flex::block::decompress_into(input, output)?,
                    },
                    _ => lz4_flex::block::decompress_into(input, output)?,
                }
            }
        };
        if written == size { Ok(()) } else { Err("the size differs from the declared size of the page".into()) }
    }
}

/// Decompresses LZ4 blocks that are each preceded by their two sizes; `None` if the input has another form.
fn hadoop_lz4(mut input: &[u8], output: &mut [u8]) -> Option<usize> {
    let mut written = 0_usize;
    while !input.is_empty() {
        let size = u32::from_be_bytes(*input.split_off(..4)?.as_array()?) as usize;
        let compressed = u32::from_be_bytes(*input.split_off(..4)?.as_array()?) as usize;
        let block = input.split_off(..compressed)?;
        let target = output.get_mut(written..written.checked_add(size)?)?;
        written += lz4_flex::block::decompress_into(block, target).ok().filter(|&bytes| bytes == size)?;
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lz4_is_decompressed_with_and_without_the_framing_of_hadoop() {
        let page = b"row,".repeat(1000);
        let (one, two) = page.split_at(1234);
        let mut framed = Vec::new();
        for part in [one, two] {
            let mut block = vec![0; lz4_block(part).len()];
            block.copy_from_slice(&lz4_block(part));
            framed.extend((part.len() as u32).to_be_bytes());
            framed.extend((block.len() as u32).to_be_bytes());
            framed.extend(block);
        }
        for input in [framed, lz4_block(&page)] {
            let mut output = b"levels".to_vec();
            Codec::Lz4.decompress(&input, page.len(), &mut output).unwrap();
            assert_eq!(output, [b"levels", page.as_slice()].concat());
        }
    }

    /// An LZ4 block with literals only.
    fn lz4_block(bytes: &[u8]) -> Vec<u8> {
        let mut block = vec![0xF0];
        let mut left = bytes.len() - 15;
        while left >= 255 {
            block.push(255);
            left -= 255;
        }
        block.push(left as u8);
        block.extend_from_slice(bytes);
        block
    }

    #[test]
    fn a_page_never_becomes_larger_than_its_declared_size() {
        let page = vec![7; 10_000];
        let mut gzip = flate2::bufread::GzEncoder::new(page.as_slice(), flate2::Compression::fast());
        let mut compressed = Vec::new();
        gzip.read_to_end(&mut compressed).unwrap();
        let zstd = zstd::bulk::compress(&page, 3).unwrap();
        let snappy = snap::raw::Encoder::new().compress_vec(&page).unwrap();
        for (codec, input) in [(Codec::Gzip, compressed), (Codec::Zstd, zstd), (Codec::Snappy, snappy)] {
            for size in [0, 9_999, 10_001] {
                let mut output = Vec::new();
                assert!(codec.decompress(&input, size, &mut output).is_err(), "{codec:?} {size}");
                assert!(output.capacity() < 25_000);
            }
            let mut output = Vec::new();
            codec.decompress(&input, 10_000, &mut output).unwrap();
            assert_eq!(output, page);
        }
    }
}
