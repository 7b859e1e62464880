//! The jobs and admission tables in memory: one file per trait of the port.

mod admissions;
mod attempts;
mod checkpoints;
mod completions;
mod dead_letters;
mod erasures;
mod jobs;
mod permits;
mod slots;
mod tallies;
mod updates;
mod waits;
mod wake_ups;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeBounds;
use std::sync::Mutex;

use uuid::Uuid;

use super::lock;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::dead_letter::DeadLetter;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::permit::Permit;
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::{ChunkAddress, Tally, Totals};
use rowmill_core::ports::{Dedupe, Idempotency, PortError};
use slots::Slots;

/// No tally has this number.
const TOTALS: u32 = u32::MAX;

/// The jobs and admission tables in memory.
#[derive(Debug, Default)]
pub struct InMemoryJobStore(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    jobs: BTreeMap<JobGuid, Job>,
    specs: HashMap<JobGuid, Spec>,
    awaiting: BTreeSet<(Uuid, JobGuid)>,
    tallies: BTreeMap<(JobGuid, u32, u32), Tally>,
    /// Tallies whose rows cannot be decoded; [`TOTALS`] stands for the totals.
    spoiled: BTreeSet<(JobGuid, u32, u32)>,
    totals: HashMap<(JobGuid, u32), Totals>,
    checkpoints: HashMap<(JobGuid, ChunkAddress), Checkpoint>,
    permits: BTreeMap<(String, u32), Permit>,
    dead_letters: BTreeMap<(JobGuid, String), DeadLetter>,
    slots: Slots,
    requests: HashMap<(Owner, String), (JobGuid, Idempotency)>,
    deduped: HashMap<(Owner, String), (JobGuid, Dedupe)>,
    /// Writes of others after the next update, whose reply is lost.
    after_update: Option<fn(&mut Job)>,
}

impl InMemoryJobStore {
    /// The number of jobs that hold a slot of this scope: `owner#…`, `type#…` or `system`.
    pub fn active(&self, scope: &str) -> i64 {
        lock(&self.0).slots.active(scope)
    }

    /// The number of rows of a job, with its job row.
    pub fn rows(&self, job: JobGuid) -> usize {
        let tables = lock(&self.0);
        tables.rows_of(job) + usize::from(tables.jobs.contains_key(&job))
    }

    /// All jobs, oldest first.
    pub fn every_job(&self) -> Vec<Job> {
        lock(&self.0).jobs.values().cloned().collect()
    }

    /// Changes a job row without any condition, as a broken store would.
    pub fn edit_job(&self, job: JobGuid, edit: impl FnOnce(&mut Job)) {
        if let Some(job) = lock(&self.0).jobs.get_mut(&job) {
            edit(job);
            job.revision += 1;
        }
    }

    /// Loses the reply of the next update. It is recognised when it is repeated; others have written this in between.
    pub fn lose_next_reply(&self, others: fn(&mut Job)) {
        lock(&self.0).after_update = Some(others);
    }

    /// Changes the totals of an attempt without any condition, as a broken store would.
    pub fn edit_totals(&self, job: JobGuid, attempt: u32, edit: impl FnOnce(&mut Totals)) {
        if let Some(totals) = lock(&self.0).totals.get_mut(&(job, attempt)) {
            edit(totals);
        }
    }

    /// Loses a tally, as a broken store would.
    pub fn lose_tally(&self, job: JobGuid, attempt: u32, number: u32) {
        lock(&self.0).tallies.remove(&(job, attempt, number));
    }

    /// Makes the row of a tally unreadable, as another version of the functions might.
    pub fn spoil_tally(&self, job: JobGuid, attempt: u32, number: u32) {
        lock(&self.0).spoiled.insert((job, attempt, number));
    }

    /// The same for the row of the totals.
    pub fn spoil_totals(&self, job: JobGuid, attempt: u32) {
        self.spoil_tally(job, attempt, TOTALS);
    }

    /// Makes all rows of a job readable again.
    pub fn repair(&self, job: JobGuid) {
        lock(&self.0).spoiled.retain(|(of, _, _)| *of != job);
    }

    /// Changes a tally without any condition, as a broken store would.
    pub fn edit_tally(&self, job: JobGuid, attempt: u32, number: u32, edit: impl FnOnce(&mut Tally)) {
        if let Some(tally) = lock(&self.0).tallies.get_mut(&(job, attempt, number)) {
            edit(tally);
        }
    }
}

impl Tables {
    fn readable(&self, places: impl RangeBounds<(JobGuid, u32, u32)>) -> Result<(), PortError> {
        let spoiled = self.spoiled.range(places).next();
        spoiled.map_or(Ok(()), |_| Err(PortError::invalid("reading a counter", "its row cannot be decoded")))
    }

    /// The number of rows of a job beside its job row.
    fn rows_of(&self, job: JobGuid) -> usize {
        usize::from(self.specs.contains_key(&job))
            + self.tallies.keys().filter(|(of, _, _)| *of == job).count()
            + self.totals.keys().filter(|(of, _)| *of == job).count()
            + self.checkpoints.keys().filter(|(of, _)| *of == job).count()
            + self.dead_letters.keys().filter(|(of, _)| *of == job).count()
            + self.awaiting.iter().filter(|(of, _)| *of == job.0).count()
    }

    fn job(&mut self, job: JobGuid) -> Result<&mut Job, PortError> {
        self.jobs.get_mut(&job).ok_or(PortError::NotFound)
    }

    fn totals(&mut self, job: JobGuid, attempt: u32) -> Result<&mut Totals, PortError> {
        let place = (job, attempt, TOTALS);
        self.readable(place..=place)?;
        Ok(self.totals.entry((job, attempt)).or_insert_with(|| Totals { attempt, ..Totals::default() }))
    }
}
