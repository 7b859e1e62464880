//! The contract suites: one per port. Every adapter of the port must pass all checks of the suite.
//!
//! A suite takes a function that makes an empty adapter, and calls it for each check. It panics if the adapter breaks a
//! promise of the port; the name of the check says which one.

mod breakers;
mod direct_transfers;
mod events;
mod item_table;
mod job_store;
mod live;
mod objects;
mod queue;
mod quotas;
mod record_store;
mod tasks;
mod upload_store;

#[cfg(test)]
mod in_memory;

pub use breakers::breakers;
pub use direct_transfers::{Client, direct_transfers};
pub use events::{Listener, events};
pub use item_table::{Application, item_table};
pub use job_store::job_store;
pub use live::live;
pub use objects::{Outsider, objects};
pub use queue::{Receiver, queue};
pub use quotas::{Operator, blocks, outstanding_uploads, request_counts};
pub use record_store::{record_store, records_clock};
pub use tasks::tasks;
pub use upload_store::upload_store;

use jiff::Timestamp;

/// Runs checks one after the other, each on its own adapter, and prints the name of each.
macro_rules! run_checks {
    ($make:expr, $($check:path),+ $(,)?) => {
        $(
            println!("{}", stringify!($check));
            // Boxed: a test's stack has no room for the futures of all checks.
            Box::pin(async { $check(&$make().await).await }).await;
        )+
    };
}
use run_checks;

/// A time this many seconds after the start of a check. Whole seconds, because stores keep expiry times in seconds.
fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_750_000_000 + second).expect("a time")
}
