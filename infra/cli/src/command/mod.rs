//! The commands: a module each, with its arguments and an `execute` that returns the exit code.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | success; for a followed job: every item succeeded |
//! | 1 | the job failed or was cancelled as a whole, or this command failed |
//! | 2 | wrong usage |
//! | 3 | the job completed, but some items failed; for `work`: the command failed at some task |
//! | 130 | interrupted; the job goes on, unless this command started its local stack |

pub mod again;
pub mod audit;
pub mod bench;
pub mod block;
pub mod control;
pub mod datasets;
pub mod dead_letters;
pub mod delete;
pub mod export;
pub mod forget;
pub mod gateway;
pub mod job;
pub mod jobs;
pub mod login;
pub mod open;
pub mod preview;
pub mod prune;
pub mod redrive;
pub mod results;
pub mod retune;
pub mod run;
pub mod top;
pub mod undo;
pub mod upload;
pub mod webhook_key;
pub mod why;
pub mod work;
pub mod workers;

mod arguments;
mod connection;
mod deployed;
mod error;
pub(crate) mod interrupt;
mod lifecycle;
mod limits;
mod operator;
mod params;
mod show;

use arguments::{PatienceArgs, parse_span, word_of, word_parser};
pub use error::CommandError;
pub(crate) use error::explain;
use show::{first_of, print_counts, print_hints, print_json, print_list, show_job};
pub(crate) use show::{print, print_result};
