//! Decodes uploaded files to the UTF-8 text that Rowmill cuts into chunks.
//!
//! - [`detect`] detects from the first bytes of a file and the user's hints how the file is packed.
//! - [`decode_stream`] decodes compressed text, and text in other charsets, and JSON arrays, as a stream.
//! - [`decode_file`] decodes a workbook or a Parquet file, which needs random access.
//! - [`decode_prefix`] decodes the start of a file, so that its head can be read.
//!
//! [`TextStream`] does it for an object of the bucket; [`SourceReader`] reads such an object.
//!
//! Files are untrusted, so no declared size is believed. [`Limits`] and a few fixed buffers bound all memory, and
//! everything is counted while it is decompressed. A file that is damaged, hostile or too large ends in a
//! [`DecodeError`] that says so.
//!
//! The text is passed on in [`Block`]s. The same file always gives the same text: after a crash it is cut into chunks
//! again, and the chunks must be the same.

mod blocks;
mod charset;
mod detect;
mod error;
mod file;
mod filled;
mod format_error;
mod gzip;
mod json_array;
mod limits;
mod members;
mod names;
mod object;
mod open;
mod parquet;
mod source;
mod source_reader;
#[cfg(test)]
mod source_reader_tests;
mod stream;
mod watch;
mod xlsx;
mod zip;

pub use blocks::{BLOCK_MAX_BYTES, Block};
pub use detect::{Hints, check_hints, detect};
pub use error::{DecodeError, Place};
pub use file::decode_file;
pub use format_error::FormatError;
pub use limits::Limits;
pub use members::{MEMBERS_MAX, members};
pub use names::{text_content_type, text_file_name, text_format};
pub use object::{RANGE_BYTES, TextBlock, TextStream, port_error, zip_members};
pub use open::{
    FirstText, OpenError, Opened, checked_params, first_bytes, first_text, open, open_member, open_read, text_within,
};
pub use source_reader::{ReadAhead, SourceReader};
pub use stream::{Decoded, decode_prefix, decode_stream};
