//! Runs each batch of items on a thread of its own, and notices a processor that does not give its thread back.
//!
//! A thread that stays at one item for long gets the lowest priority, so that the batches of other jobs in this process
//! go on. Without privileges no priority can be raised again, so each batch has a new thread, which ends with it.
//!
//! No thread can be ended from outside, so a process with a held thread must end. It ends after the answer to its
//! invocation and before it asks for the next one ([`end_process_if_held`]), so that no message is lost with it.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::{Either, select};
use parking_lot::Mutex;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::patience;
use rowmill_core::ports::processor::{ItemProcessor, JobType, ParamsError};
use rowmill_core::ports::{BatchEnd, BatchRunner, ItemBatch, ItemObserver, observed};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use crate::host::watched_thread::WatchedThread;
use crate::observe::metrics::{self, Metric};

/// A batch that is still running is looked at so often within the item timeout, or more often.
const LOOKS: u32 = 10;

/// Time for which a thread may be at one item without an await before its priority is lowered, not counting the time in
/// which others had the processors. Items that only compute take microseconds to milliseconds.
const SLOW_AFTER: Duration = Duration::from_millis(100);

/// A thread that has waited for a processor for all but this part of the item timeout is not held: others had the
/// processors. It gets so little because its priority is lowered.
const SHARE: u32 = 10;

/// Time for which the thread of an abandoned batch may be at one item without an await before it counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// The batches that nobody waits for, until their thread is known to be free.
static ABANDONED: Mutex<Vec<Arc<Watch>>> = Mutex::new(Vec::new());

/// Runs each batch on a thread of its own. Needs Tokio's multi-threaded runtime.
#[derive(Clone, Copy, Debug)]
pub struct BatchThreads {
    item_timeout: Duration,
}

impl BatchThreads {
    /// A runner that reports a batch as held after this time without an await and without a new item.
    pub const fn new(item_timeout: Duration) -> Self {
        Self { item_timeout }
    }
}

#[async_trait]
impl BatchRunner for BatchThreads {
    async fn run(&self, batch: ItemBatch) -> BatchEnd {
        let Some(first) = batch.items.first() else {
            return BatchEnd::Answered { items: batch.items, results: Vec::new() };
        };
        let watch = Arc::new(Watch::new(first.job_guid, first.row));
        let _abandon = AbandonOnDrop(Arc::clone(&watch));
        let (handle, observer) = (Handle::current(), Arc::clone(&watch));
        let (answer, answered) = oneshot::channel();
        let patience = patience::current();
        let thread = std::thread::Builder::new().name("batch".to_owned()).spawn(move || {
            let run = || handle.block_on(watched(&observer, patience::of(patience, batch.results())));
            let results = {
                // Before the answer, so that the receiver finds no thread that is still at work.
                let _end = EndOnDrop(Arc::clone(&observer));
                observer.thread.begin();
                catch_unwind(AssertUnwindSafe(run))
            };
            // Nobody waits for the answer if the batch was abandoned.
            answer.send(results.map(|results| (batch.items, results))).ok();
        });
        if let Err(error) = thread {
            panic!("no thread for a batch: {error}");
        }
        let mut answered = pin!(answered);
        let look_every = SLOW_AFTER.min(self.item_timeout / LOOKS);
        let mut looks = Looks::default();
        loop {
            match timeout(look_every, &mut answered).await {
                Ok(Ok(Ok((items, results)))) => {
                    let results = results.unwrap_or_default();
                    let transient = results.iter().filter(|result| matches!(result, Err(error) if error.transient));
                    metrics::add_any(Metric::ItemsTransient, transient.count() as u64);
                    return BatchEnd::Answered { items, results };
                }
                Ok(Ok(Err(panic))) => resume_unwind(panic),
                // The runtime is shutting down.
                Ok(Err(_)) => std::future::pending().await,
                Err(_) => match looks.look(&watch).judge(self.item_timeout) {
                    Verdict::Held => return BatchEnd::Held { row: watch.row() },
                    Verdict::Slow => watch.thread.lower(),
                    Verdict::Fine => {}
                },
            }
        }
    }

