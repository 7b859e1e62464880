//! A thread that runs a batch, as its watchdog sees it.

use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, setpriority_process};

/// The niceness with the smallest share of the processor.
const LOWEST: i32 = 19;

/// A thread seen from another one: its priority, and its waits for a processor. Does nothing except on Linux, where
/// threads have priorities and the system tells of their waits.
#[derive(Debug, Default)]
pub(crate) struct WatchedThread {
    /// The thread until it ends. The ids of ended threads are used again, so what uses this one locks it.
    thread: Mutex<Option<Thread>>,
}

#[derive(Debug)]
struct Thread {
    id: Pid,
    is_lowered: bool,
}

impl WatchedThread {
    /// Called by the thread when it begins.
    pub(crate) fn begin(&self) {
        *self.thread.lock() = own_thread().map(|id| Thread { id, is_lowered: false });
    }

    /// Called by the thread before it ends.
    pub(crate) fn end(&self) {
        *self.thread.lock() = None;
    }

    /// Gives the thread the smallest share of the processor, for as long as it lives.
    pub(crate) fn lower(&self) {
        let mut thread = self.thread.lock();
        if let Some(thread) = thread.as_mut().filter(|thread| !thread.is_lowered) {
            thread.is_lowered = true;
            if let Err(error) = setpriority_process(Some(thread.id), LOWEST) {
                tracing::warn!(error = %error, "the priority of a thread cannot be lowered");
            }
        }
    }

    /// For how long the thread has waited for a processor in its life, because others had them. Zero if the system does
    /// not tell.
    pub(crate) fn waited(&self) -> Duration {
        let thread = self.thread.lock();
        let text = thread.as_ref().map(|thread| format!("/proc/self/task/{}/schedstat", thread.id.as_raw_nonzero()));
        text.and_then(|path| waited_in(&std::fs::read_to_string(path).ok()?)).unwrap_or_default()
    }
}

/// The second number of `schedstat`: nanoseconds on a run queue.
fn waited_in(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(target_os = "linux")]
fn own_thread() -> Option<Pid> {
    Some(rustix::thread::gettid())
}

#[cfg(not(target_os = "linux"))]
fn own_thread() -> Option<Pid> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn the_system_tells_how_long_a_thread_has_waited() {
        assert_eq!(waited_in("12345 1500000000 7\n"), Some(Duration::from_millis(1500)));
        assert_eq!(waited_in("0"), None);
        let thread = WatchedThread::default();
        assert_eq!(thread.waited(), Duration::ZERO, "none has begun");
        thread.begin();
        // More threads than processors: this one must wait for them.
        let hogs = 8 * std::thread::available_parallelism().unwrap().get();
        let has_waited = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..hogs {
                scope.spawn(|| {
                    while !has_waited.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            while thread.waited() < Duration::from_millis(10) {}
            has_waited.store(true, Ordering::Relaxed);
        });
        thread.end();
        assert_eq!(thread.waited(), Duration::ZERO);
    }
}
