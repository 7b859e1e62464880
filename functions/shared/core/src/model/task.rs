//! Tasks: chunks that workers outside of the stack process, or services that answer later.
//!
//! The row of a task says that its chunk waits for a holder, or when to look again at the one that has it. It holds the
//! message of the chunk, which is no longer in a queue. Everything else is in the chunk's
//! [checkpoint](crate::model::checkpoint): who holds the chunk and until when, which items are done, and which items
//! their holders died on. So a lease, a beat and a report are moves of one row.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::checkpoint::{Checkpoint, InFlight};
use crate::model::client_version::ClientVersion;
use crate::model::ids::{JobGuid, Owner, RunId};
use crate::model::job::Job;
use crate::model::messages::ChunkMessage;
use crate::model::sha256::sha256_hex;
use crate::model::tally::ChunkAddress;

/// How workers or a service process the tasks of a job type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskTerms {
    /// Longest time between two beats of a holder.
    pub beat: Duration,
    /// Maximum number of items of a task.
    pub items: u32,
    /// True if the target of the type is called with each task, and answers later. If not, workers lease them.
    pub called: bool,
    /// Oldest version of a client that gets tasks.
    pub minimum_client: Option<ClientVersion>,
}

/// Time after a lease by which the first beat must come. Until then the worker has not begun.
pub const LEASE: Duration = Duration::from_secs(30);

/// A holder is given up only this long after its time is over: clocks of two functions differ.
pub const CLOCKS_DIFFER: Duration = Duration::from_secs(5);

/// Number of holders that die on one item alone before the item fails as poison. Workers die more often than functions
/// do: a machine is taken away, a shell is closed.
pub const HOLDERS_MAX: u32 = 3;

/// Retention of a row whose task nobody looks at: longer than an attempt and the grace of its stop.
pub const TASK_KEPT: SignedDuration = SignedDuration::from_hours(21 * 24);

impl TaskTerms {
    /// Time after a beat at which its sender is given up. A worker counts it from when it sent the beat, so it stops
    /// first.
    pub fn patience(&self) -> Duration {
        self.beat + self.beat / 2
    }
}

/// The place of an owner among those that have tasks of a type. Owners are in no order that their names could give: a
/// lease begins at a random place, and each owner has its turn.
pub fn place_of(owner: &Owner) -> u32 {
    let digest = sha256_hex(owner.as_str().as_bytes());
    u32::from_str_radix(digest.get(..8).unwrap_or_default(), 16).unwrap_or(0)
}

/// Names a task: its job and its chunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId {
    pub job: JobGuid,
    pub chunk: ChunkAddress,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChunkAddress { attempt, tally, index } = self.chunk;
        write!(f, "{}.{attempt}.{tally}.{index}", self.job)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a task is named by its job, attempt, tally and place, separated by dots")]
pub struct InvalidTaskId;

impl FromStr for TaskId {
    type Err = InvalidTaskId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('.');
        let mut part = || parts.next().ok_or(InvalidTaskId);
        let job = part()?.parse().map_err(|_| InvalidTaskId)?;
        let chunk = ChunkAddress {
            attempt: part()?.parse().map_err(|_| InvalidTaskId)?,
            tally: part()?.parse().map_err(|_| InvalidTaskId)?,
            index: part()?.parse().map_err(|_| InvalidTaskId)?,
        };
        let id = Self { job, chunk };
        // One name for a task: no signs, no leading zeros.
        (id.to_string() == text.to_ascii_lowercase()).then_some(id).ok_or(InvalidTaskId)
    }
}

/// The row of a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub job_type: String,
    /// The message that goes back to its queue if no worker may process the chunk any more.
    pub message: ChunkMessage,
    /// When it may be leased, or its holder is looked at.
    pub due_at: Timestamp,
    /// True if its holder is a service, which is called: nobody leases it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub called: bool,
    /// The worker that leased it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

/// A worker that has leased a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// Its name for people.
    pub worker: String,
    /// When it leased the task.
    pub since: Timestamp,
}

impl Task {
    pub const fn id(&self) -> TaskId {
        TaskId { job: self.message.job_guid, chunk: self.message.address }
    }
}

