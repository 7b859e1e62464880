//! `rowmill work`: a worker, whose work is done by a command.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use rowmill_api::task::LeaseRequest;
use tokio::sync::watch;

use super::connection::ApiArgs;
use super::{CommandError, interrupt};
use crate::api::ApiClient;
use crate::terminal::count;
use crate::work::{WorkOptions, Worker};

/// Time between two looks at the login, whose token is renewed in the last minute of its life.
const RENEWAL: Duration = Duration::from_secs(30);

/// Most tasks at a time. Each has a process.
const PARALLEL_MAX: u64 = 256;

/// The exit code if the command failed at some task.
const SOME_FAILED: u8 = 3;

/// Works on tasks: leases them and has a command process their items
///
/// The command runs once for each task. It reads the items from its standard input, a JSON object a line, and prints the
/// outcome of each as soon as it is done, as a line such as {"itemIdentifier": "…"}: with `code` and `message` if the
/// item failed, with `output` if it has one. If it exits with 0, the items without a line have succeeded. If it fails,
/// other workers get the items without a line. docs/workers.md has more.
///
/// Exit codes: 0 there was no task left (--until-empty), 3 the same, but the command failed at some task, 1 the API
/// refuses this worker or the command cannot be started, 2 wrong usage, 130 interrupted. After Ctrl-C or SIGTERM the
/// tasks are given back first.
#[derive(Debug, clap::Args)]
pub struct WorkArgs {
    /// A job type to work on; repeat it for more, the preferred one first
    #[arg(long = "type", value_name = "TYPE", required = true)]
    pub job_types: Vec<String>,
    /// The name by which people recognise this worker [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub worker: Option<String>,
    /// The program of the worker and its version, as NAME/VERSION, for job types with a `minimumClient`
    #[arg(long, value_name = "CLIENT", default_value = concat!("rowmill/", env!("CARGO_PKG_VERSION")))]
    pub client: String,
    /// Work on so many tasks at a time, each with a process of the command
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = RangedU64ValueParser::<usize>::new().range(1..=PARALLEL_MAX))]
    pub parallel: usize,
    /// End when there is no task, instead of waiting for one
    #[arg(long)]
    pub until_empty: bool,
    #[command(flatten)]
    pub api: ApiArgs,
    /// The program to run for each task, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

pub async fn execute(args: WorkArgs) -> Result<ExitCode, CommandError> {
    let connection = args.api.connect().await?;
    let (renewed, api) = watch::channel(Arc::new(connection.api));
    let host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let options = WorkOptions {
        lease: LeaseRequest {
            job_types: args.job_types,
            worker: args.worker.unwrap_or_else(host),
            client: Some(args.client),
        },
        parallel: args.parallel,
        until_empty: args.until_empty,
        command: args.command,
    };
    let worker = Worker::new(api, options);
    let done = tokio::select! {
        done = worker.run(interrupt::interrupted()) => done?,
        () = renew(&args.api, &renewed) => unreachable!("the renewal goes on for ever"),
    };
    let [items, failed] = [done.items, done.items_failed].map(|number| count(number as u64));
    eprintln!("{items} items done, {failed} of them failed");
    Ok(match done {
        _ if done.interrupted => interrupt::exit_code(),
        _ if done.tasks_failed > 0 => ExitCode::from(SOME_FAILED),
        _ => ExitCode::SUCCESS,
    })
}

/// Connects again and again, so that a worker outlives the token that it began with.
async fn renew(api: &ApiArgs, renewed: &watch::Sender<Arc<ApiClient>>) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        // Otherwise the client before may still do.
        if let Ok(connection) = api.connect().await {
            renewed.send_replace(Arc::new(connection.api));
        }
    }
}
