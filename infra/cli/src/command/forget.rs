//! `rowmill forget`: erases all that a stack stores of an owner.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::callers::blocked::REMEMBERED_FOR;
use rowmill_core::model::blocks::Principal;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::job::{LEASE_MARGIN, REQUEST_LIMIT};
use rowmill_settings::{Recovery, SettingsGroup};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::block::{AdmissionTable, parse_owner};
use super::connection::FunctionsArgs;
use super::deployed::DeployedStack;
use super::operator::Operator;
use super::{CommandError, print_result};
use crate::forget::{Forgetting, Found};
use crate::terminal::count;

/// Time between two looks at the jobs that are being cancelled.
const LOOK: Duration = Duration::from_secs(2);

/// Erases all that is stored of an owner: jobs, results, uploads, datasets and what counts for limits
///
/// With your AWS credentials. Without --yes it only counts. It blocks the owner, cancels its jobs, waits until no function
/// can be at work for the owner any more (StaleSeconds, a quarter of an hour), and erases what is there. An interrupted
/// command can be repeated. It reads all tables of the stack.
#[derive(Debug, clap::Args)]
pub struct ForgetArgs {
    /// The owner: the `sub` of its tokens
    #[arg(value_name = "OWNER", value_parser = parse_owner)]
    pub owner: Owner,
    /// Erase, which cannot be undone
    #[arg(long)]
    pub yes: bool,
    /// Leave the owner blocked, so that it cannot come back. The block has the owner's name
    #[arg(long, requires = "yes")]
    pub keep_block: bool,
    #[command(flatten)]
    pub stack: FunctionsArgs,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// The most passes. One is enough, unless it finds a job that the list of the owner's jobs did not show.
const PASSES_MAX: usize = 3;

/// Time for which the command waits, beyond `StaleSeconds`, until cancelled jobs have ended.
const ENDS_WITHIN: Duration = Duration::from_secs(15 * 60);

/// The reason of the block, by which a repeated command knows that it is its own.
const REASON: &str = "forgotten";

/// What was erased, and what is still there until it expires.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    owner: Owner,
    /// When all was erased. `None` if it was only counted, or if a job does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    erased_at: Option<Timestamp>,
    found: Found,
    is_blocked: bool,
    remains: Vec<Remains>,
}

/// What is not erased.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Remains {
    what: &'static str,
    /// When it expires.
    until: String,
}

