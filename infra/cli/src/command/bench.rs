//! `rowmill bench`: measures the pipeline on generated rows.

use std::io;
use std::process::ExitCode;

use super::connection::{ApiArgs, Connection};
use super::interrupt::{self, interrupted};
use super::{CommandError, print, print_json};
use crate::bench::memory::MemorySizes;
use crate::bench::report::Report;
use crate::bench::{BenchError, BenchType, FunctionLogs, Measurement, measure, rows};
use crate::follow::Reporter;
use crate::stack::{StackOptions, logs_dir};
use crate::template::Template;
use crate::terminal::{count, span};
use crate::upload::SourceFile;

/// Measures throughput, AWS requests, memory and cost of a job with generated rows
///
/// Exit codes: 0 if every row succeeded and was counted exactly once, else 1.
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// Number of rows to process, 60 bytes each
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u64).range(1..=9_999_999_999))]
    pub rows: u64,
    /// What to do with each row
    #[arg(long = "type", value_enum, default_value = "validate")]
    pub bench_type: BenchType,
    /// Measure this many times and print medians
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Watch the job on a live connection instead of polling it
    #[arg(long)]
    pub watched: bool,
    /// Use the local stack (the default without --url)
    #[arg(long, conflicts_with = "url")]
    pub local: bool,
    /// Build the local stack's functions with optimizations
    #[arg(long, conflicts_with = "url")]
    pub release: bool,
    /// Another API. Requests and cost are then unknown.
    #[command(flatten)]
    pub api: ApiArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
///
/// See [`CommandError`], including [`BenchError::Inexact`].
pub async fn execute(args: BenchArgs) -> Result<ExitCode, CommandError> {
    tokio::select! {
        result = bench(&args) => result,
        () = interrupted() => {
            eprintln!("Interrupted; a running job goes on, unless this command started its local stack.");
            Ok(interrupt::exit_code())
        }
    }
}

async fn bench(args: &BenchArgs) -> Result<ExitCode, CommandError> {
    let input = generate(args.rows).await?;
    let file = SourceFile::open(input.path(), None).await?;
    if args.api.is_given() {
        let connection = args.api.connect().await?;
        return run(args, &file, &connection, None).await;
    }
    let options = StackOptions { release: args.release, ..StackOptions::for_current_workspace()? };
    let template = Template::load(&options.workspace.join("template.yaml"))
        .and_then(|template| MemorySizes::of_template(&template));
    let memory = template.map_err(crate::stack::StackError::from)?;
    let logs = logs_dir(&options);
    let mut connection = Connection::local(&options).await?;
    let function_logs = FunctionLogs { logs: &logs, memory };
    let result = run(args, &file, &connection, Some(&function_logs)).await;
    connection.leave_stack_running();
    result
}

async fn run(
    args: &BenchArgs,
    file: &SourceFile,
    connection: &Connection,
    function_logs: Option<&FunctionLogs<'_>>,
) -> Result<ExitCode, CommandError> {
    let mut runs: Vec<Measurement> = Vec::new();
    for number in 1..=args.runs {
        let mut reporter = Reporter::on_stderr();
        let measured =
            measure(&connection.api, file, args.rows, args.bench_type, function_logs, args.watched, &mut reporter)
                .await?;
        drop(reporter);
        if args.runs > 1 {
            eprintln!("Run {number} of {}: {}", args.runs, span(measured.job));
        }
        runs.push(measured);
    }
    let report = Report { bench_type: args.bench_type, rows: args.rows, file_bytes: file.size, runs: &runs };
    match args.json {
        true => print_json(&report.to_json())?,
        false => print(&report.to_text())?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn generate(rows: u64) -> Result<tempfile::NamedTempFile, BenchError> {
    eprintln!("Writing {} rows", count(rows));
    let write = move || -> io::Result<tempfile::NamedTempFile> {
        let file = tempfile::Builder::new().prefix("rowmill-bench-").suffix(".csv").tempfile()?;
        rows::write(rows, file.as_file())?;
        Ok(file)
    };
    tokio::task::spawn_blocking(write)
        .await
        .expect("writing rows does not panic")
        .map_err(|source| BenchError::File { what: "the rows", source })
}
