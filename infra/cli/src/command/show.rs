//! What commands print: JSON, texts, lists, and a job.

use rowmill_core::job_types::{IMPORT, PRUNE, UNDO};
use serde_json::Value;

use super::CommandError;
use super::connection::Connection;
use crate::api::{ApiError, Job};
use crate::follow::{Details, causes_table, changes_text, failed_items_table, file_name, summary};
use crate::terminal;

const FAILED_ROWS_SHOWN: usize = 10;

pub(crate) fn print(text: &str) -> Result<(), CommandError> {
    terminal::print(text).map_err(CommandError::Output)
}

pub(super) fn print_json(value: &impl serde::Serialize) -> Result<(), CommandError> {
    let line = serde_json::to_string(value).expect("the API's types are JSON");
    print(&(line + "\n"))
}

/// Writes a command's result as a line of JSON, or as text.
pub(crate) fn print_result(
    json: bool,
    value: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), CommandError> {
    if json { print_json(value) } else { print(&text()) }
}

/// The first `limit` entries of a list that comes in pages of at most `page_max`. A page may be short or empty although
/// more follow.
pub(super) async fn first_of<T, C: Clone + PartialEq>(
    limit: usize,
    page_max: usize,
    page: impl AsyncFn(usize, Option<C>) -> Result<(Vec<T>, Option<C>), ApiError>,
) -> Result<Vec<T>, CommandError> {
    let (mut entries, mut after) = (Vec::new(), None);
    while entries.len() < limit {
        let (more, next) = page(page_max.min(limit - entries.len()), after.clone()).await?;
        entries.extend(more);
        match next {
            Some(_) if next != after => after = next,
            _ => break,
        }
    }
    entries.truncate(limit);
    Ok(entries)
}

/// Writes a list as a line of JSON for each entry, or as a table. `none` tells a person that it is empty.
pub(super) fn print_list<T: serde::Serialize>(
    json: bool,
    list: &[T],
    none: &str,
    table: impl FnOnce() -> String,
) -> Result<(), CommandError> {
    match list {
        _ if json => list.iter().try_for_each(print_json)?,
        [] => eprintln!("{none}"),
        _ => print(&table())?,
    }
    Ok(())
}

/// Shows a job: as a line of JSON, or as counts, the first failed rows, and the command that fetches all of them.
pub(super) async fn show_job(connection: &Connection, job: &Job, json: bool) -> Result<(), CommandError> {
    if json {
        return print_json(job);
    }
    print_counts(connection, job).await?;
    print_hints(connection, job, false)
}

/// Shows a job's counts, what it would change if it is a dry run, or has reversed if it is an undo, and its first failed
/// rows.
pub(super) async fn print_counts(connection: &Connection, job: &Job) -> Result<(), CommandError> {
    let uploaded_as = match (file_name(job), job.file_guid) {
        // The upload may have expired. The job is shown without a name then.
        (None, Some(file_guid)) => {
            connection.api.upload(file_guid).await.ok().and_then(|upload| upload.file_name.clone())
        }
        _ => None,
    };
    let params = job.field("params").and_then(Value::as_object);
    print(&summary(job, &Details { uploaded_as: uploaded_as.as_deref(), params }))?;
    let tells_more = job.items_failed > 0 || matches!(job.job_type.as_str(), IMPORT | PRUNE | UNDO);
    // Without results the failed rows are all that there is.
    let results = match job.status.is_terminal() && tells_more {
        true => connection.api.results(job.job_guid).await.ok(),
        false => None,
    };
    if let Some(changes) = results.as_ref().and_then(|results| results.changes.as_ref()) {
        print(&format!("\n{}", changes_text(changes, &job.job_type)))?;
    }
    if job.items_failed == 0 {
        return Ok(());
    }
    // Of a single cause the failed rows themselves tell.
    if let Some(results) = results.filter(|results| results.causes.len() > 1) {
        let table = causes_table(&results.causes, results.other_causes, terminal::width());
        print(&format!("\n{table}"))?;
    }
    match connection.api.failed_items(job.job_guid, FAILED_ROWS_SHOWN).await {
        Ok(items) if items.is_empty() => Ok(()),
        Ok(items) => {
            let table = failed_items_table(&items, job.items_failed, terminal::width());
            print(&format!("\n{table}"))
        }
        // The job is shown already; its failed rows are only an addition.
        Err(error) => {
            eprintln!("The failed rows cannot be shown: {error}");
            Ok(())
        }
    }
}

/// Prints how to fetch the failed rows of an ended job, if there are any and they are not here yet, and where to see
/// the job.
pub(super) fn print_hints(connection: &Connection, job: &Job, rows_are_here: bool) -> Result<(), CommandError> {
    let mut hints = Vec::new();
    if job.status.is_terminal() && job.items_failed > 0 && !rows_are_here {
        hints.push(format!("Get the failed rows as a file: {}\n", connection.results_command(job.job_guid)));
    }
    if let Some(page) = connection.job_page(job.job_guid) {
        hints.push(format!("See the job in a browser: {page}\n"));
    }
    match hints.is_empty() {
        true => Ok(()),
        false => print(&format!("\n{}", hints.concat())),
    }
}
