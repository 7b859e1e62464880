//! Queues in SQS.

mod batches;
mod queue;

pub use queue::SqsQueue;
