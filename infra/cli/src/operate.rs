//! The operator's commands: `up`, `down`, `status` and `deploy`.

use std::fmt::Write as _;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;

use clap::Args;

use crate::address::is_loopback;
use crate::api::ApiClient;
use crate::aws::{Aws, Target, parse_endpoint};
use crate::command::interrupt::{self, interrupted};
use crate::command::{CommandError, print, print_result};
use crate::deploy::{self, DeployError, Deployment, StackArgs, Values};
use crate::gateway::Gateway;
use crate::package::{self, Architecture, Compiler, Package};
use crate::progress::Progress;
use crate::stack::{self, Health, Record, Stack, StackOptions};
use crate::template::Template;

/// Warning for a stack on AWS with an API that anybody can call.
const OPEN_API: &str = "warning: the HTTP API is open: anybody who knows its URL can read and start jobs, as the owner `local`. \
    To require a token, deploy again with --parameter JwtIssuer=https://ISSUER --parameter JwtAudience=AUDIENCE. \
    To deploy no API, use --parameter WithHttpApi=false.";

/// Starts the embedded local stack, or updates a running one.
///
/// Stays in the foreground until Ctrl-C, then stops the stack. With --detach it returns when the API answers. Standard
/// output contains only the API's base URL. The data of a stack is lost when the stack stops.
#[derive(Debug, Args)]
pub struct Up {
    /// Leave the stack running in the background.
    #[arg(long)]
    detach: bool,
    /// Build the functions with cargo's release profile.
    #[arg(long)]
    release: bool,
    /// Set a parameter of template.yaml.
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parse_parameter)]
    parameters: Vec<(String, String)>,
}

/// Stops the embedded local stack. Its data is lost.
#[derive(Debug, Args)]
pub struct Down {}

/// Shows whether the embedded local stack runs, and where.
#[derive(Debug, Args)]
pub struct Status {
    /// Print the content of stack.json.
    #[arg(long)]
    json: bool,
}

/// Builds the functions and deploys template.yaml to AWS, or to an emulator with --endpoint-url.
#[derive(Debug, Args)]
pub struct Deploy {
    /// Name of the CloudFormation stack.
    #[arg(long, default_value = "rowmill")]
    stack_name: String,
    /// Deploy to the AWS emulator at this URL, with test credentials (LocalStack: http://localhost:4566).
    #[arg(long, value_name = "URL", value_parser = parse_endpoint, conflicts_with_all = ["region", "profile"])]
    endpoint_url: Option<String>,
    /// AWS region [default: from the environment].
    #[arg(long)]
    region: Option<String>,
    /// AWS profile [default: from the environment].
    #[arg(long)]
    profile: Option<String>,
    /// Processor architecture of the functions [default: the stack's; of a new one arm64 on AWS, this machine's for a
    /// local endpoint].
    #[arg(long)]
    architecture: Option<Architecture>,
    /// Use cargo-lambda for a local endpoint too: needed if its functions run in Lambda's image.
    #[arg(long)]
    cargo_lambda: bool,
    /// Build with the release profile. cargo-lambda always does.
    #[arg(long)]
    release: bool,
    /// Bucket for packages and template [default: rowmill-artifacts-ACCOUNT-REGION, created if missing].
    #[arg(long)]
    artifacts_bucket: Option<String>,
    #[command(flatten)]
    stack_args: StackArgs,
    /// Set a parameter of template.yaml, or a setting without a parameter of its own. Others keep their values.
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parse_parameter)]
    parameters: Vec<(String, String)>,
    /// Set a parameter or setting to the default of template.yaml.
    #[arg(long, value_name = "NAME")]
    reset: Vec<String>,
    /// Print the outputs as JSON.
    #[arg(long)]
    json: bool,
}

fn parse_parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

impl Up {
    pub async fn run(self) -> Result<ExitCode, CommandError> {
        let options = StackOptions {
            release: self.release,
            parameters: self.parameters,
            ..StackOptions::for_current_workspace()?
        };
        if self.detach {
            return unless_interrupted(async {
                print_api(&stack::ensure_up(&options).await?, options.progress)?;
                Ok(ExitCode::SUCCESS)
            })
            .await;
        }
        // An interruption during the start also stops the stack. One future waits for both: a second one would miss a
        // signal that came between them.
        let mut interruption = pin!(interrupted());
        let stack = tokio::select! {
            stack = Stack::up(&options) => stack?,
            () = &mut interruption => return Ok(interrupt::exit_code()),
        };
        hold(stack, &options, interruption).await
    }
}

/// Prints the address of the API, or says how to use a stack without one.
fn print_api(record: &Record, progress: Progress) -> Result<(), CommandError> {
    match &record.api_url {
        Some(url) => {
            progress.line(format_args!("The page is at {}", stack::page_url(url)));
            print(&format!("{url}\n"))
        }
        None => {
            progress
                .line("The stack has no HTTP API: commands invoke its functions. `rowmill gateway` serves the API and the page.");
            Ok(())
        }
    }
}

