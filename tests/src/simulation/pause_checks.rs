//! Invariants of paused and resumed jobs: no item begins while its job is paused, and a resume forgets no chunk.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::tally::ChunkAddress;
use rowmill_core::ports::{Jobs, Tallies};

use super::checks::{Checked, ensure, now};
use super::invariants::Invariants;
use super::queues::{Body, Queues};
use super::trace::{chunk_name, job_name};

/// Knowledge of an invocation of `process-items` about its job.
#[derive(Clone, Debug)]
pub struct JobAtDelivery {
    attempt: u32,
    /// True if the attempt was past when the invocation began.
    past: bool,
    /// The epoch of the pause in which it began.
    paused: Option<u32>,
    /// True if each row that it has read was of a paused job or past its attempt. A chunk that is received with others
    /// may find the job resumed.
    read: Option<bool>,
    /// True if it has read that its attempt is past. Not known of an invocation with several chunks: another one may
    /// have read it, while this one is within a batch.
    saw_past: Option<bool>,
}

/// The chunks of a job that an invocation of `process-items` was given, each with the epoch of its message.
#[derive(Clone, Debug)]
pub struct ChunksAtWork {
    /// When the invocation began.
    since: Timestamp,
    chunks: Vec<(ChunkAddress, u32)>,
    /// The epoch of the first row it has read that lets it run chunks.
    epoch: Option<u32>,
}

impl ChunksAtWork {
    /// True if it runs one of these chunks, and began before this time.
    pub fn runs_since_before(&self, at: Timestamp, is_one: impl Fn(ChunkAddress) -> bool) -> bool {
        self.since < at && self.epoch.is_some() && self.chunks.iter().any(|(chunk, _)| is_one(*chunk))
    }
}

impl Invariants {
    /// An invocation of `process-items` begins, with one chunk of this job alone or with several.
    pub(super) fn delivered(&self, task: u64, job: JobGuid, attempt: u32, alone: bool) {
        if let Ok(row) = now(self.store.job(job)) {
            let paused = row.is_paused().then_some(row.epoch);
            let (past, saw_past) = (row.is_past(attempt), alone.then_some(false));
            let delivery = JobAtDelivery { attempt, past, paused, read: None, saw_past };
            self.known().deliveries.insert((task, job), delivery);
        }
    }

