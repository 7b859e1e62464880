//! The window: bounds the chunks of a job that have messages at once.
//!
//! With `maxConcurrency` W, chunk n may start once chunks n − W, n − 2W and so on are committed: so of the chunks with
//! the same number modulo W one has a message. Unless W has changed, they are committed in their order, and n − W is
//! the last.
//!
//! Any other job may have so many *tallies ahead* as its row says: the chunks of tally n are sent once the tally that
//! many places before it is half done. So the messages of a big job never fill a queue, and a small job behind it waits
//! for a few tallies, not for a whole file. Half, because a few chunks that are slow, or fail again and again, then
//! hold up no other.
//!
//! In both chains a splitter and a committer may miss each other, so each writes first and reads then. The splitter
//! counts the tally, then looks at the chunk or tally before. The committer commits, then looks whether the next tally
//! is counted.

use std::sync::Arc;

use crate::items::chunk_index;
use crate::model::ids::JobGuid;
use crate::model::job::Job;
use crate::model::messages::{ChunkMessage, DeliveryMode};
use crate::model::tally::Tally;
use crate::ports::{JobStore, Objects, PortError, Queue};
use crate::progress::counters::Counters;

/// Decides which chunks may start, and sends the next one.
#[derive(Clone)]
pub struct ConcurrencyWindow {
    pub jobs: Arc<dyn JobStore>,
    /// The chunk indexes.
    pub objects: Arc<dyn Objects>,
    /// The items queue.
    pub chunks: Arc<dyn Queue<ChunkMessage>>,
}

impl ConcurrencyWindow {
    /// Filters the messages of a tally to those inside the window of `maxConcurrency`.
    ///
    /// The tally must be counted first. Then a run that later commits what they wait for finds the tally counted and
    /// sends the messages itself.
    pub async fn admit(&self, job: &Job, messages: Vec<ChunkMessage>) -> Result<Vec<ChunkMessage>, PortError> {
        let (Some(width), Some(number)) = (job.max_concurrency, messages.first().map(|first| first.address.tally))
        else {
            return Ok(messages);
        };
        let mut before: Option<Tally> = None;
        let mut admitted = Vec::with_capacity(messages.len());
        for message in messages {
            let Some(awaited) = message.address.before(width) else {
                admitted.push(message);
                continue;
            };
            let tally = match before.take().filter(|tally| tally.number == awaited.tally) {
                Some(tally) => tally,
                None => self.jobs.tally(message.job_guid, awaited.attempt, awaited.tally).await?,
            };
            if tally.accounts_for(awaited.index) {
                admitted.push(message);
            }
            before = Some(tally);
        }
        if job.may_have_gaps() && !admitted.is_empty() {
            let counters = Counters::read_first(&*self.jobs, job, number + 1).await?;
            let heads = counters.heads(width);
            admitted.retain(|message| heads.contains(&message.address.number()));
        }
        Ok(admitted)
    }

    /// True if the chunks of a tally may be sent now, as far as other tallies are concerned. As for
    /// [`admit`](Self::admit), the tally must be counted first.
    pub async fn is_due(&self, job: &Job, attempt: u32, number: u32) -> Result<bool, PortError> {
        match job.awaited_tally(number) {
            None => Ok(true),
            Some(awaited) => Ok(self.jobs.tally(job.job_guid, attempt, awaited).await?.is_half_done()),
        }
    }

    /// Sends the chunk W places after a committed one, with the W of the job row. If that chunk's tally is not counted
    /// yet, the splitter sends it: it counts the tally first and then looks at this chunk. It is not sent if a resend
    /// sends it. Of a stopped job only the winner of the commit sends it (`Fresh`): later a run of it may be at work,
    /// and a second message would skip what that run has processed.
    ///
    /// If W has changed, that chunk may be committed: then it is sent which is next in turn, if a run of this very
    /// message has committed (`is_same`). Otherwise each redundant message would cause another one.
    pub async fn send_next(
        &self,
        message: &ChunkMessage,
        delivery_mode: DeliveryMode,
        is_same: bool,
    ) -> Result<(), PortError> {
        if message.max_concurrency.is_none() {
            return Ok(());
        }
        let job = self.jobs.job(message.job_guid).await?;
        let Some(width) = job.max_concurrency else { return Ok(()) };
        // A run from before another W may have committed out of turn. The resend, or the run before it in turn, sends
        // the next.
        if job.drops(message)
            || job.is_past(message.address.attempt)
            || (job.is_stopped() && delivery_mode != DeliveryMode::Fresh)
        {
            return Ok(());
        }
        let (mut next, mut known) = (message.address.after(width), None::<Tally>);
        let tally = loop {
            if next.tally >= job.split.tallies || !job.sends_on_commit(next.tally) {
                return Ok(());
            }
            let tally = match known.take().filter(|tally| tally.number == next.tally) {
                Some(tally) => tally,
                None => self.jobs.tally(job.job_guid, next.attempt, next.tally).await?,
            };
            match tally.accounts_for(next.index) {
                false => break tally,
                true if is_same && job.may_have_gaps() => next = next.after(width),
                true => return Ok(()),
            }
            known = Some(tally);
        };
        if u32::from(next.index) >= tally.expected {
            return Ok(());
        }
        let index = chunk_index::of(&*self.objects, job.job_guid, &tally).await?;
        match index.message(&job, next, delivery_mode) {
            Some(message) => self.chunks.send(&[message]).await,
            None => Ok(()),
        }
    }

    /// The job, and the tally that waits for this one. `None` if none does, or if it is not counted yet: then the
    /// splitter looks at this one when it has counted it. None either if a resend sends it, or if the job is stopped:
    /// others may have sent some of its chunks, and the sweep closes it after the grace.
    pub async fn next_tally(&self, job: JobGuid, half_done: &Tally) -> Result<Option<(Job, Tally)>, PortError> {
        let (job, attempt) = (self.jobs.job(job).await?, half_done.attempt);
        match job.waiting_tally(half_done.number) {
            Some(number)
                if !job.is_past(attempt)
                    && !job.is_stopped()
                    && job.sends_on_commit(number)
                    && number < job.split.tallies =>
            {
                let next = self.jobs.tally(job.job_guid, attempt, number).await?;
                Ok(Some((job, next)))
            }
            _ => Ok(None),
        }
    }

    /// Sends the chunks of a tally. As `Fresh` only if none of them has been committed: otherwise others have sent some
    /// of them.
    pub async fn send_tally(&self, job: &Job, tally: &Tally, delivery_mode: DeliveryMode) -> Result<(), PortError> {
        let delivery_mode = if tally.done > 0 { DeliveryMode::Recovered } else { delivery_mode };
        let index = chunk_index::of(&*self.objects, job.job_guid, tally).await?;
        self.chunks.send(&index.missing(job, tally, delivery_mode)).await
    }
}
