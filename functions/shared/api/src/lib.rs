//! Everything that goes over HTTP: requests, views, problem codes, and the table of routes.
//!
//! The functions write these types and the command reads them. [`openapi`] makes the OpenAPI document out of them and
//! of [`routes`]; it is committed as `docs/openapi.json`, and a test compares the two.
//!
//! Stored types belong to [`rowmill_core::model`]; the types here are made from it, so an answer may change without a
//! row. Names, words and what clients download as it is stored ([failed
//! items](rowmill_core::model::run_output::FailedItem), [result files](rowmill_core::model::results),
//! [proofs](rowmill_core::model::audit)) are types of the model in answers too.
//!
//! Two rules keep versions compatible. A request denies unknown fields, so that a misspelled one is an error. A view
//! allows unknown fields, and the words in it that may grow are [`Open`](rowmill_core::words::Open), so that an older
//! client reads a newer answer.

pub mod at_work;
pub mod client_config;
pub mod cost;
pub mod dataset;
pub mod dead_letter;
pub mod document;
pub mod estimate;
pub mod item;
pub mod job;
pub mod live;
pub mod openapi;
pub mod preview;
pub mod problem;
pub mod request;
pub mod results;
pub mod route_limits;
pub mod routes;
pub mod task;
pub mod upload;
