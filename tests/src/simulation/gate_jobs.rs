//! The gate before the job store: a call passes only when the adversary allows it, and every effect is checked at once.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::dead_letter::DeadLetter;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::permit::{Permit, PermitSeen};
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::{ChunkAddress, Commit, Tally, Totals};
use rowmill_core::ports::{
    Admissions, Attempts, CheckpointMoved, Checkpoints, CommitAnswer, Completion, Completions, CreateError, Created,
    DeadLetters, Due, Erasures, Idempotency, JobFilter, JobPage, Jobs, NewAttempt, NewJob, Permits, PortError,
    RedriveError, SlotsTaken, Tallies, UpdateAnswer, Updates, WAKE_SHARDS, Waits, WakeUps, WriteLost,
};
use rowmill_testing::in_memory::InMemoryJobStore;
use uuid::Uuid;

use super::broken::Broken;
use super::gates;
use super::hub::{CallKind, Hub, Verdict};
use super::invariants::Invariants;
use super::queues::Queues;
use super::trace::{Brief, changes, chunk_name, job_name};

pub struct GatedJobs {
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
        let index = jobs
            .iter()
            .filter(|job| !job.is_to_be_erased())
            .filter_map(|job| Some(Due { job: job.job_guid, at: job.wake_at? }))
            .collect();
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

    /// The answer to a repetition of the update that made this revision: the store knows its last four updates.
    async fn repeated(&self, job: JobGuid, revision: u64) -> Result<UpdateAnswer, PortError> {
        let now = self.store.job(job).await?;
        if now.revision > revision {
            self.invariants.reach("update recognised after another write");
        }
        Ok(match now.revision < revision + 4 {
            true => UpdateAnswer::WrittenBefore(now),
            false => UpdateAnswer::Refused(now),
        })
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
    Read taken(owner: &Owner, job_type: &str) -> Result<SlotsTaken, PortError>, ["{owner}"];
    Read remembered(owner: &Owner, key: &str, now: Timestamp) -> Result<Option<(JobGuid, String)>, PortError>,
        ["{owner}, {key}"];
    Write remember(owner: &Owner, wanted: &Idempotency, job: JobGuid, now: Timestamp) -> Result<JobGuid, CreateError>,
        ["{owner}, {}, {}", wanted.key, job_name(job)],
        check |all, answer| {
            if answer.is_ok() {
                all.reach("key remembered for the same job");
            }
            Ok(())
        };
    {
        async fn create(&self, new: &NewJob) -> Result<Created, CreateError> {
            let effect = async {
                let answer = match self.broken {
                    Broken::DedupeForgets => self.store.create(&NewJob { dedupe: None, ..new.clone() }).await,
                    _ => self.store.create(new).await,
                };
                if let Ok(Created::New) = &answer {
                    self.hub.check(self.invariants.created(new));
                }
                answer
            };
            self.hub.through(CallKind::Transaction, "create", || job_name(new.job.job_guid), effect).await
        }

        async fn deduped(&self, owner: &Owner, key: &str, now: Timestamp) -> Result<Option<JobGuid>, PortError> {
            let effect = async {
                let answer = self.store.deduped(owner, key, now).await?;
                if answer.is_some() {
                    self.invariants.reach("dedupe key known");
                }
                Ok(answer)
            };
            self.hub.through(CallKind::Read, "deduped", || format!("{owner}, {key}"), effect).await
        }
    }
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
                    Some((attempt, shared)) => super::broken::unchecked(self.broken, attempt, shared, row),
                    None => row,
                })
            };
            self.hub.through(CallKind::Read, "job", || job_name(job), effect).await
        }
    }
});

gates!(Updates for GatedJobs {
    {
        async fn update(&self, seen: &Job, next: &Job, ahead: Usage) -> Result<UpdateAnswer, PortError> {
            let job = seen.job_guid;
            let what = || format!("{}, attempt {}: {}", job_name(job), seen.attempt, changes(seen, next));
            let written = OnceLock::new();
            let effect = async {
                let answer = super::broken::update(self.broken, &self.store, seen, next, ahead).await?;
                self.hub.check(self.invariants.job_moved(job));
                if let UpdateAnswer::Written(now) = &answer {
                    written.get_or_init(|| now.revision);
                    self.invariants.paused(self.hub.current(), seen, now);
                    self.invariants.widened(seen, now);
                    self.hub.check(self.invariants.slots_moved(seen, now));
                    if seen.breaker_pause().is_some() && next.resend_from.is_some() {
                        self.invariants.reach("resumed after a pause by the breaker");
                    }
                    if seen.resend_from.is_some() && next.resend_from.is_none() && next.epoch == seen.epoch {
                        self.hub.check(self.invariants.all_resent(job, &self.queues));
                    }
                }
                Ok(super::broken::unbounded(self.broken, answer))
            };
            let moves_slots = seen.has_shared_slots() != next.has_shared_slots();
            let kind = if moves_slots { CallKind::Transaction } else { CallKind::Write };
            let answer = self.hub.through(kind, "update", what, effect).await;
            match written.get() {
                // The client of the store gives up waiting, and sends it again. Other writes may be between the two.
                Some(revision) if answer.is_err() && revision % 2 == 0 => {
                    self.hub.sleep(Duration::from_secs(revision % 20)).await;
                    self.hub.through(CallKind::Write, "update, again", what, self.repeated(job, *revision)).await
                }
                _ => answer,
            }
        }
    }
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
        check |all, _answer| all.rest_skipped(job, seen.attempt, seen.number, at);
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
            let applied = OnceLock::new();
            let effect = async {
                let answer = super::broken::commit(self.broken, &self.store, job, commits).await;
                match &answer {
                    Ok(CommitAnswer::Applied(tally)) => {
                        applied.get_or_init(|| tally.done);
                        self.hub.check(self.invariants.committed(job, commits));
                        self.hub.check(self.invariants.owes(self.hub.current(), job, commits));
                    }
                    Ok(CommitAnswer::Refused(tally)) => self.hub.check(self.invariants.refused(job, commits, tally)),
                    Err(_) => {}
                }
                answer
            };
            let answer = self.hub.through(CallKind::Write, "commit", what, effect).await;
            match applied.get() {
                // As for an update. The tally knows the run's own marks.
                Some(done) if answer.is_err() && done % 2 == 0 => {
                    self.hub.sleep(Duration::from_secs(u64::from(*done) % 10)).await;
                    let again = async {
                        let answer = self.store.commit(job, commits).await?;
                        if let CommitAnswer::Refused(tally) = &answer {
                            self.hub.check(self.invariants.refused(job, commits, tally));
                        }
                        Ok(answer)
                    };
                    self.hub.through(CallKind::Write, "commit, again", what, again).await
                }
                _ => answer,
            }
        }
    }
});

