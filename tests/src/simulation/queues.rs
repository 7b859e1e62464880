//! The queues with exactly the guarantees of SQS: each message is delivered at least once, in any order, until it is
//! acknowledged. A message that was received too often moves to the dead-letter queue. A FIFO queue delivers the
//! messages of a group in their order, the next one once the one before is neither queued nor in flight, and none twice
//! at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Priority;
use rowmill_core::model::lanes::group_of;
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, Grouped, SplitMessage};
use rowmill_core::ports::{Deliveries, PortError, Queue};

use super::broken::Broken;
use super::hub::{CallKind, Hub, Verdict};
use super::invariants::Invariants;
use super::trace::{chunk_name, job_name};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueName {
    /// The jobs queue of this priority. Low has none.
    Splits(Priority),
    Starts,
    Items(Priority),
    Isolate,
    /// The lanes queue, a FIFO queue.
    Lanes,
    Completions,
    /// The dead-letter queue of the jobs queues.
    DeadSplits,
    /// The dead-letter queue of the items queues and the isolate queue.
    DeadItems,
    /// The dead-letter queue of the lanes queue, a FIFO queue too.
    DeadLanes,
    /// The dead-letter queue of the completions queue.
    DeadCompletions,
}

impl QueueName {
    const fn dead_letters(self) -> Option<Self> {
        match self {
            Self::Splits(_) | Self::Starts => Some(Self::DeadSplits),
            Self::Items(_) | Self::Isolate => Some(Self::DeadItems),
            Self::Lanes => Some(Self::DeadLanes),
            Self::Completions => Some(Self::DeadCompletions),
            Self::DeadSplits | Self::DeadItems | Self::DeadLanes | Self::DeadCompletions => None,
        }
    }

    /// True if a message of a job of this priority belongs on it.
    pub fn takes(self, priority: Priority) -> bool {
        match self {
            Self::Splits(Priority::Normal) => priority != Priority::High,
            Self::Splits(of) | Self::Items(of) => priority == of,
            _ => true,
        }
    }

    /// True if its messages are delivered in order within their group, and none twice.
    pub const fn is_fifo(self) -> bool {
        matches!(self, Self::Lanes | Self::DeadLanes)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    Split(SplitMessage),
    Chunk(ChunkMessage),
    Completion(CompletionMessage),
}

impl Body {
    pub const fn job_guid(&self) -> JobGuid {
        match self {
            Self::Split(message) => message.job_guid,
            Self::Chunk(message) => message.job_guid,
            Self::Completion(message) => message.job_guid,
        }
    }

    /// The short form for the trace.
    pub fn brief(&self) -> String {
        match self {
            Self::Split(message) => {
                format!("split {} attempt {} from {}", job_name(message.job_guid), message.attempt, message.tallies)
            }
            Self::Chunk(message) => {
                format!("{} {} {:?}", job_name(message.job_guid), chunk_name(message.address), message.delivery_mode)
            }
            Self::Completion(message) => format!("end {} attempt {}", job_name(message.job_guid), message.attempt),
        }
    }
}

impl From<SplitMessage> for Body {
    fn from(message: SplitMessage) -> Self {
        Self::Split(message)
    }
}

impl From<ChunkMessage> for Body {
    fn from(message: ChunkMessage) -> Self {
        Self::Chunk(message)
    }
}

impl From<CompletionMessage> for Body {
    fn from(message: CompletionMessage) -> Self {
        Self::Completion(message)
    }
}

/// A message in a queue.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub id: u64,
    pub queue: QueueName,
    pub body: Body,
    /// When it may be received next.
    pub visible_at: Timestamp,
    pub receives: u32,
    /// Its message group, in a FIFO queue.
    pub group: Option<String>,
    /// The number of its last delivery.
    pub receipt: u64,
}

impl Envelope {
    /// True if the handle of this delivery is that of the message. In a FIFO queue it is no longer, once the message is
    /// delivered again.
    fn is_of(&self, delivery: &Delivery) -> bool {
        let handle = !self.queue.is_fifo() || self.receipt == delivery.receipt;
        (self.id, self.queue) == (delivery.id, delivery.queue) && handle
    }

    /// True if both are in the same group of the same FIFO queue.
    fn is_behind_the_same(&self, other: &Self) -> bool {
        self.queue.is_fifo() && self.queue == other.queue && self.group.is_some() && self.group == other.group
    }
}

