//! The bodies of requests and responses.

pub use rowmill_api::request::{
    AnnounceRequest, CONTENT_TYPE_MAX_BYTES, FILE_NAME_MAX_BYTES, FetchRequest, SignPartsRequest,
};
pub use rowmill_api::upload::{PartRange, PartView, RequestView, UploadView};
