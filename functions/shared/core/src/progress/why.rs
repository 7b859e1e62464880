//! What holds a job up: a decision from a read state. Each reason is a function of its own; [`reasons`] has their order.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::model::breaker::{Breaker, BreakerPause, BreakerState};
use crate::model::checkpoint::Checkpoint;
use crate::model::ids::JobGuid;
use crate::model::job::states::Phase;
use crate::model::job::{Awaits, Job, Priority, Stop};
use crate::model::tally::{ChunkAddress, Tally};
use crate::model::why::{Reason, ReasonCode};
use crate::ports::{ActiveJobs, SlotsTaken};
use crate::progress::counters::Counters;
use crate::progress::task_reasons::{TasksSeen, no_worker, tasks_held, tasks_offered, worker_died};

/// Number of chunks in flight whose checkpoints are read: the first of them hold up the others.
const CHECKPOINTS_READ: usize = 16;

/// A job of which nothing was noted for this long is called silent.
const SILENCE: Duration = Duration::from_secs(60);

/// A failed run of the job type is recent for so long.
const RECENT: Duration = Duration::from_secs(5 * 60);

/// What was read of a job.
pub struct Seen<'a> {
    pub job: &'a Job,
    pub counters: &'a Counters,
    /// The breaker of its type, if it has one.
    pub breaker: Option<Breaker>,
    /// `concurrency` of its type.
    pub lanes: Option<u32>,
    /// The checkpoints of [`looked_at`], as far as there are any.
    pub checkpoints: Vec<Checkpoint>,
    /// Its tasks, if workers outside of the stack process it. Then no checkpoints are read beside theirs.
    pub tasks: Option<TasksSeen>,
    /// Read if it [waits for capacity](waits_for_capacity).
    pub others: Option<Others>,
    pub now: Timestamp,
}

/// The active jobs that it shares the capacity with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Others {
    /// Some of its owner's.
    pub jobs: Vec<JobGuid>,
    pub taken: SlotsTaken,
}

/// True if it waits until functions or slots are free, so that other jobs matter.
pub fn waits_for_capacity(job: &Job) -> bool {
    job.awaits_slots() || is_untaken(job) || is_queued(job)
}

/// The chunks whose checkpoints are read.
pub fn looked_at(job: &Job, counters: &Counters) -> Vec<ChunkAddress> {
    let numbers: Vec<u64> = match job.max_concurrency {
        Some(width) => counters.heads(width).into_iter().take(CHECKPOINTS_READ).collect(),
        None => counters.due(job).flat_map(Tally::uncommitted).take(CHECKPOINTS_READ).collect(),
    };
    numbers.into_iter().map(|number| ChunkAddress::of_number(job.attempt, number)).collect()
}

/// What holds the job up, the most important first. Never empty: a job that nothing holds up is `running`.
pub fn reasons(seen: &Seen<'_>) -> Vec<Reason> {
    match &seen.job.phase {
        Phase::Ended(end) => {
            let reason = Reason::new(ReasonCode::Ended, format!("The job has ended: it is {}.", end.status().as_str()));
            vec![reason.since(end.finished_at)]
        }
        Phase::Stopping(stop) => vec![stopping(seen, stop)],
        Phase::Runnable | Phase::Paused(_) if seen.counters.account_for_all(seen.job) => vec![composing(seen)],
        Phase::Paused(by_breaker) => vec![paused(seen, by_breaker.as_ref())],
        Phase::Runnable => of_runnable(seen),
    }
}

fn of_runnable(seen: &Seen<'_>) -> Vec<Reason> {
    let possible = [
        overdue(seen),
        awaiting(seen),
        not_taken_up(seen),
        resuming(seen),
        chunks_queued(seen),
        no_worker(seen),
        worker_died(seen),
        tasks_held(seen),
        tasks_offered(seen),
        breaker(seen),
        one_by_one(seen),
        silent(seen),
        splitting(seen),
        slow_rows(seen),
        type_concurrency(seen),
        max_concurrency(seen),
        low_priority(seen),
        running(seen),
    ];
    possible.into_iter().flatten().collect()
}

/// True if no run has begun to split the attempt.
fn is_untaken(job: &Job) -> bool {
    let has_begun = job.lease.is_some() || job.split.done || job.split.tallies > 0;
    matches!(job.phase, Phase::Runnable) && job.awaits.is_none() && (job.started_at.is_none() || !has_begun)
}

