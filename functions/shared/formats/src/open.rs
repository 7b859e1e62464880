//! Opens a file: how it is packed, and the head of its text, from its first bytes and the params of a job.

use std::sync::Arc;

use bytes::Bytes;
use rowmill_core::model::files::ZipMember;
use rowmill_core::model::packing::{Packing, TextPacking};
use rowmill_core::model::spec::SourceFile;
use rowmill_core::model::warnings::{self, Warning};
use rowmill_core::ports::processor::ParamsError;
use rowmill_core::ports::{Objects, PortError};
use rowmill_core::text::{Format, Head, HeadError, TextParams, Utf8Watch, read_head, title_rows};
use serde_json::{Map, Value};

use crate::{
    DecodeError, FormatError, Hints, Limits, TextStream, check_hints, decode_prefix, detect, port_error,
    text_content_type, text_file_name, text_format,
};

/// A file, opened.
pub struct Opened {
    /// How it is packed; `None` for plain UTF-8 text.
    pub packing: Option<Packing>,
    /// The format of its text.
    pub head: Head,
    /// Warnings for the owner about its first bytes, apart from those about the names of the columns.
    pub warnings: Vec<Warning>,
    /// The text that the head was read from.
    pub first: FirstText,
    /// The params that say how the text is read.
    pub params: TextParams,
}

/// Why a file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The text cannot be read in the declared or detected format.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The file is not packed as declared, or in an unknown way.
    #[error(transparent)]
    Packing(#[from] FormatError),
    #[error(transparent)]
    Packed(#[from] DecodeError),
    #[error(transparent)]
    Params(#[from] ParamsError),
    #[error(transparent)]
    Port(#[from] PortError),
}

impl OpenError {
    /// That of decoding an object.
    pub fn of(error: DecodeError) -> Self {
        port_error(error).map_or_else(Self::from, Self::from)
    }
}

/// The beginning of a text.
#[derive(Clone, Debug, Default)]
pub struct FirstText {
    pub bytes: Bytes,
    pub whole: bool,
}

/// Opens this file, of which at most so many bytes are read.
pub async fn open(
    objects: &Arc<dyn Objects>,
    file: &SourceFile,
    (content_type, file_name): (&str, Option<&str>),
    params: &Map<String, Value>,
    first_max_bytes: u64,
) -> Result<Opened, OpenError> {
    let prefix = first_bytes(objects, file, first_max_bytes).await?;
    open_read(objects, file, prefix, (content_type, file_name), params).await
}

/// The first bytes of a file, at most so many.
pub async fn first_bytes(objects: &Arc<dyn Objects>, file: &SourceFile, most: u64) -> Result<Bytes, PortError> {
    match most.min(file.size) {
        0 => Ok(Bytes::new()),
        length => objects.read_range(&file.key, &file.etag, 0..length).await,
    }
}

/// Opens this file, whose first bytes are read.
pub async fn open_read(
    objects: &Arc<dyn Objects>,
    file: &SourceFile,
    prefix: Bytes,
    (content_type, file_name): (&str, Option<&str>),
    params: &Map<String, Value>,
) -> Result<Opened, OpenError> {
    let length = prefix.len() as u64;
    let whole = length >= file.size;
    let hints = Hints { content_type: Some(content_type), file_name, ..hints(params)? };
    let packing = detect(&prefix, &hints)?;
    let first = match &packing {
        None => FirstText { bytes: prefix, whole },
        Some(packing @ Packing::Text(text_packing)) => {
            let (text, whole) = decode_prefix(*text_packing, &prefix, whole, prefix_max(length))?;
            // A block of zstd may be longer than the prefix. Then nothing of it can be decoded.
            match text_packing.compression.is_some() && !whole && text.len() < prefix_max(length) {
                true => first_text(objects, file, packing, prefix_max(length)).await?,
                false => FirstText { bytes: text.into(), whole },
            }
        }
        Some(packing) => first_text(objects, file, packing, prefix_max(length)).await?,
    };
    with_head(packing, first, (content_type, file_name), params)
}

/// Opens a file in a zip archive.
pub async fn open_member(
    objects: &Arc<dyn Objects>,
    file: &SourceFile,
    member: ZipMember,
    file_name: &str,
    params: &Map<String, Value>,
) -> Result<Opened, OpenError> {
    let max_bytes = prefix_max(0);
    let stored = Packing::Member { member, text: TextPacking::default() };
    let first = first_text(objects, file, &stored, max_bytes).await?;
    let text = match detect(&first.bytes, &Hints { file_name: Some(file_name), ..hints(params)? })? {
        None => TextPacking::default(),
        Some(Packing::Text(text)) if text.compression.is_none() => text,
        Some(_) => return Err(FormatError::Nested { outer: "zip", inner: "a packed file" }.into()),
    };
    let (bytes, whole) = decode_prefix(text, &first.bytes, first.whole, max_bytes)?;
    let first = FirstText { bytes: bytes.into(), whole };
    with_head(Some(Packing::Member { member, text }), first, ("", Some(file_name)), params)
}

/// A file that is packed like this, whose text begins like this.
fn with_head(
    packing: Option<Packing>,
    first: FirstText,
    (content_type, file_name): (&str, Option<&str>),
    params: &Map<String, Value>,
) -> Result<Opened, OpenError> {
    let params = text_params(params, packing.as_ref())?;
    let file_name = file_name.map(|name| text_file_name(name, packing.as_ref()));
    let content_type = text_content_type(content_type, packing.as_ref());
    let head = read_head(&first.bytes, first.whole, &params, content_type, file_name.as_deref())?;
    let warnings = match packing.as_ref().is_none_or(Packing::is_utf8) {
        true => utf8_warning(&first.bytes, first.whole),
        false => Vec::new(),
    };
    Ok(Opened { packing, head, warnings, first, params })
}

/// The beginning of the text, for formats whose first bytes do not hold it, or if more of it is wanted.
pub async fn first_text(
    objects: &Arc<dyn Objects>,
    file: &SourceFile,
    packing: &Packing,
    max_bytes: usize,
) -> Result<FirstText, OpenError> {
    text_within(objects, file, packing, max_bytes, Limits::of_beginning()).await
}

/// The text of a packed file, at most so many bytes of it.
pub async fn text_within(
    objects: &Arc<dyn Objects>,
    file: &SourceFile,
    packing: &Packing,
    max_bytes: usize,
    limits: Limits,
) -> Result<FirstText, OpenError> {
    let mut stream = TextStream::open(Arc::clone(objects), file, packing, limits, 1);
    let mut text = Vec::new();
    while text.len() < max_bytes {
        match stream.next().await {
            Ok(Some(block)) => text.extend_from_slice(&block.bytes),
            Ok(None) => return Ok(FirstText { bytes: text.into(), whole: true }),
            Err(error) => return Err(OpenError::of(error)),
        }
    }
    text.truncate(max_bytes);
    Ok(FirstText { bytes: text.into(), whole: false })
}

/// The warning about text that is not UTF-8, if it begins like this.
fn utf8_warning(text: &[u8], whole: bool) -> Vec<Warning> {
    let mut watch = Utf8Watch::default();
    watch.push(text);
    if whole {
        watch.finish();
    }
    watch.found().map(|(byte, likely)| warnings::not_utf8(byte, likely)).into_iter().collect()
}

/// Number of bytes of unpacked text to read. A short packed file may expand, hence the minimum of 64 KiB.
fn prefix_max(length: u64) -> usize {
    usize::try_from(length.max(64 * 1024)).unwrap_or(usize::MAX)
}

/// The params that hint at the packing of a file.
fn hints(params: &Map<String, Value>) -> Result<Hints<'_>, ParamsError> {
    let text = |name: &str| match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(ParamsError::new(format!("params.{name}"), "must be a string.")),
    };
    let number = |name: &str| match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(number) => number
            .as_u64()
            .map(|number| Some(row_number(number)))
            .ok_or_else(|| ParamsError::new(format!("params.{name}"), "must be a whole number, 0 or more.")),
    };
    Ok(Hints {
        format: text("format")?,
        compression: text("compression")?,
        encoding: text("encoding")?,
        sheet: text("sheet")?,
        title_rows: title_rows(number("headerRow")?, number("skipRows")?),
        content_type: None,
        file_name: None,
    })
}

