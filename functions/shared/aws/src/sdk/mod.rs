//! The base of the adapters.
//!
//! | module | holds |
//! |---|---|
//! | [`clients`], [`meter`] | the SDK's clients, and the count of their requests |
//! | [`usage_shares`] | which job pays for what was counted |
//! | [`patience`] | until when throttled requests are repeated |
//! | [`denied`] | missing permissions, reported |

pub mod clients;
pub mod denied;
pub mod meter;
pub mod patience;
pub(crate) mod retry;
pub mod usage_shares;
