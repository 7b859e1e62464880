//! The gate before the job store: a call passes only when the adversary allows it, and every effect is checked at once.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::in_memory::InMemoryJobStore;
use rowmill_core::model::breaker::BreakerPause;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::dead_letter::DeadLetter;
use rowmill_core::model::ids::{JobGuid, Owner, RunId};
use rowmill_core::model::job::{Job, JobWarning, Lease, Stop};
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::{ChunkAddress, Commit, Tally, Totals};
use rowmill_core::ports::{
    Admissions, Attempts, Ceilings, CheckpointMoved, Checkpoints, CommitAnswer, Completion, Completions, CreateError,
    Created, DeadLetters, Due, Full, JobFilter, JobPage, Jobs, Leased, Leases, NewAttempt, NewJob, Pauses, PortError,
    RedriveError, Resent, Splits, Stopped, Tallies, WAKE_SHARDS, WakeUps, WriteLost,
};
use rowmill_core::text::Position;

use super::broken::Broken;
use super::gates;
use super::hub::{CallKind, Hub, Verdict};
use super::invariants::Invariants;
use super::queues::Queues;
use super::trace::{Brief, chunk_name, job_name};

/// The gate before the job store.
pub struct GatedJobs {
    /// The store behind the gate.
    pub store: Arc<InMemoryJobStore>,
    /// Decides about each call.
    pub hub: Hub,
    /// Checked after every write.
    pub invariants: Arc<Invariants>,
    /// The fault that is built into the store, if any.
    pub broken: Broken,
    /// The queues, where the missing chunks of a resumed job must be.
    pub queues: Queues,
    /// An earlier state of the wake index.
    pub old_index: Mutex<Vec<Due>>,
}

impl GatedJobs {
    /// Lets the lagging index catch up with the store.
    pub fn refresh_index(&self) {
        let jobs = self.store.every_job();
        let index = jobs.iter().filter_map(|job| Some(Due { job: job.job_guid, at: job.wake_at? })).collect();
        *self.old_index.lock().unwrap_or_else(PoisonError::into_inner) = index;
    }

    /// These totals; in a broken store those of a paused job are complete as soon as its split has ended.
    async fn perhaps_complete(&self, job: JobGuid, totals: Totals) -> Totals {
        let is_paused = self.store.job(job).await.is_ok_and(|row| row.is_paused() && row.split.done);
        match self.broken {
            Broken::CompletePaused if is_paused => {
                Totals { final_tallies: u32::try_from(totals.closed.len()).ok(), ..totals }
            }
            _ => totals,
        }
    }

    fn stale_due(&self, shard: u32, now: Timestamp, limit: usize) -> Vec<Due> {
        let index = self.old_index.lock().unwrap_or_else(PoisonError::into_inner);
        let in_shard = |due: &&Due| due.job.0.as_u128() % u128::from(WAKE_SHARDS) == u128::from(shard);
        let mut due: Vec<Due> = index.iter().filter(in_shard).filter(|due| due.at <= now).copied().collect();
        due.sort_by_key(|due| due.at);
        due.truncate(limit);
        due
    }
}

gates!(Admissions for GatedJobs {
    Transaction create(new: &NewJob) -> Result<Created, CreateError>, ["{}", job_name(new.job.job_guid)],
        check |all, answer| if let Ok(Created::New) = answer { all.created(new) } else { Ok(()) };
    Read reached(owner: &Owner, job_type: &str, ceilings: Ceilings) -> Result<Option<Full>, PortError>, ["{owner}"];
    Read remembered(owner: &Owner, key: &str, now: Timestamp) -> Result<Option<(JobGuid, String)>, PortError>,
        ["{owner}, {key}"];
    Read deduped(owner: &Owner, key: &str, now: Timestamp) -> Result<Option<JobGuid>, PortError>, ["{owner}, {key}"];
});

gates!(Jobs for GatedJobs {
    Read spec(job: JobGuid) -> Result<Spec, PortError>, ["{}", job_name(job)];
    Index jobs(owner: &Owner, filter: &JobFilter, now: Timestamp) -> Result<JobPage, PortError>, ["{owner}"];
    {
        async fn job(&self, job: JobGuid) -> Result<Job, PortError> {
            let effect = async {
                let (row, task) = (self.store.job(job).await?, self.hub.current());
                self.invariants.job_read(task, &row);
                Ok(match self.invariants.delivered_attempt(task, job) {
                    Some(attempt) => super::broken::unchecked(self.broken, attempt, row),
                    None => row,
                })
            };
            self.hub.through(CallKind::Read, "job", || job_name(job), effect).await
        }
    }
});

gates!(Leases for GatedJobs {
    Write release(job: JobGuid, holder: RunId) -> Result<(), PortError>,
        ["{}, {holder}", job_name(job)],
        check |all, _answer| all.job_moved(job);
    {
        async fn lease(&self, job: JobGuid, attempt: u32, lease: Lease, now: Timestamp) -> Result<Leased, PortError> {
            let what = || format!("{}, attempt {attempt}, {}", job_name(job), lease.holder);
            let effect = async {
                let answer = self.store.lease(job, attempt, lease, now).await?;
                self.hub.check(self.invariants.job_moved(job));
                Ok(super::broken::unbounded(self.broken, answer))
            };
            self.hub.through(CallKind::Write, "lease", what, effect).await
        }
    }
});

