//! `rowmill run`: uploads files, runs one job on them and follows it to its end. Or runs a job over rows in the request,
//! or over nothing.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{fs, io};

use rowmill_api::estimate::EstimateView;
use rowmill_api::request::{CreateJobRequest, DedupeBy, FILES_MAX, JobSource, ObjectSource};
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::results::{ResultKind, ResultsTo};
use serde_json::{Map, Value};

use super::connection::Connection;
use super::lifecycle::{JobRun, LifecycleArgs, Stage};
use super::limits::ToleranceArgs;
use super::params::ParamArgs;
use super::results::fetch;
use super::{CommandError, print_result, word_parser};
use crate::download::Folder;
use crate::follow::Reporter;
use crate::terminal::{count, dollars, escape_controls, span, table};
use crate::upload::{RememberedUploads, SourceFile, fetch as fetch_file, store, url_of};

/// The longest name of a file that goes into the metadata of its job, in bytes.
const NAME_MAX_BYTES: usize = 200;

/// Uploads files, runs one job on them and shows its progress
///
/// A few rows need no file: --items sends them with the request. A job type without input, such as a report, takes
/// neither.
///
/// Exit codes: 0 all items succeeded, 3 some items failed, 1 the job failed or could not be followed, 2 wrong usage,
/// 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The file to process, the URL of one that the stack fetches, or the guid of an upload; several for one job over all
    /// of them; none for a job type without input. A pattern such as 'data/*.csv' names all files that match. Objects of a
    /// bucket that the stack may read are named by s3://BUCKET/PREFIX, or s3://BUCKET/PREFIX*SUFFIX
    #[arg(value_name = "FILE|URL|GUID|S3")]
    pub files: Vec<PathBuf>,
    /// Send up to 1,000 rows with the request, from a file with a JSON array of objects or with JSON lines; `-` reads
    /// standard input
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub items: Option<PathBuf>,
    /// Read a result of this job, which may still run: the new one then starts when that one has ended
    #[arg(long, value_name = "JOB", conflicts_with_all = ["files", "items"])]
    pub results_of: Option<JobGuid>,
    /// Which of its results
    #[arg(long, requires = "results_of", default_value = "output", value_parser = word_parser(ResultKind::ALL))]
    pub result: ResultKind,
    /// Start when this job has ended well
    #[arg(long, value_name = "JOB", conflicts_with = "results_of")]
    pub after: Option<JobGuid>,
    /// The one FILE lists objects in buckets that the stack may read, and the job reads these: CSV of bucket and key, as
    /// S3 Batch Operations and S3 Inventory write it, or with a header or as JSON with the columns `bucket` and `key`
    #[arg(long, requires = "files", conflicts_with = "dedupe")]
    pub manifest: bool,
    /// If a job does or did the same with the same file, follow that job and create none
    #[arg(long, requires = "files", conflicts_with = "items")]
    pub dedupe: bool,
    /// The job type: import, validate, transform or your own
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: String,
    #[command(flatten)]
    pub params: ParamArgs,
    #[command(flatten)]
    pub tolerance: ToleranceArgs,
    /// Fetch the results of the ended job into this folder, which is created if missing
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Replace existing files in that folder
    #[arg(long, requires = "results")]
    pub force: bool,
    /// Copy the results into a bucket that the stack may write to, when the job has ended
    #[arg(long, value_name = "s3://BUCKET/PREFIX", value_parser = results_to)]
    pub results_to: Option<ResultsTo>,
    #[command(flatten)]
    pub lifecycle: LifecycleArgs,
    /// Print what the job would cost and take, and create none
    #[arg(long, conflicts_with = "results")]
    pub estimate: bool,
    /// Print progress as JSON lines; the last one is the job
    #[arg(long)]
    pub json: bool,
}