/// True if chunks were sent and none has begun.
fn is_queued(job: &Job) -> bool {
    matches!(job.phase, Phase::Runnable) && job.split.tallies > 0 && job.first_chunk_at.is_none()
}

fn stopping(seen: &Seen<'_>, stop: &Stop) -> Reason {
    let message = match stop.is_cancel() {
        true => "The job is being cancelled: running chunks end, the rest is skipped.".to_owned(),
        false => format!("The job is being stopped: {}. Running chunks end, the rest is skipped.", stop.message),
    };
    let in_flight = seen.counters.in_flight(seen.job);
    let reason = Reason::new(ReasonCode::Stopping, message).since(stop.at).next_look_at(seen.job.wake_at);
    reason.number("chunksInFlight", in_flight)
}

fn composing(seen: &Seen<'_>) -> Reason {
    let is_held = seen.job.lease.is_some_and(|lease| lease.until > seen.now);
    let message = match is_held {
        true => "All items are accounted for. The results are being composed.",
        false => "All items are accounted for. The results wait for a function that composes them.",
    };
    let items = seen.counters.counts().sum();
    let reason = Reason::new(ReasonCode::Composing, message).since(sign_of_life(seen));
    reason.next_look_at(seen.job.wake_at).number("items", items)
}

fn paused(seen: &Seen<'_>, by_breaker: Option<&BreakerPause>) -> Reason {
    let job = seen.job;
    match by_breaker {
        Some(pause) => {
            let openings = seen.breaker.as_ref().map_or(0, |breaker| breaker.openings);
            let message = format!(
                "The target of `{}` is down: {} ({}). The job continues by itself when it is back.",
                job.job_type, pause.message, pause.code
            );
            let reason = Reason::new(ReasonCode::TargetDown, message).since(pause.at).next_look_at(job.wake_at);
            reason.number("openings", openings)
        }
        None if job.awaits_slots() => {
            let message = "The job gave its slots back while it was paused, and the limits of active jobs of its type or of \
                           the system have no room for it. It continues by itself.";
            let reason = Reason::new(ReasonCode::NoSlot, message).since(job.paused_at).next_look_at(job.wake_at);
            behind(seen, reason)
        }
        None => Reason::new(ReasonCode::Paused, "Its owner has paused the job. Resume it.").since(job.paused_at),
    }
}

fn overdue(seen: &Seen<'_>) -> Option<Reason> {
    let job = seen.job;
    let message = match seen.now >= job.deadline_at {
        true => "The deadline of the job has passed. Rowmill stops it at its next look.",
        false => "No chunk has begun within `startWithinSeconds`. Rowmill stops the job at its next look.",
    };
    let reason = Reason::new(ReasonCode::DeadlinePassed, message).since(job.stops_at()).next_look_at(job.wake_at);
    (seen.now >= job.stops_at()).then_some(reason)
}

fn awaiting(seen: &Seen<'_>) -> Option<Reason> {
    let job = seen.job;
    let reason = match job.awaits? {
        Awaits::File => {
            Reason::new(ReasonCode::FileFetching, "Its file is being fetched. Then the job starts by itself.")
        }
        Awaits::Files => {
            Reason::new(ReasonCode::FilesListing, "Its files are being listed. Then the job starts by itself.")
        }
        Awaits::Job(before) => {
            let message = "It starts by itself when another job has ended well.";
            Reason { jobs: vec![before], ..Reason::new(ReasonCode::AfterJob, message) }
        }
    };
    Some(reason.since(job.created_at).next_look_at(job.wake_at))
}

fn not_taken_up(seen: &Seen<'_>) -> Option<Reason> {
    let message = "No function has taken the job up: it waits in the jobs queue, behind other jobs if there are many.";
    let reason = Reason::new(ReasonCode::NotTakenUp, message).since(seen.job.attempt_at).next_look_at(seen.job.wake_at);
    is_untaken(seen.job).then(|| behind(seen, reason))
}

fn resuming(seen: &Seen<'_>) -> Option<Reason> {
    let (job, from) = (seen.job, seen.job.resend_from?);
    let message = match job.paused_at {
        Some(_) => {
            "The job was resumed. Runs from before may be at work: its missing chunks are sent again after them."
        }
        None => "The job was resumed. Its missing chunks are being sent again.",
    };
    let reason = Reason::new(ReasonCode::Resuming, message).since(job.moved_at).next_look_at(job.wake_at);
    Some(reason.number("tallies", job.split.tallies).number("talliesSent", from))
}

