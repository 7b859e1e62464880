//! `rowmill workers`: lists the workers that have tasks.

use std::process::ExitCode;

use jiff::Timestamp;
use rowmill_api::at_work::WorkerView;

use super::connection::ApiArgs;
use super::{CommandError, print_list};
use crate::terminal::table;
use crate::top::text::{WORKER_COLUMNS, worker_cells};

/// Lists the workers that have tasks, of all job types that you may work on
///
/// A worker that waits for a task is not among them. `dead` are the tasks at which it did not beat in time; the next
/// worker that asks gets them.
#[derive(Debug, clap::Args)]
pub struct WorkersArgs {
    #[command(flatten)]
    pub api: ApiArgs,
    /// Print each worker as a line of JSON
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: WorkersArgs) -> Result<ExitCode, CommandError> {
    let list = args.api.connect().await?.api.workers().await?;
    print_list(args.json, &list.workers, "No worker has a task.", || worker_table(&list.workers, Timestamp::now()))?;
    if !list.complete {
        eprintln!("There are more tasks than one request looks at, so workers may be missing.");
    }
    Ok(ExitCode::SUCCESS)
}

fn worker_table(workers: &[WorkerView], now: Timestamp) -> String {
    let heading = WORKER_COLUMNS.map(str::to_owned).to_vec();
    let rows = workers.iter().map(|worker| worker_cells(worker, now).to_vec());
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    table(&rows, &[2, 3, 4])
}

#[cfg(test)]
mod tests {
    use rowmill_api::openapi::examples;

    use super::*;

    #[test]
    fn a_worker_is_shown_with_its_tasks_its_items_and_its_last_beat() {
        let [worker] = examples::workers().workers.try_into().unwrap();
        let now = worker.last_beat_at.unwrap() + jiff::SignedDuration::from_secs(12);
        let other = WorkerView { worker: "w\u{1b}2".to_owned(), tasks_dead: 1, last_beat_at: None, ..worker.clone() };
        let expected = "worker    type    held  dead  items done  since  last beat\n\
                        render-7  render     2     0    17 of 40  4 min  12 s\n\
                        w\\u{1b}2  render     2     1    17 of 40  4 min  none\n";
        assert_eq!(worker_table(&[worker, other], now), expected);
    }
}
