//! The rows of one job and the conditional writes on them.
//!
//! Written from `docs/protocol.md`, not from the code, so that neither repeats a mistake in the other's conditions.
//! Values that the protocol never reads (items, objects, times) are left out.

use std::ops::{Add, AddAssign};

use crate::tasks::Who;

/// The maximum number of attempts of a configuration, of chunks per attempt and of tallies per attempt.
pub const ATTEMPTS: usize = 2;
/// See [`ATTEMPTS`].
pub const CHUNKS: usize = 4;
/// See [`ATTEMPTS`].
pub const TALLIES: usize = 2;

/// Items by outcome.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Counts {
    pub succeeded: u8,
    pub failed: u8,
    pub skipped: u8,
}

impl Counts {
    pub const fn sum(self) -> u8 {
        self.succeeded + self.failed + self.skipped
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            succeeded: self.succeeded + other.succeeded,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    Waiting,
    Running,
    Paused,
    Cancelling,
    Completed,
    Cancelled,
}

impl Status {
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }
}

/// The right to work on the job row alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lease {
    Free,
    /// Held by an invocation that is alive.
    Held(Who),
    /// Held by a dead invocation: nobody can take it until it expires.
    Orphaned,
}

/// `job`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Job {
    pub status: Status,
    /// Counted from 0; the table counts from 1.
    pub attempt: usize,
    pub tallies: u8,
    pub dispatched: u8,
    pub split_done: bool,
    pub lease: Lease,
    /// Only a cancel stops a job in this model; other stops have the same effect on the counts.
    pub stop: bool,
    /// True if it was paused before it ran.
    pub paused_from_waiting: bool,
    /// Counts the pauses and resumes.
    pub epoch: u8,
    /// `pausedAt`: it is paused, or was resumed and its chunks are not being sent again yet.
    pub held: bool,
    /// The tally whose chunks are sent again since it was resumed.
    pub resend_from: Option<u8>,
    /// `slots`: it has given its shared slots back.
    pub returned: bool,
    /// `maxConcurrency` is the other width of the configuration.
    pub has_other_width: bool,
    /// The counts of the whole job at the end of the last attempt.
    pub counts: Counts,
    /// The counts of the whole job before this redrive.
    pub before: Option<Counts>,
    pub completions: u8,
}

/// `tally#k#n`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tally {
    pub expected: u8,
    pub items: u8,
    pub done: u8,
    pub counts: Counts,
    /// `c<i>`, as the number of times that it was set and its counts were added. It must never exceed one.
    pub marks: [u8; CHUNKS],
    /// `next`: whether the tally that waits for this one is known to be sent.
    pub next_sent: bool,
}

impl Tally {
    pub const fn is_closed(&self) -> bool {
        self.done >= self.expected
    }

    /// True if at least half of its chunks are committed.
    pub const fn is_half_done(&self) -> bool {
        self.done * 2 >= self.expected
    }

    /// True if the last commit, of this many chunks, made it half done.
    pub const fn is_half_done_by(&self, chunks: u8) -> bool {
        self.is_half_done() && self.done >= chunks && (self.done - chunks) * 2 < self.expected
    }

    /// True if this chunk is accounted for: it has a mark, or the tally was closed without it.
    pub const fn accounts_for(&self, index: usize) -> bool {
        self.marks[index] > 0 || self.is_closed()
    }
}

/// `totals#k`.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Totals {
    /// Number of times each tally was folded.
    pub closed: [u8; TALLIES],
    pub counts: Counts,
    pub final_tallies: Option<u8>,
}

impl Totals {
    pub fn is_complete(&self) -> bool {
        let closed = self.closed.iter().filter(|times| **times > 0).count();
        self.final_tallies.is_some_and(|count| usize::from(count) == closed)
    }
}

#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct AttemptRows {
    pub tallies: [Option<Tally>; TALLIES],
    pub totals: Totals,
}

/// All rows of the job, and the slots it holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rows {
    pub job: Job,
    pub attempts: [AttemptRows; ATTEMPTS],
    /// Those of its owner.
    pub slots: u8,
    /// Those that it shares with other owners.
    pub shared: u8,
}

