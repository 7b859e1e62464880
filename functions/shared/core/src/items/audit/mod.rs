//! The audit: recomputes the counts of a job from its tallies, chunk indexes and run outputs, and names the first thing
//! that does not hold.
//!
//! A walk reads the attempts in order, and the tallies of each in order. What it reads of a tally is consistent
//! whenever it is read, because of the order of the writes (`docs/protocol.md`): the chunk index is stored before the
//! tally, a run output before the mark that names it, and a mark is set by the same write as its counts. So a job that
//! is running gives no false alarm. The sums over several rows are compared only for attempts that have ended, since
//! nothing of those moves.
//!
//! One walk may take several requests. The state between two of them is in the cursor that the client sends back.

mod chunks;
mod ending;
mod evidence;
mod run_output;
mod state;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::model::audit::{AuditCode, AuditFinding, AuditProof, AuditVerdict};
use crate::model::job::Job;
use crate::model::tally::{ChunkAddress, Totals};
use crate::ports::{Clock, JobStore, Objects, PortError};
use state::AuditState;

/// Number of tallies read by one query.
const PAGE_TALLIES: u32 = 64;

pub struct Auditor {
    /// The job's tallies and totals.
    pub jobs: Arc<dyn JobStore>,
    /// The chunk indexes, run outputs and results.
    pub objects: Arc<dyn Objects>,
    pub clock: Arc<dyn Clock>,
    pub limits: AuditLimits,
}

/// When a page ends. It ends between two tallies, after one tally at least.
#[derive(Clone, Copy, Debug)]
pub struct AuditLimits {
    /// After so many objects.
    pub objects: u64,
    /// After so many bytes of objects.
    pub bytes: u64,
    /// After so long.
    pub time: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The cursor is none, or that of another job.
    #[error("not a cursor of this job")]
    Cursor,
    /// The job has ended or was redriven since the walk began.
    #[error("the job has moved on since the audit began")]
    Moved,
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Why a walk does not go on.
enum Broken {
    Finding(Box<AuditFinding>),
    Port(PortError),
}

impl From<PortError> for Broken {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

/// End of a page.
enum Walked {
    ToTheLimit,
    ToTheEnd,
}

/// The limits of a page, and how much of them it has used.
struct Budget<'a> {
    clock: &'a dyn Clock,
    limits: AuditLimits,
    until: Timestamp,
    objects: u64,
    bytes: u64,
    has_moved: bool,
}

impl<'a> Budget<'a> {
    fn new(clock: &'a dyn Clock, limits: AuditLimits) -> Self {
        let until = clock.now() + limits.time;
        Self { clock, limits, until, objects: 0, bytes: 0, has_moved: false }
    }

    fn spend(&mut self, bytes: usize) {
        self.objects += 1;
        self.bytes += bytes as u64;
    }

    /// True if the page must end here. Never before the walk has moved: else the next page would end here too.
    fn is_spent(&self) -> bool {
        let beyond = self.objects >= self.limits.objects || self.bytes >= self.limits.bytes;
        self.has_moved && (beyond || self.clock.now() >= self.until)
    }
}

impl Auditor {
    /// Audits this job, from its beginning or from the cursor of the page before.
    pub async fn page(&self, job: &Job, after: Option<&str>) -> Result<AuditProof, AuditError> {
        let mut state = match after {
            None => AuditState::begin(job),
            Some(cursor) => AuditState::of_cursor(cursor, job)?,
        };
        let mut budget = Budget::new(&*self.clock, self.limits);
        let (walked, finding) = match self.walk(job, &mut state, &mut budget).await {
            Ok(walked) => (walked, None),
            Err(Broken::Finding(finding)) => (Walked::ToTheEnd, Some(*finding)),
            Err(Broken::Port(error)) => return Err(error.into()),
        };
        let verdict = match (&finding, walked) {
            (Some(_), _) => AuditVerdict::Refuted,
            (None, Walked::ToTheLimit) => AuditVerdict::Continues,
            (None, Walked::ToTheEnd) if !job.is_ended() => AuditVerdict::Active,
            (None, Walked::ToTheEnd) if state.read.expired > 0 => AuditVerdict::ProvedInPart,
            (None, Walked::ToTheEnd) => AuditVerdict::Proved,
        };
        Ok(state.view(job, verdict, finding, self.clock.now()))
    }

    async fn walk(&self, job: &Job, state: &mut AuditState, budget: &mut Budget<'_>) -> Result<Walked, Broken> {
        // A cursor of a walk that came to its end leads to the end again.
        while state.attempt <= job.attempt {
            let totals = self.jobs.totals(job.job_guid, state.attempt).await?;
            budget.spend(0);
            let count = if state.attempt == job.attempt {
                job.split.tallies
            } else {
                totals.final_tallies.ok_or_else(|| {
                    let message = format!("The totals of attempt {} have no number of tallies.", state.attempt);
                    found(AuditCode::TotalsMissing, message, state.attempt)
                })?
            };
            if let Walked::ToTheLimit = self.walk_tallies(job, count, state, budget).await? {
                return Ok(Walked::ToTheLimit);
            }
            if is_open(job, state.attempt) {
                state.check_cursor(job)?;
                return Ok(Walked::ToTheEnd);
            }
            state.end_attempt(job, count, &totals)?;
            budget.has_moved = true;
            if budget.is_spent() && state.attempt <= job.attempt {
                return Ok(Walked::ToTheLimit);
            }
        }
        self.check_ending(job, state).await?;
        Ok(Walked::ToTheEnd)
    }

    async fn walk_tallies(
        &self,
        job: &Job,
        count: u32,
        state: &mut AuditState,
        budget: &mut Budget<'_>,
    ) -> Result<Walked, Broken> {
        let attempt = state.attempt;
        while state.tally < count {
            let numbers = state.tally..state.tally.saturating_add(PAGE_TALLIES).min(count);
            let mut tallies = self.jobs.tallies(job.job_guid, attempt, numbers.clone()).await?.into_iter();
            for number in numbers {
                if budget.is_spent() {
                    return Ok(Walked::ToTheLimit);
                }
                let tally = tallies.next().filter(|tally| tally.number == number).ok_or_else(|| {
                    let message = format!("Tally {number} of attempt {attempt} does not exist.");
                    in_tally(AuditCode::TallyMissing, message, attempt, number)
                })?;
                self.audit_tally(job, &tally, state, budget).await?;
                state.tally += 1;
                budget.has_moved = true;
            }
        }
        Ok(Walked::ToTheEnd)
    }
}

/// True if chunks of this attempt may still be committed.
const fn is_open(job: &Job, attempt: u32) -> bool {
    job.attempt == attempt && !job.is_ended()
}

fn found(code: AuditCode, message: String, attempt: u32) -> Broken {
    Broken::Finding(Box::new(AuditFinding { code: code.into(), message, attempt, tally: None, chunk: None }))
}

fn in_tally(code: AuditCode, message: String, attempt: u32, tally: u32) -> Broken {
    let tally = Some(tally);
    Broken::Finding(Box::new(AuditFinding { code: code.into(), message, attempt, tally, chunk: None }))
}

fn in_chunk(code: AuditCode, message: String, chunk: ChunkAddress) -> Broken {
    let ChunkAddress { attempt, tally, index } = chunk;
    let (tally, chunk) = (Some(tally), Some(index));
    Broken::Finding(Box::new(AuditFinding { code: code.into(), message, attempt, tally, chunk }))
}

/// True if the totals name exactly this many closed tallies.
fn names_all(totals: &Totals, count: u32) -> bool {
    totals.final_tallies == Some(count) && totals.closed.iter().copied().eq(0..count)
}
