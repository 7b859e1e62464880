//! `rowmill results`: fetches the results of a job.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use rowmill_api::problem::ProblemCode;
use rowmill_api::results::{FileView, ResultsView};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::results::ResultKind as Kind;
use serde::Serialize;

use super::connection::{Connection, JobRefArgs};
use super::interrupt::{self, interrupted};
use super::{CommandError, print, print_json};
use crate::api::{ApiError, MANIFEST, files_of};
use crate::download::{Folder, ResultSource};
use crate::follow::Reporter;
use crate::terminal::{bytes, count, escape_controls, table};

/// A kind of result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ResultKind {
    /// The failed rows, each with its error. Corrected, the file is the input of `rowmill redrive --corrected`.
    FailedRows,
    /// The rows that a stopped job did not process.
    UnprocessedRows,
    /// The output of the job.
    Output,
    /// The list of the files, with the job's counts.
    Manifest,
}

impl ResultKind {
    /// Its name in the API.
    fn word(self) -> &'static str {
        match self {
            Self::FailedRows => Kind::FailedRows.as_str(),
            Self::UnprocessedRows => Kind::UnprocessedRows.as_str(),
            Self::Output => Kind::Output.as_str(),
            Self::Manifest => MANIFEST,
        }
    }
}

/// Where results go.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct OutArgs {
    /// Folder for the files, created if missing [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
}

impl OutArgs {
    /// The folder, by default the current one.
    pub(super) fn folder(&self) -> Folder {
        Folder { path: self.out.clone().unwrap_or_else(|| PathBuf::from(".")), replace: self.force }
    }
}

/// Fetches the results of an ended job: failed rows, unprocessed rows, output and manifest
///
/// The checksum of each file is verified. A file gets its name only when it is complete.
///
/// Exit codes: 0 if all files were fetched, 1 if not, 2 wrong usage, 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct ResultsArgs {
    #[command(flatten)]
    pub job: JobRefArgs,
    #[command(flatten)]
    pub out: OutArgs,
    /// Fetch only results of this kind; can be given several times
    #[arg(long, value_enum, value_name = "KIND")]
    pub only: Vec<ResultKind>,
    /// Print progress as JSON lines; the last one lists the written files
    #[arg(long)]
    pub json: bool,
}

/// After an error, complete files are kept.
pub async fn execute(args: ResultsArgs) -> Result<ExitCode, CommandError> {
    let connection = args.job.api.connect().await?;
    let reporter = if args.json { Reporter::new(true) } else { Reporter::on_stderr() };
    let folder = args.out.folder();
    let fetched = tokio::select! {
        fetched = fetch(&connection, args.job.job_guid, &args.only, &folder, &reporter) => fetched?,
        () = interrupted() => {
            eprintln!("Interrupted; complete files are kept, partial files are removed.");
            return Ok(interrupt::exit_code());
        }
    };
    if args.json {
        print_json(&fetched)?;
    } else if fetched.files.is_empty() {
        eprintln!("The job has no such results.");
    } else {
        print(&fetched.listing(std::io::stdout().is_terminal() && args.out.out.is_none()))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Fetched {
    job_guid: JobGuid,
    attempt: u32,
    files: Vec<FetchedFile>,
}

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
    /// True if the job has no results of the requested kinds.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// True if a file of this kind is among them.
    pub fn has(&self, kind: ResultKind) -> bool {
        self.files.iter().any(|file| file.kind == kind.word())
    }

    /// One line per file: with sizes for a person, otherwise only the paths.
    pub fn listing(&self, to_a_person: bool) -> String {
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

/// Fetches results of a job into `folder`: the kinds in `only`, or all.
pub(super) async fn fetch(
    connection: &Connection,
    job_guid: JobGuid,
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
        let report = reporter.download(&place.name(), file.file.bytes);
        source.receive(&file, &place, &report.progress).await?;
        let file = file.file;
        files.push(FetchedFile {
            name: file.name,
            kind: file.kind.as_str().to_owned(),
            content_type: file.content_type,
            path: place.path,
            bytes: file.bytes,
            items: file.items,
            crc64_nvme: file.crc64_nvme,
        });
    }
    Ok(Fetched { job_guid, attempt, files })
}

fn chosen(results: ResultsView, only: &[ResultKind]) -> Vec<FileView> {
    let is_wanted = |file: &FileView| only.is_empty() || only.iter().any(|kind| kind.word() == file.file.kind.as_str());
    files_of(results).into_iter().filter(is_wanted).collect()
}

/// The API's refusal. For a job that has not ended, with the command that follows it.
fn unavailable(connection: &Connection, job_guid: JobGuid, source: ApiError) -> CommandError {
    if source.is(ProblemCode::JobActive) {
        return CommandError::NotEnded { source, watch_command: connection.watch_command(job_guid) };
    }
    source.into()
}

#[cfg(test)]
mod tests {
    use rowmill_api::openapi::examples;
    use rowmill_core::words::Open;

    use super::*;
    use crate::fixtures::job_guid;

    fn results() -> ResultsView {
        let results = examples::results();
        let kinds = ["failedRows", "unprocessedRows", "output", "laterKind"];
        let files = kinds.map(|kind| {
            let mut file = results.files[0].clone();
            file.file.kind = Open::Other(kind.to_owned());
            file
        });
        ResultsView { files: files.into(), ..results }
    }

    #[test]
    fn the_kinds_asked_for_are_chosen_or_all() {
        let chosen = |only: &[ResultKind]| -> Vec<String> {
            super::chosen(results(), only).into_iter().map(|file| file.file.kind.as_str().to_owned()).collect()
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
        let fetched = Fetched { job_guid: job_guid(), attempt: 1, files };
        assert_eq!(fetched.listing(false), "./a.csv\n./manifest.json\n");
        let expected =
            "file                 size  items\n./a.csv          2.00 KiB  1,500\n./manifest.json       7 B\n";
        assert_eq!(fetched.listing(true), expected);
    }
}
