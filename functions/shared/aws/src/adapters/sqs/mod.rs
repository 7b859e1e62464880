//! Queues in SQS.

mod batches;
mod deliveries;
mod errors;
mod queue;

pub use deliveries::SqsDeliveries;
pub use queue::SqsQueue;
