//! The functions' own measurements: one JSON line per invocation in the logs of the local stack.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rowmill_core::model::cost::Capacity;
use serde::Deserialize;

/// The message of these lines.
const MESSAGE: &str = "invocation finished";

/// Longest wait for the functions' last lines after the job has ended.
const SETTLE_LIMIT: Duration = Duration::from_secs(5);

/// The logs are complete when nothing was added for this long.
const SETTLED_AFTER: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Invocation {
    /// The function's name, for example `process-items`.
    pub function: String,
    #[serde(default)]
    pub duration_ms: f64,
    /// Requests it sent, by service.
    #[serde(default, rename = "aws.requests")]
    pub requests: BTreeMap<String, u64>,
    /// Its S3 requests that are charged like PUT.
    #[serde(default, rename = "aws.s3_writes")]
    pub s3_writes: u64,
    /// DynamoDB capacity it used.
    #[serde(default, rename = "aws.capacity")]
    pub capacity: Capacity,
    /// Peak memory of its process, if the operating system provides it.
    #[serde(default, rename = "process.peak_rss_bytes")]
    pub peak_rss_bytes: Option<u64>,
}

/// Parses a log line. `None` for any other line, JSON or not.
pub fn parse(line: &str) -> Option<Invocation> {
    #[derive(Deserialize)]
    struct Line {
        message: String,
    }
    // Most lines are different, and a text search is cheaper than parsing.
    if !line.contains(MESSAGE) {
        return None;
    }
    // Read twice and not flattened: numbers with a fraction cannot be read through `flatten` (decision 0013).
    let json = line.get(line.find('{')?..)?;
    let line: Line = serde_json::from_str(json).ok()?;
    (line.message == MESSAGE).then(|| serde_json::from_str(json).ok())?
}

/// The ends of the logs at some time.
#[derive(Debug)]
pub struct LogPosition {
    folder: PathBuf,
    lengths: HashMap<PathBuf, u64>,
}

impl LogPosition {
    /// The current ends of the logs in `folder`. A missing folder has no logs.
    pub fn now(folder: &Path) -> io::Result<Self> {
        Ok(Self { folder: folder.to_owned(), lengths: lengths(folder)? })
    }

    /// Waits until the functions have written their last lines.
    pub async fn settle(&self) -> io::Result<()> {
        let begun = Instant::now();
        let mut before = lengths(&self.folder)?;
        while begun.elapsed() < SETTLE_LIMIT {
            tokio::time::sleep(SETTLED_AFTER).await;
            let now = lengths(&self.folder)?;
            if now == before {
                break;
            }
            before = now;
        }
        Ok(())
    }

    /// Every invocation logged since this position.
    pub fn invocations(&self) -> io::Result<Vec<Invocation>> {
        let mut found = Vec::new();
        for (path, length) in lengths(&self.folder)? {
            let marked = self.lengths.get(&path).copied().unwrap_or(0);
            // A log that became shorter was replaced.
            let from = if marked <= length { marked } else { 0 };
            let mut log = BufReader::new(File::open(&path)?);
            log.seek(SeekFrom::Start(from))?;
            for line in log.split(b'\n') {
                found.extend(parse(&String::from_utf8_lossy(&line?)));
            }
        }
        Ok(found)
    }
}

fn lengths(folder: &Path) -> io::Result<HashMap<PathBuf, u64>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    let mut lengths = HashMap::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            lengths.insert(path.clone(), fs::metadata(&path)?.len());
        }
    }
    Ok(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const LINE: &str = r#"{"timestamp":"2025-01-01T00:00:00Z","level":"INFO","message":"invocation finished",
        "function":"process-items","duration_ms":12,"aws.requests":{"dynamodb":3,"s3":2,"sqs":0},"aws.s3_writes":1,
        "aws.capacity":{"read":1.0,"write":2.5},"process.peak_rss_bytes":23456789,"job.id":"x"}"#;

    fn line() -> String {
        LINE.replace('\n', " ")
    }

    #[test]
    fn a_log_line_is_parsed_into_its_invocation() {
        let invocation = parse(&line()).unwrap();
        assert_eq!(invocation.function, "process-items");
        assert_eq!((invocation.requests["dynamodb"], invocation.requests["s3"], invocation.s3_writes), (3, 2, 1));
        assert_eq!(invocation.capacity, Capacity { read: 1.0, write: 2.5 });
        assert_eq!((invocation.duration_ms, invocation.peak_rss_bytes), (12.0, Some(23_456_789)));
    }

    #[test]
    fn an_invocation_without_peak_memory_is_counted() {
        let unknown = line().replace("23456789", "null");
        assert_eq!(parse(&unknown).unwrap().peak_rss_bytes, None);
    }

    #[test]
    fn other_lines_are_passed_over() {
        for other in ["", "panicked: invocation finished", "{\"message\":\"chunk committed\"}", "{"] {
            assert_eq!(parse(other), None);
        }
        let prefixed = format!("[process-items] {}", line());
        assert!(parse(&prefixed).is_some(), "a tee may put a name before the line");
    }

    #[tokio::test]
    async fn only_what_was_logged_after_the_mark_counts() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("process-items.log");
        fs::write(&log, line() + "\n").unwrap();
        let mark = LogPosition::now(folder.path()).unwrap();
        assert_eq!(mark.invocations().unwrap(), []);
        let mut more = fs::OpenOptions::new().append(true).open(&log).unwrap();
        writeln!(more, "{}\nnoise\n{}", line(), line()).unwrap();
        fs::write(folder.path().join("split-job.log"), line()).unwrap();
        fs::write(folder.path().join("stack.json"), line()).unwrap();
        mark.settle().await.unwrap();
        assert_eq!(mark.invocations().unwrap().len(), 3);
        fs::write(&log, line()).unwrap();
        assert_eq!(mark.invocations().unwrap().len(), 2, "a log begun anew is read whole");
    }

    #[test]
    fn no_logs_are_no_invocations() {
        let mark = LogPosition::now(Path::new("/nonexistent/logs")).unwrap();
        assert_eq!(mark.invocations().unwrap(), []);
    }
}
