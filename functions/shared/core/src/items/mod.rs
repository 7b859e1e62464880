//! The items of a chunk, read as a run needs them, and walks through the items of a whole job.

pub mod audit;
pub mod chunk_index;
pub mod failed;
pub mod file_links;
pub mod file_list;
pub mod files;
pub mod give_up;
pub mod input;
pub mod layouts;
pub mod manifest;
pub mod of_task;
pub mod outputs;
pub mod progress;
pub mod run_output;
pub mod skipped;
pub mod stored_job;

mod tally_pages;