fn chunks_queued(seen: &Seen<'_>) -> Option<Reason> {
    let job = seen.job;
    let (code, message) = match seen.lanes {
        Some(lanes) if others_active(seen, |taken| &taken.job_type) > 0 => {
            let job_type = &job.job_type;
            let message = format!(
                "At most {lanes} chunks of `{job_type}` run at once in the whole stack, and those of other jobs come first."
            );
            (ReasonCode::LaneFull, message)
        }
        _ if others_active(seen, |taken| &taken.system) == 0 && sign_of_life(seen) + SILENCE <= seen.now => {
            let message = "Chunks of the job are sent, none has begun, and no other job is active: Lambda throttles the \
                           functions, or they fail at their start.";
            (ReasonCode::Throttled, message.to_owned())
        }
        _ => {
            let message = "Chunks of the job are sent, and none has begun: the functions are busy with other jobs.";
            (ReasonCode::ChunksQueued, message.to_owned())
        }
    };
    let reason = Reason::new(code, message).since(job.moved_at).next_look_at(job.wake_at);
    (is_queued(job) && seen.tasks.is_none())
        .then(|| behind(seen, reason.number("chunksInFlight", seen.counters.in_flight(job))))
}

/// The number of active jobs besides this one that count for a limit.
fn others_active(seen: &Seen<'_>, limit: fn(&SlotsTaken) -> &ActiveJobs) -> u64 {
    let own = u64::from(seen.job.has_shared_slots());
    seen.others.as_ref().map_or(0, |others| limit(&others.taken).active.saturating_sub(own))
}

/// The reason with the active jobs besides this one.
fn behind(seen: &Seen<'_>, reason: Reason) -> Reason {
    let Some(Others { jobs, taken }) = &seen.others else { return reason };
    let reason = reason
        .number("jobsOfOwner", taken.owner.active.saturating_sub(1))
        .number("jobsOfType", others_active(seen, |taken| &taken.job_type))
        .number("jobsOfSystem", others_active(seen, |taken| &taken.system));
    Reason { jobs: jobs.clone(), ..reason }
}

fn breaker(seen: &Seen<'_>) -> Option<Reason> {
    let Breaker { state, at, openings, code, .. } = seen.breaker.as_ref()?;
    let job_type = &seen.job.job_type;
    match state {
        BreakerState::Open { until } => {
            let message =
                format!("The target of `{job_type}` does not answer ({code}). A chunk that fails pauses its job.");
            let reason = Reason::new(ReasonCode::BreakerOpen, message).since(*at).next_look_at(*until);
            Some(reason.number("openings", *openings))
        }
        BreakerState::Probing(probe) => {
            let who = if probe.job == seen.job.job_guid { "This" } else { "Another" };
            let message = format!("The target of `{job_type}` was down ({code}). {who} job tries whether it is back.");
            let reason = Reason::new(ReasonCode::BreakerOpen, message).since(probe.began).next_look_at(probe.until);
            Some(reason.number("openings", *openings))
        }
        BreakerState::Closed { since, failed, .. } if *failed > 0 && *at + RECENT > seen.now => {
            let message =
                format!("Runs of `{job_type}` failed lately with transient errors ({code}). They are tried again.");
            Some(Reason::new(ReasonCode::TargetFailing, message).since(*since).number("runsFailed", *failed))
        }
        BreakerState::Closed { .. } => None,
    }
}

fn one_by_one(seen: &Seen<'_>) -> Option<Reason> {
    let isolated: Vec<&Checkpoint> = seen.checkpoints.iter().filter(|checkpoint| checkpoint.isolated).collect();
    let since = isolated.iter().map(|checkpoint| checkpoint.at).min()?;
    let at_work = isolated.iter().filter(|checkpoint| checkpoint.is_live(seen.now));
    let items: u64 = at_work.filter_map(|checkpoint| checkpoint.in_flight).map(|note| u64::from(note.items)).sum();
    let message = "The messages of some chunks failed at every delivery, so these chunks run item by item until the item \
                   that is to blame is found.";
    let reason = Reason::new(ReasonCode::OneByOne, message).since(since).number("itemsInFlight", items);
    Some(of_chunks(reason, &isolated))
}

fn slow_rows(seen: &Seen<'_>) -> Option<Reason> {
    let handed_over: Vec<&Checkpoint> = seen.checkpoints.iter().filter(|checkpoint| !checkpoint.isolated).collect();
    let since = handed_over.iter().map(|checkpoint| checkpoint.at).min()?;
    let message = "The items of some chunks take so long that one run does not end them. Each run continues where the one \
                   before ended.";
    Some(of_chunks(Reason::new(ReasonCode::SlowRows, message).since(since), &handed_over))
}