/// An error says whether a job was created.
pub async fn execute(args: RunArgs) -> Result<ExitCode, CommandError> {
    // Wrong arguments are found before anything is started or sent.
    let params = args.params.to_json()?;
    let fallback_type = args.params.format.map(|format| format.content_type());
    let source = match (&args.files[..], &args.items, args.results_of) {
        ([], Some(items), _) => Source::Items(read_items(items)?),
        ([], None, Some(job)) => Source::Result(JobSource::of_result(job, args.result)),
        ([], None, None) => Source::None,
        ([one], ..) if let Some(objects) = objects_of(one)? => {
            Source::Result(JobSource { s3: Some(objects), ..JobSource::default() })
        }
        (files, ..) => {
            let mut inputs = Vec::new();
            for file in named_by(files)? {
                inputs.push(InputFile::of(&file, fallback_type).await?);
            }
            if args.manifest && inputs.len() > 1 {
                return Err(CommandError::Usage("--manifest takes one file".to_owned()));
            }
            if inputs.len() > FILES_MAX {
                return Err(CommandError::Usage(format!("a job reads at most {FILES_MAX} files")));
            }
            Source::Files(inputs)
        }
    };
    args.lifecycle
        .target
        .carry_out(async |connection, stage| run(&args, &source, params, connection, stage).await)
        .await
}

/// The input of a job.
enum Source {
    /// Files, at least one.
    Files(Vec<InputFile>),
    /// A result of a job, or objects of a bucket.
    Result(JobSource),
    /// Rows that are sent with the request.
    Items(Vec<Map<String, Value>>),
    None,
}

/// A file that a job reads.
enum InputFile {
    /// It is stored first.
    Local(SourceFile),
    /// The stack fetches it first.
    Url(String),
    /// It is stored already.
    Upload(FileGuid),
}

impl InputFile {
    async fn of(file: &Path, fallback_type: Option<&'static str>) -> Result<Self, CommandError> {
        Ok(match (url_of(file), file.to_str().and_then(|text| text.parse().ok())) {
            (Some(url), _) => Self::Url(url.to_owned()),
            (None, Some(file_guid)) if !file.exists() => Self::Upload(file_guid),
            _ => Self::Local(SourceFile::open(file, fallback_type).await?),
        })
    }

    /// The upload that holds it, after it was sent or fetched.
    async fn stored(
        &self,
        connection: &Connection,
        content_type: Option<&str>,
        reporter: &Reporter,
    ) -> Result<FileGuid, CommandError> {
        Ok(match self {
            Self::Upload(file_guid) => *file_guid,
            Self::Url(url) => fetch_file(&connection.api, url, content_type, reporter).await?.file_guid,
            Self::Local(file) => {
                let report = reporter.upload(file);
                let remembered = RememberedUploads::of_user();
                store(&connection.api, file, remembered.as_ref(), &report.progress).await?.upload.file_guid
            }
        })
    }
}

/// The objects of a bucket that an argument names, if it does.
fn objects_of(argument: &Path) -> Result<Option<ObjectSource>, CommandError> {
    let Some(named) = argument.to_str().and_then(|text| text.strip_prefix("s3://")) else { return Ok(None) };
    let (bucket, keys) = named.split_once('/').unwrap_or((named, ""));
    let (prefix, suffix) = keys.split_once('*').unwrap_or((keys, ""));
    if suffix.contains(['*', '/']) {
        let text = "objects are named by s3://BUCKET/PREFIX*SUFFIX, with one `*` and no `/` behind it";
        return Err(CommandError::Usage(text.to_owned()));
    }
    let suffix = (!suffix.is_empty()).then(|| suffix.to_owned());
    Ok(Some(ObjectSource { bucket: bucket.to_owned(), prefix: prefix.to_owned(), suffix }))
}

/// The place that this argument names.
fn results_to(argument: &str) -> Result<ResultsTo, &'static str> {
    let place = argument.strip_prefix("s3://").ok_or("a place in a bucket begins with s3://")?;
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    Ok(ResultsTo { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
}

/// The files that these arguments name: a pattern names those that match, in the order of their names.
fn named_by(arguments: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = Vec::new();
    for argument in arguments {
        let pattern = argument.to_str().filter(|text| text.contains(['*', '?', '[']) && url_of(argument).is_none());
        let Some(pattern) = pattern.filter(|_| !argument.exists()) else {
            files.push(argument.clone());
            continue;
        };
        let unusable = |reason: Box<dyn Error + Send + Sync>| CommandError::File { path: argument.clone(), reason };
        let before = files.len();
        for path in glob::glob(pattern).map_err(|error| unusable(error.into()))? {
            let path = path.map_err(|error| unusable(error.into()))?;
            files.extend(path.is_file().then_some(path));
        }
        if files.len() == before {
            return Err(unusable("no file matches this pattern".into()));
        }
    }
    Ok(files)
}

/// The objects of a JSON array, or of JSON lines.
fn read_items(path: &Path) -> Result<Vec<Map<String, Value>>, CommandError> {
    let unusable = |reason: Box<dyn Error + Send + Sync>| CommandError::File { path: path.to_owned(), reason };
    let text = match path.as_os_str() == "-" {
        true => io::read_to_string(io::stdin()),
        false => fs::read_to_string(path),
    };
    let text = text.map_err(|error| unusable(error.into()))?;
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&text).into_iter().collect();
    let items = match values.map_err(|error| unusable(error.into()))? {
        mut values if matches!(values[..], [Value::Array(_)]) => match values.pop() {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        },
        values => values,
    };
    let object = |(number, item)| match item {
        Value::Object(object) => Ok(object),
        _ => Err(unusable(format!("row {number} is not a JSON object").into())),
    };
    (1..).zip(items).map(object).collect()
}

