//! `rowmill jobs`: lists jobs.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use super::connection::ApiArgs;
use super::{CommandError, print, print_json};
use crate::api::{ApiClient, Job, JobFilter, JobStatus};
use crate::terminal::{count, cut, escape_controls, table};

/// Most jobs per request: the limit of the API.
const PAGE: usize = 100;

/// Lists jobs, newest first
#[derive(Debug, clap::Args)]
pub struct JobsArgs {
    /// Only jobs with this status
    #[arg(long, value_enum)]
    pub status: Option<JobStatus>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: Option<String>,
    /// List at most this many
    #[arg(long, value_name = "N", default_value = "20")]
    pub limit: NonZeroUsize,
    /// Where the API is.
    #[command(flatten)]
    pub api: ApiArgs,
    /// Print each job as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
///
/// See [`CommandError`].
pub async fn execute(args: JobsArgs) -> Result<ExitCode, CommandError> {
    let connection = args.api.connect().await?;
    let filter = JobFilter { status: args.status, job_type: args.job_type };
    let jobs = newest(&connection.api, &filter, args.limit.get()).await?;
    if args.json {
        jobs.iter().try_for_each(print_json)?;
    } else if jobs.is_empty() {
        eprintln!("No jobs found.");
    } else {
        print(&job_table(&jobs))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn newest(api: &ApiClient, filter: &JobFilter, limit: usize) -> Result<Vec<Job>, CommandError> {
    let mut jobs = Vec::new();
    let mut after = None;
    while jobs.len() < limit {
        let page = api.jobs(filter, PAGE.min(limit - jobs.len()), after.as_deref()).await?;
        jobs.extend(page.jobs);
        // A page of a filtered list may be short or empty although more pages follow.
        match page.next {
            Some(next) if Some(&next) != after.as_ref() => after = Some(next),
            _ => break,
        }
    }
    jobs.truncate(limit);
    Ok(jobs)
}

fn job_table(jobs: &[Job]) -> String {
    let heading = ["job", "type", "status", "done", "items", "failed", "created"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for job in jobs {
        rows.push(vec![
            escape_controls(&job.job_guid),
            cut(&job.job_type, 24),
            job.status.word().to_owned(),
            format!("{}%", job.percent),
            count(job.item_count),
            count(job.items_failed),
            job.created_at.map_or_else(String::new, |at| format!("{at:.0}")),
        ]);
    }
    table(&rows, &[3, 4, 5])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake_api::{FakeApi, Reply};

    #[tokio::test]
    async fn pages_are_followed_up_to_the_limit() {
        let page = |from: usize, next: serde_json::Value| {
            let job = |n| json!({"jobGuid": format!("g{n}"), "jobType": "import", "status": "completed"});
            Reply::json(200, json!({"jobs": [job(from), job(from + 1)], "next": next}))
        };
        let api = FakeApi::serve(move |_, n| match n {
            0 => page(0, json!("c1")),
            1 => Reply::json(200, json!({"jobs": [], "next": "c2"})),
            _ => page(2, json!("c3")),
        })
        .await;
        let client = ApiClient::new(&api.url, None).unwrap();
        let jobs = newest(&client, &JobFilter::default(), 3).await.unwrap();
        let guids: Vec<_> = jobs.into_iter().map(|job| job.job_guid).collect();
        assert_eq!(guids, ["g0", "g1", "g2"]);
        let targets: Vec<_> = api.seen().into_iter().map(|request| request.target).collect();
        assert_eq!(targets, ["/api/jobs?limit=3", "/api/jobs?limit=1&after=c1", "/api/jobs?limit=1&after=c2"]);
    }

    #[test]
    fn the_table_is_aligned() {
        let job = json!({"jobGuid": "g", "jobType": "import", "status": "running", "percent": 7,
            "itemCount": 12_345, "createdAt": "2025-01-01T00:00:00.123Z"});
        let table = job_table(&[serde_json::from_value(job).unwrap()]);
        let expected = "job  type    status   done   items  failed  created\n\
                        g    import  running    7%  12,345       0  2025-01-01T00:00:00Z\n";
        assert_eq!(table, expected);
    }
}
