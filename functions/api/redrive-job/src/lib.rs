//! `redrive-job`: starts the next attempt of an ended job over its failed items.
//!
//! Behind `POST /api/jobs/{jobGuid}/redrive`. [`redrive`] is the use case, [`corrected`] reads a file whose rows
//! replace failed ones, [`handler`] maps the HTTP request to the use case and its result to the response, [`limits`]
//! has the limits, [`mod@start`] builds the use case.

pub mod corrected;
pub mod declaration;
pub mod handler;
pub mod limits;
pub mod redrive;
pub mod start;
