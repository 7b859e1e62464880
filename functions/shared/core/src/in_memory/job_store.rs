use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Mutex;

use async_trait::async_trait;
use jiff::Timestamp;

use super::lock;
use crate::model::checkpoint::Checkpoint;
use crate::model::dead_letter::DeadLetter;
use crate::model::ids::{JobGuid, Owner, RunId};
use crate::model::job::{Job, Lease, Stop, StopCode};
use crate::model::spec::Spec;
use crate::model::states::{Status, Transition};
use crate::model::tally::{ChunkAddress, Commit, Tally, Totals};
use crate::ports::{
    Admission, Ceilings, CheckpointMoved, Committed, Completion, CreateError, Created, Due, ENDS_KEPT, Full,
    Idempotency, JobFilter, JobPage, JobStore, Leased, NewAttempt, NewJob, PortError, RedriveError, Stopped,
    WAKE_SHARDS, WriteLost,
};
use crate::text::Position;

/// The jobs and admission tables in memory.
#[derive(Debug, Default)]
pub struct InMemoryJobStore(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    jobs: BTreeMap<JobGuid, Job>,
    specs: HashMap<JobGuid, Spec>,
    tallies: BTreeMap<(JobGuid, u32, u32), Tally>,
    totals: HashMap<(JobGuid, u32), Totals>,
    checkpoints: HashMap<(JobGuid, ChunkAddress), Checkpoint>,
    dead_letters: BTreeMap<(JobGuid, String), DeadLetter>,
    active: HashMap<String, i64>,
    ends: HashMap<String, VecDeque<Timestamp>>,
    requests: HashMap<(Owner, String), (JobGuid, Idempotency)>,
}

impl InMemoryJobStore {
    /// How many jobs hold a slot of this scope: `owner#…`, `type#…` or `system`.
    pub fn active(&self, scope: &str) -> i64 {
        lock(&self.0).active.get(scope).copied().unwrap_or(0)
    }

    /// Every job there is, oldest first.
    pub fn every_job(&self) -> Vec<Job> {
        lock(&self.0).jobs.values().cloned().collect()
    }

    /// Changes a tally without any condition, as a broken store would.
    pub fn edit_tally(&self, job: JobGuid, attempt: u32, number: u32, edit: impl FnOnce(&mut Tally)) {
        if let Some(tally) = lock(&self.0).tallies.get_mut(&(job, attempt, number)) {
            edit(tally);
        }
    }
}

impl Tables {
    fn job(&mut self, job: JobGuid) -> Result<&mut Job, PortError> {
        self.jobs.get_mut(&job).ok_or(PortError::NotFound)
    }

    fn totals(&mut self, job: JobGuid, attempt: u32) -> &mut Totals {
        self.totals.entry((job, attempt)).or_insert_with(|| Totals { attempt, ..Totals::default() })
    }

    /// Takes the slots of a job, all or none.
    fn take_slots(&mut self, job: &Job, ceilings: Ceilings) -> Result<(), Full> {
        let full = [
            (ceilings.owner, Admission::OwnerFull),
            (ceilings.job_type, Admission::TypeFull),
            (ceilings.system, Admission::SystemFull),
        ];
        let scopes = scopes(job);
        for (scope, (ceiling, admission)) in scopes.iter().zip(full) {
            if self.active.get(scope).copied().unwrap_or(0) >= i64::from(ceiling) {
                let recent_ends = self.ends.get(scope).into_iter().flatten().copied().collect();
                return Err(Full { admission, recent_ends });
            }
        }
        for scope in scopes {
            *self.active.entry(scope).or_default() += 1;
        }
        Ok(())
    }

    /// Gives the slots of a job back that ends now.
    fn give_slots_back(&mut self, job: &Job, now: Timestamp) {
        for scope in scopes(job) {
            let ends = self.ends.entry(scope.clone()).or_default();
            ends.push_front(now);
            ends.truncate(ENDS_KEPT);
            *self.active.entry(scope).or_default() -= 1;
        }
    }

    /// The job, if it runs this attempt under this holder's lease.
    fn held(&mut self, job: JobGuid, attempt: u32, holder: RunId) -> Result<&mut Job, WriteLost> {
        let job = self.job(job)?;
        if job.attempt == attempt && job.lease.is_some_and(|lease| lease.holder == holder) {
            return Ok(job);
        }
        Err(WriteLost::Condition(Box::new(job.clone())))
    }
}

