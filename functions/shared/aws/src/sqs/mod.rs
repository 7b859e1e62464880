//! Queues in SQS.

mod batches;
mod deliveries;
mod queue;

pub use deliveries::SqsDeliveries;
pub use queue::SqsQueue;
