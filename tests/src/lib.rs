//! The acceptance tests of Rowmill and what they share: [`world`] runs the real use cases of all functions over in-memory
//! ports, [`faults`] makes them crash, [`simulation`] makes everything happen to them that may; [`local_stack`] is the real
//! thing on this machine, [`fault_proxy`] makes its AWS calls fail, [`copies`] are further copies of its messages; [`files`]
//! makes input, [`oracle`] counts it by other means.

#![warn(missing_docs)]

pub mod copies;
pub mod fault_proxy;
pub mod faults;
pub mod files;
pub mod local_stack;
pub mod oracle;
pub mod simulation;
pub mod use_cases;
pub mod world;