gates!(Splits for GatedJobs {
    Write count_tally(
        job: JobGuid, attempt: u32, holder: RunId, number: u32, next: Position, now: Timestamp
    ) -> Result<(), WriteLost>,
        ["{}, tally {number}, up to row {}", job_name(job), next.row],
        check |all, _answer| all.job_moved(job);
    Write warn(
        job: JobGuid, attempt: u32, holder: RunId, warnings: &[JobWarning], now: Timestamp
    ) -> Result<(), WriteLost>,
        ["{}, attempt {attempt}, {} warnings", job_name(job), warnings.len()],
        check |all, _answer| all.job_moved(job);
    Write pause_split(job: JobGuid, attempt: u32, holder: RunId, now: Timestamp) -> Result<(), WriteLost>,
        ["{}, attempt {attempt}", job_name(job)],
        check |all, _answer| all.job_moved(job);
    Write finish_split(
        job: JobGuid, attempt: u32, holder: RunId, at_end: bool, now: Timestamp
    ) -> Result<Job, WriteLost>,
        ["{}, attempt {attempt}, at end: {at_end}", job_name(job)],
        check |all, _answer| all.job_moved(job);
});

gates!(Tallies for GatedJobs {
    Write put_tally(job: JobGuid, tally: &Tally) -> Result<Tally, PortError>,
        ["{}, {}", job_name(job), tally.brief()],
        check |all, _answer| all.tally_moved(job, tally.attempt, tally.number);
    Read tally(job: JobGuid, attempt: u32, number: u32) -> Result<Tally, PortError>,
        ["{}, attempt {attempt}, {number}", job_name(job)];
    Read tallies(job: JobGuid, attempt: u32, numbers: Range<u32>) -> Result<Vec<Tally>, PortError>,
        ["{}, attempt {attempt}, {numbers:?}", job_name(job)];
    Write skip_rest(job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError>,
        ["{}, attempt {}, {}", job_name(job), seen.attempt, seen.brief()],
        check |all, _answer| all.rest_skipped(job, seen.attempt, seen.number);
    Write touch(job: JobGuid, attempt: u32, tally: u32, at: Timestamp) -> Result<(), PortError>,
        ["{}, tally {tally}", job_name(job)];
    Write note_next_sent(job: JobGuid, attempt: u32, tally: u32) -> Result<(), PortError>,
        ["{}, tally {tally}", job_name(job)];
    Write fold(job: JobGuid, tally: &Tally) -> Result<Totals, PortError>,
        ["{}, attempt {}, {}", job_name(job), tally.attempt, tally.brief()],
        check |all, _answer| all.folded(job, tally);
    {
        async fn totals(&self, job: JobGuid, attempt: u32) -> Result<Totals, PortError> {
            let effect = async { Ok(self.perhaps_complete(job, self.store.totals(job, attempt).await?).await) };
            self.hub.through(CallKind::Read, "totals", || format!("{}, attempt {attempt}", job_name(job)), effect).await
        }

        async fn set_final_tallies(&self, job: JobGuid, attempt: u32, tallies: u32) -> Result<Totals, PortError> {
            let effect = async {
                let answer = self.store.set_final_tallies(job, attempt, tallies).await?;
                self.hub.check(self.invariants.job_moved(job));
                Ok(self.perhaps_complete(job, answer).await)
            };
            let what = || format!("{}, attempt {attempt}, {tallies}", job_name(job));
            self.hub.through(CallKind::Write, "set_final_tallies", what, effect).await
        }

        async fn commit(&self, job: JobGuid, commits: &[Commit]) -> Result<CommitAnswer, PortError> {
            if self.broken == Broken::CloseBeforeCommit {
                super::broken::close_before(self, job, commits).await?;
            }
            let what = || {
                let commits: Vec<String> = commits.iter().map(Brief::brief).collect();
                format!("{}, {}", job_name(job), commits.join("; "))
            };
            let effect = async {
                let answer = super::broken::commit(self.broken, &self.store, job, commits).await;
                match &answer {
                    Ok(CommitAnswer::Applied(_)) => {
                        self.hub.check(self.invariants.committed(job, commits));
                        self.hub.check(self.invariants.owes(self.hub.current(), job, commits));
                    }
                    Ok(CommitAnswer::Refused(tally)) => self.hub.check(self.invariants.refused(job, commits, tally)),
                    Err(_) => {}
                }
                answer
            };
            self.hub.through(CallKind::Write, "commit", what, effect).await
        }
    }
});

gates!(Checkpoints for GatedJobs {
    Read checkpoint(job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError>,
        ["{}, {}", job_name(job), chunk_name(chunk)];
    Write move_checkpoint(job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError>,
        ["{}, {}, {}", job_name(job), chunk_name(moved.chunk), moved.brief()],
        check |all, answer| {
            all.reach(match answer {
                Ok(CheckpointMoved::Lost(_)) => "checkpoint lost",
                _ if moved.isolated => "checkpoint moved, isolated",
                _ => "checkpoint moved, continued",
            });
            Ok(())
        };
});

gates!(Attempts for GatedJobs {
    Write stop(job: JobGuid, attempt: u32, stop: &Stop) -> Result<Stopped, PortError>,
        ["{}, attempt {attempt}, {}", job_name(job), stop.code.as_str()],
        check |all, _answer| all.job_moved(job);
    Write note_first_chunk(job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, PortError>,
        ["{}, attempt {attempt}", job_name(job)],
        check |all, _answer| all.job_moved(job);
    Transaction redrive(attempt: &NewAttempt) -> Result<Job, RedriveError>,
        ["{}, to attempt {}", job_name(attempt.seen.job_guid), attempt.seen.attempt + 1],
        check |all, answer| if answer.is_ok() { all.redriven(attempt.seen.job_guid) } else { Ok(()) };
});

gates!(Pauses for GatedJobs {
    Write pause(job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost>,
        ["{}, attempt {attempt}", job_name(job)],
        check |all, _answer| all.job_moved(job);
    {
        async fn pause_by_breaker(
            &self, job: JobGuid, attempt: u32, why: &BreakerPause, look_at: Timestamp
        ) -> Result<Job, WriteLost> {
            let effect = async {
                if self.broken == Broken::BreakerPausesNothing {
                    return Err(WriteLost::Condition(Box::new(self.store.job(job).await?)));
                }
                let answer = self.store.pause_by_breaker(job, attempt, why, look_at).await;
                self.hub.check(self.invariants.job_moved(job));
                answer
            };
            self.hub.through(CallKind::Write, "pause_by_breaker", || format!("{}, attempt {attempt}", job_name(job)), effect).await
        }

        async fn resume_by_breaker(
            &self, job: JobGuid, attempt: u32, pauses: u32, now: Timestamp
        ) -> Result<Job, WriteLost> {
            let effect = async {
                if self.broken == Broken::BreakerForgets {
                    return Err(WriteLost::Condition(Box::new(self.store.job(job).await?)));
                }
                let answer = self.store.resume_by_breaker(job, attempt, pauses, now).await;
                self.hub.check(self.invariants.job_moved(job));
                if answer.is_ok() {
                    self.invariants.reach("resumed by the breaker");
                }
                answer
            };
            let what = || format!("{}, attempt {attempt}, pauses {pauses}", job_name(job));
            self.hub.through(CallKind::Write, "resume_by_breaker", what, effect).await
        }

        async fn resume(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost> {
            let effect = async {
                let answer = self.store.resume(job, attempt, now).await;
                if self.broken == Broken::ResumeForgetsATally && answer.is_ok() {
                    self.store.edit_job(job, |row| row.resend_from = Some(1));
                }
                self.hub.check(self.invariants.job_moved(job));
                answer
            };
            self.hub.through(CallKind::Write, "resume", || format!("{}, attempt {attempt}", job_name(job)), effect).await
        }

        async fn note_resent(&self, job: JobGuid, resent: Resent, now: Timestamp) -> Result<bool, PortError> {
            let effect = async {
                let answer = self.store.note_resent(job, resent, now).await;
                self.hub.check(self.invariants.job_moved(job));
                if let (Ok(true), None) = (&answer, resent.next) {
                    self.hub.check(self.invariants.all_resent(job, &self.queues));
                }
                answer
            };
            self.hub.through(CallKind::Write, "note_resent", || format!("{}, {resent:?}", job_name(job)), effect).await
        }
    }
});

gates!(Completions for GatedJobs {
    Write pause_composition(
        job: JobGuid, attempt: u32, holder: RunId, state: RunId, now: Timestamp
    ) -> Result<(), WriteLost>,
        ["{}, attempt {attempt}, {state}", job_name(job)],
        check |all, _answer| all.job_moved(job);
    Transaction complete(completion: &Completion) -> Result<(), WriteLost>,
        [
            "{}, {}, {}",
            job_name(completion.seen.job_guid), completion.status.as_str(), completion.counts.brief()
        ],
        check |all, _answer| all.slots().and_then(|()| all.job_moved(completion.seen.job_guid));
});

gates!(DeadLetters for GatedJobs {
    Write record_dead_letter(job: JobGuid, letter: &DeadLetter) -> Result<(), PortError>,
        ["{}, {}", job_name(job), letter.brief()],
        check |all, _answer| {
            all.reach(format!("dead letter: {}", letter.about));
            Ok(())
        };
    Read dead_letters(job: JobGuid, limit: usize) -> Result<Vec<DeadLetter>, PortError>, ["{}", job_name(job)];
});

gates!(WakeUps for GatedJobs {
    Write wake_later(due: Due, next: Timestamp, recoveries: u32) -> Result<Option<Job>, PortError>,
        ["{}, recoveries {recoveries}", job_name(due.job)],
        check |all, _answer| all.job_moved(due.job);
    {
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
    }
});
