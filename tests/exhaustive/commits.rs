//! The steps of a commit, and those that follow it.

use std::iter::successors;

use crate::programs::{Chunk, Programs, Rules};
use crate::rows::{Counts, Tally, Write};
use crate::tasks::{After, Message, State, Step, Task, Work};

impl Programs {
    /// Outcome of the items of a chunk.
    pub fn outcome(&self, attempt: usize, chunk: u8, skip: bool) -> Counts {
        let Chunk { items, failing } = self.chunks(attempt)[usize::from(chunk)];
        match skip {
            true => Counts { skipped: items, ..Counts::default() },
            false => Counts { succeeded: items - failing, failed: failing, skipped: 0 },
        }
    }

    pub fn commit(&self, state: &mut State, task: Task, skip: bool) -> Option<Step> {
        let Work::Chunk(chunk) = task.message.work else { return None };
        match task.with {
            Some(with) => self.commit_chunks(state, task, &[chunk, with], skip),
            None => self.commit_chunks(state, task, &[chunk], skip),
        }
    }

    pub fn commit_chunks(&self, state: &mut State, task: Task, chunks: &[u8], skip: bool) -> Option<Step> {
        let attempt = task.message.attempt;
        let number = self.address(*chunks.first()?).0;
        let ends: Vec<(usize, Counts)> =
            chunks.iter().map(|chunk| (self.address(*chunk).1, self.outcome(attempt, *chunk, skip))).collect();
        let tally = state.rows.attempts[attempt].tallies[usize::from(number)].as_mut()?;
        let applies_anyway = match self.rules {
            Rules::CommitUnconditionally => true,
            Rules::JointCommitLooksAtOneMark => ends.first().is_some_and(|(index, _)| !tally.accounts_for(*index)),
            _ => false,
        };
        let committed = match applies_anyway {
            true => {
                ends.iter().for_each(|(index, counts)| tally.add(*index, *counts));
                Write::Applied
            }
            false => state.rows.commit(attempt, number, &ends),
        };
        let mut open = chunks.iter().filter(|chunk| !self.is_accounted_for(state, attempt, **chunk));
        Some(match (committed, open.next()) {
            (Write::Applied, _) => self.settle(state, task.message, Some(chunks.len().try_into().unwrap_or(u8::MAX))),
            // A mark that this run set itself, in a write whose reply was lost, is a win.
            (Write::Refused, _) if task.repeats => self.settle(state, task.message, None),
            (Write::Refused, Some(chunk)) => Step::CommitRest { chunk: *chunk, skip },
            (Write::Refused, None) => {
                let closed = state.rows.tally(attempt, number).is_some_and(Tally::is_closed);
                self.close(task.message, closed)
            }
        })
    }

    /// The steps after a commit of this many chunks, repeated if a commit is found: send what waits for it, then close
    /// the tally.
    pub fn settle(&self, state: &State, message: Message, committed: Option<u8>) -> Step {
        let Message { attempt, work: Work::Chunk(chunk), .. } = message else { return Step::Acknowledge };
        let Some(tally) = state.rows.tally(attempt, self.address(chunk).0) else { return Step::Acknowledge };
        let (closed, again) = (tally.is_closed(), committed.is_none());
        let sends_next = match (self.rules, committed) {
            (Rules::ForgetNextTally, _) | (Rules::SettleWithoutNextTally, None) => false,
            (_, None) => tally.is_half_done() && !tally.next_sent,
            (_, Some(chunks)) => tally.is_half_done_by(chunks),
        };
        match (self.width, self.ahead) {
            (Some(_), _) => Step::LookAtNext { closed, again },
            (None, Some(_)) if sends_next => Step::LookAtNextTally { after: self.address(chunk).0, closed, again },
            (None, _) => self.close(message, closed),
        }
    }

    pub fn close(&self, message: Message, closed: bool) -> Step {
        match message.work {
            Work::Chunk(chunk) if closed => Step::Fold(self.address(chunk).0, After::Done),
            _ => Step::Acknowledge,
        }
    }

    pub fn look_at_next_tally(&self, state: &State, message: Message, after: u8, of: (bool, bool)) -> Step {
        let (attempt, job, (closed, _)) = (message.attempt, &state.rows.job, of);
        let next = self.ahead.map(|ahead| after + ahead).filter(|number| {
            !state.rows.is_past(attempt) && !job.stop && job.sends_on_commit(*number) && *number < job.tallies
        });
        match next {
            Some(number) => self.send_of_next_tally(state, message, (number, number * self.chunks_per_tally), of),
            None => self.close(message, closed),
        }
    }

    /// The step that sends the first chunk of a tally that waits, from this one on, or what follows the last one.
    pub fn send_of_next_tally(
        &self,
        state: &State,
        message: Message,
        (number, first): (u8, u8),
        of: (bool, bool),
    ) -> Step {
        let (attempt, (closed, again)) = (message.attempt, of);
        let of_tally = (first..self.chunk_count(attempt)).take_while(|chunk| self.address(*chunk).0 == number);
        match of_tally.into_iter().find(|chunk| !self.is_accounted_for(state, attempt, *chunk)) {
            Some(chunk) => Step::SendOfNextTally { chunk, closed, again },
            None => Step::NoteNextSent { closed },
        }
    }

    /// Also beyond chunks that are committed out of turn: any message may be the one whose run has committed the chunk
    /// and died.
    pub fn look_at_next(&self, state: &State, message: Message, closed: bool, again: bool) -> Step {
        let (Message { attempt, old, work: Work::Chunk(chunk), .. }, Some(width)) = (message, self.width_of(state))
        else {
            return self.close(message, closed);
        };
        let job = &state.rows.job;
        let is_left_to_others = old || state.rows.is_past(attempt) || (job.stop && again);
        let may_have_gaps = job.epoch > 0 && self.rules != Rules::StopAtGap;
        let is_sent_here = |next: &u8| {
            let tally = self.address(*next).0;
            *next < self.chunk_count(attempt) && tally < job.tallies && job.sends_on_commit(tally)
        };
        let chain = successors(Some(chunk + width), |next| Some(next + width)).take_while(is_sent_here);
        let next = chain
            .take(if may_have_gaps { usize::MAX } else { 1 })
            .find(|next| !self.is_accounted_for(state, attempt, *next));
        match next.filter(|_| !is_left_to_others) {
            Some(chunk) => Step::SendNext { chunk, closed, again },
            None => self.close(message, closed),
        }
    }
}