impl Source {
    /// The name of the file or files, by which the page lists the job. An upload by its guid has its own name.
    fn metadata(&self) -> Option<Map<String, Value>> {
        match self {
            Self::Files(files) => {
                let InputFile::Local(first) = files.first()? else { return None };
                let name = match files.len() {
                    1 => first.name.clone(),
                    count => format!("{} and {} more", first.name, count - 1),
                };
                (name.len() <= NAME_MAX_BYTES).then(|| Map::from_iter([("fileName".to_owned(), Value::from(name))]))
            }
            Self::Result(_) | Self::Items(_) | Self::None => None,
        }
    }
}

async fn run(
    args: &RunArgs,
    source: &Source,
    params: Map<String, Value>,
    connection: &Connection,
    stage: &Stage,
) -> Result<ExitCode, CommandError> {
    let mut reporter = Reporter::new(args.json);
    let mut new_job = CreateJobRequest {
        job_type: args.job_type.clone(),
        after: args.after,
        dedupe: args.dedupe.then_some(DedupeBy::File),
        params,
        deadline_seconds: args.lifecycle.deadline.seconds(),
        start_within_seconds: args.lifecycle.spans.start_within_seconds(),
        keep_seconds: args.lifecycle.spans.keep_seconds(),
        tolerance: args.tolerance.to_tolerance(),
        max_concurrency: args.lifecycle.workers.max_concurrency,
        priority: args.lifecycle.workers.priority,
        results_to: args.results_to.clone(),
        metadata: source.metadata(),
        ..CreateJobRequest::default()
    };
    match source {
        Source::Files(files) => {
            if files.iter().any(|file| !matches!(file, InputFile::Upload(_))) {
                check(&new_job, connection).await?;
            }
            let content_type = args.params.format.map(|format| format.content_type());
            let mut stored = Vec::new();
            for file in files {
                stored.push(file.stored(connection, content_type, &reporter).await?);
            }
            match stored[..] {
                [file_guid] if args.manifest => {
                    new_job.source = Some(JobSource { manifest: Some(file_guid), ..JobSource::default() });
                }
                [file_guid] => new_job.file_guid = Some(file_guid),
                _ => new_job.source = Some(JobSource { files: Some(stored), ..JobSource::default() }),
            }
        }
        Source::Result(result) => new_job.source = Some(result.clone()),
        Source::Items(rows) => new_job.items = Some(rows.clone()),
        Source::None => {}
    }
    if args.estimate {
        drop(reporter);
        let estimate = connection.api.estimate_job(&new_job).await?;
        print_result(args.json, &estimate, || estimated(&estimate))?;
        return Ok(ExitCode::SUCCESS);
    }
    let job_run = JobRun { connection, patience: &args.lifecycle.patience, json: args.json, stage };
    let job = job_run.create_and_follow(&new_job, &mut reporter).await?;
    let fetched = match &args.results {
        Some(path) => {
            let folder = Folder { path: path.clone(), replace: args.force };
            Some(fetch(connection, job.job_guid, &[], &folder, &reporter).await)
        }
        None => None,
    };
    job_run.conclude(&job, fetched).await
}

/// Finds before its file is sent that the job would be refused with any file.
async fn check(new_job: &CreateJobRequest, connection: &Connection) -> Result<(), CommandError> {
    if connection.api.check_job(new_job).await? {
        return Ok(());
    }
    let text = format!("a job of the type `{}` reads no file: leave FILE out", new_job.job_type);
    Err(CommandError::Usage(text))
}

