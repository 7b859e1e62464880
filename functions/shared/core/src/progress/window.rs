//! The concurrency window of a job with `maxConcurrency` W: chunk n may start once chunk n − W is committed.

use std::sync::Arc;

use crate::items::chunk_index;
use crate::model::messages::{ChunkMessage, DeliveryMode};
use crate::model::tally::Tally;
use crate::ports::{JobStore, Objects, PortError, Queue};

/// Decides which chunks may start, and sends the next one.
#[derive(Clone)]
pub struct ConcurrencyWindow {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// The chunk indexes.
    pub objects: Arc<dyn Objects>,
    /// The items queue.
    pub chunks: Arc<dyn Queue<ChunkMessage>>,
}

impl ConcurrencyWindow {
    /// Filters to the messages inside the job's concurrency window.
    ///
    /// The tally of the messages must be counted first. Then a run that commits an awaited chunk later finds the tally
    /// counted and sends the message itself.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn admit(&self, messages: Vec<ChunkMessage>) -> Result<Vec<ChunkMessage>, PortError> {
        let mut before: Option<Tally> = None;
        let mut admitted = Vec::with_capacity(messages.len());
        for message in messages {
            let Some(awaited) = message.max_concurrency.and_then(|width| message.address.before(width)) else {
                admitted.push(message);
                continue;
            };
            let tally = match before.take().filter(|tally| tally.number == awaited.tally) {
                Some(tally) => tally,
                None => self.jobs.tally(message.job_guid, awaited.attempt, awaited.tally).await?,
            };
            if tally.mark(awaited.index).is_some() || tally.is_closed() {
                admitted.push(message);
            }
            before = Some(tally);
        }
        Ok(admitted)
    }

    /// Sends the chunk W places after a committed one. If that chunk's tally is not counted yet, the splitter sends it:
    /// it counts the tally first and then looks at this chunk.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn send_next(&self, message: &ChunkMessage, delivery_mode: DeliveryMode) -> Result<(), PortError> {
        let Some(next) = message.max_concurrency.map(|width| message.address.after(width)) else { return Ok(()) };
        let job = self.jobs.job(message.job_guid).await?;
        if job.is_past(next.attempt) || next.tally >= job.split.tallies {
            return Ok(());
        }
        let tally = self.jobs.tally(job.job_guid, next.attempt, next.tally).await?;
        if u32::from(next.index) >= tally.expected || tally.mark(next.index).is_some() || tally.is_closed() {
            return Ok(());
        }
        let index = chunk_index::of(&*self.objects, job.job_guid, &tally).await?;
        match index.message(&job, next, delivery_mode) {
            Some(message) => self.chunks.send(&[message]).await,
            None => Ok(()),
        }
    }
}
