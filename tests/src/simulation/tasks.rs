//! The tasks: one per invocation of a function. Only the simulation polls them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tokio::runtime::{Builder, Runtime};

use super::hub::Hub;

/// True if a task can make progress.
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

pub enum Ended<T> {
    Returned(T),
    /// It died at a call.
    Died,
}

/// The current tasks, each with a description of its work.
pub struct Tasks<T, A> {
    hub: Hub,
    tasks: Vec<Task<T, A>>,
    next: u64,
    /// Runs the tasks that a task spawns (the splitter reads ahead in one), until they suspend again.
    children: Runtime,
}

impl<T, A> Tasks<T, A> {
    /// No tasks.
    ///
    /// # Panics
    /// If the runtime cannot be built.
    pub fn new(hub: Hub) -> Self {
        let children = Builder::new_current_thread().build().expect("a runtime without any driver");
        Self { hub, tasks: Vec::new(), next: 1, children }
    }

    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Adds a task, which begins when it is first polled.
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

    /// The numbers and descriptions of the tasks.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &A)> {
        self.tasks.iter().map(|task| (task.number, &task.about))
    }

    /// The description of a task.
    pub fn about_mut(&mut self, number: u64) -> Option<&mut A> {
        self.tasks.iter_mut().find(|task| task.number == number).map(|task| &mut task.about)
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Ends a task at once, because its process died.
    pub fn kill(&mut self, number: u64) -> Option<A> {
        let place = self.tasks.iter().position(|task| task.number == number)?;
        let task = self.tasks.remove(place);
        drop(task.future);
        self.run_children();
        Some(task.about)
    }

    /// Polls the spawned tasks until they suspend. Returns the task to which a dying one belongs.
    fn run_children(&self) -> Option<u64> {
        if self.children.metrics().num_alive_tasks() == 0 {
            return None;
        }
        self.children.block_on(tokio::task::yield_now());
        self.hub.take_doomed()
    }

    /// Polls all tasks until none can make progress. Returns the tasks that ended.
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
