//! The summary of a job: counts, first failed rows, exit code.

use std::process::ExitCode;
use std::time::Duration;

use rowmill_api::job::{JobView, PauseView};
use rowmill_core::job_types::{PRUNE, UNDO};
use rowmill_core::model::causes::{Cause, CauseName};
use rowmill_core::model::changes::Changes;
use rowmill_core::model::job::Priority;
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::model::run_output::FailedItem;
use serde_json::{Map, Value};

use super::message;
use crate::terminal::{amber, count, cut, dollars, escape_controls, span, table};

/// The longest value that a client chose, in columns. `--json` has all of it.
const VALUE_MAX_WIDTH: usize = 200;

/// The word for a completed job without items.
const NOTHING_TO_DO: &str = "nothing to do";

/// Minimum width of the raw record, however long the message is.
const RAW_MIN_WIDTH: usize = 8;

/// The result of an ended job, for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    AllSucceeded = 0,
    /// The job failed, or was cancelled, as a whole.
    JobFailed = 1,
    /// The job completed; some items did not succeed.
    SomeFailed = 3,
}

impl Verdict {
    /// The verdict on an ended job.
    pub fn of(job: &JobView) -> Self {
        match job.status {
            Status::Completed if job.items_failed + job.items_skipped == 0 => Self::AllSucceeded,
            Status::Completed => Self::SomeFailed,
            _ => Self::JobFailed,
        }
    }

    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// Duration of the last attempt of an ended job, by the API's clock: the first one from the job's creation, a later one
/// from its first chunk. The time between two attempts does not count.
pub fn took(job: &JobView) -> Option<Duration> {
    let begun = if job.attempt == 1 { job.created_at } else { job.first_chunk_at? };
    Duration::try_from(job.finished_at?.duration_since(begun)).ok()
}

/// The name of the file that the client noted in the job's metadata.
pub fn file_name(job: &JobView) -> Option<&str> {
    job.metadata.as_ref()?.get("fileName")?.as_str()
}

/// The state of a job in the words of the page. What is neither good nor bad is amber.
pub fn status_word(job: &JobView) -> String {
    match (job.status, job.outcome) {
        (Status::Completed, Some(JobOutcome::Empty)) => amber(NOTHING_TO_DO),
        (Status::Completed, Some(JobOutcome::Partial)) => amber("some failed"),
        (Status::Completed, Some(JobOutcome::Failed)) => "all failed".to_owned(),
        (status, _) if status.is_terminal() => status.as_str().to_owned(),
        (status, _) => format!("{} {}%", status.as_str(), job.percent),
    }
}

/// Facts that the view of a job does not have.
#[derive(Debug, Default)]
pub struct Details<'a> {
    /// The file's name at its upload, for a job that does not have it in its metadata.
    pub uploaded_as: Option<&'a str>,
    pub params: Option<&'a Map<String, Value>>,
}

pub fn summary(job: &JobView, details: &Details<'_>) -> String {
    let mut text = match job.outcome {
        Some(JobOutcome::Empty) => amber(&message(job)),
        _ => message(job),
    } + "\n";
    if let Some(error) = &job.error {
        let code = escape_controls(error.code.as_str());
        let what = escape_controls(&error.message);
        let place = error.row.map(|row| format!(" (row {row})")).unwrap_or_default();
        text += &format!("  {code}: {what}{place}\n");
    }
    if let Some(pause) = &job.pause {
        text += &pause_line(pause);
    }
    for warning in &job.warnings {
        text += &format!("  warning: {}\n", escape_controls(&warning.message));
    }
    let found = match (job.item_count_final, job.status.is_terminal()) {
        (false, false) => format!("{} so far", count(job.item_count)),
        _ => count(job.item_count),
    };
    let mut rows = vec![("job", job.job_guid.to_string())];
    if let Some(name) = file_name(job).or(details.uploaded_as) {
        rows.push(("file", cut(name, VALUE_MAX_WIDTH)));
    }
    rows.push(("type", escape_controls(&job.job_type)));
    if let Some(params) = details.params.filter(|params| !params.is_empty()) {
        let params: Vec<_> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        rows.push(("params", cut(&params.join(" "), VALUE_MAX_WIDTH)));
    }
    if job.priority != Priority::Normal {
        rows.push(("priority", escape_controls(job.priority.as_str())));
    }
    rows.extend([("items", found), ("succeeded", count(job.items_succeeded)), ("failed", count(job.items_failed))]);
    if job.items_skipped > 0 {
        rows.push(("skipped", count(job.items_skipped)));
    }
    if let Some(at_work @ 1..) = job.items_at_work {
        rows.push(("unfinished", format!("{} items done in unfinished chunks, not counted above", count(at_work))));
    }
    if let Some(unprocessed) = &job.unprocessed {
        rows.push(("unprocessed", format!("row {} on, not counted above", count(unprocessed.from_row))));
    }
    if job.attempt > 1 {
        rows.push(("attempt", job.attempt.to_string()));
    }
    if let Some(took) = took(job) {
        let rate = job.item_progress as f64 / took.as_secs_f64().max(0.001);
        rows.push(match job.attempt {
            1 if rate >= 1.0 => ("took", format!("{} ({} items/s)", span(took), count(rate as u64))),
            1 => ("took", span(took)),
            // The counts are those of all attempts.
            _ => ("took", format!("{}, this attempt alone", span(took))),
        });
    }
    if let Some(cost) = &job.cost {
        rows.push(("cost", format!("{}, list price of {}", dollars(cost.usd), escape_controls(&cost.price_region))));
    }
    let rows: Vec<_> = rows.into_iter().map(|(k, v)| vec![format!("  {k}"), v]).collect();
    text + &table(&rows, &[])
}

