//! Turns a JSON array into JSON lines, one for each element, as a stream.
//!
//! Only the borders of the elements are found here. Whatever else is wrong with an element, its item fails when the
//! line is parsed. If a border cannot be found, because a bracket is missing or a comma has no value before it, the rest
//! of the file cannot be read.

use memchr::memchr;
use serde::de::IgnoredAny;

use crate::error::{DecodeError, Place};

/// True if text that begins like this is one JSON array: of objects, or of anything if the file is declared as JSON.
///
/// A first line that is an array of its own, with other lines behind it, is a bad record of JSON lines.
pub(crate) fn is_json_array(text: &[u8], is_declared: bool) -> bool {
    let text = text.strip_prefix(MARK).unwrap_or(text).trim_ascii_start();
    let Some(inside) = text.strip_prefix(b"[") else { return false };
    if !is_declared && !inside.trim_ascii_start().starts_with(b"{") {
        return false;
    }
    match memchr(b'\n', text) {
        Some(end) if serde_json::from_slice::<IgnoredAny>(&text[..end]).is_ok() => text[end..].trim_ascii().is_empty(),
        _ => true,
    }
}

/// The byte-order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The deepest nesting at which the kinds of brackets are compared. No parser of items goes as deep.
const COMPARED_DEPTH: u32 = 128;

/// Writes each element of an array on a line.
pub(crate) struct ElementLines {
    state: State,
    /// Offset of the next byte.
    at: u64,
    /// Open brackets of the element.
    depth: u32,
    /// A bit for each of the first of them, the innermost one lowest: set for `{`.
    braces: u128,
    /// The byte written last.
    last: u8,
    /// True behind a line break that is not written.
    is_broken: bool,
    lines: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the array.
    Start,
    /// In the byte-order mark.
    Mark,
    /// Behind its `[`.
    First,
    /// Behind a comma.
    Next,
    /// In an element, and not in a string.
    Element,
    String,
    /// In a string, behind a backslash.
    Escape,
    /// Behind the array.
    End,
}

impl ElementLines {
    pub(crate) const fn new() -> Self {
        Self { state: State::Start, at: 0, depth: 0, braces: 0, last: 0, is_broken: false, lines: Vec::new() }
    }

    /// The lines in the next piece of the text.
    pub(crate) fn push(&mut self, text: &[u8]) -> Result<&[u8], DecodeError> {
        self.lines.clear();
        for byte in text {
            self.push_byte(*byte)?;
            self.at += 1;
        }
        Ok(&self.lines)
    }

    /// Ends the text.
    pub(crate) fn finish(&self) -> Result<(), DecodeError> {
        match self.state {
            State::End => Ok(()),
            _ => Err(self.damaged("data is missing at its end")),
        }
    }

    fn push_byte(&mut self, byte: u8) -> Result<(), DecodeError> {
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match (self.state, byte) {
            (State::String, b'"') => self.write(byte, State::Element),
            (State::String, b'\\') => self.write(byte, State::Escape),
            // Not allowed in a string, like the tab in its place: the item fails, and its line stays one.
            (State::String | State::Escape, b'\r' | b'\n') => self.write(b'\t', State::String),
            (State::String | State::Escape, _) => self.write(byte, State::String),
            (State::Start, 0xEF) if self.at == 0 => self.state = State::Mark,
            (State::Mark, 0xBB) if self.at == 1 => {}
            (State::Mark, 0xBF) if self.at == 2 => self.state = State::Start,
            (State::Start | State::First | State::Next | State::End, _) if is_space => {}
            (State::Start, b'[') => self.state = State::First,
            (State::Start | State::Mark, _) => return Err(self.damaged("it does not begin with `[`")),
            (State::End, _) => return Err(self.damaged("other data follows the array")),
            (State::First, b']') => self.state = State::End,
            (State::First | State::Next, b',' | b']') => return Err(self.damaged("a comma has no value beside it")),
            (State::Element, b'\r' | b'\n') => self.is_broken = true,
            (State::Element, _) if is_space && self.is_broken => {}
            (State::Element, b',') if self.depth == 0 => self.write(b'\n', State::Next),
            (State::Element, b']') if self.depth == 0 => self.write(b'\n', State::End),
            (State::First | State::Next | State::Element, _) => return self.push_token(byte),
        }
        Ok(())
    }

