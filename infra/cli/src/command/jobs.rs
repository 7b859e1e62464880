//! `rowmill jobs`: lists jobs.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use rowmill_api::status::Status;

use super::connection::ApiArgs;
use super::{CommandError, print, print_json};
use crate::api::{ApiClient, Job, JobFilter};
use crate::terminal::{count, cut, table};

/// Most jobs per request: the limit of the API.
const PAGE: usize = 100;

/// Lists jobs, newest first
#[derive(Debug, clap::Args)]
pub struct JobsArgs {
    /// Only jobs with this status
    #[arg(long, value_parser = status_parser())]
    pub status: Option<Status>,
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
        let page = api.jobs(filter, PAGE.min(limit - jobs.len()), after).await?;
        let next = page.next;
        jobs.extend(page.entries("jobs", |page| page.jobs));
        // A page of a filtered list may be short or empty although more pages follow.
        match next {
            Some(_) if next != after => after = next,
            _ => break,
        }
    }
    jobs.truncate(limit);
    Ok(jobs)
}

/// The words of a status.
fn status_parser() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(Status::ALL.map(Status::as_str))
        .map(|word| Status::parse(&word).expect("one of the possible values"))
}

fn job_table(jobs: &[Job]) -> String {
    let heading = ["job", "type", "priority", "status", "done", "items", "failed", "created"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for job in jobs {
        rows.push(vec![
            job.job_guid.to_string(),
            cut(&job.job_type, 24),
            cut(job.priority.as_str(), 24),
            job.status.as_str().to_owned(),
            format!("{}%", job.percent),
            count(job.item_count),
            count(job.items_failed),
            format!("{:.0}", job.created_at),
        ]);
    }
    table(&rows, &[4, 5, 6])
}

#[cfg(test)]
mod tests {
    use rowmill_api::ids::JobGuid;
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

    #[test]
    fn the_table_is_aligned() {
        let job = job_json(json!({"priority": "low", "status": "running", "percent": 7, "itemCount": 12_345,
            "createdAt": "2025-01-01T00:00:00.123Z"}));
        let table = job_table(&[serde_json::from_value(job).unwrap()]);
        let expected = format!(
            "job                                   type    priority  status   done   items  failed  created\n\
             {}  import  low       running    7%  12,345       0  2025-01-01T00:00:00Z\n",
            job_guid()
        );
        assert_eq!(table, expected);
    }
}
