//! What every function does that brings the accounts of a job forward: a chunk is committed, a tally that is closed is
//! folded, an attempt that is complete is announced.
//!
//! Each step is done by whoever sees that it is due, winner and loser of a condition alike, since the one who saw it first
//! may have died right after.

use std::sync::Arc;

use crate::chunk_index::ChunkIndex;
use crate::ids::{JobGuid, Owner, RunId};
use crate::job::Job;
use crate::messages::{ChunkMessage, CompletionMessage, Handling};
use crate::ports::{Clock, Committed, JobStore, Objects, PortError, Queue, WriteLost};
use crate::tally::{ChunkAddress, Commit, Counts, Mark, Tally};

/// The ports that accounting goes through.
#[derive(Clone)]
pub struct Accounts {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// Where the chunk indexes are.
    pub objects: Arc<dyn Objects>,
    /// Where the next chunk of a job with `maxConcurrency` goes.
    pub chunks: Arc<dyn Queue<ChunkMessage>>,
    /// Where a complete attempt is announced.
    pub completions: Arc<dyn Queue<CompletionMessage>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl Accounts {
    /// Commits the chunk of a message, unless that has been done, and does what is due then.
    ///
    /// # Errors
    /// `NotFound` where there is no such tally; `Unavailable`: try again, the commit is recognised by its run.
    pub async fn commit(&self, message: &ChunkMessage, mark: Mark, counts: Counts) -> Result<Committed, PortError> {
        debug_assert_eq!(
            counts.sum(),
            u64::from(message.chunk.items),
            "a commit accounts for every item of its message"
        );
        let commit = Commit { chunk: message.address, mark, counts, bytes: message.weight(), at: self.clock.now() };
        let committed = self.jobs.commit(message.job_guid, &commit).await?;
        if let Committed::Won(_) = committed {
            self.send_next(message, Handling::Fresh).await?;
        }
        self.close(message.job_guid, &message.owner, committed.tally()).await?;
        Ok(committed)
    }

    /// The tally of this chunk, if the chunk is accounted for on it.
    ///
    /// # Errors
    /// `NotFound` where there is no such tally.
    pub async fn committed(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Tally>, PortError> {
        let tally = self.jobs.tally(job, chunk.attempt, chunk.tally).await?;
        Ok((tally.mark(chunk.index).is_some() || tally.is_closed()).then_some(tally))
    }

    /// Does what is due after a commit once more: whoever made it may have died before.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn settle(&self, message: &ChunkMessage, tally: &Tally) -> Result<(), PortError> {
        self.send_next(message, Handling::Recovered).await?;
        self.close(message.job_guid, &message.owner, tally).await
    }

    /// Folds a tally if it is closed, and announces the attempt if it was the last one.
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

    /// Closes a tally of a stopped job without its missing chunks.
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

    /// Ends the split of a job under the lease of `holder`: there will be no more tallies, because all items are dispatched
    /// (`at_end`) or because the job was stopped. Whether this run ended it, or found it ended.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn end_split(&self, job: &Job, holder: RunId, at_end: bool) -> Result<bool, PortError> {
        match self.jobs.finish_split(job.job_guid, job.attempt, holder, at_end, self.clock.now()).await {
            Ok(job) => self.announce_split(&job).await?,
            Err(WriteLost::Condition(now)) if now.split.done && !now.is_past(job.attempt) => {
                self.announce_split(&now).await?;
            }
            Err(WriteLost::Condition(_)) => return Ok(false),
            Err(WriteLost::Port(error)) => return Err(error),
        }
        Ok(true)
    }

    /// Tells the totals how many tallies there are; if they are all closed already, nobody else will announce it.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn announce_split(&self, job: &Job) -> Result<(), PortError> {
        let totals = self.jobs.set_final_tallies(job.job_guid, job.attempt, job.split.tallies).await?;
        if totals.is_complete() {
            self.completions.send(&[CompletionMessage::of(job)]).await?;
        }
        Ok(())
    }

    /// Those of these messages whose turn it is: of a job with `maxConcurrency` W, the ones whose chunk W places before
    /// is done. To be asked only when their tally is counted: whoever commits such a chunk later finds it counted, and
    /// sends the message itself.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn in_turn(&self, messages: Vec<ChunkMessage>) -> Result<Vec<ChunkMessage>, PortError> {
        let mut before: Option<Tally> = None;
        let mut in_turn = Vec::with_capacity(messages.len());
        for message in messages {
            let Some(awaited) = message.max_concurrency.and_then(|width| message.address.before(width)) else {
                in_turn.push(message);
                continue;
            };
            let tally = match before.take().filter(|tally| tally.number == awaited.tally) {
                Some(tally) => tally,
                None => self.jobs.tally(message.job_guid, awaited.attempt, awaited.tally).await?,
            };
            if tally.mark(awaited.index).is_some() || tally.is_closed() {
                in_turn.push(message);
            }
            before = Some(tally);
        }
        Ok(in_turn)
    }

    /// Of a job with `maxConcurrency` W, this chunk's end lets the chunk W places further begin. If its tally is not
    /// counted yet, the splitter, which counts it first and looks at this chunk then, sends it.
    async fn send_next(&self, message: &ChunkMessage, handling: Handling) -> Result<(), PortError> {
        let Some(next) = message.max_concurrency.map(|width| message.address.after(width)) else { return Ok(()) };
        let job = self.jobs.job(message.job_guid).await?;
        if job.is_past(next.attempt) || next.tally >= job.split.tallies {
            return Ok(());
        }
        let tally = self.jobs.tally(job.job_guid, next.attempt, next.tally).await?;
        if u32::from(next.index) >= tally.expected || tally.mark(next.index).is_some() || tally.is_closed() {
            return Ok(());
        }
        let index = ChunkIndex::of(&*self.objects, job.job_guid, &tally).await?;
        match index.message(job.job_guid, &job.owner, next, handling) {
            Some(message) => self.chunks.send(&[message]).await,
            None => Ok(()),
        }
    }
}