/// An estimate as lines of text.
fn estimated(estimate: &EstimateView) -> String {
    let (Some(items), Some(chunks), Some(cost)) = (estimate.items, estimate.chunks, &estimate.cost) else {
        return "The beginning of the input does not tell how long it is, so nothing can be estimated.\n".to_owned();
    };
    let about = if estimate.items_final { "" } else { "about " };
    let region = escape_controls(&cost.price_region);
    let mut rows = vec![
        ("items", format!("{about}{}", count(items))),
        ("chunks", count(chunks)),
        ("requests", count(cost.requests)),
        ("cost", format!("{}, list price of {region}", dollars(cost.usd))),
    ];
    if let Some(seconds) = estimate.seconds_at_least {
        let least = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        rows.push(("takes", format!("{} at least, with all workers of AWS", span(least))));
    }
    let rows: Vec<_> = rows.into_iter().map(|(name, value)| vec![format!("  {name}"), value]).collect();
    "Estimate; no job was created\n".to_owned() + &table(&rows, &[])
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use rowmill_api::routes::Body as _;

    use super::*;

    fn items(text: &str) -> Result<String, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let items = read_items(file.path()).map_err(|error| error.explain())?;
        Ok(serde_json::to_string(&items).unwrap())
    }

    #[test]
    fn an_estimate_is_shown_as_far_as_it_is_known() {
        let mut estimate = EstimateView::example();
        let expected = "Estimate; no job was created\n  items     about 11,000\n  chunks    22\n  requests  133\n  \
                        cost      $0.000183, list price of us-east-1\n  takes     1.5 s at least, with all workers of AWS\n";
        assert_eq!(estimated(&estimate), expected);
        (estimate.items_final, estimate.seconds_at_least) = (true, Some(1e300));
        assert!(estimated(&estimate).contains("items     11,000\n"));
        estimate.items = None;
        assert!(estimated(&estimate).contains("nothing can be estimated"));
    }

    #[test]
    fn objects_are_named_by_the_beginning_and_the_end_of_their_keys() {
        let of = |text: &str| objects_of(Path::new(text)).unwrap();
        let objects = |prefix: &str, suffix: Option<&str>| {
            let (prefix, suffix) = (prefix.to_owned(), suffix.map(str::to_owned));
            Some(ObjectSource { bucket: "data".to_owned(), prefix, suffix })
        };
        assert_eq!(of("s3://data"), objects("", None));
        assert_eq!(of("s3://data/in/2026"), objects("in/2026", None));
        assert_eq!(of("s3://data/in/*.csv"), objects("in/", Some(".csv")));
        assert_eq!(of("data/in"), None);
        assert!(objects_of(Path::new("s3://data/*/x*")).is_err());
    }

    #[test]
    fn a_pattern_names_the_files_that_match_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.csv", "c.txt", "odd[1].csv"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let names = |argument: &str| {
            let files = named_by(&[folder.path().join(argument)]).map_err(|error| error.explain())?;
            Ok::<_, String>(files.iter().map(|file| file.file_name().unwrap().to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(names("*.csv").unwrap(), ["a.csv", "b.csv", "odd[1].csv"]);
        assert_eq!(names("odd[1].csv").unwrap(), ["odd[1].csv"], "a file of this name exists");
        assert_eq!(names("missing.csv").unwrap(), ["missing.csv"], "opening it says that it is missing");
        assert!(names("*.parquet").unwrap_err().contains("no file matches"));
    }

    #[test]
    fn items_are_an_array_or_lines_with_their_numbers_as_written() {
        let expected = r#"[{"a":1.10},{"a":2}]"#;
        assert_eq!(items("[{\"a\": 1.10},\n {\"a\": 2}]\n").unwrap(), expected);
        assert_eq!(items("{\"a\": 1.10}\n{\"a\": 2}\n").unwrap(), expected);
        assert_eq!(items("{}").unwrap(), "[{}]");
        assert_eq!(items("").unwrap(), "[]");
    }

    #[test]
    fn a_row_that_is_no_object_is_named_and_not_quoted() {
        for text in [r#"[{}, "secret"]"#, "{}\n\"secret\"\n"] {
            let error = items(text).unwrap_err();
            assert!(error.contains("row 2 is not a JSON object") && !error.contains("secret"), "{error}");
        }
        assert!(items("{\"a\": ").is_err());
    }
}
