//! The bodies of requests and responses.

use jiff::Timestamp;
pub use rowmill_api::request::{AnnounceRequest, CONTENT_TYPE_MAX_BYTES, FILE_NAME_MAX_BYTES, SignPartsRequest};
pub use rowmill_api::upload::{PartRange, PartView, RequestView, UploadView};
use rowmill_core::ports::PresignedRequest;

/// The presigned request as the API shows it, usable until `expires_at`.
pub fn request_view(request: PresignedRequest, expires_at: Timestamp) -> RequestView {
    let PresignedRequest { method, url, headers } = request;
    RequestView { method, url, headers: headers.into_iter().collect(), expires_at }
}