#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Number of receives of a message before it becomes a dead letter.
    pub max_receives: u32,
    /// The visibility timeout of each queue.
    pub visibility: fn(QueueName) -> Duration,
    pub broken: Broken,
}

/// A message given to a function.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub id: u64,
    pub queue: QueueName,
    pub body: Body,
    /// Its receive count, as the queue reports it.
    pub receives: u32,
    /// The number of this delivery.
    pub receipt: u64,
}

impl Delivery {
    /// The queue's handle of this delivery.
    pub fn receipt(&self) -> String {
        receipt_of(self.id, self.receipt)
    }
}

fn receipt_of(id: u64, delivery: u64) -> String {
    format!("m{id}/{delivery}")
}

#[derive(Clone)]
pub struct Queues {
    messages: Arc<Mutex<Vec<Envelope>>>,
    next: Arc<Mutex<u64>>,
    limits: QueueLimits,
}

impl Queues {
    pub fn new(limits: QueueLimits) -> Self {
        Self { messages: Arc::default(), next: Arc::new(Mutex::new(1)), limits }
    }

    /// All messages, received or not.
    pub fn messages(&self) -> MutexGuard<'_, Vec<Envelope>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, queue: QueueName, body: Body, visible_at: Timestamp) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let group = match &body {
            Body::Chunk(ChunkMessage { job_type: Some(job_type), lane: Some(lane), .. }) if queue.is_fifo() => {
                Some(group_of(job_type, *lane)).filter(|_| self.limits.broken != Broken::LaneLetsTwoThrough)
            }
            _ => None,
        };
        let envelope = Envelope { id: *next, queue, body, visible_at, receives: 0, group, receipt: 0 };
        *next += 1;
        self.messages().push(envelope);
    }

    /// The messages that can be received: those that are visible. Of a group of a FIFO queue only the first one can be
    /// received, and none while one is in flight.
    pub fn receivable(&self, now: Timestamp) -> Vec<(u64, QueueName)> {
        let messages = self.messages();
        let is_free = |place: usize, message: &Envelope| {
            let others = messages.iter().enumerate().filter(|(other, _)| *other != place);
            !others
                .filter(|(_, other)| other.is_behind_the_same(message))
                .any(|(before, other)| before < place || (other.receives > 0 && other.visible_at > now))
        };
        let visible = messages.iter().enumerate().filter(|(_, message)| message.visible_at <= now);
        let free = visible.filter(|(place, message)| !message.queue.is_fifo() || is_free(*place, message));
        free.map(|(_, message)| (message.id, message.queue)).collect()
    }

    /// Receives a message. None if it was received too often: then it becomes a dead letter.
    pub fn receive(&self, id: u64, now: Timestamp) -> Option<Delivery> {
        let mut messages = self.messages();
        let message = messages.iter_mut().find(|message| message.id == id)?;
        if let Some(dead_letters) = message.queue.dead_letters()
            && message.receives >= self.limits.max_receives
        {
            (message.queue, message.receives, message.visible_at) = (dead_letters, 0, now);
            return None;
        }
        message.receives += 1;
        message.receipt += 1;
        message.visible_at = now + (self.limits.visibility)(message.queue);
        let Envelope { id, queue, body, receives, receipt, .. } = message.clone();
        Some(Delivery { id, queue, body, receives, receipt })
    }

    /// A duplicate of a message in flight, as a standard queue may deliver it at any time.
    pub fn duplicate(&self, id: u64) -> Option<Delivery> {
        let messages = self.messages();
        let message = messages.iter().find(|message| message.id == id)?;
        let Envelope { id, queue, body, receives, receipt, .. } = message.clone();
        Some(Delivery { id, queue, body, receives, receipt })
    }

    /// Hides a message in flight until this time. A FIFO queue refuses it once the message has been visible since its
    /// delivery.
    fn hide(&self, receipt: &str, now: Timestamp, until: Timestamp) -> Result<(), PortError> {
        let mut messages = self.messages();
        let held = |message: &&mut Envelope| {
            message.visible_at > now && message.queue.is_fifo() && receipt_of(message.id, message.receipt) == receipt
        };
        let refused = || PortError::unavailable("hiding", "the receipt has expired");
        messages.iter_mut().find(held).ok_or_else(refused)?.visible_at = until;
        Ok(())
    }

    /// Deletes a message that was processed.
    pub fn acknowledge(&self, delivery: &Delivery) {
        self.messages().retain(|message| !message.is_of(delivery));
    }

    /// Makes a message that was not acknowledged visible again, before its visibility timeout.
    pub fn give_back(&self, delivery: &Delivery, visible_at: Timestamp) {
        let mut messages = self.messages();
        let there = messages.iter_mut().find(|message| message.is_of(delivery));
        if let Some(message) = there {
            message.visible_at = message.visible_at.min(visible_at);
        }
    }

    /// When the next message becomes visible.
    pub fn next_visible(&self, now: Timestamp) -> Option<Timestamp> {
        self.messages().iter().map(|message| message.visible_at).filter(|at| *at > now).min()
    }

    /// The port to the deliveries of the lanes queue.
    pub fn lane_deliveries(&self, hub: &Hub) -> Arc<LaneDeliveries> {
        Arc::new(LaneDeliveries { queues: self.clone(), hub: hub.clone() })
    }

    /// The port that sends to a queue.
    pub fn port(&self, queue: QueueName, hub: &Hub, invariants: &Arc<Invariants>) -> Arc<QueuePort> {
        let (queues, hub, invariants) = (self.clone(), hub.clone(), Arc::clone(invariants));
        Arc::new(QueuePort { queues, queue, hub, invariants })
    }
}

