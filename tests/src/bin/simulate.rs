//! Runs seeds of the simulation: `cargo run --bin simulate -- --seeds 100000 --from 0`.

use std::process::ExitCode;
use std::time::Instant;

use acceptance::progress::Progress;
use acceptance::simulation::{Broken, Summary, first_failure};

const USAGE: &str = "simulate [--from SEED] [--seeds COUNT]

Runs COUNT seeds (20000) from SEED (0) on all cores. If one violates an invariant, its trace is
printed and the command fails.";

fn main() -> ExitCode {
    let (mut from, mut seeds) = (0, 20_000);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (argument.as_str(), value) {
            ("--from", Some(value)) => from = value,
            ("--seeds", Some(value)) => seeds = value,
            _ => {
                println!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let began = Instant::now();
    let progress = Progress::of_seeds("simulate", Some(seeds));
    let (summary, failure) = first_failure(from..from.saturating_add(seeds), Broken::Nothing, Some(&progress));
    drop(progress);
    let seconds = began.elapsed().as_secs_f64();
    let code = match failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    };
    for (place, times) in &summary.reached {
        println!("{times:>9}  {place}");
    }
    let Summary { seeds, steps, jobs, attempts, calm_sweeps, longest, .. } = summary;
    println!("{seeds} seeds, {steps} steps, {jobs} jobs, {attempts} attempts in {seconds:.1} s");
    println!("at most {longest} steps, and {calm_sweeps} sweeps in which no further row was processed");
    code
}