/// Why a job is paused, and what ends the pause.
fn pause_line(pause: &PauseView) -> String {
    let Some(reason) = &pause.reason else {
        return format!("  paused by its {}: `rowmill resume` continues it\n", escape_controls(pause.by.as_str()));
    };
    let (code, what) = (escape_controls(reason.code.as_str()), escape_controls(&reason.message));
    let next = pause.next_probe_at.map(|at| format!(", next look at {at:.0}")).unwrap_or_default();
    format!("  {code}: {what}; continues by itself once the target is back{next}\n")
}

/// The most causes that are shown.
const CAUSES_SHOWN: usize = 10;

/// The causes of failed items as a table, the most frequent one first.
pub fn causes_table(causes: &[Cause], other: u64, width: usize) -> String {
    let mut rows = vec![["  items", "code", "column", "rule", "for example"].map(str::to_owned).to_vec()];
    for cause in causes.iter().take(CAUSES_SHOWN) {
        let CauseName { code, column, rule } = &cause.name;
        let (column, rule) = (column.as_deref().unwrap_or_default(), rule.as_deref().unwrap_or_default());
        let example = cause.examples.first().map(|example| format!("row {}: {}", count(example.row), example.message));
        let mut row = vec![format!("  {}", count(cause.items)), cut(code, 24), cut(column, 24), cut(rule, 16)];
        row.push(example.unwrap_or_default());
        rows.push(row);
    }
    let (shown, taken) = (rows.len() - 1, 2 * rows[0].len());
    let widest = |place: usize| rows.iter().map(|row| row[place].chars().count()).max().unwrap_or(0);
    let left = width.saturating_sub((0..4).map(widest).sum::<usize>() + taken).max(RAW_MIN_WIDTH);
    for row in &mut rows[1..] {
        row[4] = cut(&row[4], left);
    }
    let mut text = "Causes of the failed rows:\n".to_owned() + &table(&rows, &[0]);
    let more = other + causes.iter().skip(shown).map(|cause| cause.items).sum::<u64>();
    if more > 0 {
        text += &format!("and {} rows of other causes\n", count(more));
    }
    text
}

/// What a dry run of an import would change, or what an undo or a prune has changed.
pub fn changes_text(changes: &Changes, job_type: &str) -> String {
    let (heading, unchanged) = match job_type {
        UNDO => (
            "Records by what the undo did to them; changes.jsonl names who has changed those that are kept:\n",
            "not of the job",
        ),
        PRUNE => ("Records that the import has not got; changes.jsonl names them:\n", "not missing"),
        _ => ("This was a dry run. Rows by what they would do to their records:\n", "leave unchanged"),
    };
    let rows = [
        ("create", changes.create),
        ("update", changes.update),
        ("reversed", changes.reversed),
        ("kept", changes.kept),
        ("remove", changes.remove),
        (unchanged, changes.unchanged),
    ];
    let rows: Vec<_> = (rows.into_iter().filter(|(_, rows)| *rows > 0))
        .map(|(what, rows)| vec![format!("  {what}"), count(rows)])
        .collect();
    let mut text = heading.to_owned() + &table(&rows, &[1]);
    let fields = changes.fields.iter().take(CAUSES_SHOWN);
    let mut fields: Vec<String> =
        fields.map(|field| format!("{} {}", cut(&field.name, 40), count(field.items))).collect();
    let named: u64 = changes.fields.iter().skip(CAUSES_SHOWN).map(|field| field.items).sum();
    if named + changes.other_fields > 0 {
        fields.push(format!("others {}", count(named + changes.other_fields)));
    }
    if !fields.is_empty() {
        text += &format!("Changed fields: {}\n", fields.join(", "));
    }
    text
}

