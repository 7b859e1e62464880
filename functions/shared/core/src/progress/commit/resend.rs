//! Resends the chunks that are not committed: for the sweep after a crash, and for a job that is resumed.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::items::chunk_index;
use crate::model::job::Job;
use crate::model::messages::{ChunkMessage, DeliveryMode};
use crate::model::tally::Tally;
use crate::ports::{PortError, Queue};
use crate::progress::JobSteps;
use crate::progress::commit::committer::ChunkCommitter;
use crate::progress::commit::window::ConcurrencyWindow;
use crate::wiring::{Missing, Ports};

const CHECKPOINTS_AT_ONCE: usize = 16;

/// Sends missing chunks. Every receiver accepts a message any number of times, so a redundant one costs little.
#[derive(Clone)]
pub struct ChunkResender {
    pub isolated: Arc<dyn Queue<ChunkMessage>>,
    /// Closes tallies. Its window bounds how many chunks have messages.
    pub committer: ChunkCommitter,
}

impl ChunkResender {
    pub fn of(ports: &Ports) -> Result<Self, Missing> {
        let isolated = ports.chunks.get()?.isolated.clone();
        Ok(Self { isolated, committer: JobSteps::of(ports)?.committer })
    }

    /// Sends the chunks of a tally that are not committed and lie inside the concurrency window, or takes the steps
    /// that follow the last commit if the tally is closed. Returns how many chunks it sent.
    pub async fn bring_forward(&self, job: &Job, tally: &Tally) -> Result<u64, PortError> {
        if tally.is_closed() {
            self.committer.close(job.job_guid, &job.owner, tally).await?;
            return Ok(0);
        }
        let ConcurrencyWindow { jobs, objects, chunks: items } = &self.committer.window;
        if !self.committer.window.is_due(job, tally.attempt, tally.number).await? {
            return Ok(0);
        }
        let index = chunk_index::of(&**objects, job.job_guid, tally).await?;
        let (mut chunks, mut isolated) = (Vec::new(), Vec::new());
        let admitted = self.committer.window.admit(job, index.missing(job, tally, DeliveryMode::Recovered)).await?;
        let with_checkpoint = async |message: ChunkMessage| {
            let checkpoint = jobs.checkpoint(job.job_guid, message.address).await?;
            Ok::<_, PortError>((message, checkpoint))
        };
        let mut read = stream::iter(admitted).map(with_checkpoint).buffered(CHECKPOINTS_AT_ONCE);
        while let Some((message, checkpoint)) = read.try_next().await? {
            match checkpoint {
                Some(checkpoint) if checkpoint.isolated => {
                    isolated.push(ChunkMessage { delivery_mode: DeliveryMode::Isolated, ..message });
                }
                _ => chunks.push(message),
            }
        }
        items.send(&chunks).await?;
        self.isolated.send(&isolated).await?;
        Ok((chunks.len() + isolated.len()) as u64)
    }
}
