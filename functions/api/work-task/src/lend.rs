//! Lends a task to a worker.
//!
//! A lease is a move of the chunk's checkpoint, so one of many callers gets it. What decides whether a worker may begin
//! is read after that: a change of the job or a commit that came first is seen, and the task is given back. A worker
//! begins with its first [beat](crate::hold).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::items::file_links;
use rowmill_core::items::input::{InputError, InputItem, read_input};
use rowmill_core::items::layouts;
use rowmill_core::items::of_task::{fitting, too_large};
use rowmill_core::items::progress::Progress;
use rowmill_core::items::run_output;
use rowmill_core::job_types::target_type::Results;
use rowmill_core::model::checkpoint::{Checkpoint, InFlight};
use rowmill_core::model::ids::{JobGuid, Owner, RunId};
use rowmill_core::model::job::Job;
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::permit::PermitSeen;
use rowmill_core::model::spec::Spec;
use rowmill_core::model::task::{Holder, Task, TaskId, TaskTerms, place_of};
use rowmill_core::ports::processor::Item;
use rowmill_core::ports::{
    CheckpointMoved, Clock, DirectTransfers, Entropy, JobStore, Objects, PortError, Queue, Tasks, found,
};
use rowmill_core::progress::commit::committer::ChunkCommitter;
use rowmill_core::progress::permits::{self, PermitLooks};
use rowmill_core::progress::tasks::TaskLooks;
use rowmill_core::progress::update::{stop_attempt, stop_for_input};
use serde_json::{Map, Value};

use crate::asks::Asks;
use crate::error::TaskError;
use crate::start::TaskTypes;

/// Number of due tasks of an owner that are read. A lease looks at some of them, chosen at random, so that workers that
/// ask at the same time seldom want the same.
const DUE_READ: usize = 25;

/// Number of due tasks that one request looks at. Of a job whose chunks may not begin it gives so many back.
const LOOKS: usize = 10;

/// The same, if the lease needs a permit: another request may take it meanwhile.
const LOOKS_WITH_PERMIT: usize = 3;

/// Number of owners of a type that one request reads.
const OWNERS_READ: usize = 25;

/// Age of the last offer of an owner without tasks after which the owner is forgotten: by then the row of the task that
/// was offered is there.
const FORGET_AFTER: Duration = Duration::from_secs(60);

/// The use cases of a worker, and the ports they work through.
pub struct TaskWork {
    pub jobs: Arc<dyn JobStore>,
    pub tasks: Arc<dyn Tasks>,
    /// The files and the run outputs.
    pub objects: Arc<dyn Objects>,
    /// Creates the requests that store products.
    pub transfers: Arc<dyn DirectTransfers>,
    pub link_expiry: Duration,
    /// The items queue, for a task that no worker may process any more.
    pub chunks: Arc<dyn Queue<ChunkMessage>>,
    pub committer: ChunkCommitter,
    pub clock: Arc<dyn Clock>,
    /// Tokens, and chance.
    pub entropy: Arc<dyn Entropy>,
    pub types: TaskTypes,
    pub asks: Asks,
    /// How many holders a type may have at a time.
    pub type_limits: Arc<JobTypeLimits>,
    /// Maximum size of the outputs of a chunk's items together.
    pub output_max_bytes: u64,
}

/// A task in the hands of a worker.
#[derive(Clone, Debug)]
pub struct Lent {
    pub id: TaskId,
    pub token: RunId,
    pub job_type: String,
    pub params: Map<String, Value>,
    /// The items to process, without those that cannot be parsed.
    pub items: Vec<Item>,
    pub terms: TaskTerms,
}

impl TaskWork {
    /// Finds a task of this type for a worker. `None` if there is none now.
    ///
    /// # Errors
    /// `NoSuchType`; `Port`.
    pub async fn lend(&self, job_type: &str, worker: &str) -> Result<Option<Lent>, TaskError> {
        let terms = self.types.lent(job_type)?;
        self.note_ask(job_type).await;
        let (mut looks, mut permit) = (LOOKS, None);
        if let Some(most) = self.type_limits.of(job_type).concurrency {
            let Some(free) = self.permit_looks().find(job_type, most, None).await? else { return Ok(None) };
            (looks, permit) = (LOOKS_WITH_PERMIT, Some(free));
        }
        for (owner, last) in self.owners(job_type).await? {
            let mut due = self.tasks.due(job_type, &owner, self.clock.now(), DUE_READ).await?;
            if due.is_empty() {
                self.forget(job_type, &owner, last).await?;
            }
            while looks > 0 && !due.is_empty() {
                let task = due.swap_remove(self.below(due.len()));
                looks -= 1;
                match self.lend_task(&task, &terms, worker, permit.as_ref()).await {
                    Ok(None) => {}
                    // Another worker was faster, or its rows cannot be read: that keeps nobody from the other tasks.
                    Err(TaskError::Gone(_)) => {}
                    Err(TaskError::Port(error @ PortError::Invalid { .. })) => {
                        tracing::error!(task.id = %task.id(), error = &error as &dyn std::error::Error, "task not lent");
                    }
                    lent => return lent,
                }
            }
            if looks == 0 {
                break;
            }
        }
        Ok(None)
    }

