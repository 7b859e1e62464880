//! The gate before the jobs' rows: no call passes before the adversary lets it, and every effect is checked at once.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::in_memory::InMemoryJobStore;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::dead_letter::DeadLetter;
use rowmill_core::model::ids::{JobGuid, Owner, RunId};
use rowmill_core::model::job::{Job, Lease, Stop};
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::{ChunkAddress, Commit, Tally, Totals};
use rowmill_core::ports::{
    CheckpointMoved, Committed, Completion, CreateError, Created, Due, JobFilter, JobPage, JobStore, Leased,
    NewAttempt, NewJob, PortError, RedriveError, Stopped, WAKE_SHARDS, WriteLost,
};
use rowmill_core::text::Position;

use super::broken::Broken;
use super::gated;
use super::hub::{CallKind, Hub, Verdict};
use super::invariants::Invariants;
use super::trace::{Brief, chunk_name, job_name};

/// The gate before the jobs' rows.
pub struct GatedJobs {
    /// What is behind it.
    pub store: Arc<InMemoryJobStore>,
    /// What it asks.
    pub hub: Hub,
    /// What must hold after every write.
    pub invariants: Arc<Invariants>,
    /// What is wrong with the store, if something is to be.
    pub broken: Broken,
    /// The index of jobs to be looked at, as it was some time ago.
    pub old_index: Mutex<Vec<Due>>,
}

impl GatedJobs {
    /// Has the index that is behind catch up with what is so now.
    pub fn refresh_index(&self) {
        let jobs = self.store.every_job();
        let index = jobs.iter().filter_map(|job| Some(Due { job: job.job_guid, at: job.wake_at? })).collect();
        *self.old_index.lock().unwrap_or_else(PoisonError::into_inner) = index;
    }

    fn stale_due(&self, shard: u32, now: Timestamp, limit: usize) -> Vec<Due> {
        let index = self.old_index.lock().unwrap_or_else(PoisonError::into_inner);
        let in_shard = |due: &&Due| due.job.0.as_u128() % u128::from(WAKE_SHARDS) == u128::from(shard);
        let mut due: Vec<Due> = index.iter().filter(in_shard).filter(|due| due.at <= now).copied().collect();
        due.sort_by_key(|due| due.at);
        due.truncate(limit);
        due
    }

    /// Notes what the check of a job's row, as it is after a write, says.
    fn checked<T>(&self, job: JobGuid, answer: T) -> T {
        self.hub.check(self.invariants.job_moved(job));
        answer
    }
}

#[async_trait]
impl JobStore for GatedJobs {
    async fn create(&self, new: &NewJob) -> Result<Created, CreateError> {
        let job = new.job.job_guid;
        gated!(self, Transaction, "create", ["{}", job_name(job)], {
            let created = self.store.create(new).await;
            if let Ok(Created::New) = created {
                self.hub.check(self.invariants.created(new));
            }
            created
        })
    }

