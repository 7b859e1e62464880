//! Uploads: the stored input files.

use std::fmt;

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
    /// Its length in bytes, as announced; a file of another length is rejected. 0 until the first look at its origin.
    pub size: u64,
    /// The SHA-256 of its bytes in hexadecimal, if the client announced it.
    pub sha256: Option<String>,
    /// Where its object is, or will be.
    pub key: String,
    pub state: UploadState,
    /// Where Rowmill fetches it from, if no client sends it.
    pub origin: Option<Origin>,
    /// When it was announced.
    pub created_at: Timestamp,
    /// The time from which on it cannot be used for new jobs. Its object is kept longer, for the jobs that use it
    /// already.
    pub expires_at: Timestamp,
}

/// Where a file is fetched from.
#[derive(Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its URL as others may see it: without the query, which may be as good as a password.
    pub shown: String,
    /// Its whole URL, or its key in an external bucket, until the file is stored or given up.
    pub url: Option<String>,
    /// The version that is fetched, as its server names it: an entity tag, or the time of its last change.
    pub validator: Option<String>,
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").field("shown", &self.shown).field("validator", &self.validator).finish_non_exhaustive()
    }
}

impl Origin {
    /// An object in an external bucket, by its key.
    pub fn of_object(key: String) -> Self {
        Self { shown: key.clone(), url: Some(key), validator: None }
    }

    /// The origin at this URL.
    pub fn at(url: &str) -> Self {
        let end = url.find(['?', '#']).unwrap_or(url.len());
        Self { shown: url[..end].to_owned(), url: Some(url.to_owned()), validator: None }
    }
}

/// A file that is being fetched, after the first look at its origin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchBegun {
    pub size: u64,
    pub content_type: String,
    pub validator: Option<String>,
    pub multipart: Multipart,
}

/// Why a file could not be fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchFailure {
    pub code: String,
    pub detail: String,
}

impl Upload {
    /// True while Rowmill fetches it.
    pub const fn is_fetching(&self) -> bool {
        self.origin.is_some() && matches!(self.state, UploadState::Pending { .. })
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UploadState {
    /// The client is sending it, or Rowmill fetches it: in one piece, or in parts under this multipart upload.
    Pending {
        /// The multipart upload its parts belong to, if it has parts.
        multipart: Option<Multipart>,
    },
    /// It is stored whole.
    Ready { etag: String },
    /// Rowmill could not fetch it. Nothing of it is stored.
    Failed(FetchFailure),
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
