//! The local stack under faults: killed functions, failing AWS calls, repeated messages, items that abort their
//! process, and many clients at once.
//!
//! All tests share one stack, with limits so tight that tests take seconds. Two of its functions are the executable
//! `hostile`, whose job types misbehave on demand. [`storm`] is the long test; its docs say how to run it for longer.

mod admission;
mod fetch;
mod poison;
mod slow;
mod stack;
mod storm;
