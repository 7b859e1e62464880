//! `browse-datasets`: lists datasets, and shows their records.
//!
//! Behind `GET /api/datasets` and the path below it. [`records`] reads the pages, [`handler`] maps the HTTP request to
//! these and their result to the response, [`limits`] has the limits of a page, [`mod@start`] builds the use cases.

pub mod declaration;
pub mod handler;
pub mod limits;
pub mod records;
pub mod start;
