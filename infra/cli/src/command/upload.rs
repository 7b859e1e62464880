//! `rowmill upload`: stores a file for later jobs.

use std::path::PathBuf;
use std::process::ExitCode;

use super::connection::ApiArgs;
use super::interrupt::{self, interrupted};
use super::{CommandError, print, print_json};
use crate::follow::Reporter;
use crate::terminal::bytes;
use crate::upload::{RememberedUploads, SourceFile, fetch, store, url_of};

/// Stores a file and prints its guid
///
/// A file of more than 64 MiB is sent in parts. If that is interrupted, the same command sends the rest, for as long as
/// the upload lives (7 days) and the file does not change.
#[derive(Debug, clap::Args)]
pub struct UploadArgs {
    /// The file to store, or the URL of one that the stack fetches, if its parameter FetchHosts names the host; or
    /// s3://BUCKET/KEY, if its parameter InputBuckets names the bucket
    #[arg(value_name = "FILE|URL|S3")]
    pub file: PathBuf,
    #[command(flatten)]
    pub api: ApiArgs,
    /// Print progress as JSON lines; the last one is the upload
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: UploadArgs) -> Result<ExitCode, CommandError> {
    let reporter = if args.json { Reporter::new(true) } else { Reporter::on_stderr() };
    if let Some(url) = url_of(&args.file) {
        return fetch_from(&args, url, &reporter).await;
    }
    let file = SourceFile::open(&args.file, None).await?;
    let connection = args.api.connect().await?;
    let report = reporter.upload(&file);
    let remembered = RememberedUploads::of_user();
    let stored = tokio::select! {
        stored = store(&connection.api, &file, remembered.as_ref(), &report.progress) => stored?,
        () = interrupted() => {
            drop(report);
            eprintln!("Interrupted; the file is not stored. The same command sends it, or what is missing of a file in parts.");
            return Ok(interrupt::exit_code());
        }
    };
    drop(report);
    if args.json {
        print_json(&stored.upload)?;
    } else {
        eprintln!("Stored {} ({}) as", file.name, bytes(file.size));
        print(&format!("{}\n", stored.upload.file_guid))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Has the stack fetch the file. It goes on if the command is interrupted.
async fn fetch_from(args: &UploadArgs, url: &str, reporter: &Reporter) -> Result<ExitCode, CommandError> {
    let connection = args.api.connect().await?;
    let upload = tokio::select! {
        upload = fetch(&connection.api, url, None, reporter) => upload?,
        () = interrupted() => {
            eprintln!("Interrupted; the stack keeps fetching the file.");
            return Ok(interrupt::exit_code());
        }
    };
    if args.json {
        print_json(&upload)?;
    } else {
        eprintln!("Fetched {} as", bytes(upload.size));
        print(&format!("{}\n", upload.file_guid))?;
    }
    Ok(ExitCode::SUCCESS)
}
