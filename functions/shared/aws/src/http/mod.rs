//! HTTP as the functions speak it: requests read, JSON and problems answered.

mod owner;
mod problem;
mod read;
mod write;

pub use owner::owner_of;
pub use problem::Problem;
pub use read::{JSON_MAX_BYTES, content_type, header, operation_of, path_parameter, query_parameter, read_json};
pub use write::{json_response, response, to_be_polled};
