//! The priority of a thread that runs a batch.

use parking_lot::Mutex;
use rustix::process::{Pid, setpriority_process};

/// The niceness with the smallest share of the processor.
const LOWEST: i32 = 19;

/// Lowers the priority of one thread from another one. Does nothing except on Linux, where threads have priorities.
#[derive(Debug, Default)]
pub(crate) struct ThreadPriority {
    /// The thread until it is lowered or ends. The ids of ended threads are used again, so what uses this one locks it.
    thread: Mutex<Option<Pid>>,
}

impl ThreadPriority {
    /// Called by the thread when it begins.
    pub(crate) fn begin(&self) {
        self.set(own_thread());
    }

    /// Called by the thread before it ends.
    pub(crate) fn end(&self) {
        self.set(None);
    }

    /// Gives the thread the smallest share of the processor, for as long as it lives.
    pub(crate) fn lower(&self) {
        let mut thread = self.thread.lock();
        if let Some(id) = thread.take()
            && let Err(error) = setpriority_process(Some(id), LOWEST)
        {
            tracing::warn!(error = %error, "the priority of a thread cannot be lowered");
        }
    }

    fn set(&self, thread: Option<Pid>) {
        *self.thread.lock() = thread;
    }
}

#[cfg(target_os = "linux")]
fn own_thread() -> Option<Pid> {
    Some(rustix::thread::gettid())
}

#[cfg(not(target_os = "linux"))]
fn own_thread() -> Option<Pid> {
    None
}
