//! A workbook's sheet as CSV text.
//!
//! The sheet is read cell by cell, so memory does not grow with it; only the workbook's shared strings are held, packed into
//! one buffer. The first row that is not empty is the header. Rows without a value are left out, rows shorter than the
//! header are filled up to it, and longer ones stay longer, so that they become ragged items. A merged cell has its value in
//! its first cell; hidden rows and columns are read like others. What a cell becomes is in [`cell`].
//!
//! Built on an XML parser rather than on a spreadsheet crate: those hold strings, styles and texts of any size a file asks
//! for, and end the process where that is more than there is; and they refuse a sheet for one error value they do not know.

mod archive;
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

use archive::Archive;
use strings::SharedStrings;
use styles::Styles;
use workbook::Workbook;

use crate::blocks::{Block, Blocks, Stopped};
use crate::error::{DecodeError, Place};
use crate::source::Source;
use crate::watch::Watch;

/// Hands the text of the sheet on; of the first visible one, if none is named.
pub(crate) fn decode<R: Read + Seek>(
    file: R,
    sheet: Option<&str>,
    watch: &Watch,
    sink: impl FnMut(Block<'_>) -> ControlFlow<()>,
) -> Result<(), Stopped> {
    let mut archive = Archive::open(Source::new(file, watch), watch)?;
    let workbook = Workbook::read(&mut archive, watch)?;
    let path = workbook.sheet(sheet)?;
    let styles = Styles::read(&mut archive, &workbook, watch)?;
    let strings = SharedStrings::read(&mut archive, &workbook, watch)?;
    let Some(entry) = archive.find(path) else {
        return Err(damaged_archive("the sheet that its workbook lists is missing").into());
    };
    let mut blocks = Blocks::new(watch, Some(archive.size()), sink);
    let part = archive.read(&entry)?;
    sheet::read(part, path, &strings, &styles, watch, &mut blocks)?;
    blocks.finish()
}

fn damaged_archive(problem: &'static str) -> DecodeError {
    DecodeError::Corrupt { format: "workbook", at: Place::Somewhere, problem, source: None }
}
