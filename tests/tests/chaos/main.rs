//! The local stack when everything about it fails: functions that are killed, AWS calls that fail, messages that come again,
//! items that end their process, clients that all come at once.
//!
//! All tests share one stack of their own, whose limits are so tight that seconds are enough. Two of its functions are the
//! executable `hostile`, whose job types misbehave on demand; [`storm`] is the long one, see there for how to run it longer.

mod admission;
mod poison;
mod slow;
mod stack;
mod storm;
