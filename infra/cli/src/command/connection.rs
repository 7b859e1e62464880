//! The API that a command calls: the one given, or that of the local stack.

use rowmill_core::model::ids::JobGuid;

use super::CommandError;
use crate::api::ApiClient;
use crate::aws::{Target, parse_endpoint};
use crate::gateway::Gateway;
use crate::login::Logins;
use crate::stack::{self, Record, Stack, StackOptions};

/// Environment variable with the API's URL.
pub(super) const URL_VARIABLE: &str = "ROWMILL_URL";

/// Environment variable with the bearer token. There is no argument for it, because other processes can read arguments.
const TOKEN_VARIABLE: &str = "ROWMILL_TOKEN";

/// The error if no API is given and no local stack runs.
const NO_API: &str = "no API: use --url or --stack-name, set ROWMILL_URL, or start the local stack with `rowmill up`";

/// The API's address.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ApiArgs {
    /// URL of the API [default: $ROWMILL_URL, else the running local stack]. The bearer token is that of `rowmill
    /// login`, or $ROWMILL_TOKEN
    #[arg(long, value_name = "URL", conflicts_with_all = ["stack_name", "endpoint_url"])]
    pub url: Option<String>,
    /// The functions, if the stack has no HTTP API.
    #[command(flatten)]
    pub functions: FunctionsArgs,
}

/// The functions of a stack, which are invoked directly.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct FunctionsArgs {
    /// Invoke the functions of this stack instead of calling an HTTP API [default with --endpoint-url: rowmill]
    #[arg(long, value_name = "NAME")]
    pub stack_name: Option<String>,
    /// Invoke them at the AWS emulator at this URL, with test credentials (LocalStack: http://localhost:4566)
    #[arg(long, value_name = "URL", value_parser = parse_endpoint)]
    pub endpoint_url: Option<String>,
}

impl FunctionsArgs {
    /// The target and the stack's name, if one of them is given.
    pub(super) fn given(&self) -> Option<(Target, &str)> {
        if self.stack_name.is_none() && self.endpoint_url.is_none() {
            return None;
        }
        let target = match &self.endpoint_url {
            Some(endpoint_url) => Target::Emulator { endpoint_url: endpoint_url.clone() },
            None => Target::Aws { region: None, profile: None },
        };
        Some((target, self.stack_name.as_deref().unwrap_or(stack::STACK_NAME)))
    }

    /// The gateway to the functions, with the caller of the token in `ROWMILL_TOKEN`.
    ///
    /// # Errors
    ///
    /// [`CommandError::Usage`] if the token is not a JSON Web Token.
    pub(super) async fn gateway(&self) -> Result<Option<Gateway>, CommandError> {
        let Some((target, stack_name)) = self.given() else { return Ok(None) };
        let gateway = Gateway::connect(&target, stack_name).await;
        match from_environment(TOKEN_VARIABLE) {
            None => Ok(Some(gateway)),
            Some(token) => match gateway.for_caller(&token) {
                Ok(gateway) => Ok(Some(gateway)),
                Err(error) => Err(CommandError::Usage(error.to_string())),
            },
        }
    }

    /// The arguments that make another `rowmill` command use the same functions.
    fn arguments(&self) -> String {
        let argument = |name: &str, value: &Option<String>| {
            value.as_ref().map_or_else(String::new, |value| format!(" --{name} {value}"))
        };
        argument("stack-name", &self.stack_name) + &argument("endpoint-url", &self.endpoint_url)
    }
}

/// An API, or the local stack, which is started if necessary.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TargetArgs {
    #[command(flatten)]
    pub api: ApiArgs,
    /// Use the local stack. It is started if it does not run
    #[arg(long, conflicts_with_all = ["url", "stack_name", "endpoint_url"])]
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
    #[command(flatten)]
    pub api: ApiArgs,
}

impl ApiArgs {
    /// True if an API is named in the arguments.
    pub(super) fn is_given(&self) -> bool {
        self.url.is_some() || self.functions.given().is_some()
    }

    /// A client of the given API, or of the running local stack.
    pub(super) async fn connect(&self) -> Result<Connection, CommandError> {
        if let Some(url) = &self.url {
            return Connection::to(url, format!(" --url {url}")).await;
        }
        if let Some(gateway) = self.functions.gateway().await? {
            return Ok(Connection::through(gateway, self.functions.arguments()));
        }
        if let Some(url) = from_environment(URL_VARIABLE) {
            return Connection::to(&url, String::new()).await;
        }
        let no_api = || CommandError::Usage(NO_API.to_owned());
        let options = StackOptions::for_current_workspace().map_err(|_| no_api())?;
        let (record, _) = stack::running(&options.state_dir).await.map_err(|_| no_api())?;
        Connection::to_stack(&record).await
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
    pub api: ApiClient,
    /// The arguments that make another `rowmill` command use the same API.
    api_arguments: String,
    /// The URL of the API, which serves the page too. None if its functions are invoked directly.
    url: Option<String>,
    stack: Option<Stack>,
}

impl Connection {
    async fn to(url: &str, api_arguments: String) -> Result<Self, CommandError> {
        let token = match (from_environment(TOKEN_VARIABLE), Logins::of_user()) {
            (None, Some(logins)) => logins.token(url).await?,
            (token, _) => token,
        };
        let api = ApiClient::new(url, token.as_deref())?;
        Ok(Self { api, api_arguments, url: Some(url.to_owned()), stack: None })
    }

    async fn to_stack(record: &Record) -> Result<Self, CommandError> {
        let api = stack::client(record).await?.ok_or_else(|| CommandError::Usage(NO_API.to_owned()))?;
        Ok(Self { api, api_arguments: String::new(), url: record.api_url.clone(), stack: None })
    }

    fn through(gateway: Gateway, api_arguments: String) -> Self {
        Self { api: ApiClient::invoking(gateway), api_arguments, url: None, stack: None }
    }

    /// Starts or updates the local stack and connects to it.
    pub async fn local(options: &StackOptions) -> Result<Self, CommandError> {
        let stack = Stack::up(options).await?;
        let connection = Self::to_stack(stack.record()).await?;
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
        format!("rowmill job {job_guid} --watch{}", self.api_arguments)
    }

    /// The address of a job on the page, if the API serves one.
    pub fn job_page(&self, job_guid: JobGuid) -> Option<String> {
        self.url.as_deref().map(|url| stack::job_page_url(url, job_guid))
    }

    /// The command that fetches a job's results.
    pub fn results_command(&self, job_guid: JobGuid) -> String {
        format!("rowmill results {job_guid}{}", self.api_arguments)
    }
}

pub(super) fn from_environment(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.trim().is_empty())
}
