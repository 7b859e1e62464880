//! Callers that are refused: [`blocked`] by an operator, or [`refused`] because they reached a request limit.

pub mod blocked;
pub mod refused;
