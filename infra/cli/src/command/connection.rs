//! The API that a command calls: the one given, or that of the local stack.

use rowmill_api::ids::JobGuid;

use crate::api::ApiClient;
use crate::stack::{self, Stack, StackOptions};

use super::CommandError;

/// Environment variable with the API's URL.
const URL_VARIABLE: &str = "ROWMILL_URL";

/// Environment variable with the bearer token. There is no argument for it, because other processes can read arguments.
const TOKEN_VARIABLE: &str = "ROWMILL_TOKEN";

/// The error if no API is given and no local stack runs.
const NO_API: &str = "no API: use --url, set ROWMILL_URL, or start the local stack with `rowmill up`";

/// The API's address.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ApiArgs {
    /// URL of the API [default: $ROWMILL_URL, else the running local stack]. The bearer token is read from $ROWMILL_TOKEN
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

/// An API, or the local stack, which is started if necessary.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TargetArgs {
    /// Where the API is.
    #[command(flatten)]
    pub api: ApiArgs,
    /// Use the local stack. It is started if it does not run
    #[arg(long, conflicts_with = "url")]
    pub local: bool,
    /// Build the local stack's functions with optimizations
    #[arg(long, requires = "local")]
    pub release: bool,
}

/// A job on an API.
#[derive(Debug, Clone, clap::Args)]
pub struct JobRefArgs {
    /// The job's guid
    pub job_guid: JobGuid,
    /// Where the API is.
    #[command(flatten)]
    pub api: ApiArgs,
}

impl ApiArgs {
    /// A client of the given API, or of the running local stack.
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
    /// The options of the local stack, if `--local` is given.
    pub(super) fn stack_options(&self) -> Result<Option<StackOptions>, CommandError> {
        if !self.local {
            return Ok(None);
        }
        Ok(Some(StackOptions { release: self.release, ..StackOptions::for_current_workspace()? }))
    }
}

/// A client of an API.
///
/// It owns a local stack that it has started, and stops that stack when dropped, except after
/// [`Connection::leave_stack_running`].
pub(super) struct Connection {
    /// The client.
    pub api: ApiClient,
    /// The argument that makes another `rowmill` command use the same API.
    url_argument: String,
    stack: Option<Stack>,
}

impl Connection {
    fn to(url: &str, url_argument: String) -> Result<Self, CommandError> {
        let token = from_environment(TOKEN_VARIABLE);
        let api = ApiClient::new(url, token.as_deref())?;
        Ok(Self { api, url_argument, stack: None })
    }

    /// The local stack has no authorizer, so it never gets a token that is meant for another API.
    fn to_stack(url: &str) -> Result<Self, CommandError> {
        Ok(Self { api: ApiClient::new(url, None)?, url_argument: String::new(), stack: None })
    }

    /// Starts or updates the local stack and connects to it.
    pub async fn local(options: &StackOptions) -> Result<Self, CommandError> {
        let stack = Stack::up(options).await?;
        let connection = Self::to_stack(stack.api_url())?;
        Ok(Self { stack: Some(stack), ..connection })
    }

    /// Keeps a local stack running after the end of this command.
    pub fn leave_stack_running(&mut self) {
        if let Some(stack) = &mut self.stack {
            stack.leave_running();
        }
    }

    /// The command that follows a job.
    pub fn watch_command(&self, job_guid: JobGuid) -> String {
        format!("rowmill job {job_guid} --watch{}", self.url_argument)
    }

    /// The command that fetches a job's results.
    pub fn results_command(&self, job_guid: JobGuid) -> String {
        format!("rowmill results {job_guid}{}", self.url_argument)
    }
}

fn from_environment(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.trim().is_empty())
}
