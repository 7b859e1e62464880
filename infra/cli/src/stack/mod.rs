//! The embedded local stack: the pinned emulator in its own process, with `template.yaml` deployed to it.
//!
//! A stack has a state folder (`target/rowmill` by default). `stack.json` contains its URL and its process id, `logs/`
//! one file per function, `emulator.log` the log of the emulator. Tables, queues and files are lost when it ends.

mod emulator;
mod options;
mod process;
mod record;

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rowmill_core::model::ids::JobGuid;

use crate::api::{ApiClient, ApiError};
use crate::aws::{Aws, Target};
use crate::deploy::{self, DeployError, Deployment, StackArgs};
use crate::gateway::Gateway;
use crate::package::{self, LocalPackages, Package, PackageError};
use crate::progress::Progress;
use crate::template::{Template, TemplateError};
pub use emulator::{EmulatorError, install as install_emulator};
pub use options::{FunctionsEndpoint, StackOptions};
use process::{EmulatorProcess, Launch};
pub use process::{Health, ProcessError};
pub use record::{Record, RecordError};

/// Name of the local stack. Its functions are named `rowmill-upload`, …
pub const STACK_NAME: &str = "rowmill";

/// A running stack.
///
/// A stack started by [`Stack::up`] stops when this value is dropped, and when this process ends in any way.
#[derive(Debug)]
pub struct Stack {
    record: Record,
    record_path: PathBuf,
    launched: Option<EmulatorProcess>,
}

