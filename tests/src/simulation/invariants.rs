//! Invariants that hold after every step, and the simulation's own records of the jobs.
//!
//! The other checks are in `checks`, in the modules `*_checks`, such as `object_checks` (an object is put) and
//! `commit_checks` (a commit wins), and in [`ending`](super::ending) (the run ends).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use rowmill_api::job::JobView;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::{Job, Priority};
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::spec::Tolerance;
use rowmill_core::model::tally::{ChunkAddress, Tally};
use rowmill_core::ports::{Ceilings, DeadLetters, Jobs, NewJob, Tallies};
use rowmill_testing::in_memory::{InMemoryJobStore, InMemoryObjects, InMemoryTasks};

use super::checks::{Checked, check_slow_view, check_tally, check_totals, check_view, ensure, now};
use super::files::{SimulatedFile, first_file};
use super::oracle::{JobRecord, RowEnd};
use super::pause_checks::{ChunksAtWork, JobAtDelivery};
use super::plan::GRACE;
use super::queues::{Body, Delivery, QueueName};
use super::trace::{chunk_name, job_name};
use super::window_checks::Owed;
use super::workers::WorkerAtTask;

/// The places that runs reached, and how often.
pub type Reached = BTreeMap<String, u64>;

/// The checks, with the oracle's own records of the jobs.
pub struct Invariants {
    pub(super) store: Arc<InMemoryJobStore>,
    pub(super) objects: Arc<InMemoryObjects>,
    pub(super) tasks: Arc<InMemoryTasks>,
    ceilings: Ceilings,
    pub(super) type_limits: JobTypeLimits,
    known: Mutex<Known>,
}

#[derive(Default)]
pub(super) struct Known {
    pub(super) reached: Reached,
    files: BTreeMap<FileGuid, Arc<SimulatedFile>>,
    /// The last job that was created with each dedupe key of an owner.
    deduped: BTreeMap<(Owner, String), JobGuid>,
    pub(super) jobs: BTreeMap<JobGuid, JobRecord>,
    /// The rows that were processed successfully, once or more.
    pub(super) processed: BTreeSet<(JobGuid, u64)>,
    /// The attempts of which an item has begun.
    pub(super) begun: BTreeSet<(JobGuid, u32)>,
    /// Knowledge of each invocation of `process-items` about each of its jobs.
    pub(super) deliveries: BTreeMap<(u64, JobGuid), JobAtDelivery>,
    /// The chunks of each job that each invocation of `process-items` was given.
    pub(super) at_work: BTreeMap<(u64, JobGuid), ChunksAtWork>,
    /// The invocations that have timed out and go on.
    pub(super) zombies: BTreeSet<u64>,
    /// The tallies that each invocation must send before it ends.
    pub(super) owed: BTreeMap<u64, Vec<Owed>>,
    /// The invocations that have seen an open breaker.
    pub(super) saw_open: BTreeSet<u64>,
    /// The isolated chunks by invocation, and whether the invocation is processing an item.
    isolated: BTreeMap<u64, (JobGuid, ChunkAddress, bool)>,
    /// The workers, by task.
    pub(super) workers: BTreeMap<u64, WorkerAtTask>,
    /// The workers that ask for a task, by task.
    pub(super) asking: BTreeSet<u64>,
    /// The job types of the invocations that run a chunk of a type with lanes; none of a zombie.
    pub(super) on_lanes: BTreeMap<u64, Option<String>>,
}

