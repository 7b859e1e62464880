//! The plan of a seed: its jobs, its limits, and the faults that the adversary may inject.
//!
//! Each seed enables some kinds of faults and some sizes and disables others (swarm testing). So the seeds also reach
//! combinations that a uniform mixture would never produce.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::{Priority, REQUEST_LIMIT};
use rowmill_core::model::job_type_limits::{JobTypeLimits, TypeLimits};
use rowmill_core::ports::Ceilings;
use rowmill_settings::VISIBILITY_TIMEOUTS;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::files::{FileShape, Kind, SimulatedFile};
use super::functions::Function;
use super::items::{ItemShape, LANED, SIMULATED, WORKED};
use super::queues::QueueName;

/// The timeout of a function that a queue feeds.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// Time before its timeout at which a function hands over.
pub const MARGIN: Duration = Duration::from_secs(4);

/// The timeout of a function behind the API.
pub const API_TIMEOUT: Duration = REQUEST_LIMIT;

pub const LEASE: Duration = Duration::from_secs(30);

/// Time after a stop or a pause in which running chunks may still commit. It obeys the rule for `StopGraceSeconds`: a
/// run may begin up to the end of the request that pauses its job, and the clocks of two invocations differ.
pub const GRACE: Duration = TIMEOUT.saturating_add(API_TIMEOUT).saturating_add(SKEW_MAX).saturating_add(SKEW_MAX);

/// The maximum difference between the clock of an invocation and the time.
pub const SKEW_MAX: Duration = Duration::from_millis(1_500);

/// Time for which an isolated chunk is kept after the last move of its checkpoint, before it may be given up.
pub const PATIENCE: Duration = Duration::from_secs(360);

/// For how long a sweep continues with further jobs.
pub const SWEEP_TIME: Duration = Duration::from_secs(45);

/// The longest pause by an owner.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(1800);

/// The longest time between two recoveries.
pub const BACKOFF_MAX: Duration = Duration::from_secs(1200);

/// The time for which some jobs are kept: they expire after everything else.
pub const KEPT: Duration = Duration::from_secs(20 * 24 * 60 * 60);

pub const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// The visibility timeout of a queue: six times the timeout of its function.
pub fn visibility(_: QueueName) -> Duration {
    TIMEOUT * VISIBILITY_TIMEOUTS
}

/// An operation of a client, or an extra sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Creates the job with this number in the plan.
    Create(usize),
    Cancel(usize),
    /// Pauses it, and mostly resumes it later.
    Pause(usize),
    Resume(JobGuid),
    /// Gives it this `maxConcurrency`.
    Widen(usize, u32),
    /// Changes its tolerance, its deadline, or both.
    Retune(usize),
    Redrive(usize, Redrive),
    /// Replaces or deletes its file.
    ReplaceFile(usize),
    /// Its file has been fetched, or could not be; the jobs that wait for it are told.
    Fetch(usize),
    /// The jobs that wait for its job are told of its end, perhaps too early.
    Announce(usize),
    /// An extra sweep, by no client.
    Sweep,
}

/// The ways in which a client redrives a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redrive {
    /// With a corrected file.
    pub corrected: bool,
    /// Of some of the failed rows.
    pub selected: bool,
    /// With a short deadline, or a cancel soon after.
    pub stopped: bool,
}

/// An operation that starts at some step.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// The first step at which it may start.
    pub step: u64,
    pub operation: Operation,
    /// Number of retries if it fails.
    pub retries: u32,
}