gates!(Checkpoints for GatedJobs {
    {
        async fn checkpoint(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError> {
            let effect = async {
                let checkpoint = self.store.checkpoint(job, chunk).await?;
                let leases = self.invariants.leases(self.hub.current(), job);
                Ok(super::broken::checkpoint(self.broken, leases, self.hub.now(), checkpoint))
            };
            let what = || format!("{}, {}", job_name(job), chunk_name(chunk));
            self.hub.through(CallKind::Read, "checkpoint", what, effect).await
        }

        async fn move_checkpoint(&self, job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError> {
            let effect = async {
                let is_worked = self.invariants.is_worked(job);
                let answer = super::broken::move_checkpoint(self.broken, &self.store, (job, is_worked), moved).await;
                self.invariants.reach(match &answer {
                    Ok(CheckpointMoved::Lost(_)) if is_worked => "worker too late",
                    Ok(CheckpointMoved::Lost(_)) => "checkpoint lost",
                    _ if is_worked => "checkpoint moved for a worker",
                    _ if moved.isolated => "checkpoint moved, isolated",
                    _ => "checkpoint moved, continued",
                });
                answer
            };
            let what = || format!("{}, {}, {}", job_name(job), chunk_name(moved.chunk), moved.brief());
            self.hub.through(CallKind::Write, "move_checkpoint", what, effect).await
        }
    }
});

gates!(Permits for GatedJobs {
    Read permits(job_type: &str) -> Result<Vec<Permit>, PortError>, ["{job_type}"];
    Write give_permit_back(job_type: &str, seen: &Permit) -> Result<(), PortError>, ["{job_type}, {}", seen.number];
    {
        async fn lease_with_permit(
            &self,
            job: JobGuid,
            leased: &Checkpoint,
            permit: &PermitSeen,
        ) -> Result<bool, PortError> {
            let effect = async {
                let answer = super::broken::lease_with_permit(self.broken, &self.store, job, leased, permit).await;
                self.invariants.reach(if matches!(answer, Ok(true)) { "permit taken" } else { "permit not taken" });
                answer
            };
            let what = || format!("{}, {}, permit {}", job_name(job), chunk_name(leased.chunk), permit.number);
            self.hub.through(CallKind::Transaction, "lease_with_permit", what, effect).await
        }
    }
});

gates!(Attempts for GatedJobs {
    Transaction redrive(attempt: &NewAttempt) -> Result<Job, RedriveError>,
        ["{}, to attempt {}", job_name(attempt.seen.job_guid), attempt.seen.attempt + 1],
        check |all, answer| if answer.is_ok() { all.redriven(attempt.seen.job_guid) } else { Ok(()) };
});

gates!(Completions for GatedJobs {
    {
        async fn complete(&self, completion: &Completion) -> Result<(), WriteLost> {
            let (job, end) = (completion.seen.job_guid, &completion.end);
            let what = || format!("{}, {}, {}", job_name(job), end.status().as_str(), end.counts.brief());
            let effect = async {
                let answer = super::broken::complete(self.broken, &self.store, completion).await;
                self.hub.check(self.invariants.slots().and_then(|()| self.invariants.job_moved(job)));
                answer
            };
            self.hub.through(CallKind::Transaction, "complete", what, effect).await
        }
    }
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
    Write put_off(due: Due, next: Timestamp) -> Result<(), PortError>, ["{}", job_name(due.job)],
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

gates!(Erasures for GatedJobs {
    Write erase_rows(job: JobGuid) -> Result<bool, PortError>, ["{}", job_name(job)];
});

gates!(Waits for GatedJobs {
    Read awaiting(awaited: Uuid) -> Result<Vec<JobGuid>, PortError>, ["{awaited}"];
    Write put_found(found: &Spec) -> Result<Spec, PortError>, ["{}", job_name(found.job_guid)];
});