pub struct QueuePort {
    queues: Queues,
    queue: QueueName,
    hub: Hub,
    invariants: Arc<Invariants>,
}

impl QueuePort {
    fn send_now(&self, bodies: Vec<Body>, delay: Duration) {
        for body in bodies {
            if let Body::Chunk(message) = &body {
                self.hub.check(self.invariants.sent(message));
            }
            self.hub.check(self.invariants.sent_on(self.queue, &body));
            self.queues.send(self.queue, body, self.hub.now() + delay);
        }
    }
}

#[async_trait]
impl<M: Grouped + Clone + Into<Body> + Send + Sync> Queue<M> for QueuePort {
    async fn send_later(&self, messages: &[M], delay: Duration) -> Result<(), PortError> {
        let mut bodies: Vec<Body> = messages.iter().cloned().map(Into::into).collect();
        let detail = match self.hub.is_traced() {
            true => {
                let briefs: Vec<String> = bodies.iter().map(Body::brief).collect();
                format!("{:?}: {}", self.queue, briefs.join(", "))
            }
            false => String::new(),
        };
        let (verdict, task) = self.hub.suspend(CallKind::Send, "send", detail.clone()).await;
        self.hub.tell(Some(task), || format!("send({detail}) -> {verdict:?}"));
        match verdict {
            Verdict::Proceed | Verdict::Stale => {
                self.send_now(bodies, delay);
                Ok(())
            }
            Verdict::Fail(why) => Err(PortError::unavailable("sending", why)),
            Verdict::LoseReply => {
                self.send_now(bodies, delay);
                Err(PortError::unavailable("sending", "the reply was lost"))
            }
            Verdict::Partly => {
                bodies.truncate(bodies.len() / 2);
                self.send_now(bodies, delay);
                Err(PortError::unavailable("sending", "some entries were refused"))
            }
            Verdict::DieAfter => {
                bodies.truncate(bodies.len().div_ceil(2));
                self.send_now(bodies, delay);
                self.hub.die(task).await
            }
        }
    }

    async fn backlog(&self) -> Result<u64, PortError> {
        let count = async {
            let (now, messages) = (self.hub.now(), self.queues.messages());
            let waiting = messages.iter().filter(|message| message.queue == self.queue && message.visible_at <= now);
            Ok::<u64, PortError>(waiting.count() as u64)
        };
        self.hub.through(CallKind::Read, "backlog", || format!("{:?}", self.queue), count).await
    }
}

/// The port to the deliveries of the lanes queue.
pub struct LaneDeliveries {
    queues: Queues,
    hub: Hub,
}

#[async_trait]
impl Deliveries for LaneDeliveries {
    async fn postpone(&self, receipt: &str, by: Duration) -> Result<(), PortError> {
        let hidden = async {
            let now = self.hub.now();
            match self.queues.limits.broken {
                Broken::LaneIsNotHeld => Ok(()),
                _ => self.queues.hide(receipt, now, now + by),
            }
        };
        self.hub.through(CallKind::Write, "postpone", || format!("{receipt}, {by:?}"), hidden).await
    }
}
