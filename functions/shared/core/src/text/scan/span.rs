//! The position of a record.

/// The position of one record in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::text) struct Span {
    /// Offset of its first byte.
    pub start: u64,
    /// Offset after its last byte, without the terminator.
    pub content_end: u64,
    /// Offset after its terminator.
    pub end: u64,
}

/// A quote that is not closed at the end of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::text) struct OpenQuote {
    /// Offset of its record.
    pub record_start: u64,
    /// Offset of the quote itself.
    pub offset: u64,
}