/// Error of starting, finding or stopping the stack.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// The current folder is not in a checkout of Rowmill.
    #[error("no template.yaml with infra/local beside it here or in a folder above: run this inside the repository")]
    NoWorkspace,
    #[error("the local stack runs on arm64 and x86_64, and this machine is {0}")]
    UnknownArchitecture(&'static str),
    /// An executable is given for an unknown function.
    #[error("the template has no function {0}")]
    UnknownFunction(String),
    /// A file or folder of the state cannot be created.
    #[error("cannot write to {}", .path.display())]
    State {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// The emulator does not start or does not stop.
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error(transparent)]
    Deploy(#[from] DeployError),
    /// Everything is deployed, but the API does not work.
    #[error("the API does not work: {error}; see the logs in {}", .logs.display())]
    Unhealthy {
        /// Its answer, or the error.
        #[source]
        error: ApiError,
        logs: PathBuf,
    },
    #[error("the local stack is not running; `rowmill up` starts it")]
    NotRunning,
}

/// Where the emulator serves APIs by path.
const EXECUTE_API: &str = "/_aws/execute-api";

/// The parameter with the address below which WebSocket APIs are served.
const LIVE_ENDPOINT: &str = "LiveEndpoint";

/// Starts or updates the stack, leaves it running, and returns what other commands know of it. Progress goes to
/// standard error.
///
/// # Errors
///
/// See [`StackError`]. A stack that this call has started is stopped again.
pub async fn ensure_up(options: &StackOptions) -> Result<Record, StackError> {
    let mut stack = Stack::up(options).await?;
    let record = stack.record().clone();
    stack.leave_running();
    Ok(record)
}

/// The running stack of a state folder.
///
/// # Errors
///
/// [`StackError::NotRunning`] if there is none; [`StackError::Record`] if `stack.json` is damaged.
pub async fn running(state_dir: &Path) -> Result<(Record, Health), StackError> {
    let record = Record::read(&record_path(state_dir))?.ok_or(StackError::NotRunning)?;
    match process::health(&record).await {
        Health::Gone => Err(StackError::NotRunning),
        health => Ok((record, health)),
    }
}

/// Stops the stack of a state folder. False if none was running.
pub async fn down(state_dir: &Path) -> Result<bool, StackError> {
    let path = record_path(state_dir);
    let Some(record) = Record::read(&path)? else { return Ok(false) };
    let was_running = process::health(&record).await != Health::Gone;
    if was_running {
        tokio::task::spawn_blocking(move || process::stop(&record)).await.expect("stopping does not panic")?;
    }
    Record::remove(&path)?;
    process::remove_scratch(state_dir);
    Ok(was_running)
}

/// A client of the stack's API: over HTTP, or by invoking its functions if it has no HTTP API. `None` before the first
/// deployment.
///
/// The local stack has no authorizer, so it never gets a token that is meant for another API.
pub async fn client(record: &Record) -> Result<Option<ApiClient>, ApiError> {
    if let Some(url) = &record.api_url {
        return ApiClient::new(url, None).map(Some);
    }
    if record.outputs.is_empty() {
        return Ok(None);
    }
    Ok(Some(ApiClient::invoking(gateway(record).await)))
}

/// The address of the page of an API. Its own addresses are relative, so it needs the slash.
pub fn page_url(api_url: &str) -> String {
    format!("{}/", api_url.trim_end_matches('/'))
}

/// The address of a job on the page of an API.
pub fn job_page_url(api_url: &str, job: JobGuid) -> String {
    format!("{}#/jobs/{job}", page_url(api_url))
}

pub async fn gateway(record: &Record) -> Gateway {
    let target = Target::Emulator { endpoint_url: record.endpoint.clone() };
    Gateway::connect(&target, STACK_NAME).await
}

/// Folder of the functions' logs, one `<function>.log` each (`process-items.log`, …).
pub fn logs_dir(options: &StackOptions) -> PathBuf {
    options.state_dir.join("logs")
}

impl Stack {
    /// Builds the functions, starts the emulator if it does not run, and deploys the template to it.
    ///
    /// The stack stops when the returned value is dropped, unless it ran before: then it is updated and stays up.
    pub async fn up(options: &StackOptions) -> Result<Self, StackError> {
        make_dir(&options.state_dir)?;
        // One `up` at a time in a state folder. A second one waits and then finds the stack running.
        let lock_path = options.state_dir.join("up.lock");
        let lock = FileLock::take(&lock_path, options.progress, "starts or updates the local stack").await;
        let _lock = lock.map_err(|source| StackError::State { path: lock_path, source })?;
        let template = Template::load(&options.template)?;
        deploy::check_parameters(&template, &options.template_parameters()?)?;
        let functions = template.functions()?.into_iter().map(|function| function.package).collect();
        let (to_build, given) = options.to_build(functions)?;

        let build = async {
            options.progress.line(format_args!("Building {} functions", to_build.len()));
            Ok::<_, StackError>(package::build_for_this_machine(&options.workspace, &to_build, options.release).await?)
        };
        let (built, mut stack) = tokio::try_join!(build, Self::running_or_started(options))?;
        let copies = process::scratch_dir(&options.state_dir).join("functions");
        let packages = LocalPackages::of(built.iter().chain(&given), &copies)?;
        stack.deploy(options, template, packages.packages.clone()).await?;
        packages.remove_earlier();
        Ok(stack)
    }

    async fn running_or_started(options: &StackOptions) -> Result<Self, StackError> {
        let record_path = record_path(&options.state_dir);
        if let Some(record) = Record::read(&record_path)? {
            if process::health(&record).await == Health::Answering {
                return Ok(Self { record, record_path, launched: None });
            }
            // It hangs or has ended. Its state is useless.
            down(&options.state_dir).await?;
        }
        let python = emulator::install(&options.workspace, options.progress).await?;
        options.progress.line("Starting the local stack");
        let launch = Launch {
            python: &python,
            launcher: &launcher(&options.workspace),
            state_dir: &options.state_dir,
            stack_name: STACK_NAME,
            functions_endpoint: options.functions_endpoint.as_ref(),
        };
        let launched = process::launch(&launch).await?;
        let record = launched.record();
        record.write(&record_path)?;
        Ok(Self { record, record_path, launched: Some(launched) })
    }

    async fn deploy(
        &mut self,
        options: &StackOptions,
        template: Template,
        packages: Vec<Package>,
    ) -> Result<(), StackError> {
        let target = Target::Emulator { endpoint_url: self.record.endpoint.clone() };
        let aws = Aws::connect(target).await.map_err(DeployError::from)?;
        let mut parameters = options.template_parameters()?;
        if template.has_parameter(LIVE_ENDPOINT) {
            let below = format!("{}{EXECUTE_API}", self.record.endpoint.replacen("http", "ws", 1));
            parameters.entry(LIVE_ENDPOINT.to_owned()).or_insert(below);
        }
        let deployment = Deployment {
            stack_name: STACK_NAME,
            template,
            packages,
            parameters,
            stack_args: StackArgs::default(),
            artifacts_bucket: None,
        };
        let deployed = deploy::deploy(&aws, deployment, options.progress).await?;
        // The emulator serves HTTP APIs by path too. That works without DNS for *.localhost.
        let api_url = |api_id| format!("{}{EXECUTE_API}/{api_id}", self.record.endpoint);
        self.record.api_url = deployed.outputs.get("ApiId").map(api_url);
        self.record.outputs = deployed.outputs;
        let unhealthy = |error| StackError::Unhealthy { error, logs: logs_dir(options) };
        let api = client(&self.record).await.map_err(unhealthy)?.expect("the stack is deployed");
        deploy::first_answer(api).await.map_err(unhealthy)?;
        self.record.write(&self.record_path)?;
        Ok(())
    }

    /// The record of the stack for other commands.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The API's base URL; empty if the stack has no HTTP API.
    pub fn api_url(&self) -> &str {
        self.record.api_url.as_deref().unwrap_or_default()
    }

    /// Base URL of the emulated AWS services.
    pub fn endpoint(&self) -> &str {
        &self.record.endpoint
    }

    /// The template's outputs: names of tables, URLs of queues, …
    pub fn outputs(&self) -> &BTreeMap<String, String> {
        &self.record.outputs
    }

    /// Process id of the emulator.
    pub fn pid(&self) -> i32 {
        self.record.pid
    }

    /// Keeps the stack running after this value and this process.
    pub fn leave_running(&mut self) {
        if let Some(launched) = self.launched.take() {
            launched.leave_running();
        }
    }

    /// Returns when the emulator has ended unexpectedly.
    pub async fn ended(&self) {
        while process::health(&self.record).await != Health::Gone {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Stops the stack, also if another process started it.
    pub async fn down(mut self) -> Result<(), StackError> {
        let state_dir = self.record_path.parent().expect("the record lies in the state folder").to_owned();
        if let Some(launched) = self.launched.take() {
            tokio::task::spawn_blocking(move || drop(launched)).await.expect("stopping does not panic");
        }
        down(&state_dir).await?;
        Ok(())
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if let Some(launched) = self.launched.take() {
            drop(launched);
            // If it stays, the next command finds that its process is gone.
            let _ = Record::remove(&self.record_path);
        }
    }
}

/// An exclusive lock on a file, held until the value is dropped. Others wait for it.
struct FileLock(#[expect(dead_code, reason = "held, not read")] std::fs::File);

impl FileLock {
    /// Waits for the lock, and says so: another command `does` the same. Creates the file if necessary.
    async fn take(path: &Path, progress: Progress, does: &'static str) -> std::io::Result<Self> {
        let file = std::fs::File::create(path)?;
        let mut is_said = false;
        // No thread waits in the lock: it would keep an interrupted command from ending.
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if !is_said => {
                    progress.line(format_args!("Waiting for another command that {does}"));
                    is_said = true;
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

fn make_dir(path: &Path) -> Result<(), StackError> {
    std::fs::create_dir_all(path).map_err(|source| StackError::State { path: path.to_owned(), source })
}

fn record_path(state_dir: &Path) -> PathBuf {
    state_dir.join("stack.json")
}

fn launcher(workspace: &Path) -> PathBuf {
    workspace.join("infra/local/launcher.py")
}

fn target_dir(workspace: &Path) -> PathBuf {
    workspace.join("target/rowmill")
}
