//! The rows that tasks read and write, the requests and messages under way, and the two workers.

/// Number of items of the chunk.
pub const ITEMS: u8 = 2;

/// Number of workers.
pub const WORKERS: u8 = 2;

/// What is in flight for the items that are not done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Note {
    pub items: u8,
    /// The first beat has come.
    pub confirmed: bool,
    /// Its time and the five seconds behind it are over.
    pub over: bool,
}

/// The checkpoint of the chunk. Its revision is [`Request::fresh`]: nobody has moved it since it was read.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Checkpoint {
    /// The lease that moved it last, from 1 on; 0 for none.
    pub by: u8,
    pub done: u8,
    pub note: Option<Note>,
    /// A worker has died on the items: they are lent one at a time.
    pub alone: bool,
}

impl Checkpoint {
    pub fn is_held(&self) -> bool {
        self.note.is_some_and(|note| !note.over)
    }

    /// The note of this lease, if its token stands.
    pub fn held_by(&self, token: u8) -> Option<Note> {
        self.note.filter(|_| self.by == token)
    }

    /// Items that are lent next, and whether they are alone from now on.
    pub fn next(&self) -> (u8, bool) {
        let has_died = self.note.is_some_and(|note| note.confirmed && note.items > 1);
        let alone = self.alone || has_died;
        let left = ITEMS.saturating_sub(self.done);
        (if alone { left.min(1) } else { left }, alone)
    }
}

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    Lease,
    Beat,
    /// Reports the items from one place to another as done.
    Report {
        from: u8,
        to: u8,
    },
    Release {
        failed: bool,
    },
}

/// The next step of a request: one write or one message, with the reads behind it. A request begins with its reads. In
/// the words of `docs/protocol.md`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// *lease, beat, report, release: the checkpoint*.
    Move,
    /// *after the write the job and the tally are read*.
    LookAgain,
    /// *`work-task`, lease, of a task that no worker may process: the message, to the items queue*.
    SendBack,
    /// *the task is removed*, under the condition that it is as seen.
    Remove,
    /// **commit**.
    Commit,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Answer {
    /// No task.
    Nothing,
    /// The items from one place to another.
    Lent {
        from: u8,
        to: u8,
    },
    Continue,
    /// `paused` or `stopping`.
    Stop,
    Finished,
    /// 410.
    Gone,
    /// 422.
    Refused,
    /// 503.
    Again,
}

/// A request that the API works on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request {
    /// The worker that waits for the answer. One may have died, or have sent the request again.
    pub asker: Option<u8>,
    pub kind: Kind,
    pub token: u8,
    pub step: Step,
    /// The checkpoint as it was read.
    pub seen: Checkpoint,
    /// Nobody has moved the checkpoint since then.
    pub fresh: bool,
    /// Nobody has changed the task since it was read.
    pub task_fresh: bool,
    /// The message in the task is from before a pause.
    pub old: bool,
}

impl Request {
    /// A request that has read the checkpoint.
    pub const fn new(kind: Kind, token: u8, step: Step, seen: Checkpoint) -> Self {
        Self { asker: None, kind, token, step, seen, fresh: true, task_fresh: false, old: false }
    }
}

/// A worker at a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AtTask {
    pub token: u8,
    /// The first item that is not reported.
    pub from: u8,
    /// The first item that is not processed.
    pub done: u8,
    /// The end of what it was lent.
    pub to: u8,
    /// The first beat was accepted in time.
    pub begun: bool,
    /// Its time is not over, and no order has told it to stop.
    pub may_work: bool,
    /// The request that it waits for, or sends again.
    pub pending: Option<Kind>,
    pub waits: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Worker {
    Idle,
    Asking,
    At(AtTask),
}

/// An invocation of `process-items` that has received the chunk's message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Run {
    /// Its message is from before a pause.
    pub old: bool,
    pub step: RunStep,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RunStep {
    /// The job was read. The checkpoint is read.
    ReadCheckpoint { stopped: bool },
    /// *the task: absent, or its `epoch` is less*.
    Offer,
    /// **commit** of so many items as done, the others as skipped.
    Commit { done: u8 },
}

/// What must never happen at a step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    ForeignOutcome,
    OutcomeUndone,
    EmptyLease,
    RightReportRefused,
}

