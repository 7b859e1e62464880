//! Runs seeds in a process of its own, which may abort: it notes the current seed in a file before it runs it.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::{Corpus, Decoder, check};
use crate::progress::Progress;

/// The address space of the worker, in bytes. An allocation beyond it aborts the worker.
const ADDRESS_SPACE_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// A worker that notes no new seed for so long hangs.
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// An input that breaks a rule.
#[derive(Debug)]
pub struct Found {
    pub seed: u64,
    /// The violated property.
    pub what: String,
    pub saved: String,
}

/// Runs seeds until one breaks a rule, in this process. Notes each of them in `state`.
///
/// # Errors
/// The corpus or the state cannot be used.
pub fn work(seeds: Range<u64>, state: &Path) -> io::Result<Option<Found>> {
    let limit = Rlimit { current: Some(ADDRESS_SPACE_BYTES), maximum: Some(ADDRESS_SPACE_BYTES) };
    setrlimit(Resource::As, limit)?;
    let (corpus, state) = (Corpus::read()?, File::options().create(true).write(true).truncate(false).open(state)?);
    for seed in seeds {
        state.write_all_at(&seed.to_le_bytes(), 0)?;
        let (decoder, input) = corpus.input(seed);
        if let Err(what) = check::check(decoder, &input) {
            return Ok(Some(found(decoder, seed, &input, what)?));
        }
    }
    Ok(None)
}

fn found(decoder: Decoder, seed: u64, input: &[u8], what: String) -> io::Result<Found> {
    let saved = Corpus::save(decoder, seed, input)?.display().to_string();
    Ok(Found { seed, what: format!("{}: {what}", decoder.name()), saved })
}

#[derive(Debug)]
pub enum WorkerEnd {
    /// It ran all seeds up to this one.
    Done(u64),
    /// It reported an input and saved it.
    Reported,
    /// It aborted or hung at this input.
    Died(Found),
}

/// Starts a worker as a process of its own and watches it until it ends, or until the time limit.
///
/// # Errors
/// The worker cannot be started or watched.
pub fn watch(
    mut worker: Command,
    state: &Path,
    from: u64,
    until: Option<Instant>,
    progress: &Progress,
) -> io::Result<WorkerEnd> {
    fs::write(state, from.to_le_bytes())?;
    let mut child = worker.spawn()?;
    let (mut last, mut moved_at) = (from, Instant::now());
    loop {
        let ended = child.try_wait()?;
        let seed = current(state)?;
        progress.add(seed.saturating_sub(last));
        if seed != last {
            (last, moved_at) = (seed, Instant::now());
        }
        match ended {
            Some(status) => return end_of(status, seed),
            None if moved_at.elapsed() > HANGS_AFTER => {
                stop(&mut child)?;
                return died(seed, "hangs".to_owned());
            }
            None if until.is_some_and(|until| Instant::now() >= until) => {
                stop(&mut child)?;
                return Ok(WorkerEnd::Done(seed));
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn end_of(status: ExitStatus, seed: u64) -> io::Result<WorkerEnd> {
    match status.code() {
        Some(0) => Ok(WorkerEnd::Done(seed)),
        Some(1) => Ok(WorkerEnd::Reported),
        _ => died(seed, format!("the process ended with {status}")),
    }
}

fn died(seed: u64, what: String) -> io::Result<WorkerEnd> {
    let (decoder, input) = Corpus::read()?.input(seed);
    Ok(WorkerEnd::Died(found(decoder, seed, &input, what)?))
}

fn stop(child: &mut Child) -> io::Result<()> {
    child.kill()?;
    child.wait().map(drop)
}

fn current(state: &Path) -> io::Result<u64> {
    let bytes = fs::read(state)?;
    Ok(bytes.get(..8).and_then(|seed| seed.try_into().ok()).map_or(0, u64::from_le_bytes))
}
