//! The acceptance tests of Rowmill and what they share: [`world`] runs the real use cases of all functions over in-memory
//! ports, [`faults`] makes them crash, [`files`] makes input, [`oracle`] counts it by other means.

#![warn(missing_docs)]

pub mod faults;
pub mod files;
pub mod oracle;
pub mod world;
