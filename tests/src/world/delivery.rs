//! Delivers the messages of the queues: one by one, until none is left, through crashes, and with dead letters.

use std::time::Duration;

use dead_letter::settle::DeadMessage;
use futures::future::join_all;
use process_items::end::{ChunkEnd, RunError};
use process_items::invocation::Invocation;
use rowmill_core::model::job::REQUEST_LIMIT;
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, SplitMessage};
use split_job::plan::SplitEnd;
use sweep::sweep::Swept;

use super::World;

/// Number of deliveries by [`World::run_with_dead_letters`] before a message becomes a dead letter.
const MAX_RECEIVES: u32 = 3;

/// Maximum age of a read job row in an invocation with many chunks.
const WATCH_MAX_AGE: Duration = Duration::from_secs(2);

/// The messages that [`World::queued`] takes off the queues. Chunks of the items, the isolate and the lanes queue are
/// delivered alike.
struct Queued {
    splits: Vec<SplitMessage>,
    starts: Vec<SplitMessage>,
    chunks: Vec<ChunkMessage>,
    completions: Vec<CompletionMessage>,
}

impl World {
    /// Takes the first message off the jobs queue and runs it; the queue's other messages are lost.
    pub async fn split(&self) -> SplitEnd {
        self.split_within(self.limits.split.lease()).await
    }

    /// As [`split`](Self::split), with this much time. With less than the splitter's margin it hands over after a
    /// tally.
    pub async fn split_within(&self, time: Duration) -> SplitEnd {
        let message = self.splits.take().remove(0);
        self.splitter.split(&message, self.deadline_in(time)).await.expect("in-memory ports do not fail")
    }

    /// Delivers a chunk to an invocation as short as a request, so that a resend waits only for the grace.
    ///
    /// # Errors
    /// If the process crashes, or the chunk fails.
    pub async fn try_process(&self, message: &ChunkMessage, redelivered: bool) -> Result<ChunkEnd, RunError> {
        let invocation =
            Invocation::new(&self.processor.ports, &self.processor.committer, Duration::ZERO, [(message, redelivered)]);
        self.processor.process(message, redelivered, self.deadline_in(REQUEST_LIMIT), &invocation).await
    }

    /// Delivers chunks to one invocation, each with whether it was delivered before.
    pub async fn try_process_together(&self, messages: &[(ChunkMessage, bool)]) -> Vec<Result<ChunkEnd, RunError>> {
        let received = messages.iter().map(|(message, redelivered)| (message, *redelivered));
        let invocation = Invocation::new(&self.processor.ports, &self.processor.committer, WATCH_MAX_AGE, received);
        let deadline = self.deadline_in(REQUEST_LIMIT);
        let runs = messages
            .iter()
            .map(|(message, redelivered)| self.processor.process(message, *redelivered, deadline, &invocation));
        join_all(runs).await
    }

    /// Delivers a chunk to a process that does not crash.
    pub async fn process(&self, message: &ChunkMessage, redelivered: bool) -> ChunkEnd {
        self.try_process(message, redelivered).await.expect("in-memory ports do not fail")
    }

    /// Delivers these chunks, in this order and for the first time.
    pub async fn process_all(&self, messages: impl IntoIterator<Item = &ChunkMessage>) {
        for message in messages {
            self.process(message, false).await;
        }
    }

    /// Takes all messages off the items queue and delivers so many of them. All of them, in their order.
    pub async fn process_first(&self, delivered: usize) -> Vec<ChunkMessage> {
        let chunks = self.chunks.take();
        self.process_all(&chunks[..delivered]).await;
        chunks
    }

    /// Takes all messages off the items queue and delivers them.
    pub async fn process_queued(&self) {
        self.process_all(&self.chunks.take()).await;
    }

    /// Takes the first message off the completions queue.
    pub fn take_completion(&self) -> CompletionMessage {
        self.completions.take().remove(0)
    }

    /// Splits a job and processes its chunks; the message that completes it.
    pub async fn run_to_completion_message(&self) -> CompletionMessage {
        self.split().await;
        self.process_queued().await;
        self.take_completion()
    }

