//! The programs: the next step of an invocation, depending on what its last step found.

use std::iter::successors;

use crate::rows::{CHUNKS, Counts, Lease, Status, Tally, Write};
use crate::tasks::{After, Message, State, Step, Task, Who, Work};

/// A chunk of the job's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    pub items: u8,
    pub failing: u8,
}

/// The protocol as built, or with one rule dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    AsBuilt,
    /// The commit has no condition, except that the tally exists.
    CommitUnconditionally,
    /// Two chunks that commit together are committed if the first one is not.
    JointCommitLooksAtOneMark,
    /// The run whose commit will close the tally folds it before it commits.
    FoldBeforeCommit,
    /// The messages of a tally are sent before the job row counts it.
    SendBeforeCount,
    NoSweep,
    /// A resume sends no chunk again.
    ForgetOnResume,
    /// A resume sends chunks again while runs from before the pause are at work.
    ResendAtOnce,
    /// A paused job is ended once its split has ended.
    EndPaused,
    /// The run that makes a tally half done does not send the one that waits for it.
    ForgetNextTally,
    /// A run that finds its chunk committed does not send the tally that waits either.
    SettleWithoutNextTally,
    /// The splitter looks whether a tally may be sent before it counts the tally.
    LookBeforeCount,
    /// A run that commits does not look beyond a chunk that is committed out of turn.
    StopAtGap,
    /// A chunk is sent once the one W places before is committed, whatever else of its chain is open.
    LookAtOneBefore,
}

/// A smallest job under one set of rules.
#[derive(Clone, Debug)]
pub struct Programs {
    pub rules: Rules,
    pub chunks: &'static [Chunk],
    /// Instead of 64.
    pub chunks_per_tally: u8,
    /// `maxConcurrency`.
    pub width: Option<u8>,
    /// Another one, which its owner may give the job.
    pub other_width: Option<u8>,
    /// `talliesAhead`.
    pub ahead: Option<u8>,
    /// True if an invocation may receive two chunks of a tally, which then commit together.
    pub joint: bool,
}

/// A redrive has the one item that had failed; the item now succeeds.
const REDRIVEN: &[Chunk] = &[Chunk { items: 1, failing: 0 }];

