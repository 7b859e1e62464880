//! Faults in the protocol. They show that the simulation finds each of them.

use jiff::Timestamp;
use rowmill_core::model::checkpoint::{Checkpoint, InFlight};
use rowmill_core::model::cost::Usage;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Phase;
use rowmill_core::model::job::{Job, SharedSlots};
use rowmill_core::model::permit::PermitSeen;
use rowmill_core::model::tally::{Commit, Tally};
use rowmill_core::ports::{
    CheckpointMoved, Checkpoints, CommitAnswer, Completion, Completions, Jobs, Permits, PortError, Tallies,
    UpdateAnswer, Updates, WriteLost,
};
use rowmill_testing::in_memory::InMemoryJobStore;

use super::gate_jobs::GatedJobs;

/// The fault that is built in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Broken {
    #[default]
    Nothing,
    /// A commit is applied even if its chunk is already committed.
    CommitWithoutCondition,
    /// Chunks that commit together are committed if the first of them is not committed yet.
    JointCommitLooksAtOneMark,
    /// An update of the job row is written even if another one was first.
    UpdateWithoutCondition,
    /// A tally is folded by the run that is about to commit its last chunk, instead of after that commit.
    CloseBeforeCommit,
    /// The sweep never runs.
    NoSweep,
    /// A resume forgets the chunks of the first tally.
    ResumeForgetsATally,
    /// The chunks of a resumed job are sent again while runs from before the pause are at work.
    ResendsAtOnce,
    /// A paused job counts as complete once its split has ended.
    CompletePaused,
    /// A chunk of a paused job is processed.
    ProcessPaused,
    /// A chunk of a paused job is processed by an invocation that has chunks of other jobs too.
    ProcessPausedBeside,
    /// A chunk of a past attempt is processed.
    ProcessPast,
    /// A lane lets a message through while another one is in flight.
    LaneLetsTwoThrough,
    /// A run on a lane does not hide its message until it has ended.
    LaneIsNotHeld,
    /// The breaker forgets the jobs that it has paused.
    BreakerForgets,
    /// A run does not see that the breaker is open.
    BreakerUnseen,
    /// The chunks of jobs with high priority go on the queue of the others.
    PriorityForgotten,
    /// The splitter sends a tally although the one that it waits for is not half done.
    TallySentEarly,
    /// A run that makes a tally half done does not send the one that waits for it.
    NextTallyForgotten,
    /// A job is created without its dedupe key.
    DedupeForgets,
    /// The sweep closes the tallies of a stopped job at once.
    NoGrace,
    /// The clocks of invocations differ by minutes.
    ClocksDiffer,
    /// The end of an attempt gives all slots back, also those that its job gave back when it was paused.
    SlotsReturnedTwice,
    /// A lease does not see that another worker holds the task.
    HolderUnseen,
    /// A lease takes a permit whoever has it.
    PermitWithoutCondition,
    /// What a worker reports moves the checkpoint whatever its revision is.
    ReportWithoutCondition,
}

/// The checkpoint as this function reads it at this time. `leases` if a worker asks for a task.
pub(super) fn checkpoint(
    broken: Broken,
    leases: bool,
    now: Timestamp,
    checkpoint: Option<Checkpoint>,
) -> Option<Checkpoint> {
    let is_hidden = |note: &InFlight| broken == Broken::HolderUnseen && leases && note.until > now;
    checkpoint
        .map(|checkpoint| Checkpoint { in_flight: checkpoint.in_flight.filter(|note| !is_hidden(note)), ..checkpoint })
}

/// Moves a checkpoint as this store does.
pub(super) async fn move_checkpoint(
    broken: Broken,
    store: &InMemoryJobStore,
    (job, is_worked): (JobGuid, bool),
    moved: &Checkpoint,
) -> Result<CheckpointMoved, PortError> {
    match store.checkpoint(job, moved.chunk).await? {
        Some(there) if broken == Broken::ReportWithoutCondition && is_worked => {
            store.move_checkpoint(job, &Checkpoint { rev: there.rev + 1, ..moved.clone() }).await
        }
        _ => store.move_checkpoint(job, moved).await,
    }
}

/// Takes a permit as this store does.
pub(super) async fn lease_with_permit(
    broken: Broken,
    store: &InMemoryJobStore,
    job: JobGuid,
    leased: &Checkpoint,
    seen: &PermitSeen,
) -> Result<bool, PortError> {
    let taken = store.permits(&seen.job_type).await?;
    let there = taken.iter().find(|there| broken == Broken::PermitWithoutCondition && there.number == seen.number);
    let token = there.map_or(seen.token, |there| Some(there.token));
    store.lease_with_permit(job, leased, &PermitSeen { token, ..seen.clone() }).await
}

