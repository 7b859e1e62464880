//! `rowmill why`: tells what holds a job up.

use std::process::ExitCode;

use rowmill_core::model::why::{JobWhy, Reason};

use super::connection::JobRefArgs;
use super::{CommandError, print_result};
use crate::terminal::{count, cut};

/// The longest text of a reason that is shown.
const MESSAGE_WIDTH: usize = 500;

/// Tells what holds a job up now, the most important first
///
/// If nothing does, it says at what rate the job runs and when it should end.
#[derive(Debug, clap::Args)]
pub struct WhyArgs {
    #[command(flatten)]
    pub job: JobRefArgs,
    /// Print the reasons as a line of JSON
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: WhyArgs) -> Result<ExitCode, CommandError> {
    let connection = args.job.api.connect().await?;
    let why = connection.api.why(args.job.job_guid).await?;
    print_result(args.json, &why, || shown(&why))?;
    Ok(ExitCode::SUCCESS)
}

fn shown(why: &JobWhy) -> String {
    why.reasons.iter().map(reason).collect()
}

/// A line with code and message, and an indented one with each time and with the figures.
fn reason(reason: &Reason) -> String {
    let mut text = format!("{}: {}\n", cut(reason.code.as_str(), 40), cut(&reason.message, MESSAGE_WIDTH));
    let times = [("since", reason.since), ("next look", reason.next_look_at), ("expected end", reason.expected_end_at)];
    let times = times.into_iter().filter_map(|(name, at)| Some(format!("{name} {:.0}", at?)));
    let figures = reason.numbers.iter().map(|(name, figure)| format!("{} {}", cut(name, 40), count(*figure)));
    let jobs = reason.jobs.iter().map(|job| format!("job {job}"));
    for line in times.chain(figures).chain(jobs) {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use rowmill_api::openapi::examples;

    use super::*;

    #[test]
    fn each_reason_is_shown_with_its_times_figures_and_jobs() {
        let mut why = examples::why();
        why.reasons[0].message = "At most 4 \u{1b}[2J chunks.".to_owned();
        why.reasons[0].jobs = vec![why.job_guid];
        let text = shown(&why);
        let first = format!(
            "max_concurrency: At most 4 \\u{{1b}}[2J chunks.\n  chunksInFlight 4\n  chunksWaiting 12\n  limit 4\n  job {}\n",
            why.job_guid
        );
        assert!(text.starts_with(&first), "{text}");
        assert!(text.contains("\nrunning: ") && text.contains("\n  itemsPerHour 630,000\n"), "{text}");
        assert!(text.contains("\n  since 2026-") && text.contains("\n  expected end 2026-"), "{text}");
    }
}
