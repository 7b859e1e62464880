//! The functions: how the simulation invokes each.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dead_letter::settle::DeadMessage;
use futures::future::join_all;
use jiff::Timestamp;
use process_items::invocation::Invocation as ChunkInvocation;
use process_items::process::ChunkProcessor;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::tally::ChunkAddress;

use super::plan::{API_TIMEOUT, MARGIN, Operation, Planned, TIMEOUT};
use super::queues::{Body, Delivery, QueueName};
use super::run::{Run, chunk_of};
use super::trace::job_name;

/// The maximum age of a cached job while its items are processed.
const WATCH_MAX_AGE: Duration = Duration::from_secs(2);

/// A function, with an entry for each queue that feeds `process-items`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// `split-job`.
    Split,
    /// `start-job`.
    Start,
    /// `process-items`.
    Process,
    /// `process-items`, fed from the isolate queue.
    Isolate,
    /// `process-items`, fed from the lanes queue.
    Lane,
    /// `complete-job`.
    Complete,
    /// `dead-letter`.
    DeadLetter,
    /// `sweep`.
    Sweep,
    /// A function behind the API.
    Api,
    /// A worker outside of the stack, with the invocations of `work-task` that it calls.
    Worker,
}

impl Function {
    /// Those that may be the focus of the faults.
    pub const ALL: [Self; 8] = [
        Self::Split,
        Self::Process,
        Self::Isolate,
        Self::Lane,
        Self::Complete,
        Self::DeadLetter,
        Self::Sweep,
        Self::Api,
    ];

    /// True if it makes only few of the calls of a run.
    pub const fn is_rare(self) -> bool {
        matches!(self, Self::Start | Self::Isolate | Self::Complete | Self::DeadLetter | Self::Api | Self::Worker)
    }

    /// The function that a queue feeds.
    pub const fn of_queue(queue: QueueName) -> Self {
        match queue {
            QueueName::Splits(_) => Self::Split,
            QueueName::Starts => Self::Start,
            QueueName::Items(_) => Self::Process,
            QueueName::Isolate => Self::Isolate,
            QueueName::Completions => Self::Complete,
            QueueName::Lanes => Self::Lane,
            QueueName::DeadSplits | QueueName::DeadItems | QueueName::DeadLanes | QueueName::DeadCompletions => {
                Self::DeadLetter
            }
        }
    }
}

pub struct Invocation {
    pub function: Function,
    pub work: Work,
    pub deadline: Timestamp,
    /// True if it has timed out and still runs.
    pub zombie: bool,
    pub stalled_until: Timestamp,
    /// The process of `process-items` that it runs in.
    pub process: Option<Arc<ChunkProcessor>>,
}

impl Invocation {
    /// The queue of its message, if it has one.
    pub fn queue(&self) -> Option<QueueName> {
        self.deliveries().first().map(|delivery| delivery.queue)
    }

    pub fn chunks(&self) -> Vec<(JobGuid, ChunkAddress)> {
        self.deliveries().iter().filter_map(|delivery| chunk_of(&delivery.body)).collect()
    }

    fn deliveries(&self) -> &[Delivery] {
        match &self.work {
            Work::Messages(deliveries) => deliveries,
            Work::Operation(_) | Work::Worker => &[],
        }
    }
}

/// The reason for an invocation.
#[derive(Debug)]
pub enum Work {
    /// Messages of one queue: one, or several chunks.
    Messages(Vec<Delivery>),
    /// An operation of a client or of the schedule.
    Operation(Planned),
    /// A task that is due.
    Worker,
}

/// Result of an invocation.
#[derive(Debug)]
pub enum Reply {
    /// It succeeded: its message is acknowledged.
    Done(String),
    /// A job was created, with this idempotency key if the client sent one.
    Created(Option<String>, JobGuid),
    /// It failed: its message is redelivered, or its client tries again.
    Failed(String),
    /// No slot is free; the client may try again after this many seconds.
    Full(u64),
    /// The request was refused with an error of the client.
    Refused(String),
    /// One for each message of the invocation, in their order.
    Each(Vec<Self>),
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(end) => write!(f, "{end}"),
            Self::Created(_, job) => write!(f, "{}", job_name(*job)),
            Self::Failed(why) => write!(f, "Err: {why}"),
            Self::Full(seconds) => write!(f, "no slot for {seconds} s"),
            Self::Refused(why) => write!(f, "a refusal: {why}"),
            Self::Each(replies) => replies.iter().try_for_each(|reply| write!(f, "{reply}; ")),
        }
    }
}

