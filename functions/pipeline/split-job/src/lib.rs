//! `split-job`: reads a job's file once, cuts it into chunks on record borders and sends one message per chunk.
//!
//! Reads the jobs queue. [`split`] is the use case, [`mod@plan`] its decision, [`conclude`] its end; [`dispatch`] puts
//! a tally and sends its messages; `resend` sends those of a resumed job again; [`mod@cut`] cuts the file, [`packed`]
//! the text of a packed file, [`files`] the files of a job over many, [`dataset`] the records of a dataset, [`redrive`]
//! the items that had failed; [`handler`] maps the queue's event to the use case, [`limits`] has the limits, [`mod@start`] builds the use case.

pub mod conclude;
pub mod cut;
pub mod dataset;
pub mod declaration;
pub mod dispatch;
pub mod files;
pub mod handler;
pub mod limits;
pub mod packed;
pub mod plan;
pub mod redrive;
mod resend;
pub mod split;
pub mod start;

#[cfg(test)]
mod dataset_tests;
#[cfg(test)]
mod files_tests;
