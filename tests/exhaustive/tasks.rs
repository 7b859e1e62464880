//! The invocations with their current work, and the messages between them.

use crate::rows::{ATTEMPTS, CHUNKS, Lease, Rows};

/// An invocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Who {
    /// The request that created the job (`create-job`) or its next attempt (`redrive-job`).
    Caller,
    /// One of the two invocations that receive messages. The message decides which function it is.
    Worker(usize),
    /// `sweep`.
    Sweeper,
}

impl Who {
    pub const ALL: [Self; 4] = [Self::Caller, Self::Worker(0), Self::Worker(1), Self::Sweeper];

    const fn place(self) -> usize {
        match self {
            Self::Caller => 0,
            Self::Worker(number) => 1 + number,
            Self::Sweeper => 3,
        }
    }
}

/// The next step of an invocation: one write, one read or one message. In the order of the rows of
/// `docs/protocol.md`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// *`create-job`: message to the jobs queue*; also by `redrive-job`, a split that hands over, and the sweep.
    SendSplit(After),
    /// The strong read that begins the work on every message.
    ReadJob,
    /// *`split-job`: lease, `waiting → running`*; also by the sweep, to end the split of a stopped job.
    TakeLease,
    /// *`split-job`: `tally#k#n`*.
    PutTally(u8),
    /// *`split-job`: `tallies = n+1, dispatched = n, cursor` on `job`*.
    CountTally(u8),
    /// The same without the messages, in the broken protocol that looked before whether they may be sent.
    CountUnsent(u8),
    /// *`split-job`: 64 messages to the items queue*; here for one chunk, `again` if the tally was counted before.
    SendChunk { chunk: u8, again: bool },
    /// *`split-job`, time is up: `dispatched = tallies`, lease removed*.
    HandOver,
    /// *`split-job`, the lease refused because the job is paused, but held all the same: lease removed*.
    Release,
    /// *`sweep`, the job stopped: `done = expected, skipped += the rest`*.
    CloseWithoutRest(u8, After),
    /// *`split-job`: `splitDone`, `dispatched = tallies`, lease removed*; also by the sweep.
    FinishSplit,
    /// *`split-job`: `final = tallies` on `totals#k`*; also by the sweep.
    SetFinal(u8),
    /// *`process-items`: `SET c<i> = mark ADD done, counts, bytes`*, for all chunks of the invocation.
    Commit { skip: bool },
    /// The same for the chunk that is left after the tally has refused both because of the other one.
    CommitRest { chunk: u8, skip: bool },
    /// `process-items` with `maxConcurrency`: after the commit, the strong read of the tally of the chunk W further.
    LookAtNext { closed: bool, again: bool },
    /// `process-items` with `maxConcurrency`: the message of the chunk W places further.
    SendNext { chunk: u8, closed: bool, again: bool },
    /// The run that has made this tally half done: the strong reads of the job row and of the tally A places further.
    LookAtNextTally { after: u8, closed: bool, again: bool },
    /// *the commit that made the tally half done: messages of the tally A places further*; here for one chunk.
    SendOfNextTally { chunk: u8, closed: bool, again: bool },
    /// *`next` on `tally#k#n`*.
    NoteNextSent { closed: bool },
    /// *`process-items`: `ADD closed {n}, counts, bytes` on `totals#k`*; also by every other run that sees a tally
    /// closed.
    Fold(u8, After),
    /// *either: message to the completions queue*.
    Announce(After),
    /// *`complete-job`: lease*.
    TakeLeaseToEnd,
    /// *`complete-job`: transaction*.
    End { stop_seen: bool },
    /// *`split-job`: `pausedAt` removed*, once the runs from before the pause have ended.
    BeginResend(Resend),
    /// *`split-job`: missing chunks of a resumed job*: the next chunk that may have to be sent.
    Resend(Resend),
    /// *`split-job`: `resendFrom`*, after a tally or after the last one (`None`).
    NoteResent(Resend, Option<u8>),
    /// `sweep`: message to the items queue, for a chunk that is not accounted for.
    ResendChunk(u8),
    /// The message is deleted from its queue.
    Acknowledge,
}