/// What becomes of a task that is due.
#[derive(Clone, PartialEq, Debug)]
pub enum TaskLook {
    /// Its attempt is past: the row is removed.
    Past,
    /// A worker holds it until this time.
    Held(Timestamp),
    /// No worker may process it: `process-items` gets its message and decides.
    GiveBack,
    /// It is free.
    Free,
}

impl TaskLook {
    /// The look at a task with this message, as its job and its checkpoint are.
    pub fn at(message: &ChunkMessage, job: Option<&Job>, checkpoint: &Checkpoint, now: Timestamp) -> Self {
        let Some(job) = job.filter(|job| !job.is_past(message.address.attempt)) else { return Self::Past };
        match checkpoint.held_until().filter(|until| *until > now) {
            Some(until) => Self::Held(until),
            None if job.drops(message) || job.is_stopped() || now >= job.stops_at() => Self::GiveBack,
            None if checkpoint.done >= message.chunk.items || checkpoint.has_poison() => Self::GiveBack,
            None => Self::Free,
        }
    }
}

impl Checkpoint {
    /// Until when a worker holds the chunk, if one does. Its time on this clock may be over a little later.
    pub fn held_until(&self) -> Option<Timestamp> {
        self.in_flight.map(|note| note.until.checked_add(CLOCKS_DIFFER).unwrap_or(Timestamp::MAX))
    }

    /// True if so many holders have died on the next item alone that it fails.
    pub fn has_poison(&self) -> bool {
        self.known_suspects().is_some_and(|suspects| suspects.deaths >= HOLDERS_MAX)
    }

    /// The checkpoint after a lease of the next items by `token`: at most `items`, of a chunk of `of`. What the holder
    /// before has died on becomes known with it.
    #[must_use]
    pub fn leased(&self, token: RunId, items: u32, of: u32, now: Timestamp) -> Self {
        let suspects = self.known_suspects();
        let together = suspects.and_then(|suspects| suspects.together(self.done)).unwrap_or(u32::MAX);
        let items = items.min(together).min(of.saturating_sub(self.done));
        let deaths = suspects.map_or(0, |suspects| suspects.deaths);
        let note = InFlight { until: now + LEASE, deaths, items, unconfirmed: true };
        Self { in_flight: Some(note), suspects, ..self.moved(token, now) }
    }

    /// The checkpoint after a beat of its holder; none if this is not the holder.
    #[must_use]
    pub fn beaten(&self, token: RunId, terms: &TaskTerms, now: Timestamp) -> Option<Self> {
        let note = self.held_by(token)?;
        let note = InFlight { until: now + terms.patience(), unconfirmed: false, ..note };
        Some(Self { in_flight: Some(note), ..self.moved(token, now) })
    }

    /// The note of this holder, if its token stands.
    pub fn held_by(&self, token: RunId) -> Option<InFlight> {
        self.in_flight.filter(|_| self.by == Some(token))
    }

    /// The checkpoint after its holder, whose time is over, was given up. The death counts.
    #[must_use]
    pub fn given_up(&self, run: RunId, now: Timestamp) -> Self {
        let suspects = self.known_suspects().filter(|suspects| suspects.concern(self.done));
        Self { in_flight: None, suspects, ..self.moved(run, now) }
    }

