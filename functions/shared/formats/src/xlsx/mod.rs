//! Converts a sheet of a workbook to CSV.
//!
//! The sheet is read cell by cell, so memory does not grow with its size. Only the shared strings of the workbook are
//! held in memory, packed into one buffer. The first row that is not empty, after the title rows, is the header. Rows
//! without a value are omitted. Rows shorter than the header are padded; longer rows stay longer, so that they become
//! ragged items. A merged cell has its value in its first cell. Hidden rows and columns are read like others. [`cell`]
//! describes how cells are converted.
//!
//! This is built on an XML parser and not on a spreadsheet crate. Spreadsheet crates hold strings, styles and texts of
//! any size in memory, and the process ends if memory runs out. They also reject a whole sheet because of one unknown
//! error value.

mod cell;
mod csv;
mod date;
mod sheet;
mod strings;
mod styles;
mod workbook;
mod xml;

use std::io::{Read, Seek};
use std::ops::ControlFlow;

use csv::Rows;
use strings::SharedStrings;
use styles::Styles;
use workbook::Workbook;

use crate::blocks::{Block, Blocks, Stopped};
use crate::source::Source;
use crate::watch::Watch;
use crate::zip::{Archive, Kind};

/// Writes the text of the sheet to `sink`. Without a name, the first visible sheet is used. `title_rows` of its rows
/// that are not empty stand before the header.
pub(crate) fn decode<R: Read + Seek>(
    file: R,
    sheet: Option<&str>,
    title_rows: u32,
    watch: &Watch,
    sink: impl FnMut(Block<'_>) -> ControlFlow<()>,
) -> Result<(), Stopped> {
    let mut archive = Archive::open(Kind::Workbook, Source::new(file, watch), watch)?;
    let workbook = Workbook::read(&mut archive, watch)?;
    let path = workbook.sheet(sheet)?;
    let styles = Styles::read(&mut archive, &workbook, watch)?;
    let strings = SharedStrings::read(&mut archive, &workbook, watch)?;
    let Some(entry) = archive.find(path) else {
        return Err(Kind::Workbook.damaged("a sheet that it lists is missing").into());
    };
    let mut blocks = Blocks::new(watch, Some(archive.size()), sink);
    let part = archive.read(&entry)?;
    sheet::read(part, path, &strings, &styles, watch, Rows::new(&mut blocks, title_rows))?;
    blocks.finish()
}
