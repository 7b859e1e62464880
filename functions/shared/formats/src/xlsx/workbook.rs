//! Reads the list of sheets and the paths of the parts of a workbook.

use std::collections::HashMap;
use std::io::{Read, Seek};

use super::xml::{Piece, SMALL_PART_MAX_BYTES, Xml, attribute};
use crate::error::{DecodeError, shortened};
use crate::watch::Watch;
use crate::zip::Archive;

/// The sheets of a workbook, and the paths of its other parts.
pub(super) struct Workbook {
    sheets: Vec<Sheet>,
    /// True if days are counted from 1904 (as on old Macs), not from 1900.
    pub(super) from_1904: bool,
    /// Path of the styles.
    pub(super) styles: String,
    /// Path of the shared strings.
    pub(super) strings: String,
}

struct Sheet {
    name: String,
    is_visible: bool,
    path: String,
}

/// The relationships of a part: by id, the type (without its namespace, which ends at the last slash) and path of the
/// other part.
type Relations = HashMap<String, (String, String)>;

impl Workbook {
    pub(super) fn read<R: Read + Seek>(archive: &mut Archive<R>, watch: &Watch) -> Result<Self, DecodeError> {
        let package = relations(archive, "_rels/.rels", "", watch)?;
        let main = path_of_type(&package, "officeDocument").unwrap_or_else(|| "xl/workbook.xml".to_owned());
        let (folder, file) = main.rsplit_once('/').map_or(("", main.as_str()), |(folder, file)| (folder, file));
        if file.ends_with(".bin") {
            return Err(DecodeError::UnsupportedXlsx { what: "is a binary workbook (.xlsb)" });
        }
        let relations_path = match folder {
            "" => format!("_rels/{file}.rels"),
            folder => format!("{folder}/_rels/{file}.rels"),
        };
        let parts = relations(archive, &relations_path, folder, watch)?;
        let (listed, from_1904) = listed_sheets(archive, &main, watch)?;
        let sheets = listed.into_iter().filter_map(|(name, is_visible, id)| match parts.get(&id) {
            Some((kind, path)) if kind == "worksheet" => Some(Sheet { name, is_visible, path: path.clone() }),
            _ => None,
        });
        Ok(Self {
            sheets: sheets.collect(),
            from_1904,
            styles: path_of_type(&parts, "styles").unwrap_or_else(|| resolved(folder, "styles.xml")),
            strings: path_of_type(&parts, "sharedStrings").unwrap_or_else(|| resolved(folder, "sharedStrings.xml")),
        })
    }

    /// The path of the sheet with this name, or of the first visible sheet.
    pub(super) fn sheet(&self, name: Option<&str>) -> Result<&str, DecodeError> {
        let Some(name) = name else {
            let first = self.sheets.iter().find(|sheet| sheet.is_visible);
            let kind = if self.sheets.is_empty() { "" } else { "visible " };
            return first.map(|sheet| sheet.path.as_str()).ok_or(DecodeError::NoSheet { kind });
        };
        let exact = self.sheets.iter().find(|sheet| sheet.name == name);
        // Excel does not allow two sheets whose names differ only in case.
        let other_case = || self.sheets.iter().find(|sheet| sheet.name.to_lowercase() == name.to_lowercase());
        exact.or_else(other_case).map(|sheet| sheet.path.as_str()).ok_or_else(|| match self.sheets.is_empty() {
            true => DecodeError::NoSheet { kind: "" },
            false => DecodeError::NoSuchSheet {
                sheet: shortened(name),
                sheets: self.sheets.iter().map(|sheet| shortened(&sheet.name)).collect(),
            },
        })
    }
}

/// A sheet in the list of the workbook: its name, whether it is visible, and the id of its part.
type Listed = (String, bool, String);

/// The list of sheets, and whether days are counted from 1904.
fn listed_sheets<R: Read + Seek>(
    archive: &mut Archive<R>,
    path: &str,
    watch: &Watch,
) -> Result<(Vec<Listed>, bool), DecodeError> {
    let Some(entry) = archive.find(path) else {
        return Err(DecodeError::UnsupportedXlsx { what: "file does not contain a workbook" });
    };
    let mut xml = Xml::new(archive.read(&entry)?, path, watch, SMALL_PART_MAX_BYTES, too_large);
    let (mut sheets, mut from_1904) = (Vec::new(), false);
    loop {
        match xml.next()? {
            Piece::Start(start) if start.local_name().as_ref() == "sheet" => {
                let value = |name| attribute(&start, name).unwrap_or_default().into_owned();
                let is_visible = matches!(value("state").as_str(), "" | "visible");
                sheets.push((value("name"), is_visible, value("id")));
            }
            Piece::Start(start) if start.local_name().as_ref() == "workbookPr" => {
                if let Some(date1904) = attribute(&start, "date1904") {
                    from_1904 = matches!(date1904.as_ref(), "1" | "true");
                }
            }
            Piece::Eof => return Ok((sheets, from_1904)),
            _ => {}
        }
    }
}

fn relations<R: Read + Seek>(
    archive: &mut Archive<R>,
    path: &str,
    folder: &str,
    watch: &Watch,
) -> Result<Relations, DecodeError> {
    let Some(entry) = archive.find(path) else { return Ok(Relations::new()) };
    let mut xml = Xml::new(archive.read(&entry)?, path, watch, SMALL_PART_MAX_BYTES, too_large);
    let mut relations = Relations::new();
    loop {
        match xml.next()? {
            Piece::Start(start) if start.local_name().as_ref() == "Relationship" => {
                let value = |name| attribute(&start, name).unwrap_or_default();
                let kind = value("Type").rsplit('/').next().unwrap_or_default().to_owned();
                relations.insert(value("Id").into_owned(), (kind, resolved(folder, &value("Target"))));
            }
            Piece::Eof => return Ok(relations),
            _ => {}
        }
    }
}

/// The path of the part of this type; there should be only one.
fn path_of_type(relations: &Relations, kind: &str) -> Option<String> {
    relations.values().filter(|(of, _)| of == kind).map(|(_, path)| path.clone()).min()
}

/// Resolves the path `target`, relative to this folder.
fn resolved(folder: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut steps: Vec<&str> = folder.split('/').filter(|step| !step.is_empty()).collect();
    for step in target.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    steps.join("/")
}

/// The error for a part other than a sheet that is too large.
pub(super) fn too_large(limit: u64) -> DecodeError {
    DecodeError::SheetTooLarge { what: "bytes in a part that lists its sheets or styles", limit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_resolved_relative_to_their_folder() {
        assert_eq!(resolved("xl", "worksheets/sheet1.xml"), "xl/worksheets/sheet1.xml");
        assert_eq!(resolved("xl", "/xl/worksheets/sheet1.xml"), "xl/worksheets/sheet1.xml");
        assert_eq!(resolved("a/xl", "../b/./c.xml"), "a/b/c.xml");
        assert_eq!(resolved("", "../../xl/workbook.xml"), "xl/workbook.xml");
    }
}