pub async fn execute(args: ForgetArgs) -> Result<ExitCode, CommandError> {
    let stack = args.stack.deployed().await?;
    let mut tables = BTreeMap::new();
    for output in Forgetting::outputs() {
        tables.insert(output, stack.output(output)?.to_owned());
    }
    let (bucket, owner) = (stack.output("Bucket")?.to_owned(), args.owner.clone());
    let forgetting = Forgetting { aws: &stack.aws, tables, bucket, owner, erases: args.yes };
    let keeps_versions = forgetting.keeps_versions().await?;
    let (mut found, mut erased_at) = (Found::default(), None);
    let blocks = AdmissionTable::of(&args.stack).await?;
    let principal = Principal::Owner(args.owner.clone());
    if args.yes {
        // One that an interrupted call has left is lifted at the end, another one is not.
        let reason = blocks.reason(&principal).await?;
        let is_ours = reason.is_none_or(|reason| reason == REASON);
        blocks.put(&principal, Timestamp::now(), is_ours.then(|| REASON.to_owned())).await?;
        // A request may have passed before the block was known, and may create a job until its time is up.
        let known = REMEMBERED_FOR + REQUEST_LIMIT + LEASE_MARGIN;
        eprintln!("{principal} is blocked. All functions know it after {} s.", known.as_secs());
        sleep(known).await;
        for _ in 0..PASSES_MAX {
            if !end_work(&args, &stack).await? {
                break;
            }
            let pass = forgetting.pass().await?;
            found += pass;
            found.active = pass.active;
            if found.active == 0 {
                erased_at = Some(Timestamp::now());
                break;
            }
        }
        if erased_at.is_some() && is_ours && !args.keep_block {
            blocks.delete(&principal).await?;
        }
    } else {
        found = forgetting.pass().await?;
    }
    let is_blocked = blocks.reason(&principal).await?.is_some();
    let remains = remains(&stack, keeps_versions);
    let is_done = erased_at.is_some();
    let report = Report { owner: args.owner, erased_at, found, is_blocked, remains };
    print_result(args.json, &report, || report.text(args.yes))?;
    if args.yes && !is_done {
        eprintln!("error: a job of the owner does not end; repeat this command when it has");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends the owner's jobs, and waits until nobody can be at work for it. Returns false if a job does not end.
async fn end_work(args: &ForgetArgs, stack: &DeployedStack) -> Result<bool, CommandError> {
    let operator = Operator::of(&args.stack).await?;
    let recovery =
        Recovery::read(&|parameter| Some(stack.parameter(parameter).to_owned()).filter(|value| !value.is_empty()));
    let silence = recovery.map_err(|error| CommandError::Usage(error.to_string()))?.silence();
    let until = Instant::now() + ENDS_WITHIN + silence;
    eprintln!("Its jobs are being cancelled.");
    while operator.cancel_all(&args.owner).await? > 0 || operator.has_active(&args.owner).await? {
        if Instant::now() > until {
            return Ok(false);
        }
        sleep(LOOK).await;
    }
    eprintln!("Waiting for {} s: a function may still write something.", silence.as_secs());
    sleep(silence).await;
    Ok(true)
}

fn remains(stack: &DeployedStack, keeps_versions: bool) -> Vec<Remains> {
    let days = |parameter| format!("{} days after it was written", stack.parameter(parameter));
    let versions =
        Remains { what: "earlier versions of objects: the bucket keeps them", until: "they are deleted there".into() };
    let mut remains = vec![
        Remains {
            what: "backups of the tables",
            until: "35 days, for point-in-time recovery; others as you keep them".into(),
        },
        Remains { what: "changes in the stream of the jobs table", until: "24 hours".into() },
        Remains { what: "counts of requests that came meanwhile", until: "2 hours".into() },
        Remains { what: "messages in queues: names of jobs and of the owner", until: "14 days".into() },
        Remains { what: "lines of the log: names of jobs and of the owner", until: days("LogRetentionDays") },
        Remains {
            what: "objects that no row names: expired uploads, files and notes in the inbox, its problem reports, items of \
                   requests that failed, parts of results that were not completed",
            until: "what the lifecycle rules of the bucket say".into(),
        },
        Remains { what: "the owner's name in the parameter OwnerPriorities", until: "you take it out".into() },
        Remains {
            what: "copies of results in other buckets, items in tables of the application, and what targets and workers were \
                   sent",
            until: "they are deleted there".into(),
        },
    ];
    remains.extend(keeps_versions.then_some(versions));
    remains
}

fn found_text(found: Found) -> String {
    let Found { jobs, uploads, records, rows, objects, active: _ } = found;
    format!(
        "{} jobs, {} uploads and {} records: {} rows and {} objects",
        count(jobs),
        count(uploads),
        count(records),
        count(rows),
        count(objects)
    )
}

impl Report {
    fn text(&self, erases: bool) -> String {
        let did = if erases { "Erased" } else { "Found" };
        let mut text = format!("{did} {}\n", found_text(self.found));
        if self.found.active > 0 {
            text += &format!("Left {} jobs that have not ended\n", count(self.found.active));
        }
        if self.is_blocked {
            text += "The owner is blocked: lift that with `rowmill unblock`\n";
        }
        text += "Not erased, and until when it is kept:\n";
        for Remains { what, until } in &self.remains {
            text += &format!("  {what}: {until}\n");
        }
        text
    }
}
