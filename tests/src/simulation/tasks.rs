//! The tasks: one for each invocation of a function, polled by the simulation alone.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tokio::runtime::{Builder, Runtime};

use super::hub::Hub;

/// Whether a task has something to go on with.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Task<T, A> {
    number: u64,
    about: A,
    future: Pin<Box<dyn Future<Output = T>>>,
    woken: Arc<Woken>,
}

/// How a task came to its end.
pub enum Ended<T> {
    /// It returned.
    Returned(T),
    /// It died at a call.
    Died,
}

/// The tasks there are, each with what it is about.
pub struct Tasks<T, A> {
    hub: Hub,
    tasks: Vec<Task<T, A>>,
    next: u64,
    /// Where a task's own tasks run (the splitter reads ahead in one), for as long as it takes them to suspend again.
    children: Runtime,
}

impl<T, A> Tasks<T, A> {
    /// None yet.
    ///
    /// # Panics
    /// Where the machine gives no runtime.
    pub fn new(hub: Hub) -> Self {
        let children = Builder::new_current_thread().build().expect("a runtime without any driver");
        Self { hub, tasks: Vec::new(), next: 1, children }
    }

    /// The number the next task will have.
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Adds a task; it begins when it is polled first.
    pub fn spawn(&mut self, about: A, future: impl Future<Output = T> + 'static) {
        let number = self.next;
        self.next += 1;
        self.tasks.push(Task {
            number,
            about,
            future: Box::pin(future),
            woken: Arc::new(Woken(AtomicBool::new(true))),
        });
    }

    /// What the tasks are about, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &A)> {
        self.tasks.iter().map(|task| (task.number, &task.about))
    }

    /// What this task is about.
    pub fn about_mut(&mut self, number: u64) -> Option<&mut A> {
        self.tasks.iter_mut().find(|task| task.number == number).map(|task| &mut task.about)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Ends a task where it is: its process died.
    pub fn kill(&mut self, number: u64) -> Option<A> {
        let place = self.tasks.iter().position(|task| task.number == number)?;
        let task = self.tasks.remove(place);
        drop(task.future);
        self.run_children();
        Some(task.about)
    }

    /// Polls the tasks' own tasks until they suspend; the task of one that dies.
    fn run_children(&self) -> Option<u64> {
        if self.children.metrics().num_alive_tasks() == 0 {
            return None;
        }
        self.children.block_on(tokio::task::yield_now());
        self.hub.take_doomed()
    }

    /// Polls every task that has something to go on with, until none has; those that came to their end.
    pub fn run(&mut self) -> Vec<(u64, A, Ended<T>)> {
        let mut ended = Vec::new();
        loop {
            let doomed = self.run_children();
            if let Some((number, about)) = doomed.and_then(|number| Some((number, self.kill(number)?))) {
                ended.push((number, about, Ended::Died));
            }
            let Some(place) = self.tasks.iter().position(|task| task.woken.0.swap(false, Ordering::Relaxed)) else {
                return ended;
            };
            let task = &mut self.tasks[place];
            self.hub.goes_on(task.number);
            let waker = Waker::from(Arc::clone(&task.woken));
            let polled = {
                let _entered = self.children.enter();
                task.future.as_mut().poll(&mut Context::from_waker(&waker))
            };
            let died = self.hub.take_doomed() == Some(task.number);
            let end = match polled {
                Poll::Ready(end) => Ended::Returned(end),
                Poll::Pending if died => Ended::Died,
                Poll::Pending => continue,
            };
            let number = task.number;
            if let Some(about) = self.kill(number) {
                ended.push((number, about, end));
            }
        }
    }
}
