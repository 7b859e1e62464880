//! The ports of `rowmill-core`, on AWS.
//!
//! | module | holds |
//! |---|---|
//! | [`api_gateway`] | messages to live connections |
//! | [`dynamodb`] | jobs, uploads, records, breakers, quotas, live connections, and the changes in a table's stream |
//! | [`eventbridge`] | the bus that receives the events of jobs |
//! | [`lambda`] | functions as targets of job types |
//! | [`s3`] | objects and presigned transfers |
//! | [`secrets_manager`] | the secret that signs the calls of webhooks |
//! | [`sqs`] | queues |
//! | [`system`] | the clock and randomness of the machine |

pub mod api_gateway;
pub mod dynamodb;
pub mod eventbridge;
pub mod lambda;
pub mod s3;
pub mod secrets_manager;
pub mod sqs;
pub mod system;
