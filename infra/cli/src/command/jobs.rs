//! `rowmill jobs`: lists jobs.

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::model::job::Priority;
use rowmill_core::model::job::states::{JobOutcome, Status};

use super::connection::ApiArgs;
use super::{CommandError, first_of, print_list, word_parser};
use crate::api::{ApiClient, Job, JobFilter};
use crate::follow::{file_name, status_word};
use crate::terminal::{self, age, count, cut, escape_controls, fitted, table};

/// Most jobs per request: the limit of the API.
const PAGE: usize = 100;

/// The column of the priorities, which is left out if all jobs have the usual one.
const PRIORITY: usize = 6;

/// Lists jobs, newest first
#[derive(Debug, clap::Args)]
pub struct JobsArgs {
    /// Only jobs with this status
    #[arg(long, value_parser = word_parser(Status::ALL))]
    pub status: Option<Status>,
    /// Only completed jobs: `succeeded`, `partial` (some rows failed), `failed` (all rows failed), `empty` (nothing to
    /// do)
    #[arg(long, value_parser = word_parser(JobOutcome::ALL), conflicts_with = "status")]
    pub outcome: Option<JobOutcome>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: Option<String>,
    /// List at most this many
    #[arg(long, value_name = "N", default_value = "20")]
    pub limit: NonZeroUsize,
    #[command(flatten)]
    pub api: ApiArgs,
    /// Print each job as a line of JSON
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: JobsArgs) -> Result<ExitCode, CommandError> {
    let connection = args.api.connect().await?;
    let filter = JobFilter { status: args.status, outcome: args.outcome, job_type: args.job_type };
    let jobs = newest(&connection.api, &filter, args.limit.get()).await?;
    let table = || job_table(&jobs, Timestamp::now(), terminal::width());
    print_list(args.json, &jobs, "No jobs found.", table)?;
    Ok(ExitCode::SUCCESS)
}

/// The newest jobs of the caller, at most `limit`.
pub(super) async fn newest(api: &ApiClient, filter: &JobFilter, limit: usize) -> Result<Vec<Job>, CommandError> {
    let page = async |limit, after| {
        let page = api.jobs(filter, limit, after).await?;
        let next = page.next;
        Ok((page.entries("jobs", |page| page.jobs), next))
    };
    first_of(limit, PAGE, page).await
}

/// The jobs as a table of this width.
fn job_table(jobs: &[Job], now: Timestamp, width: usize) -> String {
    let heading = ["job", "state", "items", "failed", "age", "type", "priority", "file"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for job in jobs {
        rows.push(vec![
            job.job_guid.to_string(),
            status_word(job),
            count(job.item_count),
            count(job.items_failed),
            age(Duration::try_from(now.duration_since(job.created_at)).unwrap_or_default()),
            cut(&job.job_type, 24),
            cut(job.priority.as_str(), 24),
            escape_controls(file_name(job).unwrap_or_default()),
        ]);
    }
    if jobs.iter().all(|job| job.priority == Priority::Normal) {
        rows.iter_mut().for_each(|row| drop(row.remove(PRIORITY)));
    }
    table(&fitted(&rows, PRIORITY - 1, width).0, &[2, 3, 4])
}

#[cfg(test)]
mod tests {
    use rowmill_core::model::ids::JobGuid;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::fake_api::{FakeApi, Reply};
    use crate::fixtures::{job_guid, job_json};

    #[tokio::test]
    async fn pages_are_followed_up_to_the_limit() {
        let guid = |n: u128| JobGuid(Uuid::from_u128(n));
        let page = move |from: u128, next: JobGuid| {
            let jobs = [from, from + 1].map(|n| job_json(json!({"jobGuid": guid(n)})));
            Reply::json(200, json!({"jobs": jobs, "next": next}))
        };
        let api = FakeApi::serve(move |_, n| match n {
            0 => page(0, guid(11)),
            1 => Reply::json(200, json!({"jobs": [], "next": guid(12)})),
            _ => page(2, guid(13)),
        })
        .await;
        let client = ApiClient::new(&api.url, None).unwrap();
        let jobs = newest(&client, &JobFilter::default(), 3).await.unwrap();
        let guids: Vec<_> = jobs.into_iter().map(|job| job.job_guid).collect();
        assert_eq!(guids, [0, 1, 2].map(guid));
        let targets: Vec<_> = api.seen().into_iter().map(|request| request.target).collect();
        let second = [11, 12].map(|n| format!("/api/jobs?limit=1&after={}", guid(n)));
        assert_eq!(targets, [&["/api/jobs?limit=3".to_owned()][..], &second].concat());
    }

    #[tokio::test]
    async fn a_filter_by_outcome_reaches_the_api() {
        let api = FakeApi::serve(|_, _| Reply::json(200, json!({"jobs": [], "next": null}))).await;
        let client = ApiClient::new(&api.url, None).unwrap();
        for outcome in JobOutcome::ALL {
            let filter = JobFilter { outcome: Some(outcome), ..JobFilter::default() };
            newest(&client, &filter, 20).await.unwrap();
        }
        let targets: Vec<_> = api.seen().into_iter().map(|request| request.target).collect();
        let expected =
            ["succeeded", "partial", "failed", "empty"].map(|word| format!("/api/jobs?limit=20&outcome={word}"));
        assert_eq!(targets, expected);
    }

    fn shown(jobs: &[serde_json::Value], width: usize) -> String {
        let jobs: Vec<Job> = jobs.iter().map(|job| serde_json::from_value(job.clone()).unwrap()).collect();
        job_table(&jobs, "2025-01-01T00:05:30Z".parse().unwrap(), width)
    }

    #[test]
    fn the_table_names_file_state_and_age_of_each_job() {
        let running = job_json(json!({"status": "running", "percent": 7, "itemCount": 12_345,
            "createdAt": "2025-01-01T00:00:00.123Z", "metadata": {"fileName": "people\u{1b}.csv"}}));
        let partial = job_json(json!({"status": "completed", "outcome": "partial", "itemCount": 10, "itemsFailed": 3,
            "createdAt": "2024-12-31T00:00:00Z"}));
        let guid = job_guid();
        let expected = format!(
            "job                                   state         items  failed    age  type    file\n\
             {guid}  running 7%   12,345       0  5 min  import  people\\u{{1b}}.csv\n\
             {guid}  some failed      10       3   24 h  import\n"
        );
        assert_eq!(shown(&[running, partial], 120), expected);
    }

    #[test]
    fn the_table_fits_the_terminal_and_names_priorities_if_they_differ() {
        let job = |priority: &str| {
            job_json(
                json!({"priority": priority, "createdAt": "2025-01-01T00:00:00Z", "metadata": {"fileName": "x".repeat(200)}}),
            )
        };
        for width in [110, 150] {
            let text = shown(&[job("normal"), job("low")], width);
            assert!(text.lines().all(|line| console::measure_text_width(line) <= width), "{text}");
            assert!(text.contains("  priority  file\n") && text.contains("  low       xxx"), "{text}");
        }
    }
}
