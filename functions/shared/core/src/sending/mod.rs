//! Where a message goes: chunks on the lane of their job type, messages on the queue of their priority, live messages
//! to connections.

pub mod lane_router;
pub mod live_sender;
pub mod priority_router;