    /// A byte of an element that is in no string and no white space.
    fn push_token(&mut self, byte: u8) -> Result<(), DecodeError> {
        let is_sign = |byte| matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':' | b'\n');
        if std::mem::take(&mut self.is_broken) && !is_sign(self.last) && !is_sign(byte) {
            // Two tokens that nothing else keeps apart.
            self.write(b' ', State::Element);
        }
        match byte {
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                if self.depth <= COMPARED_DEPTH {
                    self.braces = self.braces << 1 | u128::from(byte == b'{');
                }
            }
            b'}' | b']' => {
                if self.depth == 0 || (self.depth <= COMPARED_DEPTH && (self.braces & 1 == 1) != (byte == b'}')) {
                    return Err(self.damaged("a bracket is missing before it"));
                }
                if self.depth <= COMPARED_DEPTH {
                    self.braces >>= 1;
                }
                self.depth -= 1;
            }
            _ => {}
        }
        self.write(byte, if byte == b'"' { State::String } else { State::Element });
        Ok(())
    }

    fn write(&mut self, byte: u8, state: State) {
        self.lines.push(byte);
        (self.last, self.state) = (byte, state);
        if byte == b'\n' {
            self.is_broken = false;
        }
    }

    fn damaged(&self, problem: &'static str) -> DecodeError {
        DecodeError::Corrupt { format: "JSON array", at: Place::TextByte(self.at), problem, source: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of an array, however its bytes arrive.
    fn lines(array: &str) -> Result<String, String> {
        let of_pieces = |length: usize| {
            let (mut elements, mut lines) = (ElementLines::new(), Vec::new());
            for piece in array.as_bytes().chunks(length) {
                lines.extend_from_slice(elements.push(piece).map_err(|error| error.to_string())?);
            }
            elements.finish().map_err(|error| error.to_string())?;
            String::from_utf8(lines).map_err(|error| error.to_string())
        };
        let whole = of_pieces(array.len().max(1));
        assert_eq!(of_pieces(1), whole);
        whole
    }

    #[test]
    fn each_element_becomes_a_line() {
        for (array, expected) in [
            ("[]", ""),
            (" [ \n ] \n", ""),
            ("\u{feff}[1]", "1\n"),
            ("[{\"a\":1},{\"a\":2}]", "{\"a\":1}\n{\"a\":2}\n"),
            ("[\n  {\n    \"a\": 1,\r\n    \"b\": [ 1, 2 ]\n  },\n  null\n]\n", "{\"a\": 1,\"b\": [ 1, 2 ]}\nnull\n"),
            (r#"["a,]}\"[{", {"\\": "é"}]"#, "\"a,]}\\\"[{\"\n{\"\\\\\": \"é\"}\n"),
            // Bad elements stay bad, on one line.
            ("[tr\nue, {\"a\"\n\"b\"}, \"x\ny\"]", "tr ue\n{\"a\" \"b\"}\n\"x\ty\"\n"),
            ("[{},{\"a\":tru}]", "{}\n{\"a\":tru}\n"),
        ] {
            assert_eq!(lines(array).as_deref(), Ok(expected), "{array:?}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert_eq!(lines(&deep).unwrap().len(), 399);
    }

    #[test]
    fn an_array_whose_elements_cannot_be_told_apart_is_damaged() {
        for (array, problem) in [
            ("", "data is missing at its end"),
            ("[{},{\"a\":1}", "data is missing at its end"),
            ("[\"]", "data is missing at its end"),
            ("[1,,2]", "a comma has no value beside it"),
            ("[1,]", "a comma has no value beside it"),
            ("[,1]", "a comma has no value beside it"),
            ("[{\"a\":[1}]", "a bracket is missing before it"),
            ("[1}]", "a bracket is missing before it"),
            ("[1][2]", "other data follows the array"),
            ("{}", "it does not begin with `[`"),
        ] {
            let error = lines(array).unwrap_err();
            assert!(error.contains(problem), "{array:?}: {error}");
        }
        assert!(lines("[1,,2]").unwrap_err().contains("at byte 3 of its text"));
    }

    #[test]
    fn a_file_that_is_one_array_is_recognised() {
        let is_array = |text: &str| is_json_array(text.as_bytes(), false);
        for array in
            ["[{\"a\":1},{\"a\":2}]", "\n[{}]\n\n", "[\n  {\n    \"a\": 1\n  }\n]\n", "[ {\"a\":1},\n{\"a\":2}]"]
        {
            assert!(is_array(array), "{array:?}");
        }
        assert!(is_json_array(b"[{\"a\":1},{\"a", false), "the prefix ends within it");
        for lines in ["", "[]", "[1,2]\n", "{\"a\":[{}]}", "[{\"a\":1}]\n{\"a\":2}\n", "[{}]\n[{}]\n"] {
            assert!(!is_array(lines), "{lines:?}");
        }
        for declared in ["[]", "[1,2]\n", " [[1],\n [2]]"] {
            assert!(is_json_array(declared.as_bytes(), true), "{declared:?}");
        }
        assert!(!is_json_array(b"[1]\n[2]\n", true), "two lines");
    }
}