/// A job that a client will request.
#[derive(Clone, Debug)]
pub struct JobPlan {
    pub file: Arc<SimulatedFile>,
    pub request: Value,
    /// The idempotency key of the request.
    pub key: Option<String>,
    /// True if its file is fetched while clients ask for the job.
    pub is_fetched: bool,
    /// The job plan whose job it follows, if that job is there and of the same owner.
    pub after: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// The maximum number of faults.
    pub budget: u32,
    /// No faults happen from this step on.
    pub until_step: u64,
    /// One in this many calls has a fault.
    pub one_in: u32,
    /// The function that gets most of the faults, if one does.
    pub focus: Option<Function>,
    /// Calls fail and have no effect.
    pub failures: bool,
    /// Replies are lost.
    pub losses: bool,
    /// Processes die.
    pub deaths: bool,
    /// Invocations continue after their timeout.
    pub zombies: bool,
    /// Messages are delivered more than once or dropped, and acknowledgements are lost.
    pub deliveries: bool,
    /// The clock jumps.
    pub jumps: bool,
    /// The index returns stale entries.
    pub staleness: bool,
    /// Invocations stall for a while.
    pub stalls: bool,
    /// The maximum duration of a step, in milliseconds.
    pub slow_ms: u64,
}

/// A seed's world.
#[derive(Clone, Debug)]
pub struct Plan {
    pub jobs: Vec<JobPlan>,
    /// The operations of clients, and the extra sweeps.
    pub operations: Vec<Planned>,
    pub ceilings: Ceilings,
    /// The limits that the job type `laned` has of its own.
    pub type_limits: JobTypeLimits,
    /// The maximum number of items in a chunk.
    pub chunk_items: u32,
    /// Number of tallies of a job sent ahead.
    pub tallies_ahead: u32,
    /// Size of one read of the splitter.
    pub range_bytes: u64,
    /// Number of receives of a message before it becomes a dead letter.
    pub max_receives: u32,
    /// Number of invocations that process chunks at once.
    pub workers: usize,
    /// Maximum number of chunks an invocation receives at once.
    pub chunks_per_invocation: usize,
    /// Number of retries of a transient item in place.
    pub transient_retries: u32,
    /// The maximum number of items of a chunk that are passed over; a chunk with more is given up.
    pub passed_over_max: u32,
    /// Maximum number of tallies one recovery reads.
    pub tallies_max: u32,
    /// The time without a sign of life after which a job is recovered. If it is shorter than the visibility timeout,
    /// many messages are sent again that are not lost, which must do no harm.
    pub stale: Duration,
    /// The maximum number of jobs that a sweep looks at.
    pub sweep_jobs_max: usize,
    /// When the breaker of the job type opens.
    pub breaker: BreakerLimits,
    /// When the target of all items is down, from the beginning of the run on.
    pub outage: Option<Range<Duration>>,
    /// Way in which items are handed to the job type.
    pub items: ItemShape,
    /// Number of workers outside of the stack at once.
    pub holders: usize,
    /// Maximum number of items of a task.
    pub task_items: u32,
    /// True if services are called with the tasks, instead of workers that lease them.
    pub calls_services: bool,
    /// The maximum difference between the clock of an invocation and the time.
    pub skew: Duration,
    pub faults: Faults,
}

impl Plan {
    /// True if it has no faults and no slow, transient or poison items.
    pub fn is_without_trouble(&self) -> bool {
        let plain = |kind: &Kind| matches!(kind, Kind::Good | Kind::Bad | Kind::Ragged);
        // The chunks of a stopped job go back from workers to their queue.
        self.faults.budget == 0
            && self.holders == 0
            && self.outage.is_none()
            && !self.jobs.iter().any(|job| job.is_fetched || job.after.is_some())
            && !self
                .operations
                .iter()
                .any(|planned| matches!(planned.operation, Operation::Pause(_) | Operation::Widen(..)))
            && self.stale > visibility(QueueName::Items(Priority::Normal))
            && self.jobs.iter().all(|job| job.file.rows.iter().all(plain))
    }

    /// When the target of all items is down in a run that begins at this time.
    pub fn outage_from(&self, began: Timestamp) -> Option<Range<Timestamp>> {
        self.outage.as_ref().map(|outage| began + outage.start..began + outage.end)
    }

