//! Input files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The real file that comes with the project: 11,231 characters of Unicode, one a row.
pub fn unicode_csv() -> Vec<u8> {
    data("unicode.csv")
}

/// The same rows as a JSON array, laid out over lines.
pub fn unicode_json() -> Vec<u8> {
    let csv = unicode_csv();
    let rows: Vec<BTreeMap<String, String>> =
        csv::Reader::from_reader(&*csv).deserialize().map(|row| row.expect("a row")).collect();
    serde_json::to_vec_pretty(&rows).expect("text")
}

/// A file of `tests/data`.
pub fn data(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A CSV file of `rows` good rows under the header `id,name,amount`; `id` is the row number.
pub fn plain_csv(rows: u64) -> Vec<u8> {
    let mut text = String::from("id,name,amount\n");
    for row in 1..=rows {
        let _ = writeln!(text, "{row},\"name {row}\",{}", row * 7 % 1000);
    }
    text.into_bytes()
}

pub fn gzip(text: &[u8]) -> Vec<u8> {
    gzip_by(text, Compression::default())
}

pub fn gzip_by(text: &[u8], compression: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), compression);
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

/// A workbook with one sheet of numbers under a header.
pub fn workbook_of_numbers(rows: u32, columns: u32) -> Vec<u8> {
    let header = (0..columns).fold("<row>".to_owned(), |header, column| {
        header + &format!(r#"<c t="inlineStr"><is><t>c{column}</t></is></c>"#)
    });
    let row = |row: u32| {
        let mut text = "<row>".to_owned();
        for column in 0..columns {
            let _ = write!(text, "<c><v>{}</v></c>", u64::from(row * columns + column) * 7919 % 1_000_003);
        }
        text + "</row>"
    };
    workbook(std::iter::once(header + "</row>").chain((0..rows).map(row)))
}

/// A zip archive of these files.
pub fn zip(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(name, SimpleFileOptions::default()).expect("a name");
        zip.write_all(bytes).expect("memory");
    }
    zip.finish().expect("an archive").into_inner()
}

/// A workbook with one sheet, `s`, of these rows as XML.
pub fn workbook(rows: impl Iterator<Item = String>) -> Vec<u8> {
    const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    const SHEETS: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
    let relation = |kind: &str, target: &str| {
        format!(
            r#"<Relationships xmlns="{PACKAGE}"><Relationship Id="r" Type="{RELATIONS}/{kind}" Target="{target}"/></Relationships>"#
        )
    };
    let book = format!(
        r#"<workbook xmlns="{SHEETS}" xmlns:r="{RELATIONS}"><sheets><sheet name="s" sheetId="1" r:id="r"/></sheets></workbook>"#
    );
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_level(Some(1));
    let mut part = |name: &str, text: &str| {
        zip.start_file(name, options).expect("a name");
        zip.write_all(text.as_bytes()).expect("memory");
    };
    part("_rels/.rels", &relation("officeDocument", "xl/workbook.xml"));
    part("xl/_rels/workbook.xml.rels", &relation("worksheet", "worksheets/sheet1.xml"));
    part("xl/workbook.xml", &book);
    part("xl/worksheets/sheet1.xml", &format!(r#"<worksheet xmlns="{SHEETS}"><sheetData>"#));
    let mut text = String::new();
    for row in rows {
        text.push_str(&row);
        if text.len() > 1 << 20 {
            zip.write_all(text.as_bytes()).expect("memory");
            text.clear();
        }
    }
    text.push_str("</sheetData></worksheet>");
    zip.write_all(text.as_bytes()).expect("memory");
    zip.finish().expect("an archive").into_inner()
}