    /// On a thread of its own as well. What a job type compiles is bounded when the job is created, so nothing watches
    /// it.
    async fn prepare(
        &self,
        job_type: Arc<dyn JobType>,
        spec: Arc<Spec>,
    ) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        match tokio::task::spawn_blocking(move || job_type.prepare(&spec)).await {
            Ok(prepared) => prepared,
            Err(died) => match died.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is shutting down.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

/// The results of a batch, or `None` if it was abandoned. Notes when each poll begins and ends.
async fn watched<T>(watch: &Arc<Watch>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let polled = poll_fn(|context| {
        watch.begin();
        let poll = observed(Arc::clone(watch) as _, || work.as_mut().poll(context));
        watch.rest();
        poll
    });
    let abandoned = pin!(watch.wake.notified());
    match select(pin!(polled), abandoned).await {
        Either::Left((results, _)) => Some(results),
        Either::Right(_) => None,
    }
}

/// Watches the processor of a batch.
#[derive(Debug)]
struct Watch {
    job_guid: JobGuid,
    began: Instant,
    /// When the thread began what it is at, in milliseconds since `began`, plus one. 0 while it awaits something.
    since_ms: AtomicU64,
    row: AtomicU64,
    is_abandoned: AtomicBool,
    has_ended: AtomicBool,
    wake: Notify,
    thread: WatchedThread,
}

impl Watch {
    fn new(job_guid: JobGuid, row: u64) -> Self {
        Self {
            job_guid,
            began: Instant::now(),
            since_ms: AtomicU64::new(0),
            row: AtomicU64::new(row),
            is_abandoned: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            wake: Notify::new(),
            thread: WatchedThread::default(),
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn begin(&self) {
        self.since_ms.store(self.elapsed_ms() + 1, Ordering::Relaxed);
    }

    fn rest(&self) {
        self.since_ms.store(0, Ordering::Relaxed);
    }

    fn row(&self) -> u64 {
        self.row.load(Ordering::Relaxed)
    }

    /// For how long the thread has been at the same item without an await.
    fn held_for(&self) -> Duration {
        match self.since_ms.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => Duration::from_millis(self.elapsed_ms().saturating_sub(since - 1)),
        }
    }

    /// True if the thread has been at the same item for [`STUCK_AFTER`].
    fn is_stuck(&self) -> bool {
        self.held_for() >= STUCK_AFTER
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }
}

/// The looks at a thread.
#[derive(Default)]
struct Looks {
    /// What it was at, as [`Watch::since_ms`].
    since_ms: u64,
    /// For how long it had waited for a processor in its life, at the look before it was at this item.
    waited_before: Duration,
    /// The same at the last look.
    waited: Duration,
}

impl Looks {
    fn look(&mut self, watch: &Watch) -> AtItem {
        let since_ms = watch.since_ms.load(Ordering::Relaxed);
        if self.since_ms != since_ms {
            (self.since_ms, self.waited_before) = (since_ms, self.waited);
        }
        self.waited = watch.thread.waited();
        AtItem { held_for: watch.held_for(), waited: self.waited.saturating_sub(self.waited_before) }
    }
}

/// For how long a thread has been at an item, and for which part of it others had the processors.
struct AtItem {
    held_for: Duration,
    waited: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Fine,
    Slow,
    Held,
}

impl AtItem {
    fn judge(&self, item_timeout: Duration) -> Verdict {
        let own = self.held_for.saturating_sub(self.waited);
        match self.held_for >= item_timeout && own >= item_timeout / SHARE {
            true => Verdict::Held,
            false if own >= SLOW_AFTER => Verdict::Slow,
            false => Verdict::Fine,
        }
    }
}

impl ItemObserver for Watch {
    fn at_item(&self, row: u64) -> bool {
        self.row.store(row, Ordering::Relaxed);
        self.begin();
        !self.is_abandoned.load(Ordering::Relaxed)
    }
}

/// Tells the thread of a batch that nobody waits for it any more.
struct AbandonOnDrop(Arc<Watch>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        let watch = &self.0;
        if watch.has_ended() {
            return;
        }
        watch.is_abandoned.store(true, Ordering::Relaxed);
        watch.wake.notify_one();
        ABANDONED.lock().push(Arc::clone(watch));
    }
}

/// Tells that the thread of a batch is free, also after a panic.
struct EndOnDrop(Arc<Watch>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.thread.end();
        self.0.has_ended.store(true, Ordering::Release);
    }
}

/// The job and the row of an abandoned batch that holds its thread. Waits only for what may still end: while it waits,
/// this process may be given messages, which end with it.
async fn held() -> Option<(JobGuid, u64)> {
    let until = Instant::now() + STUCK_AFTER;
    loop {
        {
            let mut abandoned = ABANDONED.lock();
            abandoned.retain(|watch| !watch.has_ended());
            let has_waited = Instant::now() >= until;
            if let Some(watch) = abandoned.iter().find(|watch| has_waited || watch.is_stuck()) {
                return Some((watch.job_guid, watch.row()));
            }
            if abandoned.is_empty() {
                return None;
            }
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Ends the process if an item holds one of its threads. Called between the answer to an invocation and the request for
/// the next one: no invocation of this execution environment is running then, and Lambda starts a new environment.
pub async fn end_process_if_held() {
    if let Some((job_guid, row)) = held().await {
        tracing::error!(job.id = %job_guid, item.row = row, "an item still holds a thread, the process ends");
        std::process::exit(1);
    }
}

#[cfg(test)]
#[path = "batch_threads_tests.rs"]
mod tests;
