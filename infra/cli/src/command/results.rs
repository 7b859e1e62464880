//! `rowmill results`: what a job has left, as files here.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use super::connection::{ApiArgs, Connection};
use super::interrupt::{self, interrupted};
use super::{CommandError, print, print_json};
use crate::api::{ApiError, JOB_ACTIVE, ResultFile, Results};
use crate::download::{Folder, ResultSource};
use crate::follow::Reporter;
use crate::terminal::{bytes, count, escape_controls, table};

/// A kind of result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ResultKind {
    /// The rows that failed, each with its error; put right, they are what `rowmill redrive --corrected` takes.
    FailedRows,
    /// The rows a stopped job did not come to.
    UnprocessedRows,
    /// What the job made of its rows.
    Output,
    /// The list of the files, with the job's counts.
    Manifest,
}

impl ResultKind {
    /// The API's word for it.
    fn word(self) -> &'static str {
        match self {
            Self::FailedRows => "failedRows",
            Self::UnprocessedRows => "unprocessedRows",
            Self::Output => "output",
            Self::Manifest => "manifest",
        }
    }
}

/// Where results go.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct OutArgs {
    /// Folder the files go to, created if it is not there [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace files of the same name
    #[arg(long)]
    pub force: bool,
}

impl OutArgs {
    /// The folder meant.
    pub(super) fn folder(&self) -> Folder {
        Folder { path: self.out.clone().unwrap_or_else(|| PathBuf::from(".")), replace: self.force }
    }
}