/// The row as an invocation of `process-items` takes it that lacks one of its checks. `shared` if it has other jobs
/// too.
pub(super) fn unchecked(broken: Broken, attempt: u32, shared: bool, row: Job) -> Job {
    match broken {
        // The messages that it takes are from before the pause.
        Broken::ProcessPaused if row.is_paused() => Job { phase: Phase::Runnable, epoch: 0, ..row },
        Broken::ProcessPausedBeside if shared && row.is_paused() => Job { phase: Phase::Runnable, epoch: 0, ..row },
        Broken::NextTallyForgotten => Job { tallies_ahead: None, ..row },
        Broken::ProcessPast if row.is_past(attempt) => Job { phase: Phase::Runnable, attempt, ..row },
        _ => row,
    }
}

/// Updates the job row as this store does.
pub(super) async fn update(
    broken: Broken,
    store: &InMemoryJobStore,
    seen: &Job,
    next: &Job,
    ahead: Usage,
) -> Result<UpdateAnswer, PortError> {
    let is_resume = seen.is_paused() && next.resend_from == Some(0);
    let refused = || UpdateAnswer::Refused(Job { attempt: seen.attempt + 1, ..seen.clone() });
    match broken {
        Broken::BreakerForgets if seen.breaker_pause().is_some() && is_resume => Ok(refused()),
        Broken::ResumeForgetsATally if is_resume => {
            store.update(seen, &Job { resend_from: Some(1), ..next.clone() }, ahead).await
        }
        Broken::UpdateWithoutCondition => {
            let revision = store.job(seen.job_guid).await?.revision;
            store.update(&Job { revision, ..seen.clone() }, next, ahead).await
        }
        _ => store.update(seen, next, ahead).await,
    }
}

/// The answer to a splitter that does not know how many tallies it may send ahead.
pub(super) fn unbounded(broken: Broken, answer: UpdateAnswer) -> UpdateAnswer {
    match answer {
        UpdateAnswer::Written(row) if broken == Broken::TallySentEarly => {
            UpdateAnswer::Written(Job { tallies_ahead: None, ..row })
        }
        answer => answer,
    }
}

/// Ends an attempt as this store does.
pub(super) async fn complete(
    broken: Broken,
    store: &InMemoryJobStore,
    completion: &Completion,
) -> Result<(), WriteLost> {
    let job = completion.seen.job_guid;
    let has_returned = store.job(job).await?.slots != SharedSlots::Held;
    if broken == Broken::SlotsReturnedTwice && has_returned {
        store.edit_job(job, |job| job.slots = SharedSlots::Held);
    }
    store.complete(completion).await
}

/// Commits as this store does.
pub(super) async fn commit(
    broken: Broken,
    store: &InMemoryJobStore,
    job: JobGuid,
    commits: &[Commit],
) -> Result<CommitAnswer, PortError> {
    let (Some(first), Some((attempt, number))) = (commits.first(), Commit::tally_of(commits)) else {
        return store.commit(job, commits).await;
    };
    let tally = store.tally(job, attempt, number).await?;
    let applies = match broken {
        Broken::CommitWithoutCondition => true,
        Broken::JointCommitLooksAtOneMark => first.refused_by(&tally).is_none(),
        _ => return store.commit(job, commits).await,
    };
    if !applies {
        return Ok(CommitAnswer::Refused(tally));
    }
    store.edit_tally(job, attempt, number, |tally| commits.iter().for_each(|commit| add(tally, commit, commit.at)));
    Ok(CommitAnswer::Applied(store.tally(job, attempt, number).await?))
}

/// If these commits are the last ones of the tally, folds the tally as if they were already committed.
pub(super) async fn close_before(jobs: &GatedJobs, job: JobGuid, commits: &[Commit]) -> Result<(), PortError> {
    let Some((attempt, number)) = Commit::tally_of(commits) else { return Ok(()) };
    let mut tally = jobs.store.tally(job, attempt, number).await?;
    if commits.iter().all(|commit| tally.mark(commit.chunk.index).is_none()) {
        commits.iter().for_each(|commit| add(&mut tally, commit, commit.at));
        if tally.done == tally.expected {
            jobs.fold(job, &tally).await?;
        }
    }
    Ok(())
}

fn add(tally: &mut Tally, commit: &Commit, at: Timestamp) {
    tally.marks[usize::from(commit.chunk.index)] = Some(commit.mark);
    tally.done += 1;
    tally.counts += commit.counts;
    tally.bytes += commit.bytes;
    tally.at = at;
}
