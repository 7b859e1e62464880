//! The contract suites: one per port, of named checks that every adapter of the port must pass.
//!
//! A suite is given a way to make the adapter, empty, and makes one for each check. It panics where a promise of the port
//! is broken; the check's name says which.

mod direct_transfers;
mod events;
mod job_store;
mod objects;
mod queue;
mod record_store;
mod upload_store;

#[cfg(test)]
mod in_memory;

pub use direct_transfers::{Client, direct_transfers};
pub use events::{Listener, events};
pub use job_store::job_store;
pub use objects::{Outsider, objects};
pub use queue::{Receiver, queue};
pub use record_store::{Records, record_store};
pub use upload_store::upload_store;

use jiff::Timestamp;

/// Runs checks one after the other, each on an adapter of its own, saying which one is running.
macro_rules! run_checks {
    ($make:expr, $($check:path),+ $(,)?) => {
        $(
            println!("{}", stringify!($check));
            $check(&$make().await).await;
        )+
    };
}
use run_checks;

/// A time some seconds into the suites' story. Whole seconds, since an expiry may be kept no finer.
fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_750_000_000 + second).expect("a time")
}