/// Fetches what an ended job has left: failed rows, rows it did not come to, its output, the manifest
///
/// Each file is checked against its checksum and has its name only when it is whole.
///
/// Exit codes: 0 if every file is there, else 1; 2 wrong usage, 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct ResultsArgs {
    /// The job's guid
    #[arg(value_parser = super::job_guid)]
    pub job_guid: String,
    /// Where the files go.
    #[command(flatten)]
    pub out: OutArgs,
    /// Fetch this kind only; may be given several times
    #[arg(long, value_enum, value_name = "KIND")]
    pub only: Vec<ResultKind>,
    /// Where the API is.
    #[command(flatten)]
    pub api: ApiArgs,
    /// Print progress as JSON lines, what was written as the last one
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
///
/// See [`CommandError`]; files that were complete by then stay.
pub async fn execute(args: ResultsArgs) -> Result<ExitCode, CommandError> {
    let connection = args.api.connect().await?;
    let reporter = if args.json { Reporter::new(true) } else { Reporter::on_stderr() };
    let folder = args.out.folder();
    let fetched = tokio::select! {
        fetched = fetch(&connection, &args.job_guid, &args.only, &folder, &reporter) => fetched?,
        () = interrupted() => {
            eprintln!("Interrupted; files that were complete stay, nothing half is left.");
            return Ok(interrupt::exit_code());
        }
    };
    if args.json {
        print_json(&fetched)?;
    } else if fetched.files.is_empty() {
        eprintln!("The job has no such results.");
    } else {
        print(&fetched.told(std::io::stdout().is_terminal() && args.out.out.is_none()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The results of a job that are here now.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Fetched {
    job_guid: String,
    attempt: u32,
    files: Vec<FetchedFile>,
}

/// A result that is here now.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FetchedFile {
    name: String,
    kind: String,
    content_type: String,
    path: PathBuf,
    bytes: u64,
    items: Option<u64>,
    crc64_nvme: String,
}

impl Fetched {
    /// Whether there was nothing of the kinds that were asked for.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether a file of this kind is among them.
    pub fn has(&self, kind: ResultKind) -> bool {
        self.files.iter().any(|file| file.kind == kind.word())
    }

    /// What there is now, a line each: with sizes for a person, else the paths alone.
    pub fn told(&self, to_a_person: bool) -> String {
        let path = |file: &FetchedFile| escape_controls(&file.path.to_string_lossy());
        if !to_a_person {
            return self.files.iter().map(|file| path(file) + "\n").collect();
        }
        let heading = ["file", "size", "items"].map(str::to_owned).to_vec();
        let line = |file: &FetchedFile| vec![path(file), bytes(file.bytes), file.items.map_or_else(String::new, count)];
        let rows: Vec<_> = std::iter::once(heading).chain(self.files.iter().map(line)).collect();
        table(&rows, &[1, 2])
    }
}

/// Fetches the results of a job into `folder`: those of the kinds in `only`, or all.
pub(super) async fn fetch(
    connection: &Connection,
    job_guid: &str,
    only: &[ResultKind],
    folder: &Folder,
    reporter: &Reporter,
) -> Result<Fetched, CommandError> {
    let results = connection.api.results(job_guid).await.map_err(|source| unavailable(connection, job_guid, source))?;
    let attempt = results.attempt;
    let wanted = chosen(results, only);
    let places = folder.places(&wanted).await?;
    let source = ResultSource::new(&connection.api, job_guid);
    let mut files = Vec::with_capacity(wanted.len());
    for (file, place) in wanted.into_iter().zip(places) {
        let report = reporter.download(&place.name(), file.bytes);
        source.receive(&file, &place, &report.progress).await?;
        files.push(FetchedFile {
            name: file.name,
            kind: file.kind,
            content_type: file.content_type,
            path: place.path,
            bytes: file.bytes,
            items: file.items,
            crc64_nvme: file.crc64_nvme,
        });
    }
    Ok(Fetched { job_guid: job_guid.to_owned(), attempt, files })
}

fn chosen(results: Results, only: &[ResultKind]) -> Vec<ResultFile> {
    let is_wanted = |file: &ResultFile| only.is_empty() || only.iter().any(|kind| kind.word() == file.kind);
    results.into_files().into_iter().filter(is_wanted).collect()
}

/// The API's refusal, with what to do about a job that has not ended.
fn unavailable(connection: &Connection, job_guid: &str, source: ApiError) -> CommandError {
    match source.code() {
        Some(JOB_ACTIVE) => CommandError::NotEnded { source, look_again: connection.look_again(job_guid) },
        _ => source.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results() -> Results {
        let file = |kind: &str| {
            json!({"name": kind, "kind": kind, "contentType": "text/csv", "bytes": 1, "crc64Nvme": "AAAAAAAAAAA=",
                "fileName": kind, "url": "http://127.0.0.1/"})
        };
        let files = ["failedRows", "unprocessedRows", "output", "laterKind"].map(file);
        serde_json::from_value(json!({"jobGuid": "g", "attempt": 1, "status": "cancelled", "files": files,
            "manifest": file("")}))
        .unwrap()
    }

    #[test]
    fn the_kinds_asked_for_are_chosen_or_all() {
        let chosen = |only: &[ResultKind]| -> Vec<String> {
            super::chosen(results(), only).into_iter().map(|file| file.kind).collect()
        };
        assert_eq!(chosen(&[]), ["failedRows", "unprocessedRows", "output", "laterKind", "manifest"]);
        assert_eq!(chosen(&[ResultKind::Manifest, ResultKind::FailedRows]), ["failedRows", "manifest"]);
        assert_eq!(chosen(&[ResultKind::UnprocessedRows]), ["unprocessedRows"]);
        assert_eq!(chosen(&[ResultKind::Output]), ["output"]);
    }

    #[test]
    fn files_are_listed_for_people_and_named_for_programs() {
        let file = |path: &str, bytes, items| FetchedFile {
            name: "n".into(),
            kind: "output".into(),
            content_type: "text/csv".into(),
            path: path.into(),
            bytes,
            items,
            crc64_nvme: String::new(),
        };
        let files = vec![file("./a.csv", 2048, Some(1500)), file("./manifest.json", 7, None)];
        let fetched = Fetched { job_guid: "g".into(), attempt: 1, files };
        assert_eq!(fetched.told(false), "./a.csv\n./manifest.json\n");
        let expected =
            "file                 size  items\n./a.csv          2.00 KiB  1,500\n./manifest.json       7 B\n";
        assert_eq!(fetched.told(true), expected);
    }
}
