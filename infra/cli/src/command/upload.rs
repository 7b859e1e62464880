//! `rowmill upload`: stores a file for later jobs.

use std::path::PathBuf;
use std::process::ExitCode;

use super::connection::ApiArgs;
use super::{CommandError, print, print_json};
use crate::follow::Reporter;
use crate::terminal::bytes;
use crate::upload::{SourceFile, store};

/// Stores a file and prints its guid
#[derive(Debug, clap::Args)]
pub struct UploadArgs {
    /// The file to store
    pub file: PathBuf,
    /// Where the API is.
    #[command(flatten)]
    pub api: ApiArgs,
    /// Print progress as JSON lines; the last one is the upload
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
///
/// See [`CommandError`]. No usable upload is left behind.
pub async fn execute(args: UploadArgs) -> Result<ExitCode, CommandError> {
    let file = SourceFile::open(&args.file, None).await?;
    let connection = args.api.connect().await?;
    let reporter = if args.json { Reporter::new(true) } else { Reporter::on_stderr() };
    let report = reporter.upload(&file);
    let stored = store(&connection.api, &file, &report.progress).await?;
    drop(report);
    if args.json {
        print_json(&stored.upload)?;
    } else {
        eprintln!("Stored {} ({}) as", file.name, bytes(file.size));
        print(&format!("{}\n", stored.upload.file_guid))?;
    }
    Ok(ExitCode::SUCCESS)
}
