//! Committing chunks, and closing the tally they belong to.
//!
//! Any process that sees a tally to be folded or an attempt to be announced does so, whether its own conditional write
//! won or lost: the process that saw it first may have died right after. What waits for a commit is sent by the run
//! that committed, or by the next delivery of its message.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::model::ids::{JobGuid, Owner};
use crate::model::job::Job;
use crate::model::messages::{ChunkMessage, CompletionMessage, DeliveryMode};
use crate::model::tally::{ChunkAddress, Commit, Committed, Counts, Mark, Tally};
use crate::ports::{Clock, CommitAnswer, JobStore, PortError, Queue};
use crate::progress::commit::window::ConcurrencyWindow;

/// Commits chunks, folds closed tallies into the totals, and announces a complete attempt.
#[derive(Clone)]
pub struct ChunkCommitter {
    pub jobs: Arc<dyn JobStore>,
    /// Sends the next chunk or tally that waits for a commit.
    pub window: ConcurrencyWindow,
    pub completions: Arc<dyn Queue<CompletionMessage>>,
    pub clock: Arc<dyn Clock>,
}

/// Number of tallies that are closed at once.
const TALLIES_AT_ONCE: usize = 8;

const COMMITTING: &str = "committing chunks";

/// Results of the commits of chunks of one tally.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CommitEnds {
    /// Result of each of them. The last one has the newest tally.
    ends: Vec<(ChunkAddress, Committed)>,
    /// Number of them that count from now on. They share one write, the last one.
    won: u32,
}

impl CommitEnds {
    /// Result of this commit. A second run's commit of the same chunk need not have been written to be lost.
    pub fn end_of(&self, commit: &Commit) -> Option<Committed> {
        let (_, end) = self.ends.iter().find(|(chunk, _)| *chunk == commit.chunk)?;
        match end.tally().mark(commit.chunk.index) {
            Some(mark) if mark.run != commit.mark.run => Some(Committed::Lost(end.tally().clone())),
            _ => Some(end.clone()),
        }
    }
}

impl ChunkCommitter {
    /// Commits a message's chunk if it is not committed yet, then takes the steps that follow a commit.
    ///
    /// # Errors
    /// `NotFound` if the tally does not exist; `Unavailable`: call again, the store recognises the commit by its run.
    pub async fn commit(&self, message: &ChunkMessage, mark: Mark, counts: Counts) -> Result<Committed, PortError> {
        let mut written = self.write(message.job_guid, vec![self.commit_of(message, mark, counts)]).await?;
        self.follow(message, &written).await?;
        let end = written.ends.pop().map(|(_, committed)| committed);
        end.ok_or_else(|| PortError::invalid(COMMITTING, "the write says nothing about the chunk"))
    }

    pub fn commit_of(&self, message: &ChunkMessage, mark: Mark, counts: Counts) -> Commit {
        debug_assert_eq!(
            counts.sum(),
            u64::from(message.chunk.items),
            "a commit accounts for every item of its message"
        );
        Commit { chunk: message.address, mark, counts, bytes: message.weight(), at: self.clock.now() }
    }

    /// Commits those of the chunks that are not committed yet. They are of one tally, and share one write. If the tally
    /// refuses it, because some of them are accounted for, the others share the next one.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). Some of the chunks may be committed.
    pub async fn write(&self, job: JobGuid, mut commits: Vec<Commit>) -> Result<CommitEnds, PortError> {
        let mut written = CommitEnds::default();
        while !commits.is_empty() {
            match self.jobs.commit(job, &commits).await? {
                CommitAnswer::Applied(tally) => {
                    written.won = u32::try_from(commits.len()).unwrap_or(u32::MAX);
                    let won = commits.drain(..).map(|commit| (commit.chunk, Committed::Won(tally.clone())));
                    written.ends.extend(won);
                }
                CommitAnswer::Refused(tally) => {
                    let before = commits.len();
                    commits.retain(|commit| match commit.refused_by(&tally) {
                        Some(committed) => {
                            written.ends.push((commit.chunk, committed));
                            false
                        }
                        None => true,
                    });
                    if commits.len() == before {
                        return Err(PortError::invalid(COMMITTING, "the tally refuses chunks that it does not count"));
                    }
                }
            }
        }
        Ok(written)
    }

