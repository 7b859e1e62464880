//! The deterministic simulation: the real use cases of all functions, an adversary, and a seed that decides everything.
//!
//! Every invocation of a function is a task ([`tasks`]) that suspends at every call of a port ([`gate_jobs`],
//! [`gate_objects`], [`hub`]). A seeded loop ([`mod@run`]) chooses which suspended call continues next, and its fate
//! ([`adversary`]). The loop owns the clock and the queues ([`queues`]); it delivers, duplicates, delays and drops
//! messages within the guarantees of SQS. After every write, the oracle's own records are compared with the store
//! ([`oracle`], [`invariants`]). When the adversary has spent its budget, the loop only delivers, and every job must
//! end ([`ending`]).
//!
//! A seed reproduces the whole run: [`fails`] runs it, and repeats it with a trace if it fails. [`first_failure`] runs
//! many seeds on all cores; on the command line, `cargo run --bin simulate -- --help`.

pub mod adversary;
pub mod batches;
mod broken;
pub mod checks;
mod clients;
pub mod clock;
mod commit_checks;
pub mod ending;
pub mod files;
pub mod functions;
pub mod gate_breakers;
pub mod gate_jobs;
pub mod gate_objects;
pub mod gate_tasks;
pub mod hub;
pub mod invariants;
pub mod items;
mod lane_checks;
mod object_checks;
pub mod oracle;
mod pause_checks;
mod pauses;
pub mod plan;
pub mod queues;
mod returns;
pub mod run;
pub mod tasks;
pub mod trace;
mod uploads;
mod window_checks;
mod workers;
pub mod world;

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

pub use broken::Broken;
use invariants::Reached;
use run::{Outcome, Run};

use crate::progress::Progress;

/// The maximum number of trace lines shown; only runs that do not end have more.
const LINES_SHOWN: usize = 4_000;

/// Implements a port for a gate. For each method: the kind of call, the signature, the detail for the trace, and
/// the invariants to check after the call. Other methods stand whole in braces at the end.
macro_rules! gates {
    ($port:ident for $gate:ident {
        $($kind:ident $call:ident($($argument:ident: $type:ty),*) -> $answer:ty, [$($detail:tt)*]
            $(, check |$all:ident, $done:ident| $check:expr)?;)*
        $({ $($whole:tt)* })?
    }) => {
        #[deny(clippy::missing_trait_methods)]
        #[async_trait]
        impl $port for $gate {
            $(async fn $call(&self, $($argument: $type),*) -> $answer {
                let detail = if self.hub.is_traced() { format!($($detail)*) } else { String::new() };
                let effect = async {
                    let answer = self.store.$call($($argument),*).await;
                    $(
                        let ($all, $done) = (&self.invariants, &answer);
                        self.hub.check($check);
                    )?
                    answer
                };
                self.hub.through(CallKind::$kind, stringify!($call), || detail, effect).await
            })*
            $($($whole)*)?
        }
    };
}
use gates;

/// A seed that violates an invariant.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    pub violation: String,
    pub trace: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, violation, trace } = self;
        write!(f, "{trace}\nseed {seed}: {violation}\nagain: cargo run --bin simulate -- --from {seed} --seeds 1")
    }
}

/// Counts over many seeds.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub seeds: u64,
    pub steps: u64,
    pub jobs: u64,
    pub attempts: u64,
    /// The largest number of sweeps that a seed needed after its last fault.
    pub calm_sweeps: u64,
    /// The largest number of steps of a seed.
    pub longest: u64,
    /// The places the runs reached, and how often.
    pub reached: Reached,
}

pub fn run(seed: u64, broken: Broken) -> Outcome {
    Run::new(seed, broken, false).run()
}

/// Runs a seed. Returns the failure, if it fails.
pub fn fails(seed: u64, broken: Broken) -> Option<Failure> {
    run(seed, broken).violation.map(|_| explain(seed, broken))
}

pub fn trace(seed: u64, broken: Broken) -> String {
    let mut run = Run::new(seed, broken, true);
    run.run();
    run.trace().text(usize::MAX)
}

/// Runs a failing seed once more, with a trace.
fn explain(seed: u64, broken: Broken) -> Failure {
    let mut run = Run::new(seed, broken, true);
    let violation = run.run().violation.unwrap_or_else(|| "not deterministic: it holds in the traced run".into());
    Failure { seed, violation, trace: run.trace().text(LINES_SHOWN) }
}

/// Runs these seeds on all cores until one fails, and shows the progress, if it is given one. Returns the counts and
/// the lowest seed known to fail.
pub fn first_failure(seeds: Range<u64>, broken: Broken, progress: Option<&Progress>) -> (Summary, Option<Failure>) {
    let next = AtomicU64::new(seeds.start);
    let end = AtomicU64::new(seeds.end);
    let summary = Mutex::new(Summary::default());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end.load(Ordering::Relaxed) {
                        return;
                    }
                    let outcome = run(seed, broken);
                    if outcome.violation.is_some() {
                        end.fetch_min(seed, Ordering::Relaxed);
                    }
                    if let Some(progress) = progress {
                        progress.add(1);
                    }
                    let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
                    summary.seeds += 1;
                    summary.steps += outcome.steps;
                    summary.jobs += outcome.jobs as u64;
                    summary.attempts += u64::from(outcome.attempts);
                    summary.calm_sweeps = summary.calm_sweeps.max(outcome.calm_sweeps);
                    summary.longest = summary.longest.max(outcome.steps);
                    for (place, times) in outcome.reached {
                        *summary.reached.entry(place).or_default() += times;
                    }
                }
            });
        }
    });
    let failed = end.into_inner();
    let summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    (summary, (failed < seeds.end).then(|| explain(failed, broken)))
}