    async fn remembered(
        &self,
        owner: &Owner,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<(JobGuid, String)>, PortError> {
        gated!(self, Read, "remembered", ["{owner}, {key}"], self.store.remembered(owner, key, now).await)
    }

    async fn job(&self, job: JobGuid) -> Result<Job, PortError> {
        gated!(self, Read, "job", ["{}", job_name(job)], self.store.job(job).await)
    }

    async fn spec(&self, job: JobGuid) -> Result<Spec, PortError> {
        gated!(self, Read, "spec", ["{}", job_name(job)], self.store.spec(job).await)
    }

    async fn jobs(&self, owner: &Owner, filter: &JobFilter, now: Timestamp) -> Result<JobPage, PortError> {
        gated!(self, Index, "jobs", ["{owner}"], self.store.jobs(owner, filter, now).await)
    }

    async fn lease(&self, job: JobGuid, attempt: u32, lease: Lease, now: Timestamp) -> Result<Leased, PortError> {
        gated!(self, Write, "lease", ["{}, attempt {attempt}, {}", job_name(job), lease.holder], {
            let answer = self.store.lease(job, attempt, lease, now).await;
            self.checked(job, answer)
        })
    }

    async fn release(&self, job: JobGuid, holder: RunId) -> Result<(), PortError> {
        gated!(self, Write, "release", ["{}, {holder}", job_name(job)], {
            let answer = self.store.release(job, holder).await;
            self.checked(job, answer)
        })
    }

    async fn put_tally(&self, job: JobGuid, tally: &Tally) -> Result<Tally, PortError> {
        gated!(self, Write, "put_tally", ["{}, {}", job_name(job), tally.brief()], {
            let answer = self.store.put_tally(job, tally).await;
            self.hub.check(self.invariants.tally_moved(job, tally.attempt, tally.number));
            answer
        })
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
        gated!(self, Write, "count_tally", ["{}, tally {number}, up to row {}", job_name(job), next.row], {
            let answer = self.store.count_tally(job, attempt, holder, number, next, now).await;
            self.checked(job, answer)
        })
    }

    async fn pause_split(&self, job: JobGuid, attempt: u32, holder: RunId, now: Timestamp) -> Result<(), WriteLost> {
        gated!(self, Write, "pause_split", ["{}, attempt {attempt}", job_name(job)], {
            let answer = self.store.pause_split(job, attempt, holder, now).await;
            self.checked(job, answer)
        })
    }

    async fn finish_split(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        at_end: bool,
        now: Timestamp,
    ) -> Result<Job, WriteLost> {
        gated!(self, Write, "finish_split", ["{}, attempt {attempt}, at end: {at_end}", job_name(job)], {
            let answer = self.store.finish_split(job, attempt, holder, at_end, now).await;
            self.checked(job, answer)
        })
    }

    async fn pause_composition(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        state: RunId,
        now: Timestamp,
    ) -> Result<(), WriteLost> {
        gated!(self, Write, "pause_composition", ["{}, attempt {attempt}, {state}", job_name(job)], {
            let answer = self.store.pause_composition(job, attempt, holder, state, now).await;
            self.checked(job, answer)
        })
    }

    async fn stop(&self, job: JobGuid, attempt: u32, stop: &Stop) -> Result<Stopped, PortError> {
        gated!(self, Write, "stop", ["{}, attempt {attempt}, {}", job_name(job), stop.code.as_str()], {
            let answer = self.store.stop(job, attempt, stop).await;
            self.checked(job, answer)
        })
    }

    async fn set_final_tallies(&self, job: JobGuid, attempt: u32, tallies: u32) -> Result<Totals, PortError> {
        gated!(self, Write, "set_final_tallies", ["{}, attempt {attempt}, {tallies}", job_name(job)], {
            let answer = self.store.set_final_tallies(job, attempt, tallies).await;
            self.checked(job, answer)
        })
    }

    async fn commit(&self, job: JobGuid, commit: &Commit) -> Result<Committed, PortError> {
        if self.broken == Broken::CloseBeforeCommit {
            super::broken::close_before(self, job, commit).await?;
        }
        let what = || {
            format!(
                "{}, {}, {:?} by {}, {}",
                job_name(job),
                chunk_name(commit.chunk),
                commit.mark.kind,
                commit.mark.run,
                commit.counts.brief()
            )
        };
        let effect = async {
            let answer = match self.broken {
                Broken::CommitWithoutCondition => super::broken::commit_anyway(&self.store, job, commit).await,
                _ => self.store.commit(job, commit).await,
            };
            match answer {
                Ok(Committed::Won(_)) => self.hub.check(self.invariants.committed(job, commit)),
                Ok(Committed::Lost(_)) => self.invariants.reach("commit lost"),
                Err(_) => {}
            }
            answer
        };
        self.hub.through(CallKind::Write, "commit", what, effect).await
    }

    async fn skip_rest(&self, job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError> {
        gated!(self, Write, "skip_rest", ["{}, attempt {}, {}", job_name(job), seen.attempt, seen.brief()], {
            let answer = self.store.skip_rest(job, seen, at).await;
            self.hub.check(self.invariants.rest_skipped(job, seen.attempt, seen.number));
            answer
        })
    }

    async fn tally(&self, job: JobGuid, attempt: u32, number: u32) -> Result<Tally, PortError> {
        let store = &self.store;
        gated!(
            self,
            Read,
            "tally",
            ["{}, attempt {attempt}, {number}", job_name(job)],
            store.tally(job, attempt, number).await
        )
    }

    async fn tallies(&self, job: JobGuid, attempt: u32, numbers: Range<u32>) -> Result<Vec<Tally>, PortError> {
        let store = &self.store;
        gated!(self, Read, "tallies", ["{}, attempt {attempt}, {numbers:?}", job_name(job)], {
            store.tallies(job, attempt, numbers.clone()).await
        })
    }

    async fn fold(&self, job: JobGuid, tally: &Tally) -> Result<Totals, PortError> {
        gated!(self, Write, "fold", ["{}, attempt {}, {}", job_name(job), tally.attempt, tally.brief()], {
            let answer = self.store.fold(job, tally).await;
            self.hub.check(self.invariants.folded(job, tally));
            answer
        })
    }

    async fn totals(&self, job: JobGuid, attempt: u32) -> Result<Totals, PortError> {
        gated!(self, Read, "totals", ["{}, attempt {attempt}", job_name(job)], self.store.totals(job, attempt).await)
    }

    async fn touch(&self, job: JobGuid, attempt: u32, tally: u32, at: Timestamp) -> Result<(), PortError> {
        let store = &self.store;
        gated!(self, Write, "touch", ["{}, tally {tally}", job_name(job)], store.touch(job, attempt, tally, at).await)
    }

    async fn checkpoint(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError> {
        let store = &self.store;
        gated!(self, Read, "ledger", ["{}, {}", job_name(job), chunk_name(chunk)], store.checkpoint(job, chunk).await)
    }

    async fn move_checkpoint(&self, job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError> {
        gated!(self, Write, "move_ledger", ["{}, {}, {}", job_name(job), chunk_name(moved.chunk), moved.brief()], {
            let answer = self.store.move_checkpoint(job, moved).await;
            match answer {
                Ok(CheckpointMoved::Lost(_)) => self.invariants.reach("ledger lost"),
                _ if moved.isolated => self.invariants.reach("ledger moved, isolated"),
                _ => self.invariants.reach("ledger moved, continued"),
            }
            answer
        })
    }

    async fn record_dead_letter(&self, job: JobGuid, letter: &DeadLetter) -> Result<(), PortError> {
        gated!(self, Write, "record_dead_letter", ["{}, {}", job_name(job), letter.brief()], {
            self.invariants.reach(format!("dead letter: {:?}", letter.about));
            self.store.record_dead_letter(job, letter).await
        })
    }

    async fn dead_letters(&self, job: JobGuid, limit: usize) -> Result<Vec<DeadLetter>, PortError> {
        gated!(self, Read, "dead_letters", ["{}", job_name(job)], self.store.dead_letters(job, limit).await)
    }

    async fn due(&self, shard: u32, now: Timestamp, limit: usize) -> Result<Vec<Due>, PortError> {
        let detail = format!("shard {shard}");
        let (verdict, task) = self.hub.suspend(CallKind::Index, "due", detail).await;
        let answer = match verdict {
            Verdict::Proceed => self.store.due(shard, now, limit).await,
            Verdict::Stale => Ok(self.stale_due(shard, now, limit)),
            Verdict::Fail(why) => Err(PortError::unavailable("reading the index", why)),
            Verdict::LoseReply | Verdict::Partly => Err(PortError::unavailable("reading the index", "no reply")),
            Verdict::DieAfter => self.hub.die(task).await,
        };
        if !matches!((&answer, verdict), (Ok(due), Verdict::Proceed) if due.is_empty()) {
            let brief = || answer.as_ref().map_or_else(ToString::to_string, Brief::brief);
            self.hub.tell(Some(task), || format!("due(shard {shard}) -> {}, {verdict:?}", brief()));
        }
        answer
    }

    async fn wake_later(&self, due: Due, next: Timestamp, recoveries: u32) -> Result<Option<Job>, PortError> {
        gated!(self, Write, "wake_later", ["{}, recoveries {recoveries}", job_name(due.job)], {
            let answer = self.store.wake_later(due, next, recoveries).await;
            self.checked(due.job, answer)
        })
    }

    async fn redrive(&self, attempt: &NewAttempt) -> Result<Job, RedriveError> {
        let job = attempt.seen.job_guid;
        gated!(self, Transaction, "redrive", ["{}, to attempt {}", job_name(job), attempt.seen.attempt + 1], {
            let answer = self.store.redrive(attempt).await;
            if answer.is_ok() {
                self.hub.check(self.invariants.redriven(job));
            }
            answer
        })
    }

    async fn complete(&self, completion: &Completion) -> Result<(), WriteLost> {
        let job = completion.seen.job_guid;
        gated!(
            self,
            Transaction,
            "complete",
            ["{}, {}, {}", job_name(job), completion.status.as_str(), completion.counts.brief()],
            {
                let answer = self.store.complete(completion).await;
                self.hub.check(self.invariants.slots());
                self.checked(job, answer)
            }
        )
    }
}