/// The first failed items as a table `width` columns wide.
pub fn failed_items_table(items: &[FailedItem], failed: u64, width: usize) -> String {
    let heading = match items.len() as u64 {
        shown if shown < failed => format!("First {shown} of {} failed rows:\n", count(failed)),
        _ => "Failed rows:\n".to_owned(),
    };
    let mut rows = vec![["  row", "code", "message", "raw"].map(str::to_owned).to_vec()];
    let code_width = items.iter().map(|item| item.code.chars().count()).max().unwrap_or(0).min(24);
    let left = width.saturating_sub(2 + 9 + 2 + code_width + 2 + 2);
    let message_width = (left * 3 / 5).min(left.saturating_sub(RAW_MIN_WIDTH)).max(RAW_MIN_WIDTH);
    let longest = items.iter().map(|i| message_with_column(i).chars().count()).max().unwrap_or(0);
    let raw_width = left.saturating_sub(message_width.min(longest)).max(RAW_MIN_WIDTH);
    for item in items {
        rows.push(vec![
            format!("  {}", count(item.row)),
            cut(&item.code, 24),
            cut(&message_with_column(item), message_width),
            cut(item.raw.as_deref().unwrap_or_default(), raw_width),
        ]);
    }
    heading + &table(&rows, &[0])
}

