//! `rowmill open`: the page of a stack in a browser.

use std::process::ExitCode;

use super::connection::{URL_VARIABLE, from_environment};
use super::{CommandError, print};
use crate::stack::{self, StackOptions};

/// Opens the page of a stack in a browser
///
/// Standard output contains only the page's address.
#[derive(Debug, clap::Args)]
pub struct OpenArgs {
    /// URL of the API, or of a gateway, which serves the page too [default: $ROWMILL_URL, else the running local stack]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Show this job
    #[arg(long, value_name = "GUID")]
    pub job: Option<rowmill_core::model::ids::JobGuid>,
    /// Only print the address
    #[arg(long)]
    pub no_browser: bool,
}

pub async fn execute(args: OpenArgs) -> Result<ExitCode, CommandError> {
    let api = match args.url.or_else(|| from_environment(URL_VARIABLE)) {
        Some(url) => url,
        None => {
            let options = StackOptions::for_current_workspace()?;
            let (record, _) = stack::running(&options.state_dir).await?;
            record.api_url.ok_or_else(|| {
                CommandError::Usage("the stack has no HTTP API: run `rowmill gateway`, and open its address".to_owned())
            })?
        }
    };
    let page = args.job.map_or_else(|| stack::page_url(&api), |job| stack::job_page_url(&api, job));
    print(&format!("{page}\n"))?;
    if !args.no_browser && ::open::that_detached(&page).is_err() {
        eprintln!("No browser opened on this machine: open the address above in one.");
    }
    Ok(ExitCode::SUCCESS)
}
