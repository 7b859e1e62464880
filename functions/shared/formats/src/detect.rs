//! Detects how a file is packed, from its first bytes and from the user's hints.
//!
//! The bytes take precedence. A hint only decides where the bytes are ambiguous. A hint that contradicts the bytes is
//! rejected, because then the file is not what the user believes.

use encoding_rs::Encoding;
use memchr::memmem;
use rowmill_core::model::packing::{Charset, Compression, Packing, TextPacking};
use rowmill_core::text::{Format, declared_format};

use crate::error::shortened;
use crate::format_error::FormatError;
use crate::json_array::is_json_array;
use crate::names::{essence, text_content_type, text_file_name};
use crate::stream::decode_prefix;

/// Number of bytes of a compressed file's content that are examined: enough to find the magic number of a tar archive.
const INNER_BYTES: usize = 512;

/// The user's own statements about a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hints<'a> {
    /// The param `format`: `csv`, `jsonl`, `json`, `xlsx` or `parquet`.
    pub format: Option<&'a str>,
    /// The param `compression`: `gzip`, `zstd` or `none`.
    pub compression: Option<&'a str>,
    /// The param `encoding`: a charset label.
    pub encoding: Option<&'a str>,
    /// The param `sheet`: the name of a sheet in a workbook.
    pub sheet: Option<&'a str>,
    /// Number of rows of a sheet before its header.
    pub title_rows: u32,
    /// The media type of the upload. Its `charset` is used if there is no `encoding`.
    pub content_type: Option<&'a str>,
    pub file_name: Option<&'a str>,
}

/// Detects the packing of a file that starts with `prefix`; `None` for plain UTF-8 text, which is the default.
///
/// A prefix of about 4 KiB is enough. A byte-order mark takes precedence over the hint `encoding`.
pub fn detect(prefix: &[u8], hints: &Hints<'_>) -> Result<Option<Packing>, FormatError> {
    let params = CheckedParams::new(hints)?;
    let kind = Kind::of(prefix);
    match kind {
        Kind::Text => params.expect(kind, None, &["csv", "jsonl", "json"])?,
        Kind::Compressed(compression) => params.expect(kind, Some(compression), &["csv", "jsonl", "json"])?,
        Kind::Parquet => params.expect(kind, None, &["parquet"])?,
        Kind::Zip => return workbook(prefix, hints, &params).map(Some),
        Kind::OldExcel => return Err(FormatError::OldExcel),
        Kind::OpenDocument => return Err(FormatError::OtherSpreadsheet { found: kind.name() }),
        Kind::Archive(found) => return Err(FormatError::Archive { found }),
        Kind::EncryptedParquet => return Err(FormatError::EncryptedParquet),
        Kind::OtherCompression(found) => return Err(FormatError::UnsupportedCompression { found }),
    }
    let packing = match kind {
        Kind::Parquet => Some(Packing::Parquet),
        Kind::Compressed(compression) => {
            // Ignore errors here: decoding the file reports them, with the position and the reason.
            let compressed = TextPacking { compression: Some(compression), ..TextPacking::default() };
            let inner = decode_prefix(compressed, prefix, false, INNER_BYTES).unwrap_or_default().0;
            let charset = params.charset_of(nested_text(&inner, kind)?)?;
            text(prefix, hints, TextPacking { charset, ..compressed })?
        }
        _ => text(prefix, hints, TextPacking { charset: params.charset_of(prefix)?, ..TextPacking::default() })?,
    };
    match hints.sheet {
        Some(_) => Err(FormatError::MeaninglessParam { param: "sheet", only: "workbooks", found: kind.name() }),
        None => Ok(packing),
    }
}

/// The packing of text, which may be a JSON array.
fn text(prefix: &[u8], hints: &Hints<'_>, packing: TextPacking) -> Result<Option<Packing>, FormatError> {
    let declared = match hints.format {
        Some("csv") => return Ok(packing.packing()),
        Some(format) => format,
        None => {
            let content_type = hints.content_type.and_then(|declared| text_content_type(declared, None));
            let name = hints.file_name.map(|name| text_file_name(name, None));
            let is_json = content_type.is_some_and(|content_type| essence(content_type) == "application/json")
                || name.as_deref().is_some_and(|name| name.to_ascii_lowercase().ends_with(".json"));
            match declared_format(content_type, name.as_deref()) {
                Some(Format::Csv) => return Ok(packing.packing()),
                _ if is_json => "json",
                _ => "",
            }
        }
    };
    let begin = match packing == TextPacking::default() {
        true => prefix,
        false => &decode_prefix(packing, prefix, false, INNER_BYTES).unwrap_or_default().0,
    };
    let json_array = is_json_array(begin, declared == "json");
    match (hints.format, json_array) {
        (Some("json"), false) => Err(mismatch("format", "json", "not a JSON array")),
        (Some("jsonl"), true) => Err(mismatch("format", "jsonl", "a JSON array")),
        _ => Ok(TextPacking { json_array, ..packing }.packing()),
    }
}

