//! Commits of the chunks of one invocation: those of the same tally share a write.
//!
//! A chunk that has ended waits a moment for the others of its tally. The last one of them writes for all; if it takes
//! too long, the one that has waited longest does. The wait delays no invocation, because an invocation lasts until its
//! last chunk has ended. A chunk of a job with a window does not wait, because the next chunk of the window waits for
//! it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::{Either, select};
use parking_lot::Mutex;

use super::committer::ChunkCommitter;
use crate::model::ids::JobGuid;
use crate::model::messages::ChunkMessage;
use crate::model::tally::{ChunkAddress, Commit, Committed, Counts, Mark};
use crate::ports::PortError;

/// Time a chunk waits for the others of its tally: short beside the second within which a client sees progress.
const WAIT: Duration = Duration::from_millis(100);

const COMMITTING: &str = "committing with other chunks";

/// The job, the attempt and the number of a tally.
type TallyPlace = (JobGuid, u32, u32);

/// The commits of one invocation.
pub struct JointCommits {
    committer: ChunkCommitter,
    groups: Mutex<HashMap<TallyPlace, Group>>,
}

/// The chunks of the invocation that are of one tally.
#[derive(Default)]
struct Group {
    /// Number of them that have neither asked for their commit nor ended without one.
    open: usize,
    /// Those that wait for their commit, in the order in which they asked.
    waiting: Vec<Waiting>,
}

struct Waiting {
    commit: Commit,
    /// Gets the end of the commit from the chunk that writes, or why the write failed.
    end: oneshot::Sender<Result<Committed, String>>,
}

impl JointCommits {
    /// The commits of an invocation that received these messages.
    pub fn new<'m>(committer: &ChunkCommitter, messages: impl IntoIterator<Item = &'m ChunkMessage>) -> Self {
        let mut groups: HashMap<TallyPlace, Group> = HashMap::new();
        for message in messages {
            groups.entry(place_of(message)).or_default().open += 1;
        }
        Self { committer: committer.clone(), groups: Mutex::new(groups) }
    }

    /// The seat of one of the messages. Its holder may commit the message's chunk, or leave without a commit.
    pub const fn seat<'a>(&'a self, message: &'a ChunkMessage) -> Seat<'a> {
        Seat { commits: self, message, has_asked: Mutex::new(false) }
    }

    /// Writes this commit and those of the others that wait. If the steps that follow fail, the next delivery of this
    /// message repeats them, so the others need no further delivery.
    async fn write(&self, message: &ChunkMessage, own: Commit, others: Vec<Waiting>) -> Result<Committed, PortError> {
        let mut commits = vec![own.clone()];
        for Waiting { commit, .. } in &others {
            // The same chunk may be in two messages.
            if commits.iter().all(|other| other.chunk != commit.chunk) {
                commits.push(commit.clone());
            }
        }
        let written = match self.committer.write(message.job_guid, commits).await {
            Ok(written) => written,
            Err(error) => {
                others.into_iter().for_each(|other| drop(other.end.send(Err(error.to_string()))));
                return Err(error);
            }
        };
        let followed = self.committer.follow(message, &written).await;
        for Waiting { commit, end } in others {
            // It may have been given up meanwhile.
            drop(end.send(written.end_of(&commit).ok_or_else(|| NO_END.to_owned())));
        }
        followed?;
        written.end_of(&own).ok_or_else(|| PortError::invalid(COMMITTING, NO_END))
    }
}

const NO_END: &str = "the write says nothing about the chunk";

/// The right to commit the chunk of a message together with others.
pub struct Seat<'a> {
    commits: &'a JointCommits,
    message: &'a ChunkMessage,
    has_asked: Mutex<bool>,
}

impl Seat<'_> {
    /// Commits the chunk with this mark and these counts, and takes the steps that follow.
    pub async fn commit(&self, mark: Mark, counts: Counts) -> Result<Committed, PortError> {
        let committer = &self.commits.committer;
        if self.message.max_concurrency.is_some() {
            return committer.commit(self.message, mark, counts).await;
        }
        let commit = committer.commit_of(self.message, mark, counts);
        let (end, mut ended) = oneshot::channel();
        if !self.ask(Waiting { commit: commit.clone(), end }) {
            // Those that are about to ask too need no timer.
            let_others_go_on().await;
            match select(ended, committer.clock.sleep(WAIT)).await {
                Either::Left((end, _)) => return received(end),
                Either::Right(((), still)) => ended = still,
            }
        }
        match self.take(&commit) {
            Some(others) => self.commits.write(self.message, commit, others).await,
            // Another chunk is writing.
            None => received(ended.await),
        }
    }

    /// Asks for the commit. Returns whether nobody is left to wait for.
    fn ask(&self, waiting: Waiting) -> bool {
        self.leave();
        let mut groups = self.commits.groups.lock();
        let group = groups.entry(place_of(self.message)).or_default();
        group.waiting.push(waiting);
        group.open == 0
    }

    /// Takes all that wait with this commit, without the commit itself. `None` if it has been taken.
    fn take(&self, own: &Commit) -> Option<Vec<Waiting>> {
        let mut groups = self.commits.groups.lock();
        let waiting = &mut groups.get_mut(&place_of(self.message))?.waiting;
        let place = waiting.iter().position(|other| other.commit == *own)?;
        waiting.remove(place);
        Some(std::mem::take(waiting))
    }

    /// Nobody need wait for this chunk any more.
    fn leave(&self) {
        let mut has_asked = self.has_asked.lock();
        if !std::mem::replace(&mut *has_asked, true)
            && let Some(group) = self.commits.groups.lock().get_mut(&place_of(self.message))
        {
            group.open = group.open.saturating_sub(1);
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Returns once every other task that can go on has done so.
async fn let_others_go_on() {
    let mut has_waited = false;
    poll_fn(|context| match std::mem::replace(&mut has_waited, true) {
        true => Poll::Ready(()),
        false => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

fn place_of(message: &ChunkMessage) -> TallyPlace {
    let ChunkAddress { attempt, tally, .. } = message.address;
    (message.job_guid, attempt, tally)
}

/// The end of a commit that another chunk has written.
fn received(end: Result<Result<Committed, String>, oneshot::Canceled>) -> Result<Committed, PortError> {
    match end {
        Ok(Ok(committed)) => Ok(committed),
        Ok(Err(why)) => Err(PortError::unavailable(COMMITTING, why)),
        Err(oneshot::Canceled) => Err(PortError::unavailable(COMMITTING, "the chunk that was to write was given up")),
    }
}
