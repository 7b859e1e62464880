//! `redrive-job`: starts the next attempt of an ended job over its failed items.
//!
//! Triggered by `POST /api/jobs/{jobGuid}/redrive`. [`redrive`] is the use case, [`corrected`] the reading of a file
//! whose rows take the place of failed ones, [`handler`] the way from the HTTP request and back.

#![warn(missing_docs)]

pub mod corrected;
pub mod handler;
pub mod redrive;
