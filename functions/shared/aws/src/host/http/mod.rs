//! HTTP as the functions speak it: who calls which route, requests read, JSON and problems answered.

mod access;
mod api;
mod guard;
mod problem;
mod read;
mod response;
mod write;

pub use access::{Access, Caller};
pub use api::{Api, Call};
pub use guard::Guard;
pub use problem::Problem;
pub use read::{
    JSON_MAX_BYTES, content_type, header, invalid_query, page_limit, path_parameter, query_parameter, read_json,
    read_json_if_any, read_json_up_to,
};
pub use response::response;
pub use write::{etag_of, json_response, no_content, to_be_polled, with_etag};
