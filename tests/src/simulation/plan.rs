//! The plan of a seed: its jobs, its limits, and the faults that the adversary may make.
//!
//! Each seed has some kinds of faults and some sizes, and lacks others (swarm testing): combinations that a uniform mixture
//! never produces do occur in one of many different worlds.

use std::sync::Arc;
use std::time::Duration;

use rowmill_aws::settings::VISIBILITY_TIMEOUTS;
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::ports::Ceilings;
use serde_json::{Value, json};
use uuid::Uuid;

use super::files::{FileShape, Kind, SimulatedFile};
use super::functions::Function;
use super::items::ItemShape;
use super::queues::QueueName;

/// How long an invocation of a function fed from a queue may last.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// How long before that a function hands over.
pub const MARGIN: Duration = Duration::from_secs(4);

/// How long an invocation behind the API may last.
pub const API_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a lease is held for.
pub const LEASE: Duration = Duration::from_secs(30);

/// How long after a stop chunks may still be committed.
pub const GRACE: Duration = Duration::from_secs(30);

/// For how long an isolated chunk is not given up after its checkpoint's last move.
pub const PATIENCE: Duration = Duration::from_secs(360);

/// For how long a sweep goes on to further jobs.
pub const SWEEP_TIME: Duration = Duration::from_secs(45);

/// The longest time between two recoveries.
pub const BACKOFF_MAX: Duration = Duration::from_secs(1200);

/// How often there is a sweep.
pub const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// How long a received message of a queue is not received again: six times its function's timeout.
pub fn visibility(_: QueueName) -> Duration {
    TIMEOUT * VISIBILITY_TIMEOUTS
}

/// What a client does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Creates the job of this number.
    Create(usize),
    /// Cancels it.
    Cancel(usize),
    /// Redrives it.
    Redrive(usize, Redrive),
    /// Stores another file in the place of its file, or none.
    ReplaceFile(usize),
    /// Nobody's: an extra sweep.
    Sweep,
}

/// How a client redrives a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redrive {
    /// With a corrected file.
    pub corrected: bool,
    /// With a short deadline, or a cancel soon after.
    pub stopped: bool,
}

/// Something that a client does from some step on.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// Not before this step.
    pub step: u64,
    /// What.
    pub operation: Operation,
    /// How often it is tried once more where it fails.
    pub retries: u32,
}

/// A job that somebody will want.
#[derive(Clone, Debug)]
pub struct JobPlan {
    /// Its file.
    pub file: Arc<SimulatedFile>,
    /// The request.
    pub request: Value,
    /// The idempotency key it is sent under.
    pub key: Option<String>,
}

/// Which faults there are in a world.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// How many.
    pub budget: u32,
    /// Until which step.
    pub until_step: u64,
    /// One of so many calls meets one.
    pub one_in: u32,
    /// The function that most of them befall, if there is one.
    pub focus: Option<Function>,
    /// Calls fail with nothing done.
    pub failures: bool,
    /// Replies are lost.
    pub losses: bool,
    /// Processes die.
    pub deaths: bool,
    /// What has timed out goes on.
    pub zombies: bool,
    /// Messages are delivered more than once, or dropped on the way.
    pub deliveries: bool,
    /// The time jumps.
    pub jumps: bool,
    /// The index is behind.
    pub staleness: bool,
    /// Invocations stand still for a while.
    pub stalls: bool,
    /// How long a step may take, in milliseconds.
    pub slow_ms: u64,
}

/// A seed's world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The jobs.
    pub jobs: Vec<JobPlan>,
    /// What clients do.
    pub operations: Vec<Planned>,
    /// How many jobs may be active.
    pub ceilings: Ceilings,
    /// Items in a chunk.
    pub chunk_items: u32,
    /// Bytes read by the splitter at once.
    pub range_bytes: u64,
    /// How often a message is received.
    pub max_receives: u32,
    /// How many chunks are processed at once.
    pub workers: usize,
    /// How often a transient item is tried again in place.
    pub transient_retries: u32,
    /// Poison items of a chunk that are passed over.
    pub poison_max: u32,
    /// Tallies a recovery looks into.
    pub tallies_max: u32,
    /// How long a job is silent before it is recovered. Where that is shorter than messages are invisible for, much is sent
    /// that is not lost; that must do no harm.
    pub stale: Duration,
    /// Jobs a sweep looks at.
    pub sweep_jobs_max: usize,
    /// How items are handed over.
    pub items: ItemShape,
    /// What goes wrong.
    pub faults: Faults,
}

impl Plan {
    /// Whether nothing goes wrong in it, and no item makes trouble.
    pub fn is_without_trouble(&self) -> bool {
        let plain = |kind: &Kind| matches!(kind, Kind::Good | Kind::Bad | Kind::Ragged);
        self.faults.budget == 0
            && self.stale > visibility(QueueName::Items)
            && self.jobs.iter().all(|job| job.file.rows.iter().all(plain))
    }

    /// The world of a seed.
    pub fn of(rng: &mut fastrand::Rng) -> Self {
        let chunk_items = rng.u32(1..=3);
        let system = rng.u32(1..=4);
        let ceilings = Ceilings { owner: rng.u32(1..=3), job_type: rng.u32(1..=4), system };
        let count = [1, 1, 1, 2, 2, 3, 4][rng.usize(0..7)];
        let owners = rng.u32(1..=2);
        let jobs: Vec<JobPlan> = (0..count).map(|number| job(rng, number, owners, count)).collect();
        let operations = operations(rng, &jobs);
        Self {
            jobs,
            operations,
            ceilings,
            chunk_items,
            range_bytes: [64, 256, 1024, 1 << 20][rng.usize(0..4)],
            max_receives: rng.u32(2..=4),
            workers: rng.usize(1..=6),
            transient_retries: rng.u32(0..=2),
            poison_max: rng.u32(0..=2),
            tallies_max: rng.u32(1..=3),
            stale: Duration::from_secs([25, 150, 150, 300][rng.usize(0..4)]),
            sweep_jobs_max: rng.usize(1..=5),
            items: ItemShape { concurrency: rng.usize(1..=2), batch_items: rng.usize(1..=4), gated: rng.u8(..) < 64 },
            faults: faults(rng),
        }
    }
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
    let request = file.request(tolerance, deadline_seconds, width);
    let key = rng.bool().then(|| format!("key-{number}"));
    JobPlan { file: Arc::new(file), request, key }
}

fn operations(rng: &mut fastrand::Rng, jobs: &[JobPlan]) -> Vec<Planned> {
    let mut planned = Vec::new();
    let mut plan = |step, operation, retries| planned.push(Planned { step, operation, retries });
    for (number, job) in jobs.iter().enumerate() {
        plan(rng.u64(0..60), Operation::Create(number), 20);
        let copies = if job.key.is_some() { rng.u32(0..3) } else { 0 };
        for _ in 0..copies {
            plan(rng.u64(0..300), Operation::Create(number), 1);
        }
        if rng.u8(..) < 40 {
            plan(rng.u64(0..1500), Operation::Cancel(number), 1);
        }
        for _ in 0..[0, 0, 1, 1, 2][rng.usize(0..5)] {
            let redrive = Redrive { corrected: rng.bool(), stopped: rng.u8(..) < 48 };
            plan(rng.u64(0..4000), Operation::Redrive(number, redrive), 3);
        }
        if rng.u8(..) < 12 {
            plan(rng.u64(0..600), Operation::ReplaceFile(number), 0);
        }
    }
    for _ in 0..rng.u32(0..4) {
        plan(rng.u64(0..2000), Operation::Sweep, 0);
    }
    planned
}
