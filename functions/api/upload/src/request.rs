//! What a client may announce, and what it is answered.

use jiff::Timestamp;
use rowmill_core::model::ids::FileGuid;
use rowmill_core::model::upload::{Upload, UploadState};
use rowmill_core::ports::PresignedRequest;
use serde::{Deserialize, Serialize};

/// The longest file name, in bytes.
pub const FILE_NAME_MAX_BYTES: usize = 255;

/// The longest content type, in bytes.
pub const CONTENT_TYPE_MAX_BYTES: usize = 255;

/// The JSON body of `POST /api/uploads`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnnounceRequest {
    /// What the client calls the file.
    pub file_name: String,
    /// Its media type.
    pub content_type: String,
    /// Its length in bytes.
    pub size: u64,
    /// The SHA-256 of its bytes in hexadecimal.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// An upload as the API shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UploadView {
    /// The upload's name.
    pub file_guid: FileGuid,
    /// `pending` until it is stored whole, then `ready`.
    pub status: &'static str,
    /// What the client calls the file.
    pub file_name: Option<String>,
    /// Its media type.
    pub content_type: String,
    /// Its length in bytes.
    pub size: u64,
    /// The SHA-256 of its bytes in hexadecimal, if announced.
    pub sha256: Option<String>,
    /// When it was announced.
    pub created_at: Timestamp,
    /// Until when a job can be created on it.
    pub expires_at: Timestamp,
    /// The request that stores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<RequestView>,
    /// The requests that store its parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<PartView>>,
    /// How long each part is, but for the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_size: Option<u64>,
}

/// A presigned request as the API shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestView {
    /// The HTTP method.
    pub method: String,
    /// Where to.
    pub url: String,
    /// Headers that must be sent exactly so.
    pub headers: serde_json::Map<String, serde_json::Value>,
    /// Until when it can be used.
    pub expires_at: Timestamp,
}

/// A part's presigned request as the API shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartView {
    /// The part's number, counted from 1.
    pub part_number: u32,
    /// The part's length in bytes.
    pub size: u64,
    /// The request that stores it.
    #[serde(flatten)]
    pub request: RequestView,
}

impl UploadView {
    /// The upload without any requests.
    pub fn new(upload: &Upload) -> Self {
        Self {
            file_guid: upload.file_guid,
            status: if matches!(upload.state, UploadState::Ready { .. }) { "ready" } else { "pending" },
            file_name: upload.file_name.clone(),
            content_type: upload.content_type.clone(),
            size: upload.size,
            sha256: upload.sha256.clone(),
            created_at: upload.created_at,
            expires_at: upload.expires_at,
            upload: None,
            parts: None,
            part_size: None,
        }
    }
}

impl RequestView {
    /// The request, usable until `expires_at`.
    pub fn new(request: PresignedRequest, expires_at: Timestamp) -> Self {
        let headers = request.headers.into_iter().map(|(name, value)| (name, value.into())).collect();
        Self { method: request.method, url: request.url, headers, expires_at }
    }
}
