//! `redrive-job`: starts the next attempt of an ended job over its failed items.
//!
//! Serves `POST /api/jobs/{jobGuid}/redrive`. [`redrive`] is the use case, [`corrected`] reads a corrected file,
//! [`handler`] maps HTTP to the use case.

#![warn(missing_docs)]

pub mod corrected;
pub mod handler;
pub mod redrive;
