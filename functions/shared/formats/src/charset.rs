//! Streaming decoders for charsets other than UTF-8.
//!
//! Bytes that are no character of the charset become bytes that are not valid UTF-8. So the item with them fails as
//! `invalid_utf8`, as in a file of broken UTF-8, and no character is replaced silently. The items around it are not
//! affected. In UTF-16, an unpaired surrogate is written as the three bytes that its code point would have in UTF-8. In
//! all other charsets each malformed sequence is written as one byte [`MALFORMED`].

use encoding_rs::{Decoder, DecoderResult};
use rowmill_core::model::packing::Charset;

use crate::error::{DecodeError, Place};

const BYTE_ORDER_MARK: u16 = 0xFEFF;

/// Stands for bytes that are no character of the charset. It never occurs in UTF-8.
const MALFORMED: u8 = 0xFF;

/// Converts text of a charset to UTF-8, piece by piece.
pub(crate) enum Transcoder {
    Utf8,
    Utf16(Utf16),
    Other(Other),
}

impl Transcoder {
    pub(crate) fn new(charset: Option<Charset>) -> Self {
        match charset {
            None => Self::Utf8,
            Some(charset) if charset == Charset::UTF_16LE => Self::Utf16(Utf16::new(u16::from_le_bytes)),
            Some(charset) if charset == Charset::UTF_16BE => Self::Utf16(Utf16::new(u16::from_be_bytes)),
            Some(charset) => {
                let decoder = Box::new(charset.encoding().new_decoder_without_bom_handling());
                Self::Other(Other { decoder, text: Vec::new() })
            }
        }
    }

    /// Converts these bytes, as far as they form complete characters.
    pub(crate) fn push<'a>(&'a mut self, bytes: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Utf8 => bytes,
            Self::Utf16(utf16) => utf16.push(bytes),
            Self::Other(other) => other.push(bytes, false),
        }
    }

    /// Ends the text and returns the rest.
    pub(crate) fn finish(&mut self) -> Result<&[u8], DecodeError> {
        match self {
            Self::Utf8 => Ok(&[]),
            Self::Utf16(utf16) => utf16.finish(),
            Self::Other(other) => Ok(other.push(&[], true)),
        }
    }
}

/// A decoder for the charsets that `encoding_rs` decodes. It holds back the first bytes of an unfinished character.
pub(crate) struct Other {
    decoder: Box<Decoder>,
    text: Vec<u8>,
}

impl Other {
    fn push(&mut self, bytes: &[u8], last: bool) -> &[u8] {
        let (mut read, mut written) = (0, 0);
        loop {
            let rest = &bytes[read..];
            // Most characters need no more bytes than this; if some do, the loop comes back.
            self.text.resize(written + rest.len() * 3 + 16, 0);
            let (result, consumed, produced) =
                self.decoder.decode_to_utf8_without_replacement(rest, &mut self.text[written..], last);
            read += consumed;
            written += produced;
            match result {
                DecoderResult::InputEmpty => return &self.text[..written],
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => {
                    self.text.resize(written + 1, 0);
                    self.text[written] = MALFORMED;
                    written += 1;
                }
            }
        }
    }
}

/// A decoder for UTF-16 of either byte order. It drops a byte-order mark at the start.
pub(crate) struct Utf16 {
    unit: fn([u8; 2]) -> u16,
    /// The first byte of a unit, if its second byte has not arrived yet.
    half: Option<u8>,
    /// A high surrogate, if the unit after it has not arrived yet.
    high: Option<u16>,
    at: u64,
    text: Vec<u8>,
}

impl Utf16 {
    fn new(unit: fn([u8; 2]) -> u16) -> Self {
        Self { unit, half: None, high: None, at: 0, text: Vec::new() }
    }

    fn push(&mut self, mut bytes: &[u8]) -> &[u8] {
        self.text.clear();
        if let (Some(half), [first, rest @ ..]) = (self.half, bytes) {
            self.half = None;
            bytes = rest;
            self.push_unit([half, *first]);
        }
        let units = bytes.chunks_exact(2);
        self.half = units.remainder().first().copied();
        for unit in units {
            self.push_unit([unit[0], unit[1]]);
        }
        &self.text
    }

