//! Invariants of tallies that wait for one another: a run that makes one half done does not end before it has sent
//! the one that waits.

use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::tally::{ChunkAddress, Commit};
use rowmill_core::ports::Jobs;

use super::checks::{Checked, ensure, now};
use super::invariants::Invariants;
use super::trace::{chunk_name, job_name};

/// A tally that an invocation must send before it ends.
#[derive(Clone, Copy, Debug)]
pub struct Owed {
    job: JobGuid,
    attempt: u32,
    tally: u32,
    /// The epoch of the job: in a later one somebody else may send it.
    epoch: u32,
}

impl Invariants {
    /// This invocation has committed these chunks of a tally. If that made the tally half done, and the one that waits
    /// for it was counted by then, the invocation must send the latter.
    pub fn owes(&self, task: u64, job: JobGuid, commits: &[Commit]) -> Checked {
        let row = now(self.store.job(job)).map_err(|error| error.to_string())?;
        let mut known = self.known();
        let Some(record) = known.jobs.get(&job) else { return Ok(()) };
        let Some(ChunkAddress { attempt, tally, .. }) = commits.first().map(|commit| commit.chunk) else {
            return Ok(());
        };
        let Some(half_done) = record.tallies.get(&(attempt, tally)) else { return Ok(()) };
        let is_just =
            half_done.is_half_done() && half_done.done().saturating_sub(commits.len()) * 2 < half_done.chunks.len();
        let Some(tally) = record.ahead.map(|ahead| tally + ahead).filter(|next| *next < row.split.tallies) else {
            return Ok(());
        };
        if is_just && !row.is_stopped() && row.sends_on_commit(tally) {
            known.owed.entry(task).or_default().push(Owed { job, attempt, tally, epoch: row.epoch });
        }
        Ok(())
    }

    /// This invocation has succeeded: what it owed was sent, unless its job has been paused or stopped or has ended
    /// since.
    pub fn has_sent(&self, task: u64) -> Checked {
        let owed = self.known().owed.remove(&task).unwrap_or_default();
        owed.into_iter().try_for_each(|owed| self.was_sent(owed))
    }

    fn was_sent(&self, owed: Owed) -> Checked {
        let row = now(self.store.job(owed.job)).map_err(|error| error.to_string())?;
        if row.is_past(owed.attempt) || row.epoch != owed.epoch || row.is_stopped() {
            return Ok(());
        }
        let known = self.known();
        let record = known.jobs.get(&owed.job).ok_or("an unknown job")?;
        let next = record.tallies.get(&(owed.attempt, owed.tally)).ok_or("a counted tally without a chunk index")?;
        let chunks = (0..).zip(&next.committed).filter(|(_, committed)| committed.is_none());
        let mut chunks = chunks.map(|(index, _)| ChunkAddress { attempt: owed.attempt, tally: owed.tally, index });
        let unsent = chunks.find(|chunk| !record.sent.contains(chunk)).filter(|_| !next.is_closed());
        ensure(unsent.is_none(), || {
            let chunk = unsent.map(chunk_name).unwrap_or_default();
            format!("{} {chunk} was never sent, although the tally that it waited for is half done", job_name(owed.job))
        })
    }
}