/// Keeps a stack running until Ctrl-C, which is the normal end and not a failure.
async fn hold(
    stack: Stack,
    options: &StackOptions,
    interruption: impl Future<Output = ()>,
) -> Result<ExitCode, CommandError> {
    print_api(stack.record(), options.progress)?;
    options.progress.line("The local stack is up. Ctrl-C stops it.");
    tokio::select! {
        () = interruption => {}
        () = stack.ended() => return Err(CommandError::StackEnded(options.state_dir.join("emulator.log"))),
    }
    options.progress.line("Stopping the local stack");
    stack.down().await?;
    Ok(ExitCode::SUCCESS)
}

impl Down {
    pub async fn run(self) -> Result<ExitCode, CommandError> {
        let options = StackOptions::for_current_workspace()?;
        let was_running = stack::down(&options.state_dir).await?;
        let said = if was_running {
            "The local stack is stopped, its data is lost."
        } else {
            "The local stack is not running."
        };
        Progress::Shown.line(said);
        Ok(ExitCode::SUCCESS)
    }
}

impl Status {
    /// Runs the command. Exit code 1 if the stack does not run or does not answer.
    pub async fn run(self) -> Result<ExitCode, CommandError> {
        let options = StackOptions::for_current_workspace()?;
        let (record, health) = stack::running(&options.state_dir).await?;
        print_result(self.json, &record, || status_text(&record, health, &stack::logs_dir(&options)))?;
        Ok(if health == Health::Answering { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn status_text(record: &Record, health: Health, logs: &Path) -> String {
    let state = if health == Health::Answering { "running" } else { "not answering" };
    let api = record.api_url.as_deref().unwrap_or("none");
    let (endpoint, pid, logs) = (&record.endpoint, record.pid, logs.display());
    // The name in the stack's own URL of the API does not resolve outside of the emulator.
    let mut outputs = record.outputs.clone();
    outputs.remove("ApiUrl");
    format!("state      {state}\nAPI        {api}\nendpoint   {endpoint}\nprocess    {pid}\nlogs       {logs}\n")
        + &outputs_text(&outputs)
}

fn outputs_text(outputs: &Values) -> String {
    let width = outputs.keys().map(String::len).max().unwrap_or(0);
    outputs.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<width$}  {value}");
        text
    })
}

impl Deploy {
    pub async fn run(self) -> Result<ExitCode, CommandError> {
        unless_interrupted(self.deploy()).await
    }

