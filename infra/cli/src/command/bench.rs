//! `rowmill bench`: measures the pipeline on generated rows.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use super::connection::{ApiArgs, Connection};
use super::interrupt::{self, interrupted};
use super::params::read_json;
use super::{CommandError, print_result};
use crate::bench::memory::MemorySizes;
use crate::bench::report::Report;
use crate::bench::{BenchError, BenchType, FunctionLogs, Measurement, Workload, measure, rows};
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
    /// The work to do with each row
    #[arg(long = "type", value_enum, default_value = "validate")]
    pub bench_type: BenchType,
    /// Measure this many times and print medians
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Quote every cell, so that a row has 72 bytes
    #[arg(long)]
    pub quoted: bool,
    /// Check the rows against the JSON Schema in this file; `none` checks nothing. By default a schema of six
    /// properties
    #[arg(long, value_name = "FILE|none")]
    pub schema: Option<PathBuf>,
    /// Watch the job on so many live connections instead of polling it
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=500))]
    pub watchers: u32,
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
    let workload = Workload {
        bench_type: args.bench_type,
        rows: args.rows,
        quoted: args.quoted,
        schema: schema(args.schema.as_deref())?,
        watchers: args.watchers,
    };
    let input = generate(&workload).await?;
    let file = SourceFile::open(input.path(), None).await?;
    if args.api.is_given() {
        let connection = args.api.connect().await?;
        return run(args, &workload, &file, &connection, None).await;
    }
    let options = StackOptions { release: args.release, ..StackOptions::for_current_workspace()? };
    let template = Template::load(&options.workspace.join("template.yaml"))
        .and_then(|template| MemorySizes::of_template(&template));
    let memory = template.map_err(crate::stack::StackError::from)?;
    let logs = logs_dir(&options);
    let mut connection = Connection::local(&options).await?;
    let function_logs = FunctionLogs { logs: &logs, memory };
    let result = run(args, &workload, &file, &connection, Some(&function_logs)).await;
    connection.leave_stack_running();
    result
}

async fn run(
    args: &BenchArgs,
    workload: &Workload,
    file: &SourceFile,
    connection: &Connection,
    function_logs: Option<&FunctionLogs<'_>>,
) -> Result<ExitCode, CommandError> {
    let mut runs: Vec<Measurement> = Vec::new();
    for number in 1..=args.runs {
        let mut reporter = Reporter::on_stderr();
        let measured = measure(&connection.api, file, workload, function_logs, &mut reporter).await?;
        drop(reporter);
        if args.runs > 1 {
            eprintln!("Run {number} of {}: {}", args.runs, span(measured.job));
        }
        runs.push(measured);
    }
    let report = Report { workload, file_bytes: file.size, runs: &runs };
    print_result(args.json, &report.to_json(), || report.to_text())?;
    Ok(ExitCode::SUCCESS)
}

/// The schema that this argument names.
fn schema(named: Option<&Path>) -> Result<Option<Value>, CommandError> {
    match named {
        None => Ok(Some(rows::schema())),
        Some(path) if path == Path::new("none") => Ok(None),
        Some(path) => read_json(path).map(Some),
    }
}

async fn generate(workload: &Workload) -> Result<tempfile::NamedTempFile, BenchError> {
    let (rows, quoted) = (workload.rows, workload.quoted);
    eprintln!("Writing {} rows", count(rows));
    let write = move || -> io::Result<tempfile::NamedTempFile> {
        let file = tempfile::Builder::new().prefix("rowmill-bench-").suffix(".csv").tempfile()?;
        rows::write(rows, quoted, file.as_file())?;
        Ok(file)
    };
    tokio::task::spawn_blocking(write)
        .await
        .expect("writing rows does not panic")
        .map_err(|source| BenchError::File { what: "the rows", source })
}
