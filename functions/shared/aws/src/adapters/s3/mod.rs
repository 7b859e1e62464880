//! Objects in S3.

mod direct_transfers;
mod errors;
mod multipart_objects;
mod objects;

pub use objects::S3Objects;
