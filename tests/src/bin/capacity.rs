//! Estimates how long jobs take on AWS and what limits them: `cargo run --bin capacity`, or `-- --json`.

use std::process::ExitCode;

use acceptance::capacity::{COMPARISONS, Outcome, SOURCES, limits::READ};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let as_json = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--json"] => true,
        _ => {
            println!("capacity [--json]\n\nPrints the tables of docs/performance.md, or all results as JSON.");
            return ExitCode::from(2);
        }
    };
    let outcomes: Vec<Vec<Vec<Outcome>>> = COMPARISONS.iter().map(acceptance::capacity::Comparison::outcomes).collect();
    if as_json {
        let all: Vec<&Outcome> = outcomes.iter().flatten().flatten().collect();
        println!("{}", serde_json::to_string_pretty(&all).unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    println!("| limit | value | source, read on {READ} |\n|---|---|---|");
    for source in SOURCES {
        println!("| {} | {} | [{}]({}) |", source.what, source.value, source.page, source.url);
    }
    for (comparison, outcomes) in COMPARISONS.iter().zip(&outcomes) {
        println!("\n{}", comparison.table(outcomes));
    }
    ExitCode::SUCCESS
}