fn scopes(job: &Job) -> [String; 3] {
    [format!("owner#{}", job.owner), format!("type#{}", job.job_type), "system".to_owned()]
}

#[async_trait]
impl JobStore for InMemoryJobStore {
    async fn create(&self, new: &NewJob) -> Result<Created, CreateError> {
        let mut tables = lock(&self.0);
        let place = |key: &str| (new.job.owner.clone(), key.to_owned());
        if let Some(wanted) = &new.idempotency
            && let Some((job, known)) = tables.requests.get(&place(&wanted.key))
            && known.expires_at > new.job.created_at
        {
            return match known.fingerprint == wanted.fingerprint {
                true => Ok(Created::Before(*job)),
                false => Err(CreateError::KeyReused),
            };
        }
        tables.take_slots(&new.job, new.ceilings).map_err(CreateError::Full)?;
        if let Some(wanted) = &new.idempotency {
            tables.requests.insert(place(&wanted.key), (new.job.job_guid, wanted.clone()));
        }
        tables.specs.insert(new.job.job_guid, new.spec.clone());
        tables.jobs.insert(new.job.job_guid, new.job.clone());
        Ok(Created::New)
    }

    async fn remembered(
        &self,
        owner: &Owner,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<(JobGuid, String)>, PortError> {
        let tables = lock(&self.0);
        let known = tables.requests.get(&(owner.clone(), key.to_owned()));
        Ok(known.filter(|(_, known)| known.expires_at > now).map(|(job, known)| (*job, known.fingerprint.clone())))
    }

    async fn job(&self, job: JobGuid) -> Result<Job, PortError> {
        lock(&self.0).job(job).cloned()
    }

    async fn spec(&self, job: JobGuid) -> Result<Spec, PortError> {
        lock(&self.0).specs.get(&job).cloned().ok_or(PortError::NotFound)
    }

    async fn jobs(&self, owner: &Owner, filter: &JobFilter, now: Timestamp) -> Result<JobPage, PortError> {
        let tables = lock(&self.0);
        let wanted = |job: &&Job| {
            job.owner == *owner
                && filter.after.is_none_or(|after| job.job_guid < after)
                && filter.status.is_none_or(|status| job.status == status)
                && filter.job_type.as_ref().is_none_or(|job_type| job.job_type == *job_type)
                && job.expires_at.is_none_or(|expires_at| expires_at > now)
        };
        let mut found = tables.jobs.values().rev().filter(wanted);
        let jobs: Vec<Job> = found.by_ref().take(filter.limit).cloned().collect();
        let next = found.next().and(jobs.last()).map(|last| last.job_guid);
        Ok(JobPage { jobs, next })
    }

    async fn lease(&self, job: JobGuid, attempt: u32, lease: Lease, now: Timestamp) -> Result<Leased, PortError> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        let free = job.lease.is_none_or(|held| held.until <= now || held.holder == lease.holder);
        if job.is_past(attempt) || !free {
            return Ok(Leased::Refused(job.clone()));
        }
        job.lease = Some(lease);
        // A cancelling job is taken up to be ended, and stays cancelling.
        job.status = Transition::Take.apply(job.status).unwrap_or(job.status);
        job.started_at = job.started_at.or(Some(now));
        job.moved_at = now;
        Ok(Leased::Taken(job.clone()))
    }