    /// The checkpoint after its holder has given the rest back. If it `failed`, that is a death on these items.
    #[must_use]
    pub fn released(&self, token: RunId, failed: bool, now: Timestamp) -> Option<Self> {
        let note = self.held_by(token)?;
        Some(Self { in_flight: Some(note).filter(|_| failed), ..self.clone() }.given_up(token, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    const fn run(byte: u8) -> RunId {
        RunId::from_bytes([byte; RunId::BYTES])
    }

    const TERMS: TaskTerms =
        TaskTerms { beat: Duration::from_secs(60), items: 20, called: false, minimum_client: None };

    #[test]
    fn a_task_has_one_name() {
        let id = TaskId { job: fixtures::job().job_guid, chunk: ChunkAddress { attempt: 1, tally: 20, index: 3 } };
        assert_eq!(id.to_string().parse::<TaskId>().unwrap(), id);
        let job = id.job;
        for text in ["", "x.1.2.3", &format!("{job}.1.2"), &format!("{job}.01.2.3"), &format!("{job}.1.2.3.4")] {
            assert!(text.parse::<TaskId>().is_err(), "{text}");
        }
    }

    /// Leases, beats, and lets the holder die. Returns the items that each holder had, until the item is poison.
    fn deaths(mut checkpoint: Checkpoint, of: u32) -> Vec<u32> {
        let mut handed = Vec::new();
        for holder in 1.. {
            if checkpoint.has_poison() {
                break;
            }
            let leased = checkpoint.leased(run(holder), TERMS.items, of, at(0));
            handed.push(leased.in_flight.unwrap().items);
            checkpoint = leased.beaten(run(holder), &TERMS, at(1)).unwrap();
        }
        handed
    }

    #[test]
    fn an_item_that_kills_its_holders_is_found_alone_and_fails_alone() {
        let blank = Checkpoint::blank(ChunkAddress { attempt: 1, tally: 0, index: 0 }, at(0));
        assert_eq!(deaths(blank.clone(), 20), [20, 1, 1, 1]);
        assert_eq!(deaths(blank, 1), [1, 1, 1]);
    }

    #[test]
    fn a_holder_that_never_began_has_not_died() {
        let blank = Checkpoint::blank(ChunkAddress { attempt: 1, tally: 0, index: 0 }, at(0));
        let leased = blank.leased(run(1), 1, 5, at(0));
        assert_eq!(leased.known_suspects(), None);
        assert_eq!(leased.leased(run(2), 5, 5, at(100)).in_flight.unwrap().items, 5);
    }

    #[test]
    fn only_the_holder_beats_and_gives_back() {
        let blank = Checkpoint::blank(ChunkAddress { attempt: 1, tally: 0, index: 0 }, at(0));
        assert_eq!(blank.beaten(run(1), &TERMS, at(1)), None);
        let leased = blank.leased(run(1), 3, 5, at(0));
        assert_eq!(leased.beaten(run(2), &TERMS, at(1)), None);
        assert_eq!(leased.released(run(2), true, at(1)), None);
        let released = leased.beaten(run(1), &TERMS, at(1)).unwrap().released(run(1), false, at(2)).unwrap();
        assert_eq!((released.in_flight, released.suspects), (None, None));
        assert_eq!(released.beaten(run(1), &TERMS, at(3)), None, "it has given it back");
        let failed = leased.beaten(run(1), &TERMS, at(1)).unwrap().released(run(1), true, at(2)).unwrap();
        assert_eq!(failed.leased(run(2), 3, 5, at(3)).in_flight.unwrap().items, 1);
    }

    #[test]
    fn a_look_leaves_what_no_worker_may_process_to_the_function() {
        let message = fixtures::chunk_message(0, 0);
        let job = Job { deadline_at: at(1000), ..fixtures::job() };
        let blank = Checkpoint::blank(message.address, at(0));
        let look = |job: &Job, checkpoint: &Checkpoint| TaskLook::at(&message, Some(job), checkpoint, at(100));
        assert_eq!(look(&job, &blank), TaskLook::Free);
        assert_eq!(TaskLook::at(&message, None, &blank, at(100)), TaskLook::Past);
        assert_eq!(look(&Job { attempt: 2, ..job.clone() }, &blank), TaskLook::Past);
        let held = blank.leased(run(1), 1, 1, at(90));
        assert_eq!(look(&job, &held), TaskLook::Held(at(125)));
        assert_eq!(look(&job, &blank.leased(run(1), 1, 1, at(65))), TaskLook::Free, "its time is over");
        for other in [Job { epoch: 1, ..job.clone() }, Job { deadline_at: at(100), ..job.clone() }] {
            assert_eq!(look(&other, &blank), TaskLook::GiveBack);
            assert_eq!(look(&other, &held), TaskLook::Held(at(125)), "its holder ends first");
        }
        let done = Checkpoint { done: message.chunk.items, ..blank };
        assert_eq!(look(&job, &done), TaskLook::GiveBack);
    }
}
