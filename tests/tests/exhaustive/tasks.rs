//! Who is at work on what, and the messages between them.

use crate::rows::{ATTEMPTS, CHUNKS, Lease, Rows};

/// An invocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Who {
    /// The request that created the job (`create-job`) or its next attempt (`redrive-job`).
    Caller,
    /// One of the two invocations that are given messages. Which function it is depends on the message.
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

/// What an invocation does next: one write, one read or one message. The rows of `docs/protocol.md` in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// *`create-job`: message to the jobs queue*; the same of `redrive-job`, of a split that hands over, and of the sweep.
    SendSplit(After),
    /// The strong read with which every message begins.
    ReadJob,
    /// *`split-job`: lease, `waiting → running`*; also the sweep's, to end the split of a stopped job.
    TakeLease,
    /// *`split-job`: `tally#k#n`*.
    PutTally(u8),
    /// *`split-job`: `tallies = n+1, dispatched = n, cursor` on `job`*.
    CountTally(u8),
    /// *`split-job`: 64 messages to the items queue*; here one chunk's, and again where the tally was counted before.
    SendChunk { chunk: u8, again: bool },
    /// *`split-job`, its time up: `dispatched = tallies`, lease removed*.
    Pause,
    /// *`split-job`, the job stopped: `done = expected, skipped += the rest`*; also the sweep's.
    CloseWithoutRest(u8, After),
    /// *`split-job`: `splitDone`, `dispatched = tallies`, lease removed*; also the sweep's.
    FinishSplit,
    /// *`split-job`: `final = tallies` on `totals#k`*; also the sweep's.
    SetFinal(u8),
    /// *`process-items`: `SET c<i> = mark ADD done, counts, bytes`*.
    Commit { skip: bool },
    /// `process-items` with `maxConcurrency`: the strong read of the tally of the chunk W places further, after the commit.
    LookAtNext { closed: bool, again: bool },
    /// `process-items` with `maxConcurrency`: the message of the chunk W places further.
    SendNext { chunk: u8, closed: bool, again: bool },
    /// *`process-items`: `ADD closed {n}, counts, bytes` on `totals#k`*; also of everybody else who sees a tally closed.
    Fold(u8, After),
    /// *either: message to the completions queue*.
    Announce(After),
    /// *`complete-job`: lease*.
    TakeLeaseToEnd,
    /// *`complete-job`: transaction*.
    End { stop_seen: bool },
    /// `sweep`: message of a chunk that is not accounted for, to the items queue.
    ResendChunk(u8),
    /// The message is deleted from its queue.
    Acknowledge,
}

/// What follows a step that several programs have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum After {
    /// Nothing: the message is acknowledged.
    Done,
    /// The split's end.
    FinishSplit,
    /// The sweep's look at the chunks from this one on.
    Sweep(u8),
    /// The commit, in the variant of the protocol that folds first.
    Commit { skip: bool },
}

/// What a message asks for.
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
    /// Delivered before, or sent by the sweep: its receiver first looks whether the work is done.
    pub again: bool,
}

/// What becomes of the message when its receiver dies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Hold {
    /// It comes back when its visibility runs out.
    Only,
    /// The other worker was given it too.
    Shared,
    /// Nothing: the other worker was given it too and has acknowledged it for both; or there is no message.
    None,
}

/// An invocation at its next step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Task {
    pub message: Message,
    pub hold: Hold,
    pub step: Step,
    /// The step was taken and its reply lost, so that it is taken again.
    pub repeats: bool,
}

/// Messages of one chunk that wait in the items queue.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Waiting {
    pub fresh: u8,
    pub again: u8,
}

/// What waits in the three queues. A queue has no order.
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
                if message.again { &mut waiting.again } else { &mut waiting.fresh }
            }
        }
    }

    pub fn send(&mut self, message: Message) {
        *self.place(message) += 1;
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
            let message = move |work, again| Message { attempt, work, again };
            let chunks = (0..).zip(&self.chunks[attempt]).flat_map(move |(chunk, waiting)| {
                let kinds = [(waiting.fresh, false), (waiting.again, true)];
                kinds.map(|(count, again)| (count, message(Work::Chunk(chunk), again)))
            });
            [(self.splits[attempt], message(Work::Split, false))]
                .into_iter()
                .chain(chunks)
                .chain([(self.completions[attempt], message(Work::Complete, false))])
                .filter_map(|(count, message)| (count > 0).then_some(message))
        })
    }
}

/// How many faults and turns of events are still to come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Budget {
    /// An invocation dies between any two steps.
    pub crashes: u8,
    /// A message is given to a second worker while the first has it, or stays in its queue although acknowledged.
    pub duplicates: u8,
    /// The reply to a write is lost; the invocation takes the step again.
    pub lost_replies: u8,
    /// A lease runs out while its holder is alive.
    pub zombies: u8,
    /// A split runs out of time at a tally border.
    pub pauses: u8,
    /// The owner cancels.
    pub cancels: u8,
    /// The owner redrives.
    pub redrives: u8,
    /// The sweep looks at the job although work on it is going on.
    pub early_sweeps: u8,
    /// The sweep looks at the job when nothing of it has moved for long: how often, until the job must have ended.
    pub sweeps: u8,
}

/// Everything there is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub rows: Rows,
    pub queues: Queues,
    pub tasks: [Option<Task>; 4],
    pub budget: Budget,
}

impl State {
    pub const fn task(&self, who: Who) -> Option<&Task> {
        self.tasks[who.place()].as_ref()
    }

    pub const fn task_mut(&mut self, who: Who) -> &mut Option<Task> {
        &mut self.tasks[who.place()]
    }

    pub fn idle_worker(&self) -> Option<Who> {
        [Who::Worker(0), Who::Worker(1)].into_iter().find(|who| self.task(*who).is_none())
    }

    /// Whether nothing moves any more by itself: nobody at work, no message, no lease that will run out.
    pub fn is_quiet(&self) -> bool {
        self.tasks.iter().all(Option::is_none) && self.queues.is_empty() && self.rows.job.lease != Lease::Orphaned
    }

    /// The invocation is over, well or not. A lease that it leaves behind has to run out.
    pub fn leave(&mut self, who: Who) {
        *self.task_mut(who) = None;
        if self.rows.job.lease == Lease::Held(who) {
            self.rows.job.lease = Lease::Orphaned;
        }
    }

    /// The other worker, if both were given this message.
    pub fn twin(&mut self, who: Who) -> Option<&mut Task> {
        let other = match who {
            Who::Worker(number) => Who::Worker(1 - number),
            Who::Caller | Who::Sweeper => return None,
        };
        let shared = self.task(who)?.hold == Hold::Shared;
        self.task_mut(other).as_mut().filter(|_| shared)
    }

    /// The workers are alike: of two states that differ only in which is which, one stands for both.
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