fn mismatch(param: &'static str, said: &str, found: &'static str) -> FormatError {
    FormatError::Mismatch { param, said: said.to_owned(), found }
}

/// Checks the params of a file that is not there yet, as [`detect`] does before it looks at the file.
///
/// # Errors
/// [`FormatError`]: a value that is right for no file.
pub fn check_hints(hints: &Hints<'_>) -> Result<(), FormatError> {
    CheckedParams::new(hints).map(drop)
}

/// The params, after a check that their values are known ones.
struct CheckedParams<'a> {
    format: Option<&'a str>,
    compression: Option<&'a str>,
    encoding: Option<&'a str>,
    charset: Option<Charset>,
}

impl<'a> CheckedParams<'a> {
    fn new(hints: &Hints<'a>) -> Result<Self, FormatError> {
        let Hints { format, compression, encoding, content_type, .. } = *hints;
        if let Some(format) = format.filter(|format| !["csv", "jsonl", "json", "xlsx", "parquet"].contains(format)) {
            return Err(FormatError::UnknownFormat { format: shortened(format) });
        }
        if let Some(compression) = compression.filter(|name| !["gzip", "zstd", "none"].contains(name)) {
            return Err(FormatError::UnknownCompression { compression: shortened(compression) });
        }
        let charset = match encoding {
            Some(label) => charset_of_label(label)?,
            // The client's software sets the content type, not the user, so an unknown label is ignored.
            None => content_type.and_then(charset_param).and_then(|label| charset_of_label(label).ok()).flatten(),
        };
        Ok(Self { format, compression, encoding, charset })
    }

    /// Rejects params that contradict the bytes.
    fn expect(&self, kind: Kind, compression: Option<Compression>, formats: &[&str]) -> Result<(), FormatError> {
        let mismatch = |param, said| Err(mismatch(param, said, kind.name()));
        let found = compression.map_or("none", compression_name);
        match (self.compression, self.format) {
            (Some(said), _) if said != found => mismatch("compression", said),
            (_, Some(said)) if !formats.contains(&said) => mismatch("format", said),
            _ => match self.encoding {
                Some(_) if self.charset.is_some() && !formats.contains(&"csv") => {
                    Err(FormatError::MeaninglessParam { param: "encoding", only: "text", found: kind.name() })
                }
                _ => Ok(()),
            },
        }
    }