/// The continuation after a step that several programs share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum After {
    /// Nothing: the message is acknowledged.
    Done,
    /// The sweep checks the chunks from this one on.
    Sweep(u8),
    /// The tally that is sent next of a resumed job is noted.
    NoteResent(Resend, u8),
    /// The commit, in the broken protocol that folds first.
    Commit { skip: bool },
}

/// Progress of sending the missing chunks of a resumed job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Resend {
    /// The next chunk.
    pub chunk: u8,
    /// The chunk after the last one.
    pub end: u8,
    /// The tally that the job row named.
    pub from: u8,
    /// The epoch that began with the resume.
    pub epoch: u8,
}

/// Work that a message asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Work {
    Split,
    Chunk(u8),
    Complete,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Message {
    pub attempt: usize,
    pub work: Work,
    /// Delivered before, or sent by the sweep: its receiver first checks whether the work is done.
    pub again: bool,
    /// True if the job was paused since its sender read the row. The receiver of a completion does not look at it.
    pub old: bool,
}

/// Return of the message if its receiver dies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Hold {
    /// It returns after its visibility timeout.
    Only,
    /// The other worker has it too.
    Shared,
    /// Nothing: the other worker had it too and has acknowledged it for both; or the task has no message.
    None,
}

/// The state of an invocation: its message and its next step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Task {
    pub message: Message,
    /// The chunk of the same tally whose message this invocation has received too.
    pub with: Option<u8>,
    pub hold: Hold,
    pub step: Step,
    /// The step has taken effect but its reply was lost, so the step is repeated.
    pub repeats: bool,
}

impl Task {
    /// An invocation that has received this message.
    pub const fn begin(message: Message, hold: Hold) -> Self {
        Self { message, with: None, hold, step: Step::ReadJob, repeats: false }
    }

    /// The second message that it has received.
    pub fn second(&self) -> Option<Message> {
        self.with.map(|chunk| Message { work: Work::Chunk(chunk), ..self.message })
    }
}

/// Number of messages of one chunk in the items queue.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Waiting {
    pub fresh: u8,
    pub again: u8,
    /// From before a pause.
    pub old: u8,
}

/// Number of messages in the three queues. A queue has no order.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Queues {
    pub splits: [u8; ATTEMPTS],
    pub chunks: [[Waiting; CHUNKS]; ATTEMPTS],
    pub completions: [u8; ATTEMPTS],
}

impl Queues {
    fn place(&mut self, message: Message) -> &mut u8 {
        match message.work {
            Work::Split => &mut self.splits[message.attempt],
            Work::Complete => &mut self.completions[message.attempt],
            Work::Chunk(chunk) => {
                let waiting = &mut self.chunks[message.attempt][usize::from(chunk)];
                match (message.old, message.again) {
                    (true, _) => &mut waiting.old,
                    (false, true) => &mut waiting.again,
                    (false, false) => &mut waiting.fresh,
                }
            }
        }
    }

    pub fn send(&mut self, message: Message) {
        *self.place(message) += 1;
    }

    pub fn send_all(&mut self, messages: impl IntoIterator<Item = Message>) {
        messages.into_iter().for_each(|message| self.send(message));
    }

    pub fn take(&mut self, message: Message) {
        *self.place(message) -= 1;
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The messages that may be delivered next, each kind once.
    pub fn waiting(&self) -> impl Iterator<Item = Message> + '_ {
        (0..ATTEMPTS).flat_map(move |attempt| {
            let message = move |work, again, old| Message { attempt, work, again, old };
            let chunks = (0..).zip(&self.chunks[attempt]).flat_map(move |(chunk, waiting)| {
                let kinds = [(waiting.fresh, false, false), (waiting.again, true, false), (waiting.old, true, true)];
                kinds.map(|(count, again, old)| (count, message(Work::Chunk(chunk), again, old)))
            });
            [(self.splits[attempt], message(Work::Split, false, false))]
                .into_iter()
                .chain(chunks)
                .chain([(self.completions[attempt], message(Work::Complete, false, false))])
                .filter_map(|(count, message)| (count > 0).then_some(message))
        })
    }
}

