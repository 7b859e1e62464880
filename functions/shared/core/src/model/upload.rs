//! Uploads: the stored input files.

use jiff::Timestamp;

use crate::model::ids::{FileGuid, Owner};

/// A stored input file, or the promise of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upload {
    pub file_guid: FileGuid,
    pub owner: Owner,
    /// The name that the client gave the file, if any.
    pub file_name: Option<String>,
    pub content_type: String,
    /// Its length in bytes, as announced; a file of another length is rejected.
    pub size: u64,
    /// The SHA-256 of its bytes in hexadecimal, if the client announced it.
    pub sha256: Option<String>,
    /// Where its object is, or will be.
    pub key: String,
    pub state: UploadState,
    /// When it was announced.
    pub created_at: Timestamp,
    /// The time from which on it cannot be used for new jobs. Its object is kept longer, for the jobs that use it
    /// already.
    pub expires_at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UploadState {
    /// The client is sending it: in one piece, or in parts under this multipart upload.
    Pending {
        /// The multipart upload its parts belong to, if it has parts.
        multipart: Option<Multipart>,
    },
    /// It is stored whole.
    Ready { etag: String },
}

/// The multipart upload that collects the parts of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Multipart {
    /// Its name in the bucket.
    pub id: String,
    /// The length of each part but the last, in bytes. It is stored, so that another version of Rowmill signs the same
    /// parts again.
    pub part_size: u64,
}

impl Multipart {
    /// Number of parts of a file of `size` bytes.
    pub fn parts_of(&self, size: u64) -> u32 {
        u32::try_from(size.div_ceil(self.part_size.max(1))).unwrap_or(u32::MAX)
    }

    /// The length of a part of a file of `size` bytes. Parts are numbered from 1.
    pub fn length_of(&self, part: u32, size: u64) -> u64 {
        let before = u64::from(part.saturating_sub(1)).saturating_mul(self.part_size);
        self.part_size.min(size.saturating_sub(before))
    }
}
