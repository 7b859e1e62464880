//! The limits of announced uploads that an owner leaves unfinished.

use std::time::Duration;

use jiff::Timestamp;

use crate::model::ids::FileGuid;

/// Time for which an announced upload counts as outstanding if it is never completed. Its presigned requests end
/// earlier. Its parts are kept for as long as the upload lives, so that it can be resumed; once its requests are signed
/// again after this time, it counts again.
pub const OUTSTANDING_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Limits of an owner's announced and not completed uploads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutstandingLimits {
    pub uploads: u32,
    /// Their announced bytes together.
    pub bytes: u64,
}

/// An upload that is announced and not completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutstandingUpload {
    pub file_guid: FileGuid,
    /// Its announced length.
    pub bytes: u64,
    /// Until when it counts.
    pub until: Timestamp,
}

/// Outstanding uploads of an owner, if a further upload does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutstandingFull {
    pub uploads: u32,
    /// Their announced bytes together.
    pub bytes: u64,
    /// When the upload fits at the latest, because others no longer count.
    pub free_at: Timestamp,
}

impl OutstandingLimits {
    /// True if a further upload of this length fits beside these.
    pub const fn fits(self, uploads: u32, bytes: u64, further: u64) -> bool {
        uploads < self.uploads && bytes.saturating_add(further) <= self.bytes
    }

    /// The refusal of an upload of this length beside those that are `open`.
    pub fn refusal(self, open: &[OutstandingUpload], further: u64, now: Timestamp) -> OutstandingFull {
        let (mut uploads, mut bytes) =
            (u32::try_from(open.len()).unwrap_or(u32::MAX), open.iter().map(|upload| upload.bytes).sum::<u64>());
        let mut full = OutstandingFull { uploads, bytes, free_at: now + OUTSTANDING_FOR };
        let mut by_end: Vec<_> = open.iter().collect();
        by_end.sort_by_key(|upload| upload.until);
        for upload in by_end {
            (uploads, bytes) = (uploads.saturating_sub(1), bytes.saturating_sub(upload.bytes));
            if self.fits(uploads, bytes, further) {
                full.free_at = upload.until;
                break;
            }
        }
        full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_refusal_says_when_enough_uploads_no_longer_count() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let open = |number: u128, bytes, until| OutstandingUpload {
            file_guid: FileGuid(Uuid::from_u128(number)),
            bytes,
            until: at(until),
        };
        let limits = OutstandingLimits { uploads: 3, bytes: 100 };
        let uploads = [open(1, 50, 30), open(2, 10, 10), open(3, 40, 20)];
        let full = |further| limits.refusal(&uploads, further, at(0));
        assert_eq!(full(10), OutstandingFull { uploads: 3, bytes: 100, free_at: at(10) });
        assert_eq!(full(11).free_at, at(20));
        assert_eq!(full(51).free_at, at(30));
        assert_eq!(full(101).free_at, at(0) + OUTSTANDING_FOR, "it never fits");
    }
}