/// Number of faults and other events that may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Budget {
    /// An invocation dies between any two steps.
    pub crashes: u8,
    /// A run of `process-items` dies between any two steps. No sweep is needed then.
    pub chunk_crashes: u8,
    /// A message is delivered to a second worker while the first has it, or stays in its queue although acknowledged.
    pub duplicates: u8,
    /// The reply to a write is lost; the invocation repeats the step.
    pub lost_replies: u8,
    /// A lease expires while its holder is alive.
    pub zombies: u8,
    /// A split runs out of time at a tally border.
    pub hand_overs: u8,
    pub cancels: u8,
    pub redrives: u8,
    /// The owner pauses. A paused job can always be resumed.
    pub holds: u8,
    /// The owner gives the job the other width.
    pub widths: u8,
    /// The sweep looks at the job while it still moves.
    pub early_sweeps: u8,
    /// The sweep looks at the job after it has not moved for a long time. The job must end within this many sweeps.
    pub sweeps: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub rows: Rows,
    pub queues: Queues,
    pub tasks: [Option<Task>; 4],
    pub budget: Budget,
}

impl State {
    pub fn pause(&mut self) {
        self.rows.pause();
        self.age();
    }

    /// Returns whether the job restarts.
    pub fn change_width(&mut self) -> bool {
        let restarts = self.rows.change_width();
        if restarts {
            self.age();
        }
        restarts
    }

    /// All messages of chunks, and all invocations, are from before this pause.
    fn age(&mut self) {
        for waiting in self.queues.chunks.iter_mut().flatten() {
            *waiting = Waiting { old: waiting.fresh + waiting.again + waiting.old, ..Waiting::default() };
        }
        self.tasks.iter_mut().flatten().for_each(|task| task.message.old = true);
    }

    /// The chunks that runs process, each with whether the run is from before a pause.
    pub fn running(&self) -> impl Iterator<Item = (u8, bool)> + '_ {
        let tasks = self.tasks.iter().flatten().filter(|task| !matches!(task.step, Step::ReadJob | Step::Acknowledge));
        tasks.flat_map(|task| {
            let chunk = |work| match work {
                Work::Chunk(chunk) => Some((chunk, task.message.old)),
                Work::Split | Work::Complete => None,
            };
            chunk(task.message.work).into_iter().chain(task.with.map(|with| (with, task.message.old)))
        })
    }

    pub const fn task(&self, who: Who) -> Option<&Task> {
        self.tasks[who.place()].as_ref()
    }

    pub const fn task_mut(&mut self, who: Who) -> &mut Option<Task> {
        &mut self.tasks[who.place()]
    }

    pub fn idle_worker(&self) -> Option<Who> {
        [Who::Worker(0), Who::Worker(1)].into_iter().find(|who| self.task(*who).is_none())
    }

    /// True if nothing moves by itself any more: no active invocation, no message, no lease that will expire.
    pub fn is_quiet(&self) -> bool {
        self.tasks.iter().all(Option::is_none) && self.queues.is_empty() && self.rows.job.lease != Lease::Orphaned
    }

    /// Ends an invocation, in success or failure. A lease that it still holds must expire.
    pub fn leave(&mut self, who: Who) {
        *self.task_mut(who) = None;
        if self.rows.job.lease == Lease::Held(who) {
            self.rows.job.lease = Lease::Orphaned;
        }
    }

    /// The other worker, if both have this message.
    pub fn twin(&mut self, who: Who) -> Option<&mut Task> {
        let other = match who {
            Who::Worker(number) => Who::Worker(1 - number),
            Who::Caller | Who::Sweeper => return None,
        };
        let shared = self.task(who)?.hold == Hold::Shared;
        self.task_mut(other).as_mut().filter(|_| shared)
    }

    /// Orders the workers. They are alike, so two states that differ only in their order are the same state.
    pub fn sort_workers(&mut self) {
        let (first, second) = (Who::Worker(0), Who::Worker(1));
        if self.task(first) > self.task(second) {
            self.tasks.swap(first.place(), second.place());
            self.rows.job.lease = match self.rows.job.lease {
                Lease::Held(who) if who == first => Lease::Held(second),
                Lease::Held(who) if who == second => Lease::Held(first),
                lease => lease,
            };
        }
    }
}