    /// This invocation of `process-items` was given these chunks, of one job or of several. Those of a job are of one
    /// attempt.
    pub fn given<'a>(&self, task: u64, since: Timestamp, messages: impl Iterator<Item = &'a ChunkMessage>) {
        let mut jobs: BTreeMap<JobGuid, Vec<(ChunkAddress, u32)>> = BTreeMap::new();
        for message in messages {
            jobs.entry(message.job_guid).or_default().push((message.address, message.epoch));
        }
        if jobs.len() > 1 {
            self.reach("chunks of several jobs together");
        }
        for (job, chunks) in jobs {
            self.delivered(task, job, chunks[0].0.attempt, chunks.len() == 1);
            self.known().at_work.insert((task, job), ChunksAtWork { since, chunks, epoch: None });
        }
    }

    /// A job may have been paused. No rule bounds the runs of a job that a zombie pauses: its clock was read before
    /// they began, and the grace counts from then.
    pub fn paused(&self, task: u64, seen: &Job, next: &Job) {
        let mut known = self.known();
        if next.paused_at.is_some() && next.paused_at != seen.paused_at && known.zombies.contains(&task) {
            known.at_work.retain(|(_, job), _| *job != next.job_guid);
            *known.reached.entry("paused by a zombie".to_owned()).or_default() += 1;
        }
    }

    /// A job was updated. Its slots are moved with it.
    pub fn slots_moved(&self, seen: &Job, next: &Job) -> Checked {
        if seen.has_shared_slots() == next.has_shared_slots() {
            return Ok(());
        }
        self.reach(match next.has_shared_slots() {
            true if seen.awaits_slots() => "slots taken after a wait",
            true => "slots taken again",
            false => "slots given back by a paused job",
        });
        self.slots()
    }

    /// The row of a job has changed: from now on this is its window. Chunks of the window before have no messages that
    /// count.
    pub fn widened(&self, seen: &Job, next: &Job) {
        if seen.max_concurrency == next.max_concurrency {
            return;
        }
        self.reach("width changed");
        if let Some(record) = self.known().jobs.get_mut(&next.job_guid) {
            (record.width, record.ahead) = (next.max_concurrency, next.tallies_ahead);
            record.in_flight.clear();
        }
    }

    /// A chunk is sent: no run from before the last pause is at work on it.
    pub fn runs_alone(&self, message: &ChunkMessage) -> Checked {
        let known = self.known();
        let may_run = |((_, job), at_work): (&(u64, JobGuid), &ChunksAtWork)| {
            *job == message.job_guid
                && at_work.chunks.iter().any(|(chunk, epoch)| {
                    *chunk == message.address
                        && *epoch < message.epoch
                        && at_work.epoch.is_some_and(|read| read <= *epoch)
                })
        };
        ensure(!known.at_work.iter().any(may_run), || {
            let name = job_name(message.job_guid);
            format!("{name} {} is sent, and its run from before the pause is at work", chunk_name(message.address))
        })
    }

    /// The attempt of the chunks of this job that this invocation of `process-items` was given, if it was given any,
    /// and whether it was given chunks of other jobs too.
    pub fn delivered_attempt(&self, task: u64, job: JobGuid) -> Option<(u32, bool)> {
        let known = self.known();
        let attempt = known.deliveries.get(&(task, job))?.attempt;
        Some((attempt, known.deliveries.keys().any(|(of, other)| *of == task && *other != job)))
    }

    /// An invocation has read the row of its job.
    pub fn job_read(&self, task: u64, row: &Job) {
        if let Some(at_work) = self.known().at_work.get_mut(&(task, row.job_guid))
            && !row.is_paused()
        {
            at_work.epoch.get_or_insert(row.epoch);
        }
        if let Some(delivery) = self.known().deliveries.get_mut(&(task, row.job_guid)) {
            let may_not_begin = row.is_past(delivery.attempt) || row.is_paused();
            delivery.read = Some(delivery.read.unwrap_or(true) && may_not_begin);
            delivery.saw_past = delivery.saw_past.map(|saw| saw || row.is_past(delivery.attempt));
        }
    }

    /// An invocation begins an item: it did not begin after the end of its attempt, nor in the pause that still lasts,
    /// it has read another row than such ones, and it has not read since that its attempt is past.
    pub fn may_begin(&self, task: u64, job: JobGuid) -> Checked {
        let Some(delivery) = self.known().deliveries.get(&(task, job)).cloned() else { return Ok(()) };
        let row = now(self.store.job(job)).map_err(|error| error.to_string())?;
        self.known().begun.insert((job, delivery.attempt));
        ensure(row.attempt != delivery.attempt || row.first_chunk_at.is_some(), || {
            format!("{}: an item begins, and the job row does not say that a chunk has begun", job_name(job))
        })?;
        let in_pause = row.is_paused() && delivery.paused == Some(row.epoch);
        let was_told = delivery.read == Some(true) || delivery.saw_past == Some(true);
        ensure(!delivery.past && !in_pause && !was_told, || {
            let name = job_name(job);
            format!("{name}: an item begins although its job is paused or its attempt is past: {delivery:?}")
        })
    }

    /// All missing chunks of a resumed job are noted as sent again: each of them has a message. Only the chunks of a
    /// tally that the splitter sends, and those that wait for their turn in a window, need none.
    pub fn all_resent(&self, job: JobGuid, queues: &Queues) -> Checked {
        let row = now(self.store.job(job)).map_err(|error| error.to_string())?;
        if row.resend_from.is_some() || row.is_paused() || row.is_stopped() || row.is_ended() {
            return Ok(());
        }
        let Some((ahead, width)) = self.known().jobs.get(&job).map(|record| (record.ahead, record.width)) else {
            return Ok(());
        };
        let sent: BTreeSet<ChunkAddress> = (queues.messages().iter())
            .filter_map(|message| match &message.body {
                Body::Chunk(chunk) if chunk.job_guid == job => Some(chunk.address),
                _ => None,
            })
            .chain(self.tasks.every_task().iter().filter(|task| task.id().job == job).map(|task| task.id().chunk))
            .collect();
        let counted = if row.split.done { row.split.tallies } else { row.split.dispatched };
        self.reach("all chunks sent again after a resume");
        for tally in now(self.store.tallies(job, row.attempt, 0..counted)).map_err(|error| error.to_string())? {
            // The run that commits what it waits for may be about to send it.
            let waits = |chunk: &ChunkAddress| {
                ahead.is_some_and(|ahead| chunk.tally >= ahead)
                    || width.is_some_and(|width| chunk.number() >= u64::from(width))
            };
            let places = (0..).take(tally.expected as usize).filter(|place| tally.mark(*place).is_none());
            let chunks = places.map(|index| ChunkAddress { attempt: row.attempt, tally: tally.number, index });
            for chunk in chunks.filter(|chunk| !tally.is_closed() && !waits(chunk)) {
                ensure(sent.contains(&chunk), || {
                    format!("{} {} was forgotten by a resume", job_name(job), chunk_name(chunk))
                })?;
            }
        }
        Ok(())
    }
}
