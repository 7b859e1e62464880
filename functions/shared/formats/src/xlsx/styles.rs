//! Reads the styles, which say whether a number is displayed as a date or a time.

use std::collections::HashMap;
use std::io::{Read, Seek};

use super::workbook::{Workbook, too_large};
use super::xml::{Piece, SMALL_PART_MAX_BYTES, Xml, attribute};
use crate::error::DecodeError;
use crate::watch::Watch;
use crate::zip::Archive;

/// The meaning of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    Number,
    Date,
    /// A time of day.
    Time,
    DateTime,
    /// A date or a time, depending on the number: these formats differ between the languages of Excel.
    DateOrTime,
    Duration,
}

/// Meaning of the number in a cell of each style.
pub(super) struct Styles {
    meanings: Vec<Meaning>,
    pub(super) from_1904: bool,
}

impl Styles {
    pub(super) fn read<R: Read + Seek>(
        archive: &mut Archive<R>,
        workbook: &Workbook,
        watch: &Watch,
    ) -> Result<Self, DecodeError> {
        let (path, from_1904) = (workbook.styles.as_str(), workbook.from_1904);
        let mut meanings = Vec::new();
        let Some(entry) = archive.find(path) else { return Ok(Self { meanings, from_1904 }) };
        let mut xml = Xml::new(archive.read(&entry)?, path, watch, SMALL_PART_MAX_BYTES, too_large);
        let mut own_formats: HashMap<u32, Meaning> = HashMap::new();
        let mut in_cell_styles = false;
        loop {
            match xml.next()? {
                Piece::Start(start) => match start.local_name().as_ref() {
                    "numFmt" => {
                        let id = attribute(&start, "numFmtId").and_then(|id| id.parse().ok());
                        if let (Some(id), Some(code)) = (id, attribute(&start, "formatCode")) {
                            own_formats.insert(id, meaning_of(&code));
                        }
                    }
                    "cellXfs" => in_cell_styles = true,
                    "xf" if in_cell_styles => {
                        let id = attribute(&start, "numFmtId").and_then(|id| id.parse().ok()).unwrap_or(0);
                        meanings.push(own_formats.get(&id).copied().unwrap_or_else(|| built_in(id)));
                    }
                    _ => {}
                },
                Piece::End(end) if end.local_name().as_ref() == "cellXfs" => in_cell_styles = false,
                Piece::Eof => return Ok(Self { meanings, from_1904 }),
                _ => {}
            }
        }
    }

    #[cfg(test)]
    pub(super) fn of(meanings: &[Meaning], from_1904: bool) -> Self {
        Self { meanings: meanings.to_vec(), from_1904 }
    }

    pub(super) fn meaning(&self, style: Option<usize>) -> Meaning {
        style.and_then(|style| self.meanings.get(style)).copied().unwrap_or(Meaning::Number)
    }
}

/// The meaning of a built-in number format (ECMA-376, part 1, 18.8.30).
fn built_in(id: u32) -> Meaning {
    match id {
        14..=17 => Meaning::Date,
        18..=21 | 45 | 47 => Meaning::Time,
        22 => Meaning::DateTime,
        46 => Meaning::Duration,
        27..=36 | 50..=58 => Meaning::DateOrTime,
        _ => Meaning::Number,
    }
}

/// The meaning of a format code. Only its first section counts, which is for positive numbers.
fn meaning_of(code: &str) -> Meaning {
    let Some(letters) = letters_of(code) else {
        return Meaning::Duration;
    };
    // `m` means months, except next to hours or seconds, where it means minutes.
    let is_minutes = |at: usize| at > 0 && letters[at - 1] == 'h' || letters.get(at + 1) == Some(&'s');
    let is_date = |at: usize| matches!(letters[at], 'y' | 'd') || letters[at] == 'm' && !is_minutes(at);
    let has_date = (0..letters.len()).any(is_date);
    let has_time = !(0..letters.len()).all(is_date);
    match (has_date, has_time) {
        (true, true) => Meaning::DateTime,
        (true, false) => Meaning::Date,
        (false, true) => Meaning::Time,
        (false, false) => Meaning::Number,
    }
}

/// The letters for units of time in the first section of a format code; repeated letters count once. `None` for a
/// duration: if there is an elapsed time such as `[h]`.
fn letters_of(code: &str) -> Option<Vec<char>> {
    let mut letters: Vec<char> = Vec::new();
    let mut chars = code.chars();
    while let Some(char) = chars.next() {
        match char {
            ';' => break,
            '"' => {
                chars.find(|&char| char == '"');
            }
            // The next character is a literal, a space of its width, or fills the cell.
            '\\' | '_' | '*' => {
                chars.next();
            }
            '[' => {
                let bracketed: String = chars.by_ref().take_while(|&char| char != ']').collect();
                let is_of =
                    |unit| !bracketed.is_empty() && bracketed.chars().all(|char| char.eq_ignore_ascii_case(&unit));
                if ['h', 'm', 's'].into_iter().any(is_of) {
                    return None;
                }
            }
            // Skip AM/PM and A/P. They only appear together with hours.
            'a' | 'A' => {
                let rest = chars.as_str();
                let marker = ["m/pm", "/p"]
                    .into_iter()
                    .find(|marker| rest.get(..marker.len()).is_some_and(|start| start.eq_ignore_ascii_case(marker)));
                chars = rest[marker.map_or(0, str::len)..].chars();
            }
            char if "ymdhs".contains(char.to_ascii_lowercase()) => letters.push(char.to_ascii_lowercase()),
            _ => {}
        }
    }
    letters.dedup();
    Some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_code_determines_what_a_number_represents() {
        for (code, meaning) in [
            ("General", Meaning::Number),
            ("0.00E+00", Meaning::Number),
            ("#,##0.00 \"days\"", Meaning::Number),
            ("[Red]#,##0\\d", Meaning::Number),
            ("0*d", Meaning::Number),
            ("0;yyyy", Meaning::Number),
            ("[$-409]#,##0", Meaning::Number),
            ("dd/mm/yyyy", Meaning::Date),
            ("[$-409]mmm\\-yy;@", Meaning::Date),
            ("YYYY-MM-DD", Meaning::Date),
            ("h:mm", Meaning::Time),
            ("mm:ss.0", Meaning::Time),
            ("h:mm AM/PM", Meaning::Time),
            ("m/d/yy h:mm", Meaning::DateTime),
            ("yyyy\\-mm\\-dd\\Thh:mm:ss", Meaning::DateTime),
            ("[h]:mm:ss", Meaning::Duration),
            ("[mm]:ss", Meaning::Duration),
        ] {
            assert_eq!(meaning_of(code), meaning, "{code}");
        }
    }
}
