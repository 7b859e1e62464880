//! Tells watchers about jobs that have changed.
//!
//! One batch of changes is one call. For each owner in it one query finds who watches. For each watched job the view is
//! read, which is at least as new as the changes, and goes to every watcher. A job has at most one `progress` a second:
//! if the last one is younger, the call waits for the rest of the second and reads the view then. So the last state is
//! always sent. If the process dies meanwhile, the stream delivers the batch again. The end of an attempt comes at
//! once.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use futures::future::join_all;
use rowmill_api::job::JobReader;
use rowmill_api::live::{LiveMessage, LiveMessageType};
use rowmill_core::callers::blocked::BlockCheck;
use rowmill_core::model::blocks::Principal;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::live::{ConnectionId, Watcher};
use rowmill_core::ports::{PortError, Subscriptions};
use rowmill_core::sending::live_sender::{LiveSender, SEND_BACKOFF, SEND_TRIES, Tried};
use tokio::sync::Semaphore;

use crate::limits::SENDS_AT_ONCE;
use crate::movement::{Change, Movement, movements};
use crate::pace::Memory;

/// The use case and the ports it works through.
pub struct Pusher {
    reader: JobReader,
    subscriptions: Arc<dyn Subscriptions>,
    blocked: BlockCheck,
    sender: LiveSender,
    memory: Memory,
    /// One permit for each message that is being sent.
    slots: Semaphore,
}

impl Pusher {
    pub fn new(
        reader: JobReader,
        subscriptions: Arc<dyn Subscriptions>,
        blocked: BlockCheck,
        sender: LiveSender,
    ) -> Self {
        let (memory, slots) = (Memory::default(), Semaphore::new(SENDS_AT_ONCE));
        Self { reader, subscriptions, blocked, sender, memory, slots }
    }

    /// Tells the watchers about these changes.
    ///
    /// # Errors
    /// Something could not be read, or nobody may be sent to: deliver the changes again. The watchers of other jobs
    /// have their messages by then, and get them again.
    pub async fn push(&self, changes: Vec<Change>) -> Result<(), PortError> {
        let (of_owners, unknown) = self.by_owner(movements(changes)).await;
        let pushed = of_owners.into_iter().map(|(owner, jobs)| async move { self.push_owner(&owner, jobs).await });
        first_error(unknown.into_iter().chain(join_all(pushed).await))
    }

    /// The movements of each owner, and the errors of jobs whose owner could not be read.
    async fn by_owner(
        &self,
        movements: BTreeMap<JobGuid, Movement>,
    ) -> (BTreeMap<Owner, Vec<(JobGuid, Movement)>>, Vec<Result<(), PortError>>) {
        let found = movements
            .into_iter()
            .map(|(job, movement)| async move { (job, self.owner(job, movement.owner.as_ref()).await, movement) });
        let (mut of_owners, mut errors) = (BTreeMap::<Owner, Vec<_>>::new(), Vec::new());
        for (job, owner, movement) in join_all(found).await {
            match owner {
                Ok(owner) => of_owners.entry(owner).or_default().push((job, movement)),
                // Deleted since: nobody can ask for it either.
                Err(PortError::NotFound) => {}
                Err(error @ PortError::Invalid { .. }) => unreadable(job, &error),
                Err(error) => errors.push(Err(error)),
            }
        }
        (of_owners, errors)
    }

    /// Whose job it is. A process reads that once for a job whose row it has not seen in the stream.
    async fn owner(&self, job: JobGuid, told: Option<&Owner>) -> Result<Owner, PortError> {
        if let Some(owner) = self.memory.owner(job) {
            return Ok(owner);
        }
        let owner = match told {
            Some(owner) => owner.clone(),
            None => self.reader.jobs.job(job).await?.owner,
        };
        self.memory.keep_owner(job, owner.clone());
        Ok(owner)
    }

    async fn push_owner(&self, owner: &Owner, jobs: Vec<(JobGuid, Movement)>) -> Result<(), PortError> {
        let watchers = self.watchers(owner).await?;
        let pushed = jobs.into_iter().map(|(job, movement)| {
            let watching: Vec<&ConnectionId> =
                watchers.iter().filter(|watcher| watcher.watches(job)).map(|watcher| &watcher.connection).collect();
            async move { if watching.is_empty() { Ok(()) } else { self.push_job(job, movement, watching).await } }
        });
        first_error(join_all(pushed).await)
    }