    pub fn of(rng: &mut fastrand::Rng) -> Self {
        let chunk_items = rng.u32(1..=3);
        let system = rng.u32(1..=4);
        let ceilings = Ceilings { owner: rng.u32(1..=3), job_type: rng.u32(1..=4), system };
        let count = [1, 1, 1, 2, 2, 3, 4][rng.usize(0..7)];
        let owners = rng.u32(1..=2);
        let type_limits = type_limits(rng);
        let jobs: Vec<JobPlan> = (0..count).map(|number| job(rng, number, owners, count)).collect();
        let operations = operations(rng, &jobs);
        let mut plan = Self {
            jobs,
            operations,
            ceilings,
            type_limits,
            chunk_items,
            tallies_ahead: rng.u32(1..=2),
            range_bytes: [64, 256, 1024, 1 << 20][rng.usize(0..4)],
            max_receives: rng.u32(2..=4),
            workers: rng.usize(1..=6),
            chunks_per_invocation: [1, 2, 4, 10][rng.usize(0..4)],
            transient_retries: rng.u32(0..=2),
            passed_over_max: rng.u32(0..=2),
            tallies_max: rng.u32(1..=3),
            stale: Duration::from_secs([25, 150, 150, 300][rng.usize(0..4)]),
            sweep_jobs_max: rng.usize(1..=5),
            items: ItemShape {
                concurrency: rng.usize(1..=2),
                batch_items: rng.usize(1..=4),
                fast: rng.bool(),
                gated: rng.u8(..) < 64,
            },
            faults: faults(rng),
            holders: 0,
            task_items: 1,
            calls_services: false,
            skew: SKEW_MAX * [0, 0, 1, 5][rng.usize(0..4)] / 5,
            breaker: breaker(rng),
            outage: outage(rng),
        };
        // With draws of its own, so that the other seeds stay as they were.
        plan.give_to_workers(&mut rng.clone());
        plan.have_jobs_wait(&mut fastrand::Rng::with_seed(!rng.clone().u64(..)));
        plan.read_many_files(&mut fastrand::Rng::with_seed(rng.clone().u64(..).rotate_left(17)));
        plan
    }

    /// In some worlds jobs wait for their file or for other jobs.
    fn have_jobs_wait(&mut self, rng: &mut fastrand::Rng) {
        if rng.u8(..) >= 80 {
            return;
        }
        let replaced = Operation::ReplaceFile;
        for number in 0..self.jobs.len() {
            let is_replaced = self.operations.iter().any(|planned| planned.operation == replaced(number));
            if self.jobs[number].request["dedupe"].is_string() || is_replaced {
                continue;
            }
            let mut plan = |operation, retries| {
                self.operations.push(Planned { step: rng.u64(0..1500), operation, retries });
            };
            self.jobs[number].is_fetched = number % 2 == 0;
            if number % 2 == 0 {
                plan(Operation::Fetch(number), 2);
            }
            if number > 0 {
                let after = number - 1;
                self.jobs[number].after = Some(after);
                plan(Operation::Announce(after), 0);
                plan(Operation::Announce(after), 0);
            }
        }
    }

    /// In some worlds jobs read many files.
    fn read_many_files(&mut self, rng: &mut fastrand::Rng) {
        if rng.u8(..) >= 80 {
            return;
        }
        for (number, job) in self.jobs.iter_mut().enumerate() {
            if job.request["dedupe"].is_string() || job.is_fetched || rng.u8(..) < 64 {
                continue;
            }
            let is_replaced = self.operations.iter().any(|planned| planned.operation == Operation::ReplaceFile(number));
            let stops = is_replaced || rng.u8(..) < 64;
            let shape = FileShape {
                rows_max: [0, 3, 8, 30][rng.usize(0..4)],
                slow_max_ms: 200,
                poison_permille: 0,
                holding_permille: 0,
                bad_permille: 100,
                transient_permille: 30,
            };
            let mut files = vec![(*job.file).clone()];
            for piece in 1..=rng.u128(1..=4) {
                let file_guid = FileGuid(Uuid::from_u128(job.file.file_guid.0.as_u128() + 0x100 * piece));
                files.push(SimulatedFile::of(rng, file_guid, job.file.owner.clone(), shape));
            }
            job.file = Arc::new(SimulatedFile::many(files, stops));
            let guids: Vec<FileGuid> = job.file.pieces.iter().map(|piece| piece.file_guid).collect();
            let request = job.request.as_object_mut().expect("a request");
            request.remove("fileGuid");
            request.insert("source".to_owned(), json!({ "files": guids }));
            request.insert("metadata".to_owned(), json!({ "file": job.file.file_guid }));
            job.request["params"]["unreadableFiles"] = json!(if stops { "stop" } else { "fail" });
        }
    }