    async fn release(&self, job: JobGuid, holder: RunId) -> Result<(), PortError> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        job.lease = job.lease.filter(|lease| lease.holder != holder);
        Ok(())
    }

    async fn put_tally(&self, job: JobGuid, tally: &Tally) -> Result<Tally, PortError> {
        let mut tables = lock(&self.0);
        let place = (job, tally.attempt, tally.number);
        Ok(tables.tallies.entry(place).or_insert_with(|| tally.clone()).clone())
    }

    async fn count_tally(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        number: u32,
        next: Position,
        now: Timestamp,
    ) -> Result<(), WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.held(job, attempt, holder)?;
        if job.split.tallies != number || job.stop.is_some() || job.split.done {
            return Err(WriteLost::Condition(Box::new(job.clone())));
        }
        job.split.tallies = number + 1;
        job.split.dispatched = number;
        job.split.cursor = next;
        job.moved_at = now;
        Ok(())
    }

    async fn pause_split(&self, job: JobGuid, attempt: u32, holder: RunId, now: Timestamp) -> Result<(), WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.held(job, attempt, holder)?;
        job.split.dispatched = job.split.tallies;
        job.lease = None;
        job.moved_at = now;
        Ok(())
    }

    async fn finish_split(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        at_end: bool,
        now: Timestamp,
    ) -> Result<Job, WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.held(job, attempt, holder)?;
        job.split.done = true;
        job.split.at_end = at_end;
        job.split.dispatched = job.split.tallies;
        job.lease = None;
        job.moved_at = now;
        Ok(job.clone())
    }

    async fn pause_composition(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        state: RunId,
        now: Timestamp,
    ) -> Result<(), WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.held(job, attempt, holder)?;
        job.composing = Some(state);
        job.lease = None;
        job.moved_at = now;
        Ok(())
    }

    async fn stop(&self, job: JobGuid, attempt: u32, stop: &Stop) -> Result<Stopped, PortError> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        if job.is_past(attempt) || job.stop.is_some() {
            let own = !job.is_past(attempt) && job.stop.as_ref() == Some(stop);
            return Ok(if own { Stopped::Now(job.clone()) } else { Stopped::Not(job.clone()) });
        }
        job.stop = Some(stop.clone());
        job.moved_at = stop.at;
        job.wake_at = Some(stop.at);
        if stop.code == StopCode::Cancelled {
            job.status = Transition::Cancel.apply(job.status).unwrap_or(job.status);
        }
        Ok(Stopped::Now(job.clone()))
    }

    async fn set_final_tallies(&self, job: JobGuid, attempt: u32, tallies: u32) -> Result<Totals, PortError> {
        let mut tables = lock(&self.0);
        let totals = tables.totals(job, attempt);
        totals.final_tallies = Some(tallies);
        Ok(totals.clone())
    }

    async fn commit(&self, job: JobGuid, commit: &Commit) -> Result<Committed, PortError> {
        let mut tables = lock(&self.0);
        let place = (job, commit.chunk.attempt, commit.chunk.tally);
        let tally = tables.tallies.get_mut(&place).ok_or(PortError::NotFound)?;
        match tally.mark(commit.chunk.index) {
            Some(mark) if mark.run == commit.mark.run => return Ok(Committed::Won(tally.clone())),
            None if !tally.is_closed() => {}
            _ => return Ok(Committed::Lost(tally.clone())),
        }
        tally.marks[usize::from(commit.chunk.index)] = Some(commit.mark);
        tally.done += 1;
        tally.counts += commit.counts;
        tally.bytes += commit.bytes;
        tally.at = commit.at;
        Ok(Committed::Won(tally.clone()))
    }

    async fn skip_rest(&self, job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError> {
        let mut tables = lock(&self.0);
        let tally = tables.tallies.get_mut(&(job, seen.attempt, seen.number)).ok_or(PortError::NotFound)?;
        if tally.done == seen.done {
            tally.counts.skipped += tally.items - tally.counts.sum();
            tally.done = tally.expected;
            tally.at = at;
        }
        Ok(tally.clone())
    }

    async fn tally(&self, job: JobGuid, attempt: u32, number: u32) -> Result<Tally, PortError> {
        lock(&self.0).tallies.get(&(job, attempt, number)).cloned().ok_or(PortError::NotFound)
    }

    async fn tallies(&self, job: JobGuid, attempt: u32, numbers: Range<u32>) -> Result<Vec<Tally>, PortError> {
        let places = (job, attempt, numbers.start)..(job, attempt, numbers.end.max(numbers.start));
        Ok(lock(&self.0).tallies.range(places).map(|(_, tally)| tally.clone()).collect())
    }

    async fn fold(&self, job: JobGuid, tally: &Tally) -> Result<Totals, PortError> {
        let mut tables = lock(&self.0);
        let totals = tables.totals(job, tally.attempt);
        if totals.closed.insert(tally.number) {
            totals.items += tally.items;
            totals.counts += tally.counts;
            totals.bytes += tally.bytes;
            totals.at = Some(tally.at);
        }
        Ok(totals.clone())
    }

    async fn totals(&self, job: JobGuid, attempt: u32) -> Result<Totals, PortError> {
        let tables = lock(&self.0);
        let known = tables.totals.get(&(job, attempt)).cloned();
        Ok(known.unwrap_or(Totals { attempt, ..Totals::default() }))
    }

    async fn touch(&self, job: JobGuid, attempt: u32, tally: u32, at: Timestamp) -> Result<(), PortError> {
        if let Some(tally) = lock(&self.0).tallies.get_mut(&(job, attempt, tally)) {
            tally.at = at;
        }
        Ok(())
    }

    async fn checkpoint(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError> {
        Ok(lock(&self.0).checkpoints.get(&(job, chunk)).cloned())
    }

    async fn move_checkpoint(&self, job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError> {
        let mut tables = lock(&self.0);
        let place = (job, moved.chunk);
        match tables.checkpoints.get(&place) {
            Some(there) if there.rev == moved.rev && there.by == moved.by => Ok(CheckpointMoved::Won),
            Some(there) if there.rev + 1 != moved.rev => Ok(CheckpointMoved::Lost(there.clone())),
            None if moved.rev != 1 => Ok(CheckpointMoved::Lost(Checkpoint::blank(moved.chunk, moved.at))),
            _ => {
                tables.checkpoints.insert(place, moved.clone());
                Ok(CheckpointMoved::Won)
            }
        }
    }

    async fn record_dead_letter(&self, job: JobGuid, letter: &DeadLetter) -> Result<(), PortError> {
        let place = (job, letter.message_id.clone());
        lock(&self.0).dead_letters.entry(place).or_insert_with(|| letter.clone());
        Ok(())
    }

    async fn dead_letters(&self, job: JobGuid, limit: usize) -> Result<Vec<DeadLetter>, PortError> {
        let tables = lock(&self.0);
        let of_job = tables.dead_letters.iter().filter(|((of, _), _)| *of == job);
        let mut letters: Vec<DeadLetter> = of_job.map(|(_, letter)| letter.clone()).collect();
        letters.sort_by_key(|letter| letter.at);
        letters.truncate(limit);
        Ok(letters)
    }

    async fn due(&self, shard: u32, now: Timestamp, limit: usize) -> Result<Vec<Due>, PortError> {
        let tables = lock(&self.0);
        // Any even spread does.
        let in_shard = |job: &JobGuid| job.0.as_u128() % u128::from(WAKE_SHARDS) == u128::from(shard);
        let jobs = tables.jobs.values().filter(|job| in_shard(&job.job_guid));
        let mut due: Vec<Due> = jobs
            .filter_map(|job| Some(Due { job: job.job_guid, at: job.wake_at? }))
            .filter(|due| due.at <= now)
            .collect();
        due.sort_by_key(|due| due.at);
        due.truncate(limit);
        Ok(due)
    }

    async fn wake_later(&self, due: Due, next: Timestamp, recoveries: u32) -> Result<Option<Job>, PortError> {
        let mut tables = lock(&self.0);
        let Some(job) = tables.jobs.get_mut(&due.job).filter(|job| job.wake_at == Some(due.at)) else {
            return Ok(None);
        };
        job.wake_at = Some(next);
        job.recoveries = recoveries;
        Ok(Some(job.clone()))
    }

    async fn redrive(&self, attempt: &NewAttempt) -> Result<Job, RedriveError> {
        let mut tables = lock(&self.0);
        let job = tables.job(attempt.seen.job_guid)?.clone();
        if attempt.was_applied(&job) {
            return Ok(job);
        }
        if (job.status, job.attempt) != (attempt.seen.status, attempt.seen.attempt) || !job.status.is_terminal() {
            return Err(RedriveError::Moved(Box::new(job)));
        }
        tables.take_slots(&job, attempt.ceilings).map_err(RedriveError::Full)?;
        let next = attempt.job();
        tables.jobs.insert(next.job_guid, next.clone());
        Ok(next)
    }

    async fn complete(&self, completion: &Completion) -> Result<(), WriteLost> {
        let mut tables = lock(&self.0);
        let seen = &completion.seen;
        let job = tables.job(seen.job_guid)?;
        if completion.has_ended(job) {
            return Ok(());
        }
        if (job.status, job.attempt, &job.stop) != (seen.status, seen.attempt, &seen.stop)
            || job.status == Status::Waiting
        {
            return Err(WriteLost::Condition(Box::new(job.clone())));
        }
        *job = completion.job();
        tables.give_slots_back(seen, completion.finished_at);
        Ok(())
    }
}