    /// The connections to send to. Those that have ended are hung up on, and all of an owner that is blocked.
    async fn watchers(&self, owner: &Owner) -> Result<Vec<Watcher>, PortError> {
        let watchers = self.subscriptions.watchers(owner).await?;
        if watchers.is_empty() {
            return Ok(watchers);
        }
        let (now, principal) = (self.reader.clock.now(), Principal::Owner(owner.clone()));
        let is_blocked = self.blocked.block(&principal).await?.is_some();
        let (ended, open): (Vec<_>, Vec<_>) =
            watchers.into_iter().partition(|watcher| is_blocked || watcher.until <= now);
        let closed = ended.iter().map(|Watcher { connection, .. }| async move {
            tracing::info!(connection.id = %connection, is_blocked, "live connection closed: its time is over");
            let _slot = self.slots.acquire().await;
            self.sender.give_up(connection).await
        });
        first_error(join_all(closed).await)?;
        Ok(open)
    }

    async fn push_job(&self, job: JobGuid, movement: Movement, to: Vec<&ConnectionId>) -> Result<(), PortError> {
        for ended in &movement.ended {
            let view = self.reader.show(ended).await?;
            self.fan_out(&LiveMessage::of_job(LiveMessageType::Ended, view), to.clone()).await?;
        }
        if !movement.moved {
            return Ok(());
        }
        let clock = &self.reader.clock;
        let wait = self.memory.wait(job, clock.now());
        if !wait.is_zero() {
            clock.sleep(wait).await;
        }
        let row = match self.reader.jobs.job(job).await {
            Ok(row) => row,
            Err(PortError::NotFound) => return Ok(()),
            Err(error @ PortError::Invalid { .. }) => {
                unreadable(job, &error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        // The change that ended it is on its way through the stream, or has passed: that is the message to send.
        if row.is_ended() {
            return Ok(());
        }
        let view = self.reader.show(&row).await?;
        self.memory.tell(job, clock.now());
        self.fan_out(&LiveMessage::of_job(LiveMessageType::Progress, view), to).await
    }

    /// Sends a message to these connections. First once to each; then those that failed again, so that a slow
    /// connection holds up no other one.
    async fn fan_out(&self, message: &LiveMessage, to: Vec<&ConnectionId>) -> Result<(), PortError> {
        let (text, mut open, mut results) = (message.text(), to, Vec::new());
        for tried in 1..=SEND_TRIES {
            let sent = join_all(open.iter().map(|id| async { (*id, self.try_send(id, &text).await) })).await;
            open.clear();
            for (id, sent) in sent {
                match sent {
                    Ok(Tried::Sent) => {}
                    Ok(Tried::Gone) => tracing::info!(connection.id = %id, "closed live connection removed"),
                    Ok(Tried::Failed(error)) => {
                        let error = &error as &dyn Error;
                        tracing::warn!(connection.id = %id, tried, error, "live message not sent");
                        open.push(id);
                    }
                    Err(error) => results.push(Err(error)),
                }
            }
            if open.is_empty() {
                return first_error(results);
            }
            if tried < SEND_TRIES {
                self.reader.clock.sleep(SEND_BACKOFF).await;
            }
        }
        for id in open {
            tracing::warn!(connection.id = %id, "live connection given up after {SEND_TRIES} failed messages");
            results.push(self.sender.give_up(id).await);
        }
        first_error(results)
    }

    async fn try_send(&self, to: &ConnectionId, text: &str) -> Result<Tried, PortError> {
        // The semaphore is never closed.
        let _slot = self.slots.acquire().await;
        self.sender.try_send(to, text).await
    }
}

fn first_error(results: impl IntoIterator<Item = Result<(), PortError>>) -> Result<(), PortError> {
    // All of them have ended. One error is enough to have the batch again.
    results.into_iter().collect()
}

/// One row that cannot be read must not hold up the messages of all other jobs.
fn unreadable(job: JobGuid, error: &PortError) {
    tracing::error!(job.id = %job, error = error as &dyn std::error::Error, "row not readable, nothing sent");
}