    /// Takes all messages off the queues, if there are any.
    fn queued(&self) -> Option<Queued> {
        let (splits, mut chunks, completions) = (self.splits.take(), self.chunks.take(), self.completions.take());
        chunks.extend(self.isolated.take());
        chunks.extend(self.lanes.take());
        let starts = self.starts.take();
        let any = !splits.is_empty() || !starts.is_empty() || !chunks.is_empty() || !completions.is_empty();
        any.then_some(Queued { splits, starts, chunks, completions })
    }

    async fn split_all(&self, messages: &[SplitMessage]) {
        for message in messages {
            self.splitter.split(message, self.deadline()).await.expect("in-memory ports do not fail");
        }
    }

    async fn start_all(&self, messages: &[SplitMessage]) {
        for message in messages {
            self.starter.start(message).await.expect("in-memory ports do not fail");
        }
    }

    async fn complete_all(&self, messages: &[CompletionMessage]) {
        for message in messages {
            self.completer.complete(message, self.deadline()).await.expect("in-memory ports do not fail");
        }
    }

    /// Delivers every message in the order in which it was sent, until no queue holds any.
    pub async fn run(&self) {
        while let Some(queued) = self.queued() {
            self.split_all(&queued.splits).await;
            self.start_all(&queued.starts).await;
            self.process_all(&queued.chunks).await;
            self.complete_all(&queued.completions).await;
        }
    }

    /// As [`run`](Self::run); an invocation of the splitter or the completer has this much time. If a process crashes,
    /// its message is delivered again, after every lease and visibility timeout of the crashed process has run out.
    pub async fn run_through_crashes(&self, time: Duration) {
        let mut redelivered = false;
        while let Some(queued) = self.queued() {
            for message in queued.splits {
                while self.splitter.split(&message, self.deadline_in(time)).await.is_err() {
                    self.restart_after_crash();
                }
            }
            for message in queued.starts {
                while self.starter.start(&message).await.is_err() {
                    self.restart_after_crash();
                }
            }
            for message in queued.chunks {
                while self.try_process(&message, redelivered).await.is_err() {
                    redelivered = true;
                    self.restart_after_crash();
                }
            }
            for message in queued.completions {
                while self.completer.complete(&message, self.deadline_in(time)).await.is_err() {
                    self.restart_after_crash();
                }
            }
        }
    }

    /// As [`run_through_crashes`](Self::run_through_crashes), then with sweeps, for messages that a crashed process did not
    /// send. A sweep may crash too.
    pub async fn run_through_crashes_and_sweeps(&self, time: Duration) {
        self.run_through_crashes(time).await;
        for _ in 0..3 {
            self.clock.advance(2 * self.limits.sweep.recovery.stale);
            self.sweeper.sweep().await.ok();
            self.faults.revive();
            self.run_through_crashes(time).await;
        }
    }

    fn restart_after_crash(&self) {
        assert!(self.faults.revive(), "only a crashed process fails");
        self.outlast_runs();
    }

    /// Time passes until no run is at work and no note of one is live, whatever its clock.
    pub fn outlast_runs(&self) {
        self.clock.advance(self.limits.split.lease() + self.limits.run.margin);
    }

    /// As [`run`](Self::run); a chunk that fails three times becomes a dead letter, which is settled. Between two
    /// deliveries every lease and visibility timeout of the run before runs out.
    pub async fn run_with_dead_letters(&self) {
        let mut letters = 0;
        while let Some(queued) = self.queued() {
            self.split_all(&queued.splits).await;
            self.start_all(&queued.starts).await;
            for message in queued.chunks {
                let mut receives = 0;
                while self.try_process(&message, receives > 0).await.is_err() {
                    self.outlast_runs();
                    receives += 1;
                    if receives == MAX_RECEIVES {
                        letters += 1;
                        let dead = DeadMessage::Chunk(message.clone());
                        let settled = self.dead_letters.settle(&format!("letter-{letters}"), &dead).await;
                        settled.expect("no run holds the chunk");
                        break;
                    }
                }
            }
            self.complete_all(&queued.completions).await;
        }
    }

    /// Sweeps, as the schedule does.
    pub async fn sweep(&self) -> Swept {
        self.sweeper.sweep().await.expect("in-memory ports do not fail")
    }

    /// Sweeps, and delivers what was sent.
    pub async fn sweep_and_run(&self) {
        self.sweep().await;
        self.run().await;
    }
}