    /// In some worlds workers process the items of some jobs.
    fn give_to_workers(&mut self, rng: &mut fastrand::Rng) {
        if rng.u8(..) >= 80 {
            return;
        }
        (self.holders, self.task_items) = (rng.usize(1..=3), rng.u32(1..=3));
        let mut more = rng.clone();
        self.calls_services = more.bool();
        if more.bool() {
            let permits = TypeLimits { concurrency: Some(more.u32(1..=2)), ..TypeLimits::default() };
            self.type_limits = self.type_limits.with(WORKED, permits);
        }
        for job in &mut self.jobs {
            // No thread of the stack is held by an item of theirs.
            if rng.bool() && !job.file.rows.contains(&Kind::Holds) {
                job.request["jobType"] = json!(WORKED);
            }
        }
    }
}

/// Mostly one to three lanes, sometimes a ceiling of its own.
fn type_limits(rng: &mut fastrand::Rng) -> JobTypeLimits {
    let lanes = [None, Some(1), Some(1), Some(2), Some(3)][rng.usize(0..5)];
    let ceiling = (rng.u8(..) < 64).then(|| rng.u32(1..=3));
    let limit = |name: &str, value: Option<u32>| value.map(|value| (name.to_owned(), value.into()));
    let limits: Map<String, Value> =
        [limit("concurrency", lanes), limit("activeJobs", ceiling)].into_iter().flatten().collect();
    JobTypeLimits::parse(&json!({ LANED: limits }).to_string()).expect("valid limits")
}

/// One seed in four has no breaker.
fn breaker(rng: &mut fastrand::Rng) -> BreakerLimits {
    BreakerLimits {
        failures: rng.u32(0..=3),
        window: Duration::from_secs([60, 300, 900][rng.usize(0..3)]),
        probe: Duration::from_secs([5, 20, 60][rng.usize(0..3)]),
    }
}

fn outage(rng: &mut fastrand::Rng) -> Option<Range<Duration>> {
    if rng.u8(..) >= 80 {
        return None;
    }
    let latest_ms = [1_000, 10_000, 300_000][rng.usize(0..3)];
    let longest_ms = [30_000, 300_000, 2_400_000][rng.usize(0..3)];
    let begins = Duration::from_millis(rng.u64(0..latest_ms));
    Some(begins..begins + Duration::from_millis(rng.u64(1_000..longest_ms)))
}

fn faults(rng: &mut fastrand::Rng) -> Faults {
    let budget = [30, 30, 30, 120][rng.usize(0..4)];
    let budget = rng.u32(0..=budget);
    Faults {
        budget,
        until_step: rng.u64(200..=6000),
        focus: rng.bool().then(|| Function::ALL[rng.usize(0..Function::ALL.len())]),
        one_in: [3, 6, 10, 25, 60][rng.usize(0..5)],
        failures: rng.u8(..) < 160,
        losses: rng.u8(..) < 160,
        deaths: rng.u8(..) < 160,
        zombies: rng.u8(..) < 128,
        deliveries: rng.u8(..) < 160,
        jumps: rng.u8(..) < 100,
        staleness: rng.u8(..) < 128,
        stalls: rng.u8(..) < 128,
        slow_ms: [40, 40, 40, 400, 3_000][rng.usize(0..5)],
    }
}