fn message_with_column(item: &FailedItem) -> String {
    match &item.column {
        Some(column) if !item.message.contains(column.as_str()) => {
            format!("{column}: {}", item.message)
        }
        _ => item.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use rowmill_core::model::causes::CauseExample;
    use rowmill_core::model::changes::ChangedField;

    use crate::fixtures::{job, job_guid, job_json};

    fn summary_of(job: &JobView) -> String {
        summary(job, &Details::default())
    }

    #[test]
    fn the_exit_code_says_how_it_went() {
        let code = |status: &str, failed, skipped| {
            let mut job = job(status, 100);
            (job.items_failed, job.items_skipped) = (failed, skipped);
            Verdict::of(&job) as u8
        };
        assert_eq!(code("completed", 0, 0), 0);
        assert_eq!(code("completed", 1, 0), 3);
        assert_eq!(code("completed", 0, 1), 3);
        assert_eq!(code("failed", 0, 0), 1);
        assert_eq!(code("cancelled", 0, 5), 1);
    }

    #[test]
    fn a_summary_gives_counts_and_duration() {
        let mut done = job("completed", 100);
        (done.item_count, done.item_progress, done.items_succeeded) = (11_231, 11_231, 11_231);
        done.created_at = "2025-01-01T00:00:00Z".parse().unwrap();
        done.finished_at = Some("2025-01-01T00:00:02.5Z".parse().unwrap());
        let expected = format!(
            "Job complete\n  job        {}\n  type       import\n  items      11,231\n  succeeded  11,231\n  \
             failed     0\n  took       2.5 s (4,492 items/s)\n",
            job_guid()
        );
        assert_eq!(summary_of(&done), expected);
    }

    #[test]
    fn a_summary_names_the_file_and_the_params() {
        let json = json!({"status": "running", "metadata": {"fileName": "rows\u{1b}.csv"}});
        let mut job: JobView = serde_json::from_value(job_json(json)).unwrap();
        let params = json!({"dataset": "people", "key": ["id"]});
        let details = Details { uploaded_as: Some("other.csv"), params: params.as_object() };
        let text = summary(&job, &details);
        let expected =
            "  file       rows\\u{1b}.csv\n  type       import\n  params     dataset=\"people\" key=[\"id\"]\n";
        assert!(text.contains(expected), "{text}");
        job.metadata = None;
        assert!(summary(&job, &details).contains("\n  file       other.csv\n"));
        let long = json!({"schema": "x".repeat(1000)});
        let text = summary(&job, &Details { uploaded_as: None, params: long.as_object() });
        assert!(!text.contains("file") && text.lines().all(|line| line.len() < 220), "{text}");
    }

    #[test]
    fn a_job_without_items_had_nothing_to_do_and_did_not_fail() {
        let mut empty = job("completed", 100);
        empty.outcome = Some(JobOutcome::Empty);
        assert!(summary_of(&empty).starts_with("Job complete, nothing to do: the input has no rows\n"));
        assert_eq!((Verdict::of(&empty) as u8, status_word(&empty)), (0, "nothing to do".to_owned()));
    }

    #[test]
    fn the_state_of_a_job_is_named_as_on_the_page() {
        let word = |status, outcome| status_word(&JobView { outcome, ..job(status, 40) });
        let words =
            [JobOutcome::Succeeded, JobOutcome::Partial, JobOutcome::Failed].map(|o| word("completed", Some(o)));
        assert_eq!(words, ["completed", "some failed", "all failed"]);
        assert_eq!([word("failed", None), word("running", None)], ["failed", "running 40%"]);
    }

    #[test]
    fn a_summary_gives_the_cost_if_it_is_known() {
        let mut done = job("completed", 100);
        assert!(!summary_of(&done).contains("cost"));
        done.cost = rowmill_api::openapi::examples::job().cost;
        assert!(
            summary_of(&done).ends_with("\n  cost       $0.000183, list price of us-east-1\n"),
            "{}",
            summary_of(&done)
        );
    }

    #[test]
    fn a_summary_names_the_priority_unless_it_is_the_usual_one() {
        assert!(!summary_of(&job("running", 5)).contains("priority"));
        for (word, shown) in [("high", "high"), ("low", "low"), ("lo\u{1b}wer", "lo\\u{1b}wer")] {
            let job = serde_json::from_value(job_json(json!({"priority": word}))).unwrap();
            let text = summary_of(&job);
            assert!(text.contains(&format!("\n  type       import\n  priority   {shown}\n  items ")), "{text}");
        }
        let mut of_older_server = job_json(json!({}));
        of_older_server.as_object_mut().unwrap().remove("priority");
        assert!(!summary_of(&serde_json::from_value(of_older_server).unwrap()).contains("priority"));
    }

    #[test]
    fn a_failed_job_says_why_and_where() {
        let mut failed = job("failed", 5);
        let error = r#"{"code":"unterminated_quote","message":"A quote never ends","row":7}"#;
        failed.error = serde_json::from_str(error).unwrap();
        let text = summary_of(&failed);
        let second = text.lines().nth(1).unwrap();
        assert_eq!(second, "  unterminated_quote: A quote never ends (row 7)");
    }

    #[test]
    fn a_summary_shows_the_warnings_of_the_job() {
        let warning = json!({"code": "unnamed_columns", "message": "Columns\u{1b} of the header have no name."});
        let job = serde_json::from_value(job_json(json!({"warnings": [warning]}))).unwrap();
        assert!(
            summary_of(&job).contains("\n  warning: Columns\\u{1b} of the header have no name.\n"),
            "{}",
            summary_of(&job)
        );
    }

    #[test]
    fn a_stopped_job_lists_its_unprocessed_rows() {
        let mut cancelled = job("cancelled", 40);
        (cancelled.item_count, cancelled.items_succeeded, cancelled.items_skipped) = (1500, 1000, 500);
        cancelled.unprocessed = serde_json::from_str(r#"{"fromRow":1501,"fromOffset":90000}"#).unwrap();
        let expected = format!(
            "Job cancelled\n  job          {}\n  type         import\n  items        1,500\n  \
             succeeded    1,000\n  failed       0\n  skipped      500\n  \
             unprocessed  row 1,501 on, not counted above\n",
            job_guid()
        );
        assert_eq!(summary_of(&cancelled), expected);
    }

    #[test]
    fn a_paused_job_says_who_has_paused_it_and_what_ends_the_pause() {
        let mut paused = job("paused", 40);
        paused.pause = serde_json::from_str(r#"{"by":"owner","reason":null,"nextProbeAt":null}"#).unwrap();
        let text = summary_of(&paused);
        assert!(
            text.starts_with("Job paused, 40% complete\n  paused by its owner: `rowmill resume` continues"),
            "{text}"
        );
        let reason =
            r#"{"code":"target_down","message":"it answered 503\u001b (busy)","since":"2026-01-01T00:00:00Z"}"#;
        let pause = format!(r#"{{"by":"breaker","reason":{reason},"nextProbeAt":"2026-01-01T00:01:00.5Z"}}"#);
        paused.pause = serde_json::from_str(&pause).unwrap();
        let text = summary_of(&paused);
        let expected = "Job paused, 40% complete: its target is down\n  target_down: it answered 503\\u{1b} (busy); continues \
                        by itself once the target is back, next look at 2026-01-01T00:01:00Z\n";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn the_time_since_its_creation_is_no_measure_of_a_redriven_job() {
        let mut redriven = job("completed", 100);
        redriven.attempt = 2;
        redriven.created_at = "2025-01-01T00:00:00Z".parse().unwrap();
        redriven.finished_at = Some("2025-01-03T00:00:00Z".parse().unwrap());
        let text = summary_of(&redriven);
        assert!(text.ends_with("  attempt    2\n") && !text.contains("took"), "{text}");
        redriven.first_chunk_at = Some("2025-01-02T23:59:48Z".parse().unwrap());
        let text = summary_of(&redriven);
        assert!(text.ends_with("  attempt    2\n  took       12 s, this attempt alone\n"), "{text}");
    }

    #[test]
    fn the_changes_of_a_dry_run_are_shown_with_the_fields() {
        let field = |(name, items): (&str, u64)| ChangedField { name: name.to_owned(), items };
        let fields = [("city", 1200), ("a\u{1b}b", 7)].map(field).into();
        let changes = Changes { create: 5, update: 1203, fields, other_fields: 2, ..Changes::default() };
        let expected = "This was a dry run. Rows by what they would do to their records:\n  create      5\n  update  1,203\n\
                        Changed fields: city 1,200, a\\u{1b}b 7, others 2\n";
        assert_eq!(changes_text(&changes, "import"), expected);
    }

    #[test]
    fn an_undo_shows_what_it_reversed_and_kept() {
        let changes = Changes { reversed: 28_500, kept: 12, ..Changes::default() };
        let text = changes_text(&changes, UNDO);
        assert!(text.starts_with("Records by what the undo did"), "{text}");
        assert!(text.ends_with(":\n  reversed  28,500\n  kept          12\n"), "{text}");
    }

    #[test]
    fn causes_are_shown_with_an_example_and_the_rest_as_a_number() {
        let cause = |number: u64| {
            let message = format!("the value {} is \u{1b}[31m long", "x".repeat(200));
            let examples = vec![CauseExample { row: 7_000, message }];
            let (column, rule) = (Some("age".to_owned()), Some("minimum".to_owned()));
            Cause {
                name: CauseName { code: "schema_violation".to_owned(), column, rule },
                items: 5_000 - number,
                examples,
            }
        };
        let causes: Vec<Cause> = (0..12).map(cause).collect();
        let text = causes_table(&causes, 3, 80);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("  5,000  schema_violation  age     minimum  row 7,000: the value"), "{text}");
        assert_eq!((lines.len(), lines[12]), (13, "and 9,982 rows of other causes"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn failed_rows_fit_the_terminal_and_cannot_drive_it() {
        let item = |row, raw: &str| FailedItem {
            row,
            file: None,
            offset: 0,
            length: raw.len() as u64,
            code: "schema_violation".into(),
            message: "is not of type integer, which goes on and on and on and on and on".into(),
            column: Some("age".into()),
            rule: None,
            raw: Some(raw.into()),
            raw_base64: None,
        };
        let items = [item(3, "a,\u{1b}[31mred,b"), item(12_345, &"x".repeat(500))];
        for width in [60, 80, 120, 200] {
            let text = failed_items_table(&items, 99, width);
            assert!(text.starts_with("First 2 of 99 failed rows:\n"));
            assert!(!text.contains('\u{1b}'));
            assert!(text.contains("12,345"));
            let longest = text.lines().map(console::measure_text_width).max().unwrap();
            assert!(longest <= width, "{longest} > {width}\n{text}");
        }
    }
}
