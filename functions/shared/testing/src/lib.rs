//! What the tests of several crates share: the ports in memory, the contract suite of each port, and plain values.
//!
//! A crate of its own, so that `rowmill-core` is the same in tests and in the product, and is compiled once.

pub mod contract;
pub mod fixtures;
pub mod in_memory;