    #[inline]
    fn push_unit(&mut self, bytes: [u8; 2]) {
        let unit = (self.unit)(bytes);
        let first = self.at == 0;
        self.at += 2;
        match (self.high.take(), unit) {
            (None, 0..=0x7F) => self.text.push(unit as u8),
            (None, BYTE_ORDER_MARK) if first => {}
            (None, 0xD800..=0xDBFF) => self.high = Some(unit),
            (None, _) => self.push_code(unit.into()),
            (Some(high), 0xDC00..=0xDFFF) => {
                self.push_code(0x1_0000 + (u32::from(high & 0x3FF) << 10) + u32::from(unit & 0x3FF));
            }
            (Some(high), 0xD800..=0xDBFF) => {
                self.push_code(high.into());
                self.high = Some(unit);
            }
            (Some(high), _) => {
                self.push_code(high.into());
                self.push_code(unit.into());
            }
        }
    }

    fn push_code(&mut self, code: u32) {
        match char::from_u32(code) {
            Some(char) => self.text.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            // An unpaired surrogate.
            None => self.text.extend([
                0xE0 | (code >> 12) as u8,
                0x80 | (code >> 6 & 0x3F) as u8,
                0x80 | (code & 0x3F) as u8,
            ]),
        }
    }

    fn finish(&mut self) -> Result<&[u8], DecodeError> {
        if self.half.is_some() {
            return Err(DecodeError::Corrupt {
                format: "UTF-16 text",
                at: Place::TextByte(self.at),
                problem: "it ends inside a character",
                source: None,
            });
        }
        self.text.clear();
        if let Some(high) = self.high.take() {
            self.push_code(high.into());
        }
        Ok(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(charset: Charset, pieces: &[&[u8]]) -> Result<Vec<u8>, DecodeError> {
        let mut transcoder = Transcoder::new(Some(charset));
        let mut text = Vec::new();
        for piece in pieces {
            text.extend_from_slice(transcoder.push(piece));
        }
        text.extend_from_slice(transcoder.finish()?);
        Ok(text)
    }

    #[test]
    fn every_byte_of_windows_1252_has_a_character() {
        let all: Vec<u8> = (0..=255).collect();
        let text = String::from_utf8(decoded(Charset::WINDOWS_1252, &[&all]).unwrap()).unwrap();
        assert_eq!(text.chars().count(), 256);
        assert!(text.contains('€') && text.contains('é') && text.contains('\u{81}'));
    }

    #[test]
    fn an_unpaired_surrogate_becomes_invalid_utf_8_and_the_text_around_it_stays() {
        let text = decoded(Charset::UTF_16LE, &[b"a\0\x3d\xd8b\0\x00\xdc\n\0"]).unwrap();
        assert_eq!(text, b"a\xed\xa0\xbdb\xed\xb0\x80\n");
        assert!(std::str::from_utf8(&text).is_err());
        let at_the_end = decoded(Charset::UTF_16BE, &[b"\0a\xd8\x3d"]).unwrap();
        assert_eq!(at_the_end, b"a\xed\xa0\xbd");
        let twice = decoded(Charset::UTF_16BE, &[b"\xd8\x3d\xd8\x3d\xde\x00"]).unwrap();
        assert_eq!(twice, [b"\xed\xa0\xbd", "😀".as_bytes()].concat());
    }

    #[test]
    fn the_text_does_not_depend_on_how_the_bytes_are_split() {
        let bytes: Vec<u8> = "\u{feff}a😀é\u{feff}".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decoded(Charset::UTF_16BE, &pieces).unwrap(), "a😀é\u{feff}".as_bytes());
        assert_eq!(decoded(Charset::UTF_16BE, &[&bytes]).unwrap(), "a😀é\u{feff}".as_bytes());
    }

    #[test]
    fn utf_16_with_an_odd_number_of_bytes_is_corrupt() {
        let error = decoded(Charset::UTF_16LE, &[b"a\0b"]).unwrap_err();
        assert_eq!(error.code(), "corrupt_file");
        assert!(error.to_string().contains("byte 2"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_character_become_invalid_utf_8_and_the_text_around_them_stays() {
        let shift_jis = Charset::of(encoding_rs::SHIFT_JIS).unwrap();
        // 0x5C, a backslash in ASCII, and 0x7C, a bar, are second bytes in `表` and `ポ`.
        let text = b"\x95\x5c|\x83\x7c\n\xa0\n\x83\xff\n\x95";
        for size in 1..=text.len() {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            let decoded = decoded(shift_jis, &pieces).unwrap();
            assert_eq!(decoded, ["表|ポ\n".as_bytes(), b"\xff\n\xff\n\xff"].concat(), "{size}");
        }
        let gb18030 = Charset::of(encoding_rs::GB18030).unwrap();
        assert_eq!(decoded(gb18030, &[b"\x84", b"\x31\x95", b"\x33"]).unwrap(), "\u{feff}".as_bytes());
    }
}
