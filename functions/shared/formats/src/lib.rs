//! What clients upload, as the UTF-8 text that Rowmill cuts into chunks.
//!
//! [`detect`] tells from the first bytes of a file, and from what its owner says about it, how it is packed;
//! [`decode_stream`] turns compressed or foreign text into UTF-8 as it flows by, [`decode_file`] a workbook or a Parquet
//! file that can be read anywhere, and [`decode_prefix`] the beginning of a file, so that its head can be looked at.
//!
//! Files come from anyone, so nothing here takes a file's word for a size: all memory is bounded by [`Limits`] and by a few
//! fixed buffers, whatever is inflated is counted as it is inflated, and a file that is damaged, hostile or too large ends
//! in a [`DecodeError`] that says so. Text leaves in [`Block`]s, and the same file always yields the same text: chunks are
//! cut again after a crash, and must be the same ones.

#![warn(missing_docs)]

mod blocks;
mod charset;
mod detect;
mod error;
mod file;
mod format_error;
mod limits;
mod names;
mod object;
mod parquet;
mod source;
mod stream;
mod watch;
mod xlsx;

pub use blocks::{BLOCK_MAX_BYTES, Block};
pub use detect::{Hints, detect};
pub use error::{DecodeError, Place};
pub use file::decode_file;
pub use format_error::FormatError;
pub use limits::Limits;
pub use names::{text_content_type, text_file_name, text_format};
pub use object::{TextBlock, TextStream, port_error};
pub use stream::{decode_prefix, decode_stream};