    /// Takes the steps that follow these commits of one tally. The message is that of one of the chunks. If it has a
    /// window, it is that of all of them.
    pub async fn follow(&self, message: &ChunkMessage, written: &CommitEnds) -> Result<(), PortError> {
        let Some(tally) = written.ends.last().map(|(_, committed)| committed.tally()) else { return Ok(()) };
        if written.won > 0 {
            self.window.send_next(message, DeliveryMode::Fresh, true).await?;
            if tally.is_half_done_by(written.won) {
                self.send_next_tally(message, tally, DeliveryMode::Fresh).await?;
            }
        }
        match written.ends.iter().any(|(_, committed)| matches!(committed, Committed::WonBefore(_))) {
            true => self.settle(message, tally, true).await,
            false => self.close(message.job_guid, &message.owner, tally).await,
        }
    }

    /// Returns the chunk's tally if the chunk is accounted for.
    ///
    /// # Errors
    /// `NotFound` if the tally does not exist.
    pub async fn committed(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Tally>, PortError> {
        let tally = self.jobs.tally(job, chunk.attempt, chunk.tally).await?;
        Ok(tally.accounts_for(chunk.index).then_some(tally))
    }

    /// Repeats the steps that follow a commit: the run that committed may have died before it took them. Only if it may
    /// have been a run of this very message (`is_same`), the tally that waits for this one is sent again, and a chunk
    /// beyond a gap. Otherwise redundant messages would cause others.
    pub async fn settle(&self, message: &ChunkMessage, tally: &Tally, is_same: bool) -> Result<(), PortError> {
        self.window.send_next(message, DeliveryMode::Recovered, is_same).await?;
        if is_same && tally.is_half_done() && !tally.next_sent {
            self.send_next_tally(message, tally, DeliveryMode::Recovered).await?;
        }
        self.close(message.job_guid, &message.owner, tally).await
    }

    /// Sends the chunks of the tally that waits for this one, and notes it.
    async fn send_next_tally(
        &self,
        message: &ChunkMessage,
        tally: &Tally,
        mode: DeliveryMode,
    ) -> Result<(), PortError> {
        if message.max_concurrency.is_some() {
            // Its window is one of chunks.
            return Ok(());
        }
        let Some((job, next)) = self.window.next_tally(message.job_guid, tally).await? else { return Ok(()) };
        self.window.send_tally(&job, &next, mode).await?;
        self.jobs.note_next_sent(message.job_guid, tally.attempt, tally.number).await
    }

    /// Folds a tally if it is closed, and announces the attempt if this was its last tally.
    pub async fn close(&self, job: JobGuid, owner: &Owner, tally: &Tally) -> Result<(), PortError> {
        if !tally.is_closed() {
            return Ok(());
        }
        let totals = self.jobs.fold(job, tally).await?;
        if totals.is_complete() {
            let (job_guid, attempt, owner) = (job, totals.attempt, owner.clone());
            self.completions.send(&[CompletionMessage { job_guid, attempt, composing: None, owner }]).await?;
        }
        Ok(())
    }

    /// Closes tallies of a stopped job: their uncommitted chunks count as skipped.
    pub async fn close_without_rest(&self, job: &Job, tallies: &[Tally]) -> Result<(), PortError> {
        let closed: Vec<_> = tallies.iter().map(|tally| self.skip_rest(job, tally.clone())).collect();
        stream::iter(closed).buffer_unordered(TALLIES_AT_ONCE).try_collect().await
    }

    async fn skip_rest(&self, job: &Job, mut tally: Tally) -> Result<(), PortError> {
        while !tally.is_closed() {
            tally = self.jobs.skip_rest(job.job_guid, &tally, self.clock.now()).await?;
        }
        self.close(job.job_guid, &job.owner, &tally).await
    }
}