    async fn deploy(self) -> Result<ExitCode, CommandError> {
        let options = StackOptions::for_current_workspace()?;
        let template = Template::load(&options.workspace.join("template.yaml")).map_err(DeployError::from)?;
        let mut parameters = self.given(&template)?;
        deploy::check_parameters(&template, &parameters)?;
        self.stack_args.check().map_err(DeployError::from)?;
        let packages: Vec<String> =
            template.functions().map_err(DeployError::from)?.into_iter().map(|f| f.package).collect();
        // A missing region must be found before the build, which takes minutes.
        let aws = Aws::connect(self.target()).await.map_err(DeployError::from)?;
        let kept = deploy::preflight(&aws, &self.stack_name, &template, &parameters, Progress::Shown).await?;
        let compiler = self.compiler(&mut parameters, &kept);
        let binaries = package::build(&options.workspace, &packages, compiler).await?;
        let packages = binaries.iter().map(|binary| Package::of(binary, !aws.is_emulator()));
        let deployment = Deployment {
            stack_name: &self.stack_name,
            template,
            packages: packages.collect::<Result<Vec<_>, _>>()?,
            parameters,
            stack_args: self.stack_args.clone(),
            artifacts_bucket: self.artifacts_bucket.clone(),
        };
        let deployed = deploy::deploy(&aws, deployment, Progress::Shown).await?;
        let http_api = deployed.http_api()?;
        self.first_answer(&aws, http_api).await?;
        if !deployed.changed {
            Progress::Shown.line("The stack is up to date, nothing was changed.");
        }
        if !aws.is_emulator() && deployed.is_open() {
            Progress::Shown.line(OPEN_API);
        }
        print_result(self.json, &deployed.outputs, || outputs_text(&deployed.outputs))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Waits until the stack answers. CloudFormation waits for functions on AWS, and an emulator may not.
    async fn first_answer(&self, aws: &Aws, http_api: Option<&str>) -> Result<(), DeployError> {
        let api = match http_api {
            // The name in an emulator's URL may not resolve on this machine.
            _ if aws.is_emulator() => ApiClient::invoking(Gateway::connect(&self.target(), &self.stack_name).await),
            Some(url) => ApiClient::new(url, None).map_err(DeployError::Unhealthy)?,
            None => return Ok(()),
        };
        deploy::first_answer(api).await.map_err(DeployError::Unhealthy)
    }

    fn target(&self) -> Target {
        match &self.endpoint_url {
            Some(endpoint_url) => Target::Emulator { endpoint_url: endpoint_url.clone() },
            None => Target::Aws { region: self.region.clone(), profile: self.profile.clone() },
        }
    }

    /// The defaults that `--reset` asks for, and the given parameters.
    fn given(&self, template: &Template) -> Result<Values, DeployError> {
        let default = |name: &String| {
            let default = template.default_of(name).map(|default| (name.clone(), default));
            default.ok_or_else(|| DeployError::UnknownParameter(name.clone()))
        };
        self.reset.iter().map(default).chain(self.parameters.iter().cloned().map(Ok)).collect()
    }

    /// Chooses the compiler, and sets the parameter `Architecture` accordingly.
    fn compiler(&self, parameters: &mut Values, kept: &Values) -> Compiler {
        let here = Architecture::of_this_machine();
        let is_local = self.endpoint_url.as_deref().is_some_and(is_on_this_machine);
        let named = parameters.get("Architecture").or_else(|| kept.get("Architecture"));
        let named = named.and_then(|name| Architecture::named(name));
        let chosen = self.architecture.or(named).or(if is_local { here } else { None });
        let architecture = chosen.unwrap_or(Architecture::Arm64);
        parameters.insert("Architecture".to_owned(), architecture.name().to_owned());
        if is_local && !self.cargo_lambda && here == Some(architecture) {
            Compiler::Cargo { release: self.release }
        } else {
            Compiler::CargoLambda(architecture)
        }
    }
}

fn is_on_this_machine(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| url.host_str().is_some_and(is_loopback))
}

/// Runs `work` until Ctrl-C or SIGTERM. What it has started ends when it is dropped.
async fn unless_interrupted<W>(work: W) -> Result<ExitCode, CommandError>
where
    W: Future<Output = Result<ExitCode, CommandError>>,
{
    tokio::select! {
        done = work => done,
        () = interrupted() => Ok(interrupt::exit_code()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        deploy: Deploy,
    }

    fn parsed(arguments: &[&str]) -> Deploy {
        Line::try_parse_from(["deploy"].iter().chain(arguments)).unwrap().deploy
    }

    fn compiler_of(arguments: &[&str]) -> (Compiler, String) {
        compiler_for(arguments, &Values::new())
    }

    fn compiler_for(arguments: &[&str], kept: &Values) -> (Compiler, String) {
        let deploy = parsed(arguments);
        let template = Template::parse("Parameters: {Architecture: {Default: arm64}}").unwrap();
        let mut parameters = deploy.given(&template).unwrap();
        let compiler = deploy.compiler(&mut parameters, kept);
        (compiler, parameters["Architecture"].clone())
    }

    #[test]
    fn a_stack_keeps_its_architecture_unless_another_one_is_asked_for() {
        let kept = Values::from([("Architecture".to_owned(), "x86_64".to_owned())]);
        let (arm64, x86_64) = (Compiler::CargoLambda(Architecture::Arm64), Compiler::CargoLambda(Architecture::X86_64));
        assert_eq!(compiler_for(&[], &kept), (x86_64, "x86_64".into()));
        for asks in [["--architecture", "arm64"], ["--parameter", "Architecture=arm64"], ["--reset", "Architecture"]] {
            assert_eq!(compiler_for(&asks, &kept), (arm64, "arm64".into()), "{asks:?}");
        }
    }

    #[test]
    fn a_parameter_is_reset_to_the_default_unless_it_is_given_too() {
        let template = Template::parse("Parameters: {A: {Default: 1}, B: {Default: \"\"}}").unwrap();
        let given = parsed(&["--reset", "A", "--reset", "B", "--parameter", "A=3"]).given(&template).unwrap();
        assert_eq!(given, [("A", "3"), ("B", "")].map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let error = parsed(&["--reset", "C"]).given(&template).unwrap_err().to_string();
        assert_eq!(error, "the template has no parameter C");
    }

    #[test]
    fn the_default_for_aws_is_arm64_built_by_cargo_lambda() {
        assert_eq!(compiler_of(&[]), (Compiler::CargoLambda(Architecture::Arm64), "arm64".into()));
        let asked = compiler_of(&["--parameter", "Architecture=x86_64"]);
        assert_eq!(asked, (Compiler::CargoLambda(Architecture::X86_64), "x86_64".into()));
    }

    #[test]
    fn the_default_for_a_local_endpoint_is_the_processor_of_this_machine_built_by_cargo() {
        let here = Architecture::of_this_machine().unwrap();
        for url in ["http://localhost:4566", "http://127.0.0.1:1", "http://[::1]:1"] {
            let plain = (Compiler::Cargo { release: false }, here.name().to_owned());
            assert_eq!(compiler_of(&["--endpoint-url", url]), plain);
        }
        let image = compiler_of(&["--endpoint-url", "http://localhost:4566", "--cargo-lambda"]);
        assert_eq!(image.0, Compiler::CargoLambda(here));
    }

    #[test]
    fn a_parameter_is_a_name_and_any_value() {
        assert_eq!(parse_parameter("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert_eq!(parse_parameter("A="), Ok(("A".into(), String::new())));
        assert!(parse_parameter("A").is_err() && parse_parameter("=b").is_err());
    }
}