/// The params that say how a file is read, checked as far as nothing of the file is known.
pub fn checked_params(params: &Map<String, Value>) -> Result<TextParams, OpenError> {
    let hints = hints(params)?;
    check_hints(&hints)?;
    let mut of_text = params.clone();
    if matches!(hints.format, Some("json" | "xlsx" | "parquet")) {
        // Their text has a format of its own.
        of_text.retain(|name, _| name != "format" && name != "delimiter");
    }
    let params = text_params(&of_text, None)?;
    params.check()?;
    Ok(params)
}

/// A number of rows. One that is larger than any stays too large: the reader refuses it with its limit.
fn row_number(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The params for the text that the file unpacks to.
fn text_params(params: &Map<String, Value>, packing: Option<&Packing>) -> Result<TextParams, ParamsError> {
    let mut params = params.clone();
    // `detect` has judged it, and the unpacked text is UTF-8.
    params.remove("encoding");
    for name in ["headerRow", "skipRows"] {
        if let Some(number) = params.get(name).and_then(Value::as_u64) {
            params.insert(name.to_owned(), row_number(number).into());
        }
    }
    if let Some(packing) = packing {
        if let Some(format) = text_format(packing) {
            params.remove("delimiter");
            let format = if format == Format::Csv { "csv" } else { "jsonl" };
            params.insert("format".to_owned(), Value::from(format));
        }
        if matches!(packing, Packing::Xlsx { .. }) {
            params.insert("delimiter".to_owned(), Value::from(","));
        }
    }
    serde_json::from_value(Value::Object(params))
        .map_err(|error| ParamsError::new("params", format!("has a wrong `format`, `delimiter` or `header`: {error}.")))
}
