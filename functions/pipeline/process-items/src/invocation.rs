//! State that the chunks of one invocation share.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::progress::commit::committer::ChunkCommitter;
use rowmill_core::progress::commit::joint_commits::JointCommits;

use crate::neighbours::Neighbours;
use crate::open_chunk::ChunkPorts;
use crate::watch::JobWatch;

pub struct Invocation {
    /// The jobs as this process last read them.
    pub watch: JobWatch,
    /// Commits chunks of the same tally together.
    pub commits: JointCommits,
    /// Chunks that share a read.
    pub neighbours: Neighbours,
}

impl Invocation {
    /// The invocation that received these messages, each with whether it was delivered before. It reads a job again if
    /// its last read is older than `max_age`.
    pub fn new<'m>(
        ports: &ChunkPorts,
        committer: &ChunkCommitter,
        max_age: Duration,
        received: impl IntoIterator<Item = (&'m ChunkMessage, bool)>,
    ) -> Self {
        let received: Vec<_> = received.into_iter().collect();
        let messages = received.iter().map(|(message, _)| *message);
        let first_deliveries = received.iter().filter(|(_, redelivered)| !redelivered).map(|(message, _)| *message);
        Self {
            watch: JobWatch::new(Arc::clone(&ports.jobs), Arc::clone(&ports.clock), max_age),
            commits: JointCommits::new(committer, messages),
            neighbours: Neighbours::of(first_deliveries),
        }
    }
}
