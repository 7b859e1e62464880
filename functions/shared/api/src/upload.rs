//! An upload as the API shows it.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use rowmill_core::model::ids::FileGuid;
use rowmill_core::model::upload::{FetchFailure, Upload, UploadState};
use rowmill_core::ports::PresignedRequest;
use rowmill_core::words::{Open, words};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

words! {
    /// How far an upload is.
    UploadStatus {
        /// The client is still to send the bytes, or the rest of them.
        Pending = "pending",
        /// Rowmill is still to fetch the bytes, or the rest of them.
        Fetching = "fetching",
        /// All bytes are stored.
        Ready = "ready",
        /// Rowmill could not fetch the file.
        Failed = "failed",
    }
}

/// An upload as the API shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadView {
    /// The upload's name.
    pub file_guid: FileGuid,
    /// `pending`, or `fetching` if Rowmill fetches the file, until all bytes are stored; then `ready`. `failed` if the file
    /// cannot be fetched.
    #[schema(value_type = UploadStatus)]
    pub status: Open<UploadStatus>,
    /// The file's name, if the client gave one.
    pub file_name: Option<String>,
    /// The file's media type.
    pub content_type: String,
    /// The file's length in bytes. 0 while the length of a file that is fetched is not known.
    pub size: u64,
    /// The SHA-256 of the file's bytes in hexadecimal, if announced.
    pub sha256: Option<String>,
    /// When the upload was announced.
    pub created_at: Timestamp,
    /// Until when a job can be created from it.
    pub expires_at: Timestamp,
    /// How many bytes are stored, as the bucket counts them. Parts that are being sent do not count. Left out in the
    /// answer to an announcement.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes_stored: Option<u64>,
    /// The stored parts, in order. Only for a pending upload in parts, when its state is asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parts_stored: Option<Vec<PartRange>>,
    /// The request that stores the whole file. Only for a small file, in the answer to its announcement or when its
    /// request is signed again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub upload: Option<RequestView>,
    /// The requests that store the file part by part. Only for a big file: all parts in the answer to its announcement,
    /// the missing ones when they are signed again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parts: Option<Vec<PartView>>,
    /// The length of each part but the last, in bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part_size: Option<u64>,
    /// The first missing part that is not in `parts`, because an answer has only so many: send it as `from`. Left out
    /// if there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(minimum = 1)]
    pub next_part: Option<u32>,
    /// Where the file is fetched from. Only for a file that Rowmill fetches.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<OriginView>,
    /// Why the file could not be fetched. Only if it has failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<FetchFailureView>,
}

/// Where a file is fetched from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OriginView {
    /// The file's URL, without its query.
    pub url: String,
}

/// Why a file could not be fetched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FetchFailureView {
    /// The stable name of the reason: `source_refused`, `source_unavailable`, `source_changed`, `source_too_slow`,
    /// `file_too_large`, `too_many_uploads` or `internal_error`. There may be more.
    pub code: String,
    /// What happened, and what the server said.
    pub detail: String,
}

impl From<&Upload> for UploadView {
    /// Without any requests.
    fn from(upload: &Upload) -> Self {
        let (status, failure) = match &upload.state {
            UploadState::Ready { .. } => (UploadStatus::Ready, None),
            UploadState::Failed(failure) => (UploadStatus::Failed, Some(failure)),
            UploadState::Pending { .. } if upload.origin.is_some() => (UploadStatus::Fetching, None),
            UploadState::Pending { .. } => (UploadStatus::Pending, None),
        };
        Self {
            file_guid: upload.file_guid,
            status: status.into(),
            file_name: upload.file_name.clone(),
            content_type: upload.content_type.clone(),
            size: upload.size,
            sha256: upload.sha256.clone(),
            created_at: upload.created_at,
            expires_at: upload.expires_at,
            bytes_stored: (status == UploadStatus::Ready).then_some(upload.size),
            parts_stored: None,
            upload: None,
            parts: None,
            part_size: None,
            next_part: None,
            source: upload.origin.as_ref().map(|origin| OriginView { url: origin.shown.clone() }),
            failure: failure
                .map(|FetchFailure { code, detail }| FetchFailureView { code: code.clone(), detail: detail.clone() }),
        }
    }
}

/// Parts whose numbers follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PartRange {
    /// The number of the first one.
    #[schema(minimum = 1)]
    pub first: u32,
    /// The number of the last one.
    #[schema(minimum = 1)]
    pub last: u32,
}

/// A presigned request: send it as it is, with these headers.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestView {
    /// The HTTP method.
    pub method: String,
    /// The address. It holds the signature.
    pub url: String,
    /// Headers that are part of the signature: send exactly these values.
    #[serde(default)]
    #[schema(required)]
    pub headers: BTreeMap<String, String>,
    /// Until when the request can be used.
    pub expires_at: Timestamp,
}

impl RequestView {
    /// A presigned request that can be used until `expires_at`.
    pub fn of(request: PresignedRequest, expires_at: Timestamp) -> Self {
        let PresignedRequest { method, url, headers } = request;
        Self { method, url, headers: headers.into_iter().collect(), expires_at }
    }
}

impl fmt::Debug for RequestView {
    /// Anyone who has the address may write the file, so it must not reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestView").field("method", &self.method).finish_non_exhaustive()
    }
}

/// The presigned request of one part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartView {
    /// The part's number, counted from 1, in the order of the file.
    #[schema(minimum = 1)]
    pub part_number: u32,
    /// The part's length in bytes.
    pub size: u64,
    /// The request that stores it.
    #[serde(flatten)]
    pub request: RequestView,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_never_logged() {
        let text = r#"{"partNumber":1,"size":3,"method":"PUT","url":"https://s?X-Sig=secret","headers":{"a":"b"},
            "expiresAt":"2026-11-21T00:00:00Z"}"#;
        let part: PartView = serde_json::from_str(text).unwrap();
        assert_eq!(part.request.headers["a"], "b");
        assert!(!format!("{part:?}").contains("secret"));
    }
}
