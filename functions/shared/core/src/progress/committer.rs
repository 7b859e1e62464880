//! Committing a chunk, and closing the tally it belongs to.
//!
//! Any process that sees a tally to be folded or an attempt to be announced does so, whether its own conditional write won or
//! lost: the process that saw it first may have died right after. What waits for a commit is sent by the run that committed,
//! or by the next delivery of its message.

use std::sync::Arc;

use crate::model::ids::{JobGuid, Owner};
use crate::model::job::Job;
use crate::model::messages::{ChunkMessage, CompletionMessage, DeliveryMode};
use crate::model::tally::{ChunkAddress, Commit, Counts, Mark, Tally};
use crate::ports::{Clock, Committed, JobStore, PortError, Queue};
use crate::progress::window::ConcurrencyWindow;

/// Commits chunks, folds closed tallies into the totals, and announces a complete attempt.
#[derive(Clone)]
pub struct ChunkCommitter {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// Sends the next chunk or tally that waits for a commit.
    pub window: ConcurrencyWindow,
    /// The completions queue.
    pub completions: Arc<dyn Queue<CompletionMessage>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl ChunkCommitter {
    /// Commits a message's chunk if it is not committed yet, then takes the steps that follow a commit.
    ///
    /// # Errors
    /// `NotFound` if the tally does not exist; `Unavailable`: call again, the store recognises the commit by its run.
    pub async fn commit(&self, message: &ChunkMessage, mark: Mark, counts: Counts) -> Result<Committed, PortError> {
        debug_assert_eq!(
            counts.sum(),
            u64::from(message.chunk.items),
            "a commit accounts for every item of its message"
        );
        let commit = Commit { chunk: message.address, mark, counts, bytes: message.weight(), at: self.clock.now() };
        let committed = self.jobs.commit(message.job_guid, &commit).await?;
        match &committed {
            Committed::Won(tally) => {
                self.window.send_next(message, DeliveryMode::Fresh).await?;
                if tally.is_just_half_done() {
                    self.send_next_tally(message, tally, DeliveryMode::Fresh).await?;
                }
                self.close(message.job_guid, &message.owner, tally).await?;
            }
            Committed::WonBefore(tally) => self.settle(message, tally, true).await?,
            Committed::Lost(tally) => self.close(message.job_guid, &message.owner, tally).await?,
        }
        Ok(committed)
    }

    /// Returns the chunk's tally if the chunk is accounted for.
    ///
    /// # Errors
    /// `NotFound` if the tally does not exist.
    pub async fn committed(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Tally>, PortError> {
        let tally = self.jobs.tally(job, chunk.attempt, chunk.tally).await?;
        Ok((tally.mark(chunk.index).is_some() || tally.is_closed()).then_some(tally))
    }

    /// Repeats the steps that follow a commit: the run that committed may have died before it took them. Only if it may have
    /// been a run of this very message (`is_same`), the tally that waits for this one is sent again, or surplus messages
    /// would beget others.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn settle(&self, message: &ChunkMessage, tally: &Tally, is_same: bool) -> Result<(), PortError> {
        self.window.send_next(message, DeliveryMode::Recovered).await?;
        if is_same && tally.is_half_done() && !tally.next_sent {
            self.send_next_tally(message, tally, DeliveryMode::Recovered).await?;
        }
        self.close(message.job_guid, &message.owner, tally).await
    }

    async fn send_next_tally(
        &self,
        message: &ChunkMessage,
        tally: &Tally,
        mode: DeliveryMode,
    ) -> Result<(), PortError> {
        match message.max_concurrency {
            None => self.window.send_next_tally(message.job_guid, tally, mode).await,
            // Its window is one of chunks.
            Some(_) => Ok(()),
        }
    }

    /// Folds a tally if it is closed, and announces the attempt if this was its last tally.
    ///
    /// # Errors
    /// `Unavailable`.
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

    /// Closes a tally of a stopped job and counts its uncommitted chunks as skipped.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn close_without_rest(&self, job: &Job, number: u32) -> Result<(), PortError> {
        let mut tally = self.jobs.tally(job.job_guid, job.attempt, number).await?;
        while !tally.is_closed() {
            tally = self.jobs.skip_rest(job.job_guid, &tally, self.clock.now()).await?;
        }
        self.close(job.job_guid, &job.owner, &tally).await
    }
}
