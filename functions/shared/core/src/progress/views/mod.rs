//! A job as clients see it: [`job_view`] combines its row with its counters, [`view_version`] orders its views, [`job_reader`]
//! reads the jobs of an owner.

pub mod job_reader;
pub mod job_view;
pub mod view_version;