/// Number of events that may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Budget {
    pub leases: u8,
    /// Beats beside the first one of each lease.
    pub beats: u8,
    /// A worker dies.
    pub deaths: u8,
    /// A worker sends a request again, whose answer is lost or late.
    pub repeats: u8,
    /// An invocation dies between any two steps.
    pub crashes: u8,
    /// A message is delivered and stays in its queue.
    pub duplicates: u8,
    pub pauses: u8,
    pub cancels: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub paused: bool,
    pub stopped: bool,
    pub was_paused: bool,
    pub checkpoint: Checkpoint,
    /// The task, with whether its message is from before a pause.
    pub task: Option<bool>,
    /// Messages of the chunk, and those of them from before a pause.
    pub messages: u8,
    pub old_messages: u8,
    /// The chunk is committed, with so many items as done and the others as skipped.
    pub committed: Option<u8>,
    pub requests: Vec<Request>,
    pub runs: Vec<Run>,
    pub workers: [Worker; WORKERS as usize],
    pub budget: Budget,
    /// Number of leases.
    pub leases: u8,
    /// Number of items, from the first one on, that a worker has processed.
    pub processed: u8,
    /// Number of items, from the first one on, whose outcomes were accepted while their worker's time was not over.
    pub accepted: u8,
    pub fault: Option<Fault>,
}

impl State {
    pub fn new(budget: Budget) -> Self {
        Self {
            paused: false,
            stopped: false,
            was_paused: false,
            checkpoint: Checkpoint::default(),
            task: None,
            messages: 1,
            old_messages: 0,
            committed: None,
            requests: Vec::new(),
            runs: Vec::new(),
            workers: [Worker::Idle; WORKERS as usize],
            budget,
            leases: 0,
            processed: 0,
            accepted: 0,
            fault: None,
        }
    }

    pub const fn is_halted(&self) -> bool {
        self.paused || self.stopped
    }

    /// All messages, and what is under way, are from before this pause.
    pub fn pause(&mut self) {
        (self.paused, self.was_paused) = (true, true);
        self.old_messages += std::mem::take(&mut self.messages);
        self.task = self.task.map(|_| true);
        self.requests.iter_mut().for_each(|request| request.old = request.kind == Kind::Lease);
        self.runs.iter_mut().for_each(|run| run.old = true);
    }

    pub fn send(&mut self, old: bool) {
        *(if old { &mut self.old_messages } else { &mut self.messages }) += 1;
    }

    pub fn set_task(&mut self, task: Option<bool>) {
        self.task = task;
        self.requests.iter_mut().for_each(|request| request.task_fresh = false);
    }

    pub fn set_checkpoint(&mut self, moved: Checkpoint) {
        if moved.done < self.checkpoint.done {
            self.fault = Some(Fault::OutcomeUndone);
        }
        self.checkpoint = moved;
        self.requests.iter_mut().for_each(|request| request.fresh = false);
    }

    /// The time of the note is over. The answer to a first beat that was accepted comes too late for its worker.
    pub fn end_note(&mut self) {
        let Checkpoint { by, note: Some(note), .. } = &mut self.checkpoint else { return };
        note.over = true;
        let (by, is_confirmed) = (*by, note.confirmed);
        for worker in 0..WORKERS {
            if is_confirmed && self.at_mut(worker).is_some_and(|at| at.token == by && !at.begun) {
                self.leave(worker);
            }
        }
    }

    pub fn commit(&mut self, done: u8) {
        self.committed = self.committed.or(Some(done));
    }

    pub const fn is_quiet(&self) -> bool {
        self.requests.is_empty() && self.runs.is_empty() && self.messages + self.old_messages == 0
    }

    /// The workers that may be at an item.
    pub fn at_items(&self) -> impl Iterator<Item = &AtTask> {
        self.workers.iter().filter_map(|worker| match worker {
            Worker::At(at) if at.begun && at.may_work => Some(at),
            _ => None,
        })
    }

    pub fn at_mut(&mut self, worker: u8) -> Option<&mut AtTask> {
        match &mut self.workers[usize::from(worker)] {
            Worker::At(at) => Some(at),
            Worker::Idle | Worker::Asking => None,
        }
    }

    /// A worker is gone. Nobody waits for its answers.
    pub fn leave(&mut self, worker: u8) {
        self.workers[usize::from(worker)] = Worker::Idle;
        for request in self.requests.iter_mut().filter(|request| request.asker == Some(worker)) {
            request.asker = None;
        }
    }

    /// Puts in order what has none, so that states that differ only in it are one.
    pub fn sort(&mut self) {
        self.requests.sort_unstable();
        self.runs.sort_unstable();
        if self.workers[0] > self.workers[1] {
            self.workers.swap(0, 1);
            for request in &mut self.requests {
                request.asker = request.asker.map(|worker| 1 - worker);
            }
            self.requests.sort_unstable();
        }
    }
}
