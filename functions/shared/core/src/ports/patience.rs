//! Until when adapters repeat a throttled request here.
//!
//! The host sets it around the work of an invocation. A task or a thread has none of its own, so code that starts one
//! passes on what is [`current`] where it starts it.

use tokio::task::futures::TaskLocalFuture;
use tokio::time::Instant;

tokio::task_local! {
    static UNTIL: Option<Instant>;
}

/// `None` if the usual attempts must do.
pub fn current() -> Option<Instant> {
    UNTIL.try_with(|until| *until).ok().flatten()
}

pub fn of<F: Future>(until: Option<Instant>, work: F) -> TaskLocalFuture<Option<Instant>, F> {
    UNTIL.scope(until, work)
}
