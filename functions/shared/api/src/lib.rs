//! Everything that goes over HTTP: requests, views, statuses, problem codes, and the table of routes.
//!
//! The functions write these types and the command reads them. [`openapi`] makes the OpenAPI document out of them and of
//! [`routes`]; it is committed as `docs/openapi.json`, and a test compares the two.
//!
//! It also holds what command and functions share beside the API: the rows of blocked callers ([`blocks`]), the keys of
//! webhooks ([`webhook_key()`]), the parameters `JobTypes` ([`job_type_limits`]) and `OwnerPriorities`
//! ([`owner_priorities`]), the bounds of times ([`times`]), digests as text ([`sha256_hex`]), and the price list ([`cost`]).
//!
//! Two rules keep versions compatible. A request denies unknown fields, so that a misspelled one is an error. A view
//! allows unknown fields, and the words in it that may grow are [`Open`], so that an older client reads a newer answer.

pub mod audit;
pub mod blocks;
pub mod client_config;
pub mod cost;
pub mod dead_letter;
pub mod document;
pub mod entries;
pub mod estimate;
pub mod ids;
pub mod item;
pub mod job;
pub mod job_type_limits;
pub mod live;
mod open;
pub mod openapi;
pub mod owner_priorities;
pub mod preview;
pub mod problem;
pub mod request;
pub mod results;
pub mod routes;
mod sha256;
pub mod status;
pub mod times;
pub mod upload;
pub mod webhook_key;
mod whole;

pub use open::{Open, Word};
pub use sha256::sha256_hex;
pub use webhook_key::webhook_key;