    /// The charset of text that starts like this.
    fn charset_of(&self, text: &[u8]) -> Result<Option<Charset>, FormatError> {
        match text {
            // UTF-32 first: the mark of UTF-32 little-endian begins with the mark of UTF-16.
            [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => Err(FormatError::Utf32),
            [0xFF, 0xFE, ..] => Ok(Some(Charset::UTF_16LE)),
            [0xFE, 0xFF, ..] => Ok(Some(Charset::UTF_16BE)),
            [0xEF, 0xBB, 0xBF, ..] => Ok(None),
            _ => Ok(self.charset),
        }
    }
}

/// The kind of file, by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Text,
    Compressed(Compression),
    Zip,
    OpenDocument,
    OldExcel,
    Parquet,
    EncryptedParquet,
    Archive(&'static str),
    OtherCompression(&'static str),
}

impl Kind {
    fn of(bytes: &[u8]) -> Self {
        match bytes {
            [0x1F, 0x8B, ..] => Self::Compressed(Compression::Gzip),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Self::Compressed(Compression::Zstd),
            // A skippable frame; some writers start with one.
            [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Self::Compressed(Compression::Zstd),
            [b'P', b'K', 3, 4, ..] => match bytes.get(30..) {
                Some(name) if name.starts_with(b"mimetypeapplication/vnd.oasis.") => Self::OpenDocument,
                _ => Self::Zip,
            },
            [b'P', b'K', 5, 6, ..] => Self::Archive("an empty zip archive"),
            [0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1, ..] => Self::OldExcel,
            // A CSV header can start with these letters, but then no control character follows.
            [b'P', b'A', b'R', b'1', next, ..] if is_binary(*next) => Self::Parquet,
            [b'P', b'A', b'R', b'E', next, ..] if is_binary(*next) => Self::EncryptedParquet,
            [b'7', b'z', 0xBC, 0xAF, 0x27, 0x1C, ..] => Self::Archive("a 7z archive"),
            [b'R', b'a', b'r', b'!', 0x1A, 0x07, ..] => Self::Archive("a rar archive"),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] => Self::OtherCompression("bzip2"),
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Self::OtherCompression("xz"),
            [0x04, 0x22, 0x4D, 0x18, ..] => Self::OtherCompression("lz4"),
            _ if bytes.get(257..262) == Some(b"ustar") => Self::Archive("a tar archive"),
            _ => Self::Text,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Text => "not compressed and not binary",
            Self::Compressed(compression) => compression_name(compression),
            Self::Zip => "a zip archive or workbook",
            Self::OpenDocument => "an OpenDocument file (.ods)",
            Self::OldExcel => "an old Excel workbook (.xls)",
            Self::Parquet | Self::EncryptedParquet => "a Parquet file",
            Self::Archive(found) | Self::OtherCompression(found) => found,
        }
    }
}

fn is_binary(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\r' | b'\n')
}

fn compression_name(compression: Compression) -> &'static str {
    match compression {
        Compression::Gzip => "gzip",
        Compression::Zstd => "zstd",
    }
}

fn charset_of_label(label: &str) -> Result<Option<Charset>, FormatError> {
    let name = label.trim().to_ascii_lowercase();
    // Browsers treat ASCII as Windows-1252. Here a byte that is not ASCII is an error that the user must see.
    if ["ascii", "us-ascii"].contains(&name.as_str()) {
        return Ok(None);
    }
    let name = if name == "latin-1" { "latin1" } else { &name };
    match Encoding::for_label_no_replacement(name.as_bytes()) {
        Some(encoding) => Ok(Charset::of(encoding)),
        None => Err(FormatError::UnsupportedEncoding { encoding: shortened(label) }),
    }
}

/// The charset label in a media type such as `text/csv; charset=latin1`.
fn charset_param(content_type: &str) -> Option<&str> {
    let params = content_type.split(';').skip(1).filter_map(|param| param.split_once('='));
    let found = params.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    found.map(|(_, label)| label.trim().trim_matches('"'))
}

/// Checks that the start of a compressed file's content is text, and returns it.
fn nested_text(inner: &[u8], outer: Kind) -> Result<&[u8], FormatError> {
    match Kind::of(inner) {
        Kind::Text => Ok(inner),
        Kind::Archive(found) => Err(FormatError::Archive { found }),
        Kind::Compressed(Compression::Gzip) => Err(FormatError::Nested { outer: outer.name(), inner: "a gzip file" }),
        Kind::Compressed(Compression::Zstd) => Err(FormatError::Nested { outer: outer.name(), inner: "a zstd file" }),
        kind => Err(FormatError::Nested { outer: outer.name(), inner: kind.name() }),
    }
}

/// The packing of a zip archive, if it is a workbook.
fn workbook(prefix: &[u8], hints: &Hints<'_>, params: &CheckedParams<'_>) -> Result<Packing, FormatError> {
    let name = hints.file_name.unwrap_or_default().to_ascii_lowercase();
    let content_type = hints.content_type.unwrap_or_default().to_ascii_lowercase();
    if name.ends_with(".xlsb") || content_type.contains("ms-excel.sheet.binary") {
        return Err(FormatError::OtherSpreadsheet { found: "a binary Excel workbook (.xlsb)" });
    }
    let is_declared = params.format == Some("xlsx")
        || content_type.contains("spreadsheetml.sheet")
        || content_type.contains("ms-excel.sheet.macroenabled")
        || name.ends_with(".xlsx")
        || name.ends_with(".xlsm");
    if !is_declared && memmem::find(prefix, b"xl/").is_none() {
        return Err(FormatError::Zip);
    }
    params.expect(Kind::Zip, None, &["xlsx"])?;
    Ok(Packing::Xlsx { sheet: hints.sheet.map(str::to_owned), title_rows: hints.title_rows })
}