/// The result of a conditional write: whether its condition held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write {
    Applied,
    Refused,
}

impl Rows {
    /// `create-job`: the transaction that creates the job and takes its slots.
    pub fn created() -> Self {
        let job = Job {
            status: Status::Waiting,
            attempt: 0,
            tallies: 0,
            dispatched: 0,
            split_done: false,
            lease: Lease::Free,
            stop: false,
            paused_from_waiting: false,
            epoch: 0,
            held: false,
            resend_from: None,
            returned: false,
            has_other_width: false,
            counts: Counts::default(),
            before: None,
            completions: 0,
        };
        Self { job, attempts: Default::default(), slots: 1, shared: 1 }
    }

    /// True if no work is left in `attempt`: the job has ended or is in another attempt.
    pub const fn is_past(&self, attempt: usize) -> bool {
        self.job.attempt != attempt || self.job.status.is_terminal()
    }

    pub const fn tally(&self, attempt: usize, number: u8) -> Option<&Tally> {
        self.attempts[attempt].tallies[number as usize].as_ref()
    }

    /// Condition: same attempt, not ended, lease free or expired; not paused, unless the split has ended.
    pub fn take_lease(&mut self, attempt: usize, who: Who) -> Write {
        let free = self.job.lease == Lease::Free || self.job.lease == Lease::Held(who);
        let held_back = self.job.status == Status::Paused && !self.job.split_done;
        if self.is_past(attempt) || held_back || !free {
            return Write::Refused;
        }
        self.job.lease = Lease::Held(who);
        if self.job.status == Status::Waiting {
            self.job.status = Status::Running;
        }
        Write::Applied
    }

    /// No condition but that the tally exists.
    pub fn note_next_sent(&mut self, attempt: usize, number: u8) {
        if let Some(tally) = &mut self.attempts[attempt].tallies[usize::from(number)] {
            tally.next_sent = true;
        }
    }

    /// Condition: the tally does not exist.
    pub fn put_tally(&mut self, attempt: usize, number: u8, tally: Tally) {
        self.attempts[attempt].tallies[usize::from(number)].get_or_insert(tally);
    }

    /// Condition: own lease, same attempt, `tallies = n`, no `stop`, not `splitDone`, not paused, no `resendFrom`.
    pub fn count_tally(&mut self, attempt: usize, who: Who, number: u8) -> Write {
        let job = &mut self.job;
        let may_count = !job.stop && !job.split_done && !job.is_held_back();
        if !job.is_held(attempt, who) || job.tallies != number || !may_count {
            return Write::Refused;
        }
        (job.tallies, job.dispatched) = (number + 1, number);
        Write::Applied
    }

    /// Own lease, same attempt.
    pub fn hand_split_over(&mut self, attempt: usize, who: Who) -> Write {
        if !self.job.is_held(attempt, who) {
            return Write::Refused;
        }
        (self.job.dispatched, self.job.lease) = (self.job.tallies, Lease::Free);
        Write::Applied
    }

    /// Condition: own lease.
    pub fn release(&mut self, who: Who) {
        if self.job.lease == Lease::Held(who) {
            self.job.lease = Lease::Free;
        }
    }

    /// Own lease, same attempt.
    pub fn finish_split(&mut self, attempt: usize, who: Who) -> Write {
        if self.hand_split_over(attempt, who) == Write::Refused {
            return Write::Refused;
        }
        self.job.split_done = true;
        Write::Applied
    }

    /// Chunks of a tally, by place, with their counts. Condition: the tally exists, none of their `c<i>` does,
    /// `done < expected`.
    pub fn commit(&mut self, attempt: usize, number: u8, chunks: &[(usize, Counts)]) -> Write {
        let tally = self.attempts[attempt].tallies[usize::from(number)].as_mut();
        let is_open = |tally: &&mut Tally| chunks.iter().all(|(index, _)| !tally.accounts_for(*index));
        let Some(tally) = tally.filter(is_open) else { return Write::Refused };
        chunks.iter().for_each(|(index, counts)| tally.add(*index, *counts));
        Write::Applied
    }