impl Invariants {
    /// The checks of a world with this store, bucket and limits.
    pub fn new(
        store: Arc<InMemoryJobStore>,
        objects: Arc<InMemoryObjects>,
        tasks: Arc<InMemoryTasks>,
        ceilings: Ceilings,
        type_limits: JobTypeLimits,
    ) -> Self {
        Self { store, objects, tasks, ceilings, type_limits, known: Mutex::default() }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts that a run reached this place.
    pub fn reach(&self, place: impl Into<String>) {
        *self.known().reached.entry(place.into()).or_default() += 1;
    }

    pub fn take_reached(&self) -> Reached {
        std::mem::take(&mut self.known().reached)
    }

    /// A file was uploaded: jobs may be created over it.
    pub fn uploaded(&self, file: Arc<SimulatedFile>) {
        self.known().files.insert(file.file_guid, file);
    }

    /// A row was processed successfully.
    pub fn processed(&self, job: JobGuid, row: u64) {
        self.known().processed.insert((job, row));
    }

    /// Number of rows processed successfully.
    pub fn processed_rows(&self) -> usize {
        self.known().processed.len()
    }

    /// This invocation starts to run an isolated chunk.
    pub fn isolates(&self, task: u64, job: JobGuid, chunk: ChunkAddress) {
        self.known().isolated.insert(task, (job, chunk, false));
    }

    /// This invocation has ended.
    pub fn has_ended(&self, task: u64) {
        let mut known = self.known();
        known.isolated.remove(&task);
        known.zombies.remove(&task);
        known.on_lanes.remove(&task);
        known.at_work.retain(|(of, _), _| *of != task);
        known.owed.remove(&task);
        drop(known);
        // It has died.
        self.is_handed_in(task, false);
    }

    /// This invocation has timed out and goes on, as none of Lambda does.
    pub fn is_zombie(&self, task: u64) {
        let mut known = self.known();
        known.zombies.insert(task);
        known.isolated.remove(&task);
        known.at_work.retain(|(of, _), _| *of != task);
        known.on_lanes.insert(task, None);
        drop(known);
        self.is_handed_in(task, false);
    }

    /// An invocation begins or ends an item. It may begin one only if its job was neither paused nor past before, and
    /// if a lane of its type is free. An isolated chunk never has two items in processing at once.
    pub fn at_item(&self, task: u64, job: JobGuid, begins: bool) -> Checked {
        if begins {
            self.may_begin(task, job)?;
            self.takes_lane(task, job)?;
        }
        let mut known = self.known();
        let known = &mut *known;
        let Some((job, chunk, at_item)) = known.isolated.get_mut(&task) else { return Ok(()) };
        *at_item = begins;
        let (job, chunk) = (*job, *chunk);
        let at_it = known.isolated.values().filter(|other| **other == (job, chunk, true)).count();
        ensure(at_it <= 1, || {
            format!("{} {} is isolated, but two invocations process it at once", job_name(job), chunk_name(chunk))
        })
    }

    /// An invocation died while it processed this chunk.
    pub fn died_at(&self, job: JobGuid, chunk: ChunkAddress) {
        if let Some(record) = self.known().jobs.get_mut(&job) {
            *record.deaths.entry(chunk).or_default() += 1;
        }
    }

    /// The file of a job.
    pub fn file_of(&self, job: JobGuid) -> Option<Arc<SimulatedFile>> {
        self.known().jobs.get(&job).map(|record| Arc::clone(&record.file))
    }

    /// The numbers of the failed rows of a job.
    pub fn failed_rows(&self, job: JobGuid) -> Vec<u64> {
        let known = self.known();
        let ends = known.jobs.get(&job).map(|record| record.ends.iter());
        let failed = ends.into_iter().flatten().filter(|(_, end)| matches!(end, RowEnd::Failed(_)));
        failed.map(|(row, _)| *row).collect()
    }

    /// A job was created. Of the jobs with its dedupe key that were never redriven, each other one was stopped.
    pub fn created(&self, new: &NewJob) -> Checked {
        let mut known = self.known();
        let file = known
            .files
            .get(&first_file(&new.job).ok_or("a job without a file")?)
            .cloned()
            .ok_or("a job on an unknown file")?;
        known.jobs.insert(new.job.job_guid, JobRecord::new(file, &new.job));
        let key = new.dedupe.as_ref().map(|dedupe| (new.job.owner.clone(), dedupe.key.clone()));
        let before = key.and_then(|key| known.deduped.insert(key, new.job.job_guid));
        drop(known);
        if let Some(before) = before {
            let row = now(self.store.job(before)).map_err(|error| error.to_string())?;
            ensure(row.is_stopped() || row.attempt > 1, || {
                format!("{} does the same as {}, which was not stopped", job_name(new.job.job_guid), job_name(before))
            })?;
            self.reach("created in place of a stopped job");
        }
        self.slots()
    }

    /// A client asks for this tolerance of a job; if it gets it, this may be at the moment when the job completes.
    pub fn retunes(&self, job: JobGuid, tolerance: Option<Tolerance>) {
        if let Some(record) = self.known().jobs.get_mut(&job) {
            record.tolerances.extend(tolerance.map(Some));
        }
    }

    /// The slots taken equal those that the active jobs have, and no ceiling is exceeded. A paused job may have given
    /// those of its type and of the system back.
    pub fn slots(&self) -> Checked {
        let mut active: BTreeMap<String, i64> = BTreeMap::new();
        let jobs = self.store.every_job();
        for job in &jobs {
            let shared = job.has_shared_slots();
            for (scope, held) in [
                (format!("owner#{}", job.owner), !job.is_ended()),
                (format!("type#{}", job.job_type), shared),
                ("system".to_owned(), shared),
            ] {
                *active.entry(scope).or_default() += i64::from(held);
            }
        }
        for (scope, count) in active {
            let noted = self.store.active(&scope);
            ensure(noted == count, || format!("{count} jobs of {scope} have a slot, but {noted} slots are taken"))?;
            let ceiling = match scope.split_once('#') {
                Some(("owner", _)) => self.ceilings.owner,
                Some((_, job_type)) => self.ceilings.of_type(self.type_limits.of(job_type)).job_type,
                _ => self.ceilings.system,
            };
            ensure(count <= i64::from(ceiling), || {
                format!("{count} jobs of {scope} have a slot, more than the ceiling of {ceiling}")
            })?;
        }
        Ok(())
    }

    /// A chunk's message was sent: its tally is counted, and the chunks in flight fit into the job's window.
    pub fn sent(&self, message: &ChunkMessage) -> Checked {
        let (guid, address) = (message.job_guid, message.address);
        let job = now(self.store.job(guid)).map_err(|error| error.to_string())?;
        if job.is_past(address.attempt) {
            return Ok(());
        }
        self.runs_alone(message)?;
        let name = || format!("{} {}", job_name(guid), chunk_name(address));
        ensure(address.tally < job.split.tallies, || format!("{} is sent, but its tally is not counted yet", name()))?;
        let mut known = self.known();
        let known = &mut *known;
        let record = known.jobs.get_mut(&guid).ok_or("a message of an unknown job")?;
        let tally = record.tallies.get(&(address.attempt, address.tally)).ok_or("a message without a chunk index")?;
        let chunk = tally.chunks.get(usize::from(address.index));
        ensure(chunk == Some(&message.chunk), || {
            format!("{} is sent as {:?}, but split as {chunk:?}", name(), message.chunk)
        })?;
        if !record.sent.insert(address) {
            *known.reached.entry("chunk sent again".to_owned()).or_default() += 1;
        }
        if record.is_done(address) {
            return Ok(());
        }
        // It is dropped.
        let is_old = message.epoch < job.epoch;
        if !is_old {
            record.in_flight.insert(address.number());
        }
        if let Some(awaited) = record.ahead.and_then(|ahead| address.tally.checked_sub(ahead)) {
            let awaited = record.tallies.get(&(address.attempt, awaited)).ok_or("a tally after none")?;
            ensure(awaited.is_half_done(), || {
                format!("{} is sent, but the tally that it waits for is not half done", name())
            })?;
            *known.reached.entry("tally sent after the one it waits for".to_owned()).or_default() += 1;
        }
        let Some(width) = record.width else { return Ok(()) };
        ensure(is_old || record.in_flight.len() <= width as usize, || {
            format!("{} is sent: chunks {:?} are in flight, more than the window of {width}", name(), record.in_flight)
        })
    }

    /// A message was sent on this queue: it is that of its job's priority.
    pub fn sent_on(&self, queue: QueueName, body: &Body) -> Checked {
        let row = now(self.store.job(body.job_guid())).map_err(|error| error.to_string())?;
        if row.priority != Priority::Normal {
            self.reach(format!("sent on {queue:?}"));
        }
        ensure(queue.takes(row.priority), || {
            format!("{} has {:?} priority, and its message is sent on {queue:?}", job_name(row.job_guid), row.priority)
        })
    }

    /// A tally may have been closed without its rest. Only the tally of a stopped job may, after the grace.
    pub fn rest_skipped(&self, job: JobGuid, attempt: u32, number: u32, at: Timestamp) -> Checked {
        let tally = now(self.store.tally(job, attempt, number)).map_err(|error| error.to_string())?;
        let row = now(self.store.job(job)).map_err(|error| error.to_string())?;
        {
            let mut known = self.known();
            let known = &mut *known;
            let record = known.jobs.get_mut(&job).ok_or("a tally of an unknown job")?;
            let of_tally = record.tallies.get_mut(&(attempt, number)).ok_or("a tally without a chunk index")?;
            if !tally.is_closed() || of_tally.is_closed() {
                return Ok(());
            }
            let open = |address: ChunkAddress| {
                (address.attempt, address.tally) == (attempt, number)
                    && of_tally.committed[usize::from(address.index)].is_none()
            };
            let at_work = known.at_work.iter().filter(|((_, of), _)| *of == job);
            let runs =
                at_work.filter(|(_, run)| row.stopped_by().is_some_and(|stop| run.runs_since_before(stop.at, open)));
            ensure(runs.count() == 0, || {
                format!("{} tally {number} is closed while a run from before the stop is at work on it", job_name(job))
            })?;
            let stopped = row.attempt == attempt && row.is_stopped();
            ensure(stopped, || format!("{} tally {number} is closed early without a stop", job_name(job)))?;
            let ended = row.stopped_by().is_some_and(|stop| at >= stop.at + GRACE);
            ensure(ended, || {
                format!("{} tally {number} is closed before the grace of its runs is over", job_name(job))
            })?;
            of_tally.rest_skipped = true;
            *known.reached.entry("tally closed without its rest".to_owned()).or_default() += 1;
            let open = of_tally.committed.iter().zip(&of_tally.rows).filter(|(committed, _)| committed.is_none());
            let rows: Vec<u64> = open.flat_map(|(_, rows)| rows.iter().map(|row| row.number)).collect();
            let numbers =
                (0..).zip(&of_tally.committed).map(|(index, _)| ChunkAddress { attempt, tally: number, index });
            let numbers: Vec<u64> = numbers.map(ChunkAddress::number).collect();
            for number in numbers {
                record.in_flight.remove(&number);
            }
            if attempt == 1 {
                rows.into_iter().for_each(|row| record.end(row, RowEnd::Skipped));
            }
        }
        self.tally_moved(job, attempt, number)?;
        self.job_moved(job)
    }

    /// A tally has the counts of its commits.
    pub fn tally_moved(&self, job: JobGuid, attempt: u32, number: u32) -> Checked {
        let tally = now(self.store.tally(job, attempt, number)).map_err(|error| error.to_string())?;
        let mut known = self.known();
        let record = known.jobs.get_mut(&job).ok_or("a tally of an unknown job")?;
        self.know_stored(job, record, &tally)?;
        let Some(of_tally) = record.tallies.get(&(attempt, number)) else {
            let row = now(self.store.job(job)).map_err(|error| error.to_string())?;
            return ensure(row.is_past(attempt), || "a tally without a chunk index".to_owned());
        };
        check_tally(&tally, of_tally).map_err(|what| format!("{} tally {attempt}/{number}: {what}", job_name(job)))
    }

    /// A tally was folded: it is closed, and the totals are the sums of the folded tallies.
    pub fn folded(&self, job: JobGuid, tally: &Tally) -> Checked {
        let totals = now(self.store.totals(job, tally.attempt)).map_err(|error| error.to_string())?;
        {
            let known = self.known();
            let record = known.jobs.get(&job).ok_or("totals of an unknown job")?;
            check_totals(&totals, record).map_err(|what| format!("{} {what}", job_name(job)))?;
        }
        self.job_moved(job)
    }

    /// A dead letter was acknowledged: it is recorded.
    pub fn dead_letter_settled(&self, delivery: &Delivery) -> Checked {
        let job = delivery.body.job_guid();
        let letters = now(self.store.dead_letters(job, usize::MAX)).map_err(|error| error.to_string())?;
        let id = format!("m{}", delivery.id);
        ensure(letters.iter().any(|letter| letter.message_id == id), || format!("{id} is settled, but not recorded"))
    }

    /// A redrive started the next attempt.
    pub fn redriven(&self, job: JobGuid) -> Checked {
        if let Some(record) = self.known().jobs.get_mut(&job) {
            let row = now(self.store.job(job)).map_err(|error| error.to_string())?;
            if row.attempt > record.shown.attempt {
                record.in_flight.clear();
            }
        }
        self.slots()?;
        self.job_moved(job)
    }

    /// The shown job agrees with its commits, and its progress never goes back.
    /// A job that waits is not split, and no longer waits only once its file is there.
    fn waits(&self, row: &Job) -> Checked {
        let spec = now(self.store.spec(row.job_guid)).map_err(|error| error.to_string())?;
        if row.is_awaiting() {
            ensure(row.lease.is_none() && row.split.tallies == 0, || "it is split while it waits".into())?;
            self.reach(if row.has_shared_slots() { "a job waits" } else { "a job waits without shared slots" });
        } else if row.awaits.is_none() {
            ensure(!spec.source.is_awaited(), || "it goes on without its file".into())?;
        }
        Ok(())
    }

    pub fn job_moved(&self, job: JobGuid) -> Checked {
        let row = now(self.store.job(job)).map_err(|error| error.to_string())?;
        let view = now(JobView::read_for_list(&*self.store, &row)).map_err(|error| error.to_string())?;
        // As it is shown once it is slow.
        let slow = JobView::read(&*self.store, &row, Timestamp::MAX);
        let slow = now(slow).map_err(|error| error.to_string())?;
        if slow.items_at_work.is_some_and(|items| items > 0) {
            self.reach("items at work");
        }
        self.waits(&row)?;
        let mut known = self.known();
        let record = known.jobs.get_mut(&job).ok_or("an unknown job moved")?;
        let checked = check_view(&row, &view, record).and_then(|()| check_slow_view(&row, &slow, record));
        checked.map_err(|what| format!("{}: {what}", job_name(job)))
    }
}