/// The reason with these chunks and their items that are done.
fn of_chunks(reason: Reason, checkpoints: &[&Checkpoint]) -> Reason {
    let done: u64 = checkpoints.iter().map(|checkpoint| u64::from(checkpoint.done)).sum();
    reason.number("chunks", checkpoints.len() as u64).number("itemsDone", done)
}

fn sign_of_life(seen: &Seen<'_>) -> Timestamp {
    seen.counters.last_moved().map_or(seen.job.moved_at, |at| at.max(seen.job.moved_at))
}

fn silent(seen: &Seen<'_>) -> Option<Reason> {
    let (job, since) = (seen.job, sign_of_life(seen));
    let message = "Nothing was noted of the job since then: its items take long or wait, or a message is lost. At its next \
                   look Rowmill sends again what is missing.";
    let reason = Reason::new(ReasonCode::Silent, message).since(since).next_look_at(job.wake_at);
    // Whoever has a task beats.
    let is_silent = since + SILENCE <= seen.now && job.awaits.is_none();
    (is_silent && seen.tasks.is_none()).then(|| reason.number("recoveries", job.recoveries))
}

fn splitting(seen: &Seen<'_>) -> Option<Reason> {
    let job = seen.job;
    if job.split.done || job.is_held_back() || is_untaken(job) || job.awaits.is_some() {
        return None;
    }
    let message = match job.lease.is_some_and(|lease| lease.until > seen.now) {
        true => "The file is being split. Chunks that are cut are processed meanwhile.",
        false => "The file is split in part. The rest waits for the next run of the splitter.",
    };
    let reason = Reason::new(ReasonCode::Splitting, message).since(job.started_at.max(Some(job.attempt_at)));
    Some(reason.next_look_at(job.wake_at).number("itemsSplit", job.items_dispatched()))
}

fn type_concurrency(seen: &Seen<'_>) -> Option<Reason> {
    let (lanes, in_flight) = (seen.lanes?, seen.counters.in_flight(seen.job));
    let message = format!(
        "At most {lanes} chunks of `{}` run at once in the whole stack, those of other jobs too.",
        seen.job.job_type
    );
    let reason = Reason::new(ReasonCode::TypeConcurrency, message).number("limit", lanes);
    (in_flight > 0).then(|| reason.number("chunksInFlight", in_flight))
}

fn max_concurrency(seen: &Seen<'_>) -> Option<Reason> {
    let (width, in_flight) = (seen.job.max_concurrency?, seen.counters.in_flight(seen.job));
    let open = seen.counters.open.iter().flat_map(Tally::uncommitted).count() as u64;
    let message =
        format!("At most {width} chunks of the job are in flight at once: its `maxConcurrency`. The others wait.");
    let reason = Reason::new(ReasonCode::MaxConcurrency, message).number("limit", width);
    let reason = reason.number("chunksInFlight", in_flight).number("chunksWaiting", open.saturating_sub(in_flight));
    (open > in_flight).then_some(reason)
}

fn low_priority(seen: &Seen<'_>) -> Option<Reason> {
    let reason = Reason::new(ReasonCode::LowPriority, "The job has low priority: few workers process its chunks.");
    let in_flight = seen.counters.in_flight(seen.job);
    (seen.job.priority == Priority::Low && in_flight > 0).then(|| reason.number("chunksInFlight", in_flight))
}

fn running(seen: &Seen<'_>) -> Option<Reason> {
    let (job, began) = (seen.job, seen.job.first_chunk_at?);
    let (items, (done, whole)) = (seen.counters.counts().sum(), seen.counters.work(job));
    let seconds = seen.now.duration_since(began).as_secs_f64().max(0.001);
    let reason = |message: String| Reason::new(ReasonCode::Running, message).since(began).number("itemsDone", items);
    if items == 0 || done == 0 {
        let message = "Items are being processed. None is accounted for yet: those of a chunk are when it ends.";
        return Some(reason(message.to_owned()));
    }
    let per_hour = (items as f64 * 3600.0 / seconds) as u64;
    let rest = seconds * whole.saturating_sub(done) as f64 / done as f64;
    let expected_end_at = SignedDuration::try_from_secs_f64(rest).ok().and_then(|rest| seen.now.checked_add(rest).ok());
    let message = format!("Items are being processed: {items} so far, about {per_hour} an hour.");
    Some(Reason { expected_end_at, ..reason(message).number("itemsPerHour", per_hour) })
}