impl Programs {
    pub const fn chunks(&self, attempt: usize) -> &'static [Chunk] {
        if attempt == 0 { self.chunks } else { REDRIVEN }
    }

    pub fn chunk_count(&self, attempt: usize) -> u8 {
        self.chunks(attempt).len().try_into().unwrap_or(u8::MAX)
    }

    fn tally_count(&self, attempt: usize) -> u8 {
        self.chunk_count(attempt).div_ceil(self.chunks_per_tally)
    }

    /// The tally that counts a chunk, and the chunk's place in it.
    pub const fn address(&self, chunk: u8) -> (u8, usize) {
        (chunk / self.chunks_per_tally, (chunk % self.chunks_per_tally) as usize)
    }

    fn new_tally(&self, attempt: usize, number: u8) -> Tally {
        let first = usize::from(number * self.chunks_per_tally);
        let chunks = &self.chunks(attempt)[first..];
        let chunks = &chunks[..chunks.len().min(usize::from(self.chunks_per_tally))];
        Tally {
            expected: chunks.len().try_into().unwrap_or(u8::MAX),
            items: chunks.iter().map(|chunk| chunk.items).sum(),
            done: 0,
            counts: Counts::default(),
            marks: [0; CHUNKS],
            next_sent: false,
        }
    }

    pub fn is_accounted_for(&self, state: &State, attempt: usize, chunk: u8) -> bool {
        let (number, index) = self.address(chunk);
        state.rows.tally(attempt, number).is_some_and(|tally| tally.accounts_for(index))
    }

    /// `maxConcurrency` of the job row.
    pub const fn width_of(&self, state: &State) -> Option<u8> {
        if state.rows.job.has_other_width { self.other_width } else { self.width }
    }

    /// True if this chunk may be in flight. With `maxConcurrency` W, the chunks W, 2W, … places before must be
    /// accounted for; with A tallies ahead, the tally A places before must be half done.
    pub fn may_fly(&self, state: &State, attempt: usize, chunk: u8) -> bool {
        let looks_at = if self.rules == Rules::LookAtOneBefore { 1 } else { usize::MAX };
        let is_in_turn = |width: u8| {
            let chain = successors(chunk.checked_sub(width), |before| before.checked_sub(width));
            chain.take(looks_at).all(|before| self.is_accounted_for(state, attempt, before))
        };
        let tally = self.ahead.and_then(|ahead| self.address(chunk).0.checked_sub(ahead));
        self.width_of(state).is_none_or(is_in_turn)
            && tally.is_none_or(|tally| state.rows.tally(attempt, tally).is_some_and(Tally::is_half_done))
    }

    /// Takes a step and returns the next one, or `None` if the invocation is over.
    pub fn take(&self, state: &mut State, who: Who, task: Task) -> Option<Step> {
        let Message { attempt, old, .. } = task.message;
        let rows = &mut state.rows;
        match task.step {
            Step::ReadJob => Some(self.begin(state, task.message)),
            Step::TakeLease => match rows.take_lease(attempt, who) {
                Write::Applied => self.resume_split(state, attempt, who),
                Write::Refused if rows.job.lease == Lease::Held(who) && who != Who::Sweeper => Some(Step::Release),
                Write::Refused => Self::done(who),
            },
            Step::Release => {
                rows.release(who);
                Self::go_on(state, who)
            }
            Step::PutTally(number) => Some(self.put_tally(state, attempt, number)),
            Step::CountTally(number) => Some(self.count_tally(state, attempt, who, number)),
            Step::CountUnsent(number) => match rows.count_tally(attempt, who, number) {
                Write::Applied => Some(self.next_tally(attempt, number + 1)),
                Write::Refused => Self::done(who),
            },
            Step::SendChunk { chunk, again } => Some(self.send_chunk(state, task.message, chunk, again)),
            Step::HandOver => Self::hand_over(state, attempt, who),
            Step::SendSplit(after) => {
                state.queues.send(Message { attempt, work: Work::Split, again: false, old: false });
                self.follow(state, who, attempt, after)
            }
            Step::CloseWithoutRest(number, after) => {
                rows.close_without_rest(attempt, number);
                Some(Step::Fold(number, after))
            }
            Step::FinishSplit => Self::finish_split(state, attempt, who),
            Step::SetFinal(tallies) => {
                rows.attempts[attempt].totals.final_tallies = Some(tallies);
                let after = if who == Who::Sweeper { After::Sweep(0) } else { After::Done };
                self.announce_if_complete(state, who, attempt, after)
            }
            Step::Commit { skip } => self.commit(state, task, skip),
            Step::CommitRest { chunk, skip } => self.commit_chunks(state, task, &[chunk], skip),
            Step::LookAtNext { closed, again } => Some(self.look_at_next(state, task.message, closed, again)),
            Step::SendNext { chunk, closed, again } => {
                state.queues.send(Message { attempt, work: Work::Chunk(chunk), again, old });
                Some(self.close(task.message, closed))
            }
            Step::LookAtNextTally { after, closed, again } => {
                Some(self.look_at_next_tally(state, task.message, after, (closed, again)))
            }
            Step::SendOfNextTally { chunk, closed, again } => {
                state.queues.send(Message { attempt, work: Work::Chunk(chunk), again, old });
                let of_same = (self.address(chunk).0, chunk + 1);
                Some(self.send_of_next_tally(state, task.message, of_same, (closed, again)))
            }
            Step::NoteNextSent { closed } => {
                if let Work::Chunk(chunk) = task.message.work {
                    rows.note_next_sent(attempt, self.address(chunk).0);
                }
                Some(self.close(task.message, closed))
            }
            Step::Fold(number, after) => self.fold(state, who, task.message, number, after),
            Step::Announce(after) => {
                state.queues.send(Message { attempt, work: Work::Complete, again: false, old: false });
                self.follow(state, who, attempt, after)
            }
            Step::TakeLeaseToEnd => match rows.take_lease(attempt, who) {
                Write::Applied => Some(Step::End { stop_seen: rows.job.stop }),
                Write::Refused => Self::done(who),
            },
            Step::End { stop_seen } => match rows.end(attempt, stop_seen) {
                // The job was stopped meanwhile: the stop decides how it ends.
                Write::Refused if !rows.is_past(attempt) => Some(Step::End { stop_seen: rows.job.stop }),
                Write::Applied | Write::Refused => Self::done(who),
            },
            Step::BeginResend(resend) => Some(match rows.begin_resend(resend.epoch, task.repeats) {
                Write::Applied => Step::Resend(resend),
                Write::Refused => Step::Acknowledge,
            }),
            Step::Resend(resend) => Some(self.resend(state, attempt, old, resend)),
            Step::NoteResent(resend, next) => Some(self.note_resent(state, attempt, resend, next, task.repeats)),
            Step::ResendChunk(chunk) => {
                state.queues.send(Message { attempt, work: Work::Chunk(chunk), again: true, old });
                self.sweep(state, chunk + 1)
            }
            Step::Acknowledge => None,
        }
    }

    const fn done(who: Who) -> Option<Step> {
        match who {
            Who::Worker(_) => Some(Step::Acknowledge),
            Who::Caller | Who::Sweeper => None,
        }
    }

    fn follow(&self, state: &State, who: Who, attempt: usize, after: After) -> Option<Step> {
        match after {
            After::Done => Self::done(who),
            After::Commit { skip } => Some(Step::Commit { skip }),
            After::Sweep(_) if state.rows.is_past(attempt) => None,
            After::Sweep(chunk) => self.sweep(state, chunk),
            After::NoteResent(resend, next) => Some(Step::NoteResent(resend, Some(next))),
        }
    }

    /// The first step after the strong read of the job row (and of the tally, if the message was delivered before).
    fn begin(&self, state: &State, message: Message) -> Step {
        let (rows, attempt) = (&state.rows, message.attempt);
        if rows.is_past(attempt) {
            return Step::Acknowledge;
        }
        match message.work {
            Work::Split | Work::Chunk(_) if rows.job.status == Status::Paused => Step::Acknowledge,
            Work::Chunk(_) if message.old => Step::Acknowledge,
            Work::Split if message.old && rows.job.resend_from.is_some() => Step::Acknowledge,
            Work::Split => match rows.job.resend_from {
                Some(from) => self.first_to_resend(state, attempt, from),
                None => Self::begin_split(state),
            },
            Work::Complete if self.rules == Rules::EndPaused && rows.job.status == Status::Paused => {
                Step::TakeLeaseToEnd
            }
            Work::Complete if rows.job.split_done && rows.attempts[attempt].totals.is_complete() => {
                Step::TakeLeaseToEnd
            }
            Work::Complete => Step::Acknowledge,
            Work::Chunk(chunk) if message.again && self.is_accounted_for(state, attempt, chunk) => {
                self.settle(state, message, None)
            }
            Work::Chunk(chunk) => self.run(state, attempt, chunk),
        }
    }

    /// Runs the items, or skips them if the job is stopped. The commit follows.
    fn run(&self, state: &State, attempt: usize, chunk: u8) -> Step {
        let (skip, number) = (state.rows.job.stop, self.address(chunk).0);
        let is_last = |tally: &Tally| tally.done + 1 == tally.expected;
        if self.rules == Rules::FoldBeforeCommit && state.rows.tally(attempt, number).is_some_and(is_last) {
            return Step::Fold(number, After::Commit { skip });
        }
        Step::Commit { skip }
    }

    /// The next step of a split that has taken the lease. The sweep takes it only to end the split of a stopped job.
    fn resume_split(&self, state: &State, attempt: usize, who: Who) -> Option<Step> {
        let job = &state.rows.job;
        if who == Who::Sweeper {
            return Some(Step::FinishSplit);
        }
        let unsent = (job.dispatched < job.tallies).then(|| job.tallies - 1);
        Some(match unsent {
            _ if job.is_held_back() => Step::Release,
            _ if job.stop || job.split_done => Step::FinishSplit,
            Some(number) => self.first_of(number, true),
            None => self.next_tally(attempt, job.tallies),
        })
    }

    const fn first_of(&self, tally: u8, again: bool) -> Step {
        Step::SendChunk { chunk: tally * self.chunks_per_tally, again }
    }

    fn next_tally(&self, attempt: usize, number: u8) -> Step {
        if number == self.tally_count(attempt) { Step::FinishSplit } else { Step::PutTally(number) }
    }

    fn put_tally(&self, state: &mut State, attempt: usize, number: u8) -> Step {
        state.rows.put_tally(attempt, number, self.new_tally(attempt, number));
        match self.rules {
            Rules::SendBeforeCount => self.first_of(number, false),
            Rules::LookBeforeCount if !self.may_fly(state, attempt, number * self.chunks_per_tally) => {
                Step::CountUnsent(number)
            }
            _ => Step::CountTally(number),
        }
    }

    fn count_tally(&self, state: &mut State, attempt: usize, who: Who, number: u8) -> Step {
        let counted = state.rows.count_tally(attempt, who, number);
        let job = &state.rows.job;
        let ours = job.attempt == attempt && job.lease == Lease::Held(who);
        match counted {
            Write::Applied if self.rules == Rules::SendBeforeCount => self.next_tally(attempt, number + 1),
            Write::Applied => self.first_of(number, false),
            Write::Refused if !ours => Step::Acknowledge,
            Write::Refused if job.is_held_back() => Step::HandOver,
            // This run's own write, whose reply was lost.
            Write::Refused if job.tallies == number + 1 => self.first_of(number, false),
            // The job was stopped.
            Write::Refused => Step::FinishSplit,
        }
    }

    /// Sends a chunk's message. The strong reads before it (of this chunk, if it may have been sent before, and of the
    /// chunk W places before) belong to the same step, because a chunk that is accounted for stays so.
    fn send_chunk(&self, state: &mut State, message: Message, chunk: u8, again: bool) -> Step {
        let Message { attempt, old, .. } = message;
        let due = !again || !self.is_accounted_for(state, attempt, chunk);
        if due && self.may_fly(state, attempt, chunk) {
            state.queues.send(Message { attempt, work: Work::Chunk(chunk), again, old });
        }
        let (number, next) = (self.address(chunk).0, chunk + 1);
        if next < self.chunk_count(attempt) && self.address(next).0 == number {
            return Step::SendChunk { chunk: next, again };
        }
        if self.rules == Rules::SendBeforeCount && state.rows.job.tallies == number {
            return Step::CountTally(number);
        }
        self.next_tally(attempt, number + 1)
    }

    fn hand_over(state: &mut State, attempt: usize, who: Who) -> Option<Step> {
        let handed_over = state.rows.hand_split_over(attempt, who);
        // If the lease is free, this same write, whose reply was lost, has released it.
        let free = state.rows.job.lease == Lease::Free && !state.rows.is_past(attempt);
        if handed_over == Write::Applied || free { Self::go_on(state, who) } else { Self::done(who) }
    }

    /// The message of the next invocation, unless it follows a resume, or the end of its resend.
    fn go_on(state: &State, who: Who) -> Option<Step> {
        if state.rows.job.is_held_back() { Self::done(who) } else { Some(Step::SendSplit(After::Done)) }
    }

    fn finish_split(state: &mut State, attempt: usize, who: Who) -> Option<Step> {
        let finished = state.rows.finish_split(attempt, who);
        // This same write, whose reply was lost, or another run's write has ended the split.
        let before = state.rows.job.split_done && !state.rows.is_past(attempt);
        let tallies = state.rows.job.tallies;
        if finished == Write::Applied || before { Some(Step::SetFinal(tallies)) } else { Self::done(who) }
    }

    fn fold(&self, state: &mut State, who: Who, message: Message, number: u8, after: After) -> Option<Step> {
        let attempt = message.attempt;
        let mut counts = state.rows.tally(attempt, number)?.counts;
        if let (After::Commit { skip }, Work::Chunk(chunk)) = (after, message.work) {
            counts += self.outcome(attempt, chunk, skip);
        }
        state.rows.fold(attempt, number, counts);
        self.announce_if_complete(state, who, attempt, after)
    }

    fn announce_if_complete(&self, state: &State, who: Who, attempt: usize, after: After) -> Option<Step> {
        match state.rows.attempts[attempt].totals.is_complete() {
            true => Some(Step::Announce(after)),
            false => self.follow(state, who, attempt, after),
        }
    }

    /// The first step of the sweep on a claimed job: it looks at the split first.
    pub fn begin_sweep(&self, state: &State) -> Option<Step> {
        let job = &state.rows.job;
        if job.resend_from.is_some() && !job.stop {
            return Some(Step::SendSplit(After::Done));
        }
        match (job.split_done, job.stop) {
            (true, _) if self.rules == Rules::EndPaused && job.status == Status::Paused => {
                Some(Step::Announce(After::Done))
            }
            (false, _) if job.status == Status::Paused => self.sweep(state, 0),
            (true, _) => Some(Step::SetFinal(job.tallies)),
            (false, true) => Some(Step::TakeLease),
            (false, false) if job.lease == Lease::Free => Some(Step::SendSplit(After::Sweep(0))),
            (false, false) => self.sweep(state, 0),
        }
    }

    /// The sweep's next step after the split and after the chunks before `first`.
    fn sweep(&self, state: &State, first: u8) -> Option<Step> {
        let (rows, job) = (&state.rows, &state.rows.job);
        let totals = &rows.attempts[job.attempt].totals;
        for number in 0..job.tallies {
            let tally = rows.tally(job.attempt, number)?;
            if job.stop && !tally.is_closed() {
                return Some(Step::CloseWithoutRest(number, After::Sweep(first)));
            }
            if tally.is_closed() && totals.closed[usize::from(number)] == 0 {
                return Some(Step::Fold(number, After::Sweep(first)));
            }
        }
        let counted = (job.tallies * self.chunks_per_tally).min(self.chunk_count(job.attempt));
        let missing =
            |chunk: &u8| !self.is_accounted_for(state, job.attempt, *chunk) && self.may_fly(state, job.attempt, *chunk);
        match (first..counted).find(missing).filter(|_| job.status != Status::Paused) {
            Some(chunk) => Some(Step::ResendChunk(chunk)),
            None => totals.is_complete().then_some(Step::Announce(After::Done)),
        }
    }
}