impl Reply {
    /// The place that a function's reply shows the run to have reached.
    pub fn place(&self, function: Function) -> String {
        match self {
            Self::Done(end) => {
                format!("{function:?}: {}", end.trim_matches('"').split([' ', '(']).next().unwrap_or_default())
            }
            Self::Created(..) => format!("{function:?}: created"),
            Self::Failed(_) => format!("{function:?}: an error"),
            Self::Full(_) => format!("{function:?}: no slot"),
            Self::Refused(why) => {
                let words = why.split([';', ':']).next().unwrap_or_default().split(' ');
                let words: Vec<&str> = words.filter(|word| !word.contains(char::is_numeric)).collect();
                format!("{function:?}: {}", words.join(" "))
            }
            Self::Each(replies) => format!("{function:?}: {} replies", replies.len()),
        }
    }

    /// True if the invocation did all that it was asked for.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Done(_) => true,
            Self::Each(replies) => replies.iter().all(Self::is_done),
            _ => false,
        }
    }
}

/// The reply of a function fed from a queue.
fn reply<T: fmt::Debug, E: fmt::Display>(end: Result<T, E>) -> Reply {
    match end {
        Ok(end) => Reply::Done(format!("{end:?}")),
        Err(error) => Reply::Failed(error.to_string()),
    }
}

impl Run {
    /// Invokes the function that receives a delivery.
    pub(super) fn invoke_for(&mut self, delivery: Delivery) {
        let function = Function::of_queue(delivery.queue);
        let deadline = self.world.hub.now() + TIMEOUT;
        let number = self.tasks.next_number();
        self.world.hub.tell(Some(number), || {
            format!(
                "{function:?} begins: m{} received {} times, {}",
                delivery.id,
                delivery.receives,
                delivery.body.brief()
            )
        });
        let id = format!("m{}", delivery.id);
        match (function, delivery.body.clone()) {
            (Function::Split, Body::Split(message)) => {
                let splitter = Arc::clone(&self.world.splitter);
                self.invoke(function, Work::Messages(vec![delivery]), deadline, None, async move {
                    reply(splitter.split(&message, deadline).await)
                });
            }
            (Function::Start, Body::Split(message)) => {
                let starter = Arc::clone(&self.world.starter);
                self.invoke(function, Work::Messages(vec![delivery]), deadline, None, async move {
                    reply(starter.start(&message).await)
                });
            }
            (Function::Complete, Body::Completion(message)) => {
                let completer = Arc::clone(&self.world.completer);
                // Sometimes so little time is left that the results take several invocations.
                let hurried = self.adversary.rng.u8(..) < 100;
                let limit = if hurried { self.world.hub.now() + MARGIN } else { deadline };
                self.invoke(function, Work::Messages(vec![delivery]), deadline, None, async move {
                    reply(completer.complete(&message, limit).await)
                });
            }
            (Function::Process | Function::Isolate | Function::Lane, Body::Chunk(message)) => {
                self.process(function, delivery, message);
            }
            (_, body) => {
                let dead_letters = Arc::clone(&self.world.dead_letters);
                let message = dead_message(body);
                self.invoke(function, Work::Messages(vec![delivery]), deadline, None, async move {
                    reply(dead_letters.settle(&id, &message).await)
                });
            }
        }
    }

    fn process(&mut self, function: Function, delivery: Delivery, message: ChunkMessage) {
        let fresh = self.idle.is_empty() || self.adversary.rng.u8(..) < 16;
        let process = match (fresh, self.idle.pop()) {
            (false, Some(process)) => process,
            _ => Arc::new(self.world.processor()),
        };
        let deadline = self.world.hub.now() + TIMEOUT;
        let receipt = delivery.receipt();
        let processor = Arc::clone(&process);
        if message.delivery_mode == DeliveryMode::Isolated {
            self.world.invariants.isolates(self.tasks.next_number(), message.job_guid, message.address);
        }
        let task = self.tasks.next_number();
        let mut chunks = vec![(message, delivery.receives > 1)];
        let mut deliveries = vec![delivery];
        if function == Function::Process {
            let others = self.receive_with(&deliveries[0]);
            chunks.extend(others.iter().map(|(delivery, message)| (message.clone(), delivery.receives > 1)));
            deliveries.extend(others.into_iter().map(|(delivery, _)| delivery));
        }
        self.world.invariants.given(task, self.world.hub.now(), chunks.iter().map(|(message, _)| message));
        self.invoke(function, Work::Messages(deliveries), deadline, Some(process), async move {
            let received = chunks.iter().map(|(message, redelivered)| (message, *redelivered));
            let invocation = ChunkInvocation::new(&processor.ports, &processor.committer, WATCH_MAX_AGE, received);
            let runs = chunks.iter().map(async |(message, redelivered)| {
                let run = processor.process(message, *redelivered, deadline, &invocation);
                reply(match message.lane {
                    Some(_) => processor.lane.during(&receipt, deadline, run).await,
                    None => run.await,
                })
            });
            Reply::Each(join_all(runs).await)
        });
    }