fn job(rng: &mut fastrand::Rng, number: usize, owners: u32, of: usize) -> JobPlan {
    let file_guid = FileGuid(Uuid::from_u128((0x4 << 76) | (0b10 << 62) | (number as u128 + 1)));
    let owner = Owner(format!("owner-{}", rng.u32(1..=owners)));
    let rows_max = match (rng.u32(0..100), of) {
        (0..6, 1) => 200,
        (0..20, 1 | 2) => 80,
        (0..50, _) => 24,
        _ => 8,
    };
    let rare = |rng: &mut fastrand::Rng, permille: u32| if rng.u8(..) < 80 { permille } else { 0 };
    let shape = FileShape {
        rows_max,
        slow_max_ms: [0, 0, 200, 9_000, 30_000][rng.usize(0..5)],
        poison_permille: rare(rng, if rows_max > 24 { 8 } else { 80 }),
        holding_permille: if rng.u8(..) < 16 { 60 } else { 0 },
        bad_permille: [0, 30, 100, 400][rng.usize(0..4)],
        transient_permille: rare(rng, 60),
    };
    let file = SimulatedFile::of(rng, file_guid, owner, shape);
    let tolerance = match rng.u32(0..6) {
        0 => Some(json!({ "count": rng.u32(0..3) })),
        1 => Some(json!({ "percent": rng.u32(0..50), "minimumItems": rng.u32(0..10) })),
        _ => None,
    };
    let deadline_seconds = (rng.u8(..) < 24).then(|| rng.u64(1..600));
    let width = (rng.u8(..) < 64).then(|| rng.u32(1..=4));
    let job_type = if rng.u8(..) < 96 { LANED } else { SIMULATED };
    let priority = [None, None, Some(Priority::High), Some(Priority::Low)][rng.usize(0..4)];
    let mut request = file.request(job_type, tolerance, deadline_seconds, width);
    request["priority"] = json!(priority);
    if let rows @ (2 | 5 | 11 | 17) = file.rows.len() {
        request["startWithinSeconds"] = json!(rows * rows);
    }
    if matches!(file.rows.len(), 3 | 7 | 13) {
        request["keepSeconds"] = json!(KEPT.as_secs());
    }
    if rng.u8(..) < 64 {
        request["dedupe"] = json!("file");
    }
    let key = rng.bool().then(|| format!("key-{number}"));
    JobPlan { file: Arc::new(file), request, key, is_fetched: false, after: None }
}

fn operations(rng: &mut fastrand::Rng, jobs: &[JobPlan]) -> Vec<Planned> {
    let mut planned = Vec::new();
    let mut plan = |step, operation, retries| planned.push(Planned { step, operation, retries });
    for (number, job) in jobs.iter().enumerate() {
        plan(rng.u64(0..60), Operation::Create(number), 20);
        let is_deduped = job.request["dedupe"].is_string();
        let copies = if job.key.is_some() || is_deduped { rng.u32(0..3) } else { 0 };
        for _ in 0..copies {
            plan(rng.u64(0..if is_deduped { 2000 } else { 300 }), Operation::Create(number), 1);
        }
        if rng.u8(..) < 40 {
            plan(rng.u64(0..1500), Operation::Cancel(number), 1);
        }
        for _ in 0..[0, 0, 1, 1, 2][rng.usize(0..5)] {
            let redrive = Redrive { corrected: rng.bool(), selected: rng.u8(..) < 64, stopped: rng.u8(..) < 48 };
            plan(rng.u64(0..4000), Operation::Redrive(number, redrive), 3);
        }
        let pauses = [0, 0, 0, 0, 1, 1, 2, 4][rng.usize(0..8)];
        for _ in 0..pauses {
            plan(rng.u64(0..1500), Operation::Pause(number), 2);
        }
        for _ in 0..[0, 0, 0, 0, 0, 1, 1, 2][rng.usize(0..8)] {
            plan(rng.u64(0..1500), Operation::Widen(number, rng.u32(1..=6)), 2);
        }
        if rng.u8(..) < 12 {
            plan(rng.u64(0..600), Operation::ReplaceFile(number), 0);
        }
        for _ in 0..[0, 0, 0, 0, 0, 0, 1, 3][rng.usize(0..8)] {
            plan(rng.u64(0..1500), Operation::Retune(number), 2);
        }
    }
    for _ in 0..rng.u32(0..4) {
        plan(rng.u64(0..2000), Operation::Sweep, 0);
    }
    planned
}
