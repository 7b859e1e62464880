//! How a resumed job gets the messages again that were dropped while it was paused.

use crate::programs::Programs;
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

    /// Where the missing chunks of a resumed job begin and end.
    pub fn first_to_resend(&self, state: &State, attempt: usize, from: u8) -> Resend {
        let job = &state.rows.job;
        let end = (job.tallies * self.chunks_per_tally).min(self.chunk_count(attempt));
        Resend { chunk: from * self.chunks_per_tally, end, from, pauses: job.pauses }
    }

    /// Sends a chunk of a resumed job if it is missing, or folds its tally if that is closed. The strong reads belong to the
    /// same step, because a chunk that is accounted for stays so.
    pub fn resend(&self, state: &mut State, attempt: usize, resend: Resend) -> Step {
        let Resend { chunk, end, .. } = resend;
        if chunk >= end {
            return Step::NoteResent(resend, None);
        }
        let number = self.address(chunk).0;
        let behind = ((number + 1) * self.chunks_per_tally).min(end);
        let rows = &state.rows;
        if rows.tally(attempt, number).is_some_and(Tally::is_closed) {
            let next = Resend { chunk: behind, ..resend };
            return match rows.attempts[attempt].totals.closed[usize::from(number)] {
                0 => Step::Fold(number, After::Resend(next)),
                _ => Step::Resend(next),
            };
        }
        if !self.is_accounted_for(state, attempt, chunk) && self.may_fly(state, attempt, chunk) {
            state.queues.send(Message { attempt, work: Work::Chunk(chunk), again: true });
        }
        let next = Resend { chunk: chunk + 1, ..resend };
        if next.chunk == behind { Step::NoteResent(next, Some(number + 1)) } else { Step::Resend(next) }
    }

    pub fn note_resent(&self, state: &mut State, attempt: usize, resend: Resend, next: Option<u8>) -> Step {
        let noted = state.rows.note_resent(resend.pauses, resend.from, next);
        match (noted, next) {
            (Write::Refused, _) => Step::Acknowledge,
            (Write::Applied, Some(next)) => Step::Resend(Resend { from: next, ..resend }),
            (Write::Applied, None) if state.rows.is_past(attempt) => Step::Acknowledge,
            (Write::Applied, None) => Self::begin_split(state),
        }
    }
}
