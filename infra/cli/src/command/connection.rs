//! Which API a command talks to: the one named, or that of the local stack.

use crate::api::ApiClient;
use crate::stack::{self, Stack, StackOptions};

use super::CommandError;

/// Names the API's address in the environment.
const URL_VARIABLE: &str = "ROWMILL_URL";

/// Holds the bearer token. It is read from the environment alone: arguments are seen by every process.
const TOKEN_VARIABLE: &str = "ROWMILL_TOKEN";

/// What to do where no API is named and none runs here.
const NO_API: &str = "no API to talk to: give --url or set ROWMILL_URL, or bring the local stack up with `rowmill up`";

/// The API's address.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ApiArgs {
    /// Address of the API, else ROWMILL_URL, else the local stack if it is up; ROWMILL_TOKEN holds the bearer token
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

/// An API somewhere, or the local stack, brought up if need be.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TargetArgs {
    /// Where the API is.
    #[command(flatten)]
    pub api: ApiArgs,
    /// Use the local stack, and bring it up if it is not
    #[arg(long, conflicts_with = "url")]
    pub local: bool,
    /// Build the local stack's functions with optimizations
    #[arg(long, requires = "local")]
    pub release: bool,
}

impl ApiArgs {
    /// A client of the API named, or of the running local stack where none is.
    pub(super) async fn connect(&self) -> Result<Connection, CommandError> {
        if let Some(url) = &self.url {
            return Connection::to(url, format!(" --url {url}"));
        }
        if let Some(url) = from_environment(URL_VARIABLE) {
            return Connection::to(&url, String::new());
        }
        let no_api = || CommandError::Usage(NO_API.to_owned());
        let options = StackOptions::for_current_workspace().map_err(|_| no_api())?;
        let (record, _) = stack::running(&options.state_dir).await.map_err(|_| no_api())?;
        Connection::to_stack(&record.api_url.ok_or_else(no_api)?)
    }
}

impl TargetArgs {
    /// The local stack's options, if it is the one meant.
    pub(super) fn stack_options(&self) -> Result<Option<StackOptions>, CommandError> {
        if !self.local {
            return Ok(None);
        }
        Ok(Some(StackOptions { release: self.release, ..StackOptions::for_current_workspace()? }))
    }
}

/// A client with what is known of the other side.
///
/// It keeps a local stack it has started: dropped before [`Connection::leave_stack_running`], it stops that.
pub(super) struct Connection {
    /// The client.
    pub api: ApiClient,
    /// What to add to a `rowmill` command so that it talks to the same API.
    url_argument: String,
    stack: Option<Stack>,
}

impl Connection {
    fn to(url: &str, url_argument: String) -> Result<Self, CommandError> {
        let token = from_environment(TOKEN_VARIABLE);
        let api = ApiClient::new(url, token.as_deref())?;
        Ok(Self { api, url_argument, stack: None })
    }

    /// The local stack has no authorizer: a token for another API is none of its business.
    fn to_stack(url: &str) -> Result<Self, CommandError> {
        Ok(Self { api: ApiClient::new(url, None)?, url_argument: String::new(), stack: None })
    }

    /// Brings the local stack up, or up to date, and talks to it.
    pub async fn local(options: &StackOptions) -> Result<Self, CommandError> {
        let stack = Stack::up(options).await?;
        let connection = Self::to_stack(stack.api_url())?;
        Ok(Self { stack: Some(stack), ..connection })
    }

    /// Lets a local stack that was brought up outlive this command.
    pub fn leave_stack_running(&mut self) {
        if let Some(stack) = &mut self.stack {
            stack.leave_running();
        }
    }

    /// The command that shows a job again.
    pub fn look_again(&self, job_guid: &str) -> String {
        format!("rowmill job {job_guid} --watch{}", self.url_argument)
    }

    /// The command that fetches a job's results.
    pub fn fetch_results(&self, job_guid: &str) -> String {
        format!("rowmill results {job_guid}{}", self.url_argument)
    }
}

fn from_environment(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.trim().is_empty())
}
