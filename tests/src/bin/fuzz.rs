//! Fuzzes the decoders: `cargo run --release --bin fuzz -- --seconds 60`.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use acceptance::fuzz::memory::Counting;
use acceptance::fuzz::worker::{WorkerEnd, watch, work};
use acceptance::progress::Progress;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const USAGE: &str = "fuzz [--from SEED] [--seeds COUNT] [--seconds SECONDS]

Decodes mutated files of the corpus (tests/data/fuzz), from SEED (0) on, for 60 seconds or as COUNT and
SECONDS say. An input that panics, hangs, takes too much memory or comes to wrong records is saved in the
corpus, and the command fails.";

fn main() -> ExitCode {
    let (mut from, mut seeds, mut seconds, mut state) = (0_u64, None, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next();
        let number = value.as_deref().and_then(|value| value.parse().ok());
        match (argument.as_str(), number, value) {
            ("--from", Some(value), _) => from = value,
            ("--seeds", Some(value), _) => seeds = Some(value),
            ("--seconds", Some(value), _) => seconds = Some(value),
            // Internal: run the seeds in this process.
            ("--worker", _, Some(path)) => state = Some(path),
            _ => {
                println!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let end = seeds.map_or(u64::MAX, |seeds| from.saturating_add(seeds));
    let ended = match state {
        Some(state) => work(from..end, state.as_ref()).map(|found| match found {
            None => ExitCode::SUCCESS,
            Some(found) => {
                println!("seed {}: {}\nsaved as {}", found.seed, found.what, found.saved);
                ExitCode::FAILURE
            }
        }),
        None => supervise(from, end, seconds.or_else(|| seeds.is_none().then_some(60))),
    };
    ended.unwrap_or_else(|error| {
        println!("{error}");
        ExitCode::from(2)
    })
}

fn supervise(from: u64, end: u64, seconds: Option<u64>) -> std::io::Result<ExitCode> {
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let progress = Progress::of_seeds("fuzz", (end != u64::MAX).then(|| end - from));
    let folder = tempfile::tempdir()?;
    let state = folder.path().join("seed");
    let mut worker = Command::new(std::env::current_exe()?);
    worker.args(["--from", &from.to_string(), "--seeds", &(end - from).to_string()]).arg("--worker").arg(&state);
    let ended = watch(worker, &state, from, until, &progress)?;
    drop(progress);
    Ok(match ended {
        WorkerEnd::Done(seed) => {
            println!("seeds {from} to {seed}: nothing found");
            ExitCode::SUCCESS
        }
        WorkerEnd::Reported => ExitCode::FAILURE,
        WorkerEnd::Died(found) => {
            println!("seed {}: {}\nsaved as {}", found.seed, found.what, found.saved);
            ExitCode::FAILURE
        }
    })
}
