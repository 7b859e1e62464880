//! A worker: leases tasks, and has a command work on them.
//!
//! `hold` keeps a task, `program` is the command, `outcomes` what it says, `files` what it has produced, and `task`
//! brings them together.
//! Everything runs in slots, each with one task at a time. One slot at a time asks for a task: a worker that has nothing
//! to do asks as seldom as one without slots.

mod files;
mod hold;
mod outcomes;
mod program;
mod task;

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use rowmill_api::task::{LeaseRequest, TaskView};
use tokio::sync::{Mutex, watch};
use tokio::time::sleep;

use crate::api::{ApiClient, ApiError};
use files::Files;
use hold::Hold;
use task::Ended;

/// Wait before the next lease if the API names none.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Longest wait of a slot whose command, or an item of it, fails again and again. An item that three workers fail at is poison: a worker
/// on which nothing works must not get at all items of a job.
const FAILING_MAX: Duration = Duration::from_secs(60);

/// Longest wait for a lease that is under way when the worker is told to end. Its task would rest for half a minute.
const LEASE_LIMIT: Duration = Duration::from_secs(2);

/// What a worker works on, and how.
#[derive(Debug, Clone)]
pub struct WorkOptions {
    pub lease: LeaseRequest,
    /// Number of tasks at a time.
    pub parallel: usize,
    /// Whether it ends when there is no task.
    pub until_empty: bool,
    /// A program and its arguments.
    pub command: Vec<OsString>,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("cannot start `{}`: {reason}", .program.to_string_lossy())]
    Start {
        program: OsString,
        #[source]
        reason: io::Error,
    },
}

/// What a worker has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    pub items: usize,
    pub items_failed: usize,
    /// Tasks at which the command failed.
    pub tasks_failed: usize,
    pub interrupted: bool,
}

pub struct Worker {
    /// The client of the API, which is replaced before its token ends.
    api: watch::Receiver<Arc<ApiClient>>,
    options: WorkOptions,
    stop: watch::Sender<bool>,
    /// Held by the slot that asks for a task.
    turn: Mutex<()>,
    done: Cell<Done>,
}

impl Worker {
    pub fn new(api: watch::Receiver<Arc<ApiClient>>, options: WorkOptions) -> Self {
        let (stop, _) = watch::channel(false);
        Self { api, options, stop, turn: Mutex::new(()), done: Cell::default() }
    }

    /// Works until it is interrupted, or until there is no task if it is to end then.
    ///
    /// # Errors
    /// The API refuses this worker, or the command cannot be started. All slots have given back what they had.
    pub async fn run(&self, interrupted: impl Future<Output = ()>) -> Result<Done, WorkError> {
        let slots = (0..self.options.parallel).map(async |_| {
            let ended = self.slot().await;
            if ended.is_err() {
                self.stop.send_replace(true);
            }
            ended
        });
        let mut slots = std::pin::pin!(join_all(slots));
        let ended = tokio::select! {
            ended = &mut slots => ended,
            () = interrupted => {
                self.update(|done| done.interrupted = true);
                self.stop.send_replace(true);
                slots.await
            }
        };
        ended.into_iter().collect::<Result<(), _>>()?;
        Ok(self.done.get())
    }

    async fn slot(&self) -> Result<(), WorkError> {
        let mut failures = 0;
        while let Some(task) = self.next_task().await? {
            let mut hold = Hold::new(self, &task);
            let ended = task::work(self, &task, &mut hold).await?;
            let (items, items_failed) = hold.outcomes.done();
            let has_failed = matches!(ended, Ended::Failed(_));
            self.update(|done| {
                done.items += items;
                done.items_failed += items_failed;
                done.tasks_failed += usize::from(has_failed);
            });
            eprintln!("task {}: {items} of {} items done{ended}", task.task_id, task.items.len());
            // Transient failures count in the end, too: what fails at this machine may work at another one.
            let is_unwell = has_failed || matches!(ended, Ended::Transient);
            failures = if is_unwell { failures + 1 } else { 0 };
            if is_unwell {
                let wait = Duration::from_secs(1 << (failures - 1).min(6)).min(FAILING_MAX);
                self.rest(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            }
        }
        Ok(())
    }

    /// A task; none if the worker is to end.
    async fn next_task(&self) -> Result<Option<TaskView>, ApiError> {
        let ended = async {
            self.stopped().await;
            sleep(LEASE_LIMIT).await;
        };
        tokio::select! {
            task = self.lease() => task,
            () = ended => Ok(None),
        }
    }

    async fn lease(&self) -> Result<Option<TaskView>, ApiError> {
        let _turn = self.turn.lock().await;
        let mut is_reachable = true;
        while !self.is_stopped() {
            let wait = match self.api().lease_task(&self.options.lease).await {
                Ok(answer) if answer.body.is_some() || self.options.until_empty => return Ok(answer.body),
                Ok(answer) => {
                    is_reachable = true;
                    answer.retry_after
                }
                Err(error) if error.is_transient() => {
                    if std::mem::take(&mut is_reachable) {
                        eprintln!("{error}; it is tried again");
                    }
                    error.retry_after()
                }
                Err(error) => return Err(error),
            };
            // Workers that were refused together do not come back together.
            self.rest(wait.unwrap_or(ASK_AGAIN).mul_f64(1.0 + fastrand::f64() / 5.0)).await;
        }
        Ok(None)
    }

    fn files(&self, task: &TaskView) -> Files {
        Files::of(task, self.api.clone())
    }

    fn api(&self) -> Arc<ApiClient> {
        Arc::clone(&self.api.borrow())
    }

    fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Returns once the worker is told to end.
    async fn stopped(&self) {
        // This value holds the sender.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    /// Waits, unless the worker is told to end.
    async fn rest(&self, time: Duration) {
        tokio::select! {
            () = sleep(time) => {}
            () = self.stopped() => {}
        }
    }

    fn update(&self, change: impl FnOnce(&mut Done)) {
        let mut done = self.done.get();
        change(&mut done);
        self.done.set(done);
    }
}
