//! The layout of the bucket: every key that Rowmill reads or writes.
//!
//! | key | holds | written by |
//! |---|---|---|
//! | `uploads/{file}` | an upload | the client, `upload` |
//! | `inbox/{jobType}/…` | a dropped file, and its sidecar `….job.json` | anyone who may write there |
//! | `inbox-problems/{jobType}/….json` | why a dropped file did not become a job | `receive-file` |
//! | `s3://{bucket}/{key}` | an input file that lies in another bucket | others |
//! | `results/{job}/inputs/{run}.jsonl` | the items of a job without a file, as JSON lines; the list of the files of a job over many | `create-job`, `start-job` |
//! | `results/{job}/layouts/{layout}.json` | a head that files of such a job have | `split-job` |
//! | `results/{job}/products/{row}/{run}/{name}` | a product of an item, under the token of its lease | a worker, with a presigned request of `work-task` |
//! | `results/{job}/{attempt}/chunks/{tally}.json` | chunk index of a tally whose chunks are ranges of the upload | `split-job` |
//! | `results/{job}/{attempt}/chunks/{tally}/{run}.json` | chunk index of a tally whose chunks are objects | `split-job` |
//! | `results/{job}/{attempt}/text/{tally}/{index}/{run}` | the text of a chunk that is not a range of the upload | `split-job` |
//! | `results/{job}/{attempt}/input/{tally}/{index}.jsonl` | the items of a chunk of a redrive | `split-job` |
//! | `results/{job}/{attempt}/corrected/{run}.jsonl` | the rows of a corrected file | `redrive-job` |
//! | `results/{job}/{attempt}/run-outputs/{tally}/{index}/{run}.jsonl` | run output: failed items and outputs of a chunk | `process-items`, `dead-letter` |
//! | `results/{job}/{attempt}/composition/{run}.json`, `.tail` | a composition that is handed over | `complete-job` |
//! | `results/{job}/{attempt}/files/{run}/{name}` | a file of the results | `complete-job` |
//! | `results/{job}/{attempt}/copy/progress` | how far the copy of the results is | `complete-job` |
//! | `results/{job}/{attempt}/copy/stored`, `failed` | that it is whole; why it is given up | `complete-job`, `dead-letter` |
//! | `s3://{bucket}/{prefix}{jobType}-{job}/{attempt}/{name}` | the copy of a result in another bucket | `complete-job` |
//!
//! `{tally}` has eight digits and `{index}` two, so keys sort like rows. `{run}` separates the objects of a run that
//! lost its write from the objects of the winner.

use percent_encoding::percent_decode_str;

use crate::model::files::LayoutId;
use crate::model::ids::{FileGuid, JobGuid, RunId};
use crate::model::tally::ChunkAddress;

/// Prefix of the files that become jobs by being dropped: `inbox/{jobType}/…`.
pub const INBOX: &str = "inbox/";

/// Prefix of the problem reports for dropped files that did not become jobs.
pub const INBOX_PROBLEMS: &str = "inbox-problems/";

/// The beginning of the key of an object in another bucket: `s3://{bucket}/{key}`.
pub const OTHER_BUCKET: &str = "s3://";

/// The key of an object in another bucket.
pub fn in_bucket(bucket: &str, key: &str) -> String {
    format!("{OTHER_BUCKET}{bucket}/{key}")
}

/// The other bucket, and the key of the object in it.
pub fn of_other_bucket(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix(OTHER_BUCKET)?.split_once('/')
}

/// A key as S3 writes it in notifications and manifests: form-encoded, so a space is a plus sign, and a plus sign is
/// escaped. `None` if it is not UTF-8, which no key of S3 is.
pub fn decoded(key: &str) -> Option<String> {
    let spaced = key.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(Into::into)
}

/// The longest key that S3 takes, in bytes.
pub const KEY_MAX_BYTES: usize = 1024;

pub fn upload(file_guid: FileGuid) -> String {
    format!("uploads/{file_guid}")
}

/// The beginning of the keys of all objects of a job.
pub fn of_job(job: JobGuid) -> String {
    format!("results/{job}/")
}

/// The items of a job without a file, or the list of a job's files. Each try to create it has its own name.
pub fn input(job: JobGuid, by: RunId) -> String {
    format!("results/{job}/inputs/{by}.jsonl")
}

/// The head of this layout.
pub fn layout(job: JobGuid, layout: &LayoutId) -> String {
    format!("results/{job}/layouts/{}.json", layout.as_str())
}

/// A product of an item, as the holder of this token stored it.
pub fn product(job: JobGuid, row: u64, by: RunId, name: &str) -> String {
    format!("results/{job}/products/{row}/{by}/{name}")
}

/// The chunk index of a tally. `stored_by` is the run that stored the chunks' text: two runs of the split may have read
/// a dataset differently, and the one whose tally row was put first counts.
pub fn chunk_index(job: JobGuid, attempt: u32, tally: u32, stored_by: Option<RunId>) -> String {
    match stored_by {
        None => format!("results/{job}/{attempt}/chunks/{tally:08}.json"),
        Some(run) => format!("results/{job}/{attempt}/chunks/{tally:08}/{run}.json"),
    }
}

/// The text of a chunk that is not a range of the upload, as a run of the split stored it.
pub fn stored_text(job: JobGuid, chunk: ChunkAddress, by: RunId) -> String {
    let ChunkAddress { attempt, tally, index } = chunk;
    format!("results/{job}/{attempt}/text/{tally:08}/{index:02}/{by}")
}

/// The items of a chunk of a redrive.
pub fn redrive_items(job: JobGuid, chunk: ChunkAddress) -> String {
    let ChunkAddress { attempt, tally, index } = chunk;
    format!("results/{job}/{attempt}/input/{tally:08}/{index:02}.jsonl")
}

/// The rows of a corrected file, as a redrive request leaves them for the split.
pub fn corrections(job: JobGuid, attempt: u32, by: RunId) -> String {
    format!("results/{job}/{attempt}/corrected/{by}.jsonl")
}

/// The run output of a chunk: its results besides its counts.
pub fn run_output(job: JobGuid, chunk: ChunkAddress, run: RunId) -> String {
    let ChunkAddress { attempt, tally, index } = chunk;
    format!("results/{job}/{attempt}/run-outputs/{tally:08}/{index:02}/{run}.jsonl")
}

/// A composition that is handed over: its state, and the bytes of the open file that are not stored yet.
pub fn composition(job: JobGuid, attempt: u32, name: RunId) -> (String, String) {
    let key = |ending| format!("results/{job}/{attempt}/composition/{name}.{ending}");
    (key("json"), key("tail"))
}

/// An object that says how far the copy of an attempt's results is: `progress`, `stored` or `failed`.
pub fn results_copy(job: JobGuid, attempt: u32, says: &str) -> String {
    format!("results/{job}/{attempt}/copy/{says}")
}

/// A file of the results, as a run of the completion stored it.
pub fn result_file(job: JobGuid, attempt: u32, by: &str, name: &str) -> String {
    format!("results/{job}/{attempt}/files/{by}/{name}")
}