    /// The owners with tasks of this type from a random place on, in a random order, so that each has its turn. The
    /// places of owners have gaps of any length, so the first one from a place on is not as often each of them.
    async fn owners(&self, job_type: &str) -> Result<Vec<(Owner, Timestamp)>, PortError> {
        let from = (self.entropy.fraction() * f64::from(u32::MAX)) as u32;
        let mut owners = self.tasks.owners(job_type, from, OWNERS_READ).await?;
        if owners.len() < OWNERS_READ {
            let before = self.tasks.owners(job_type, 0, OWNERS_READ - owners.len()).await?;
            owners.extend(before.into_iter().take_while(|(owner, _)| place_of(owner) < from));
        }
        for place in 1..owners.len() {
            owners.swap(place, self.below(place + 1));
        }
        Ok(owners)
    }

    fn below(&self, count: usize) -> usize {
        ((self.entropy.fraction() * count as f64) as usize).min(count.saturating_sub(1))
    }

    async fn forget(&self, job_type: &str, owner: &Owner, last: Timestamp) -> Result<(), PortError> {
        if self.clock.now() < last + FORGET_AFTER || self.tasks.are_there(job_type, owner).await? {
            return Ok(());
        }
        self.tasks.forget_owner(job_type, owner, last).await
    }

    /// Looks at the permits of a type.
    fn permit_looks(&self) -> PermitLooks<'_> {
        let (run, now, chance) = (self.entropy.run_id(), self.clock.now(), self.entropy.fraction());
        PermitLooks { jobs: &*self.jobs, committer: &self.committer, run, now, chance }
    }

    /// Gives back the permit of a holder that holds its task no more. The service of the next task is called.
    pub(crate) async fn end_permit(&self, job_type: &str, token: RunId) -> Result<(), TaskError> {
        if self.type_limits.of(job_type).concurrency.is_none() {
            return Ok(());
        }
        permits::give_back(&*self.jobs, job_type, token).await?;
        if !self.types.terms(job_type)?.called {
            return Ok(());
        }
        for (owner, last) in self.owners(job_type).await? {
            let mut due = self.tasks.due(job_type, &owner, self.clock.now(), DUE_READ).await?;
            if due.is_empty() {
                self.forget(job_type, &owner, last).await?;
                continue;
            }
            let next = due.swap_remove(self.below(due.len()));
            self.looks().call_again(&next, self.clock.now()).await?;
            break;
        }
        Ok(())
    }

    /// Leases a task that is due, if it is free.
    async fn lend_task(
        &self,
        task: &Task,
        terms: &TaskTerms,
        worker: &str,
        permit: Option<&PermitSeen>,
    ) -> Result<Option<Lent>, TaskError> {
        let (id, message) = (task.id(), &task.message);
        let checkpoint = self.checkpoint(id).await?;
        let job = self.job(id.job).await?;
        if !self.looks().is_free(task, job.as_ref(), &checkpoint, self.clock.now()).await? {
            return Ok(None);
        }
        let token = self.entropy.run_id();
        let leased = checkpoint.leased(token, terms.items, message.chunk.items, self.clock.now());
        let is_leased = match permit {
            Some(seen) => self.jobs.lease_with_permit(id.job, &leased, seen).await?,
            None => self.jobs.move_checkpoint(id.job, &leased).await? == CheckpointMoved::Won,
        };
        if !is_leased {
            return Ok(None);
        }
        // From here on nobody else has it. What was written before the lease is seen now.
        let free = Checkpoint { in_flight: None, ..leased.clone() };
        let Some(job) = self.job(id.job).await? else { return Ok(None) };
        let is_committed = self.committer.committed(id.job, id.chunk).await?.is_some();
        if is_committed || !self.looks().is_free(task, Some(&job), &free, self.clock.now()).await? {
            if is_committed {
                self.looks().give_back(task).await?;
            }
            return Ok(None);
        }
        if let Some(until) = leased.held_until() {
            let holder = Holder { worker: worker.to_owned(), since: leased.at };
            self.tasks.put_off(task, until, Some(&holder)).await?;
        }
        self.hand_out(job, task, leased, terms).await
    }

    /// Reads the items of a lease, and lends those that a worker can process.
    async fn hand_out(
        &self,
        job: Job,
        task: &Task,
        leased: Checkpoint,
        terms: &TaskTerms,
    ) -> Result<Option<Lent>, TaskError> {
        let (id, message) = (task.id(), &task.message);
        let Some(token) = leased.by else { return Ok(None) };
        let spec = self.jobs.spec(id.job).await?;
        let mut items = match self.items(&spec, message).await {
            Ok(mut items) => {
                let links = (&spec, self.link_expiry);
                file_links::link(&*self.objects, &*self.transfers, links, &mut items).await?;
                leased_of(items, &leased)
            }
            Err(error) => return self.unreadable(&job, task, error).await,
        };
        let note = leased.in_flight;
        let first = |items: usize| note.map(|note| InFlight { items: items as u32, ..note });
        let fitting = fitting(&items);
        let (lent, beyond) = items.split_at(fitting);
        if !has_records(lent) {
            // Nothing for a worker: malformed items fail as they are, and so does one that fits into no answer.
            let results: Results = beyond.first().map(|_| Err(too_large())).into_iter().collect();
            let job = self.begun(job).await?;
            let until = fitting + results.len();
            let nobodys = Checkpoint { in_flight: first(until), ..leased };
            self.advance(&job, message, &nobodys, &items[..until], results).await?;
            return Ok(None);
        }
        if !beyond.is_empty() {
            // They are lent later.
            let less = Checkpoint { in_flight: first(fitting), ..leased.moved(token, self.clock.now()) };
            self.move_to(id, &less).await?;
            items.truncate(fitting);
        }
        let items = items.into_iter().filter_map(|item| item.well_formed(id.job)).collect();
        Ok(Some(Lent { id, token, job_type: task.job_type.clone(), params: spec.params, items, terms: *terms }))
    }

    pub(crate) fn looks(&self) -> TaskLooks<'_> {
        TaskLooks { tasks: &*self.tasks, chunks: &*self.chunks }
    }

    /// The items of a chunk.
    pub(crate) async fn items(&self, spec: &Spec, message: &ChunkMessage) -> Result<Vec<InputItem>, InputError> {
        let spec = layouts::spec_of(&*self.objects, spec.clone(), message).await?;
        read_input(&*self.objects, &spec, &spec.head.columns.clone().into(), message).await
    }

    /// Stops a job whose input cannot be read. Its chunks find that out.
    async fn unreadable(&self, job: &Job, task: &Task, error: InputError) -> Result<Option<Lent>, TaskError> {
        let Some(stop) = stop_for_input(&error, &task.message, self.clock.now()) else { return Err(error.into()) };
        tracing::error!(job.id = %job.job_guid, chunk.row = task.message.chunk.first_row, %error, "misread");
        stop_attempt(&*self.jobs, job, &stop).await?;
        self.looks().give_back(task).await?;
        Ok(None)
    }

    pub(crate) async fn job(&self, job: JobGuid) -> Result<Option<Job>, PortError> {
        found(self.jobs.job(job).await)
    }

    pub(crate) async fn checkpoint(&self, id: TaskId) -> Result<Checkpoint, PortError> {
        let checkpoint = self.jobs.checkpoint(id.job, id.chunk).await?;
        Ok(checkpoint.unwrap_or_else(|| Checkpoint::blank(id.chunk, self.clock.now())))
    }

    /// The outcomes of a chunk so far.
    pub(crate) async fn progress(&self, id: TaskId, checkpoint: &Checkpoint) -> Result<Progress, PortError> {
        Ok(Progress::of(checkpoint, run_output::of_checkpoint(&*self.objects, id.job, checkpoint).await?))
    }
}

/// The items that a lease is for.
fn leased_of(items: Vec<InputItem>, leased: &Checkpoint) -> Vec<InputItem> {
    let count = leased.in_flight.map_or(0, |note| note.items as usize);
    items.into_iter().skip(leased.done as usize).take(count).collect()
}

fn has_records(items: &[InputItem]) -> bool {
    items.iter().any(|item| item.record.is_ok())
}
