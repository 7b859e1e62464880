//! The data model of jobs: types and rules, without any input or output.

pub mod at_work;
pub mod audit;
pub mod blocks;
pub mod breaker;
pub mod causes;
pub mod changes;
pub mod checkpoint;
pub mod chunk_index;
pub mod client_version;
pub mod cost;
pub mod dead_letter;
pub mod decimal;
pub mod entries;
pub mod files;
pub mod ids;
pub mod job;
pub mod job_event;
pub mod job_type_limits;
pub mod keys;
pub mod lanes;
pub mod live;
pub mod messages;
pub mod outstanding;
pub mod owner_priorities;
pub mod packing;
pub mod permit;
pub mod product;
pub mod records;
pub mod request_limits;
pub mod results;
pub mod run_output;
pub mod sha256;
pub mod spec;
pub mod stored_record;
#[cfg(test)]
mod stored_record_tests;
pub mod tally;
pub mod task;
pub mod upload;
pub mod warnings;
pub mod webhook_key;
pub mod why;

#[cfg(test)]
mod breaker_tests;
#[cfg(test)]
mod job_event_tests;
