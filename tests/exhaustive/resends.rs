//! The resend of messages that were dropped while their job was paused.

use crate::programs::{Programs, Rules};
use crate::rows::{Tally, Write};
use crate::tasks::{After, Message, Resend, State, Step, Work};

impl Programs {
    /// The first step of a split whose job has no chunks to send again.
    pub const fn begin_split(state: &State) -> Step {
        match state.rows.job.split_done {
            true => Step::SetFinal(state.rows.job.tallies),
            false => Step::TakeLease,
        }
    }

    /// The first step of a resend, from this tally on.
    pub fn first_to_resend(&self, state: &State, attempt: usize, from: u8) -> Step {
        let job = &state.rows.job;
        let end = (job.tallies * self.chunks_per_tally).min(self.chunk_count(attempt));
        let resend = Resend { chunk: from * self.chunks_per_tally, end, from, epoch: job.epoch };
        if job.held { Step::BeginResend(resend) } else { Step::Resend(resend) }
    }

    /// True if the first step of a resend must wait: runs from before the pause are at work.
    pub fn waits_for_runs(&self, state: &State, step: Step) -> bool {
        let begins = matches!(step, Step::BeginResend(_)) && self.rules != Rules::ResendAtOnce;
        begins && state.running().any(|(_, old)| old)
    }

    /// Sends a chunk of a resumed job if it is missing, or folds its tally if that is closed. The strong reads belong
    /// to the same step, because a chunk that is accounted for stays so.
    pub fn resend(&self, state: &mut State, attempt: usize, old: bool, resend: Resend) -> Step {
        let Resend { chunk, end, .. } = resend;
        if chunk >= end {
            return Step::NoteResent(resend, None);
        }
        let number = self.address(chunk).0;
        let behind = ((number + 1) * self.chunks_per_tally).min(end);
        let rows = &state.rows;
        if rows.tally(attempt, number).is_some_and(Tally::is_closed) {
            return match rows.attempts[attempt].totals.closed[usize::from(number)] {
                0 => Step::Fold(number, After::NoteResent(resend, number + 1)),
                _ => Step::NoteResent(resend, Some(number + 1)),
            };
        }
        if !self.is_accounted_for(state, attempt, chunk) && self.may_fly(state, attempt, chunk) {
            state.queues.send(Message { attempt, work: Work::Chunk(chunk), again: true, old });
        }
        let next = Resend { chunk: chunk + 1, ..resend };
        if next.chunk == behind { Step::NoteResent(next, Some(number + 1)) } else { Step::Resend(next) }
    }

    pub fn note_resent(
        &self,
        state: &mut State,
        attempt: usize,
        resend: Resend,
        next: Option<u8>,
        repeats: bool,
    ) -> Step {
        let noted = state.rows.note_resent(resend.epoch, resend.from, next, repeats);
        match (noted, next) {
            (Write::Refused, _) => Step::Acknowledge,
            (Write::Applied, Some(next)) => {
                Step::Resend(Resend { chunk: next * self.chunks_per_tally, from: next, ..resend })
            }
            (Write::Applied, None) if state.rows.is_past(attempt) => Step::Acknowledge,
            (Write::Applied, None) => Self::begin_split(state),
        }
    }
}