    /// Condition: `done` unchanged since it was read. A refused write is tried again after a new read, so in effect it
    /// closes the tally in its newest state.
    pub fn close_without_rest(&mut self, attempt: usize, number: u8) {
        if let Some(tally) = &mut self.attempts[attempt].tallies[usize::from(number)]
            && !tally.is_closed()
        {
            tally.counts.skipped += tally.items - tally.counts.sum();
            tally.done = tally.expected;
        }
    }

    /// Condition: `n` is not in `closed`.
    pub fn fold(&mut self, attempt: usize, number: u8, counts: Counts) -> Write {
        let totals = &mut self.attempts[attempt].totals;
        let times = &mut totals.closed[usize::from(number)];
        if *times > 0 {
            return Write::Refused;
        }
        *times += 1;
        totals.counts += counts;
        Write::Applied
    }

    /// Condition: attempt, `stop` and status unchanged since they were read. So the job has not ended.
    pub fn end(&mut self, attempt: usize, stop_seen: bool) -> Write {
        let job = &mut self.job;
        if job.attempt != attempt || job.stop != stop_seen || job.status.is_terminal() || job.status == Status::Waiting
        {
            return Write::Refused;
        }
        job.status = if stop_seen { Status::Cancelled } else { Status::Completed };
        job.counts = merged(job.before, self.attempts[attempt].totals.counts);
        job.completions += 1;
        (job.held, job.resend_from) = (false, None);
        job.lease = Lease::Free;
        self.give_slots_back();
        Write::Applied
    }

    /// Part of the end: a job gives back what it has.
    fn give_slots_back(&mut self) {
        self.slots -= 1;
        self.shared -= u8::from(!self.job.returned);
        self.job.returned = false;
    }

    /// Condition: not ended, no `stop`. It ends a pause and a resend. A job that nobody has taken up ends at once, in
    /// one transaction.
    pub fn stop(&mut self) {
        let is_untaken = self.job.status == Status::Waiting || self.job.paused_from_waiting;
        (self.job.held, self.job.resend_from) = (false, None);
        if is_untaken && self.job.lease == Lease::Free {
            self.job.stop = true;
            self.job.split_done = true;
            self.job.status = Status::Cancelled;
            self.job.paused_from_waiting = false;
            self.job.completions += 1;
            self.give_slots_back();
            return;
        }
        self.job.stop = true;
        self.job.status = Status::Cancelling;
        self.job.paused_from_waiting = false;
    }

    /// Condition: ended, attempt unchanged since it was read. The split begins anew, and the slots are taken again.
    pub fn redrive(&mut self) {
        let job = &mut self.job;
        job.attempt += 1;
        job.status = Status::Running;
        (job.tallies, job.dispatched, job.split_done) = (0, 0, false);
        job.stop = false;
        job.before = Some(job.counts);
        self.slots += 1;
        self.shared += 1;
    }
}

impl Job {
    /// True if the splitter waits: the job is paused, or its chunks are not all sent again.
    pub fn is_held_back(&self) -> bool {
        self.status == Status::Paused || self.resend_from.is_some()
    }

    /// True if a run that commits sends what waits for it in this tally.
    pub fn sends_on_commit(&self, tally: u8) -> bool {
        !self.held && self.resend_from.is_none_or(|from| tally <= from)
    }

    fn is_held(&self, attempt: usize, who: Who) -> bool {
        self.attempt == attempt && self.lease == Lease::Held(who)
    }
}

impl Tally {
    pub fn add(&mut self, index: usize, counts: Counts) {
        self.marks[index] += 1;
        self.done += 1;
        self.counts += counts;
    }
}

/// The counts of the whole job, given those of this attempt. An item keeps its last outcome until it gets a new one.
pub fn merged(before: Option<Counts>, attempt: Counts) -> Counts {
    match before {
        None => attempt,
        Some(before) => Counts {
            succeeded: before.succeeded + attempt.succeeded,
            failed: before.failed.saturating_sub(attempt.succeeded),
            skipped: before.skipped,
        },
    }
}
