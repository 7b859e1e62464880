//! Reads the cells of a sheet.

use std::io::Read;
use std::ops::ControlFlow;

use quick_xml::events::BytesStart;

use super::cell::{Kind, push_text};
use super::csv::Rows;
use super::strings::{SharedStrings, read_text};
use super::styles::Styles;
use super::xml::{Piece, Xml, attribute};
use crate::blocks::{Block, Stopped};
use crate::error::{DecodeError, Place};
use crate::watch::Watch;
use crate::zip::Part;

/// Maximum number of columns in a sheet (the limit of Excel).
const COLUMNS_MAX: usize = 16_384;

/// Writes the rows of the sheet as CSV.
pub(super) fn read<R: Read, S: FnMut(Block<'_>) -> ControlFlow<()>>(
    part: Part<'_, R>,
    path: &str,
    strings: &SharedStrings,
    styles: &Styles,
    watch: &Watch,
    mut rows: Rows<'_, '_, S>,
) -> Result<(), Stopped> {
    let size = part.expands_from();
    // No limit for this part: the limits of expanded bytes and of cells are enough.
    let mut xml = Xml::new(part, path, watch, u64::MAX, |limit| DecodeError::SheetTooLarge { what: "bytes", limit });
    let mut cell = Cell::default();
    let (mut row, mut cells, mut in_data) = (0, 0, false);
    loop {
        match xml.next()? {
            Piece::Start(start) => match start.local_name().as_ref() {
                "sheetData" => in_data = true,
                "row" if in_data => {
                    row = attribute(&start, "r").and_then(|number| number.parse().ok()).unwrap_or(row + 1);
                    cell.column = 0;
                }
                "c" if in_data => {
                    (cells, cell.row) = (cells + 1, row);
                    check_count(cells, watch)?;
                    cell.begin(&start, rows.cells())?;
                    cell.read(&mut xml, watch)?;
                    cell.resolve(strings, styles)?;
                    rows.cell(cell.column, &cell.text)?;
                    cell.column += 1;
                }
                _ => {}
            },
            Piece::End(end) => match end.local_name().as_ref() {
                "row" if in_data => {
                    let consumed = (xml.progress() * size as f64) as u64;
                    rows.end_row(consumed)?;
                }
                "sheetData" if rows.cells() > 0 => return Err(damaged(row, "it has cells outside of a row").into()),
                "sheetData" => in_data = false,
                _ => {}
            },
            Piece::Text(_) => {}
            Piece::Eof if in_data => return Err(xml.damaged("data is missing at its end").into()),
            Piece::Eof => return Ok(()),
        }
    }
}

fn check_count(cells: u64, watch: &Watch) -> Result<(), DecodeError> {
    let limit = watch.limits().xlsx_cells_max;
    if cells > limit { Err(DecodeError::SheetTooLarge { what: "cells", limit }) } else { Ok(()) }
}

fn damaged(row: u64, problem: &'static str) -> DecodeError {
    DecodeError::Corrupt { format: "workbook", at: Place::SheetRow(row), problem, source: None }
}

/// The current cell. Its buffers are reused for all cells.
#[derive(Default)]
struct Cell {
    row: u64,
    /// The 0-based column. A cell without a reference is in the column after the cell before.
    column: usize,
    kind: Kind,
    style: Option<usize>,
    value: String,
    text: String,
}

impl Cell {
    /// Reads the attributes of the cell's tag. `cells` is the number of cells of its row that are written.
    fn begin(&mut self, start: &BytesStart<'_>, cells: usize) -> Result<(), DecodeError> {
        (self.kind, self.style) = (Kind::Number, None);
        let mut attributes = start.attributes();
        for attribute in attributes.with_checks(false).flatten() {
            match attribute.key.as_ref() {
                "r" => self.column = column_of(&attribute.value).unwrap_or(self.column),
                "t" => self.kind = Kind::of(&attribute.value),
                "s" => self.style = attribute.value.parse().ok(),
                _ => {}
            }
        }
        match (cells..COLUMNS_MAX).contains(&self.column) {
            true => Ok(()),
            false => Err(damaged(self.row, "its cells are not in the order of their columns")),
        }
    }

    /// Reads the cell up to its end.
    fn read<R: Read>(&mut self, xml: &mut Xml<'_, R>, watch: &Watch) -> Result<(), DecodeError> {
        let limit = watch.limits().record_max_bytes;
        self.value.clear();
        self.text.clear();
        let mut in_value = false;
        loop {
            match xml.next()? {
                Piece::Start(start) => match start.local_name().as_ref() {
                    "v" => in_value = true,
                    "is" => read_text(xml, "is", &mut self.text, limit)?,
                    _ => {}
                },
                Piece::Text(piece) if in_value => self.value.push_str(&piece),
                Piece::Text(_) => {}
                Piece::End(end) => match end.local_name().as_ref() {
                    "v" => in_value = false,
                    "c" => break,
                    _ => {}
                },
                Piece::Eof => return Err(xml.damaged("data is missing at its end")),
            }
            if self.value.len() > limit || self.text.len() > limit {
                let (row, limit) = (self.row, limit as u64);
                return Err(DecodeError::RecordTooLong { what: "A cell", row, limit, unit: "bytes" });
            }
        }
        if self.kind != Kind::Inline {
            self.text.clear();
        }
        Ok(())
    }

    /// Converts the value of the cell to its text.
    fn resolve(&mut self, strings: &SharedStrings, styles: &Styles) -> Result<(), DecodeError> {
        match push_text(&mut self.text, &self.value, self.kind, self.style, strings, styles) {
            true => Ok(()),
            false => Err(damaged(self.row, "a cell refers to a shared string that does not exist")),
        }
    }
}

/// The 0-based column of a reference such as `AB12`.
fn column_of(reference: &str) -> Option<usize> {
    let letters = reference.bytes().take_while(u8::is_ascii_alphabetic);
    let number = letters.fold(0_usize, |number, letter| {
        number.saturating_mul(26).saturating_add(usize::from(letter.to_ascii_uppercase() - b'A' + 1))
    });
    number.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letters_of_a_reference_give_the_column() {
        for (reference, column) in [
            ("A1", Some(0)),
            ("Z9", Some(25)),
            ("AA1", Some(26)),
            ("xfd1048576", Some(16_383)),
            ("12", None),
            ("", None),
        ] {
            assert_eq!(column_of(reference), column);
        }
        assert!(column_of(&"Z".repeat(1000)).is_some_and(|column| column >= COLUMNS_MAX));
    }
}
