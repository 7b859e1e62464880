//! Commits of chunks, and the chunks that a commit or a resend sends.
//!
//! | module | step |
//! |---|---|
//! | [`committer`] | commits chunks and closes their tally |
//! | [`joint_commits`] | one write for the chunks of an invocation that share a tally |
//! | [`window`] | bounds how many chunks of a job have messages |
//! | [`resend`] | resends the chunks that are not committed |
//! | [`split_end`] | ends the split: no further tally is counted |

pub mod committer;
pub mod joint_commits;
pub mod resend;
pub mod split_end;
pub mod window;

use std::sync::Arc;

use crate::wiring::{Missing, Ports};
use committer::ChunkCommitter;
use split_end::SplitEnd;
use window::ConcurrencyWindow;

/// The shared steps over one set of ports.
#[derive(Clone)]
pub struct JobSteps {
    /// Commits chunks and closes tallies. Its window bounds how many chunks of a job have messages.
    pub committer: ChunkCommitter,
    pub split_end: SplitEnd,
}

impl JobSteps {
    pub fn of(ports: &Ports) -> Result<Self, Missing> {
        let (jobs, completions, clock) = (ports.jobs.get()?, ports.completions.get()?, ports.clock.get()?);
        let chunks = ports.chunks.get()?.items.clone();
        let window = ConcurrencyWindow { jobs: Arc::clone(&jobs), objects: ports.objects.get()?, chunks };
        let split_end =
            SplitEnd { jobs: Arc::clone(&jobs), completions: Arc::clone(&completions), clock: Arc::clone(&clock) };
        let committer = ChunkCommitter { jobs, window, completions, clock };
        Ok(Self { committer, split_end })
    }
}
