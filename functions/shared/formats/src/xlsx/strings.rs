//! Reads the shared strings of a workbook and the texts in its XML.

use std::io::{Read, Seek};

use super::workbook::Workbook;
use super::xml::{Piece, Xml, attribute};
use crate::error::DecodeError;
use crate::watch::Watch;
use crate::zip::Archive;

/// The shared strings, concatenated. This takes less memory than separate strings.
#[derive(Default)]
pub(super) struct SharedStrings {
    text: String,
    /// The end of each string. 32 bits are enough, because the size is limited to that.
    ends: Vec<u32>,
}

impl SharedStrings {
    pub(super) fn read<R: Read + Seek>(
        archive: &mut Archive<R>,
        workbook: &Workbook,
        watch: &Watch,
    ) -> Result<Self, DecodeError> {
        let path = workbook.strings.as_str();
        let mut strings = Self::default();
        let Some(entry) = archive.find(path) else { return Ok(strings) };
        let limit = watch.limits().xlsx_shared_strings_max_bytes.min(u32::MAX.into());
        let mut xml = Xml::new(archive.read(&entry)?, path, watch, limit, |limit| DecodeError::SheetTooLarge {
            what: "bytes of shared strings",
            limit,
        });
        loop {
            match xml.next()? {
                Piece::Start(start) if start.local_name().as_ref() == "si" => {
                    read_text(&mut xml, "si", &mut strings.text, usize::MAX)?;
                    strings.ends.push(strings.text.len() as u32);
                }
                Piece::Eof => return Ok(strings),
                _ => {}
            }
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.text[start as usize..end as usize])
    }
}

/// Appends the text of the current element up to its end, plain or in runs of different fonts. Phonetic text is
/// skipped. Stops when the text is longer than `max_bytes`; the caller must check the length.
pub(super) fn read_text<R: Read>(
    xml: &mut Xml<'_, R>,
    element: &str,
    text: &mut String,
    max_bytes: usize,
) -> Result<(), DecodeError> {
    let (mut piece_start, mut in_text, mut is_kept, mut in_phonetic) = (0, false, false, false);
    while text.len() <= max_bytes {
        match xml.next()? {
            Piece::Start(start) => match start.local_name().as_ref() {
                "t" if !in_phonetic => {
                    (in_text, piece_start) = (true, text.len());
                    is_kept = attribute(&start, "space").as_deref() == Some("preserve");
                }
                "rPh" => in_phonetic = true,
                _ => {}
            },
            Piece::Text(piece) if in_text => text.push_str(&piece),
            Piece::End(end) => match end.local_name().as_ref() {
                "t" if in_text => {
                    in_text = false;
                    finish_text(text, piece_start, is_kept);
                }
                "rPh" => in_phonetic = false,
                name if name == element => return Ok(()),
                _ => {}
            },
            Piece::Text(_) => {}
            Piece::Eof => return Err(xml.damaged("it ends inside a text")),
        }
    }
    Ok(())
}

/// Trims the text from `start` on, unless `is_kept`, and resolves its escapes.
fn finish_text(text: &mut String, start: usize, is_kept: bool) {
    const WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
    if !is_kept {
        let trimmed = text[start..].trim_end_matches(WHITE_SPACE).len();
        text.truncate(start + trimmed);
        let leading = text[start..].len() - text[start..].trim_start_matches(WHITE_SPACE).len();
        text.drain(start..start + leading);
    }
    unescape(text, start);
}

/// Resolves escapes in the text from `start` on. Excel writes characters that are not allowed in XML as `_xHHHH_`.
pub(super) fn unescape(text: &mut String, start: usize) {
    if !text[start..].contains("_x") {
        return;
    }
    let escaped = text.split_off(start);
    let mut rest = escaped.as_str();
    while let Some(at) = rest.find("_x") {
        text.push_str(&rest[..at]);
        let code = rest.get(at + 2..at + 6).filter(|_| rest.as_bytes().get(at + 6) == Some(&b'_'));
        let char = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        match char {
            Some(char) => {
                text.push(char);
                rest = &rest[at + 7..];
            }
            None => {
                text.push_str("_x");
                rest = &rest[at + 2..];
            }
        }
    }
    text.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excel_escapes_are_resolved_exactly_once() {
        for (escaped, plain) in [
            ("a_x000D_\nb", "a\r\nb"),
            ("_x005F_x000D_", "_x000D_"),
            ("_x00", "_x00"),
            ("_xZZZZ_", "_xZZZZ_"),
            ("_xD83D_", "_xD83D_"),
            ("é_x0041_", "éA"),
            ("x_x", "x_x"),
        ] {
            let mut text = format!("before {escaped}");
            unescape(&mut text, "before ".len());
            assert_eq!(text, format!("before {plain}"));
        }
    }
}