    /// Receives further chunks from the queue of this one, as many as an invocation takes. Those of a job are of one
    /// attempt, as the checks of an invocation are by job.
    fn receive_with(&mut self, first: &Delivery) -> Vec<(Delivery, ChunkMessage)> {
        let (now, most) = (self.world.hub.now(), self.plan.chunks_per_invocation);
        let mut others: Vec<(Delivery, ChunkMessage)> = Vec::new();
        let Some((job, ChunkAddress { attempt, .. })) = chunk_of(&first.body) else { return others };
        let mut attempts = BTreeMap::from([(job, attempt)]);
        let ready = self.world.queues.receivable(now).into_iter().filter(|(_, queue)| *queue == first.queue);
        for (id, _) in ready {
            if others.len() + 1 >= most {
                break;
            }
            let message = self.world.queues.messages().iter().find(|message| message.id == id).cloned();
            let Some((job, chunk)) = message.and_then(|message| chunk_of(&message.body)) else { continue };
            if *attempts.entry(job).or_insert(chunk.attempt) != chunk.attempt {
                continue;
            }
            if let Some(delivery) = self.world.queues.receive(id, now)
                && let Body::Chunk(message) = delivery.body.clone()
            {
                self.world
                    .hub
                    .tell(Some(self.tasks.next_number()), || format!("with it m{id}, {}", delivery.body.brief()));
                others.push((delivery, message));
            }
        }
        others
    }

    fn invoke(
        &mut self,
        function: Function,
        work: Work,
        deadline: Timestamp,
        process: Option<Arc<ChunkProcessor>>,
        future: impl Future<Output = Reply> + 'static,
    ) {
        let stalled_until = self.world.hub.now();
        self.tasks.spawn(Invocation { function, work, deadline, zombie: false, stalled_until, process }, future);
    }

    /// Starts an operation of a client or of the schedule.
    pub(super) fn begin(&mut self, planned: Planned) {
        match planned.operation {
            Operation::Create(job) => self.create(planned, job),
            Operation::Cancel(job) => self.cancel(planned, job),
            Operation::Pause(job) => self.pause(planned, job),
            Operation::Resume(job) => self.resume(planned, job),
            Operation::Widen(job, width) => self.widen(planned, job, width),
            Operation::Retune(job) => self.retune(planned, job),
            Operation::Redrive(job, redrive) => self.redrive(planned, job, redrive),
            Operation::ReplaceFile(job) => self.replace_file(job),
            Operation::Fetch(job) => self.fetch(planned, job),
            Operation::Announce(job) => self.announce(planned, job),
            Operation::Sweep => self.sweep(planned),
        }
    }

    fn sweep(&mut self, planned: Planned) {
        let sweeper = Arc::clone(&self.world.sweeper);
        let deadline = self.world.hub.now() + TIMEOUT;
        self.invoke(Function::Sweep, Work::Operation(planned), deadline, None, async move {
            reply(sweeper.sweep().await.map(|swept| match swept.recovered {
                0 => format!("{swept:?}"),
                _ => format!("recovered {swept:?}"),
            }))
        });
    }

    pub(super) fn invoke_api(&mut self, planned: Planned, future: impl Future<Output = Reply> + 'static) {
        let deadline = self.world.hub.now() + API_TIMEOUT;
        let number = self.tasks.next_number();
        self.world.hub.tell(Some(number), || format!("a client begins: {:?}", planned.operation));
        self.invoke(Function::Api, Work::Operation(planned), deadline, None, future);
    }
}

fn dead_message(body: Body) -> DeadMessage {
    match body {
        Body::Chunk(message) => DeadMessage::Chunk(message),
        Body::Split(message) => DeadMessage::Split(message),
        Body::Completion(message) => DeadMessage::Completion(message),
    }
}
