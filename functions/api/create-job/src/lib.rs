//! `create-job`: checks everything that can be checked while the client waits, and creates the job.
//!
//! Behind `POST /api/jobs`, `POST /api/jobs/estimate` and `POST /api/uploads/{fileGuid}/preview`. [`create`] is the use
//! case, [`chunk_size`] says how large the chunks are, [`tallies_ahead`] how many tallies are sent ahead, [`source`]
//! detects the job's source, [`error`] has the errors, [`items`] is the text of items in the request, [`dedupe`] the
//! key of a job that must not be created twice, [`awaits`] what a job waits for, [`inputs`] and `input_manifest` list
//! objects in external buckets, `list_text` is the list of a job's files, [`params`] has the names of params, [`preview`] shows the beginning of a file,
//! [`estimate`] the time and the cost of a job, [`request`] is the body of a request, [`handler`] maps the HTTP request
//! to the use case and its result to the response, [`limits`] holds the limits, [`mod@start`] builds it.

pub mod awaits;
pub mod chunk_size;
pub mod create;
pub mod declaration;
pub mod dedupe;
mod delete;
pub mod error;
pub mod estimate;
pub mod handler;
mod input_manifest;
pub mod inputs;
pub mod items;
pub mod limits;
mod list_text;
pub mod params;
pub mod preview;
mod prune;
pub mod request;
pub mod source;
pub mod start;
pub mod tallies_ahead;
mod undo;
