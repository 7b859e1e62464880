//! Compiles the functions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::compile_progress::{CompileProgress, LINE_INTERVAL};
use super::{Architecture, Binary, Compiler, PackageError, lambda_image};

/// Longest wait for `cargo tree`. Without an answer the lines show no total.
const TREE_TIMEOUT: Duration = Duration::from_secs(10);

/// Builds the named binaries.
///
/// Cargo's messages and its progress bar go to standard error. If standard error is not a terminal, cargo draws no bar,
/// and a line with the number of compiled crates comes every 15 seconds instead.
pub async fn build(workspace: &Path, packages: &[String], compiler: Compiler) -> Result<Vec<Binary>, PackageError> {
    if packages.is_empty() {
        // Without a `--bin`, cargo builds everything.
        return Ok(Vec::new());
    }
    let found = match compiler {
        Compiler::Cargo { release } => build_here(workspace, packages, release).await?,
        Compiler::CargoLambda(architecture) => build_for_lambda(workspace, packages, architecture).await?,
    };
    let binary = |package: &String| match found.get(package) {
        Some(path) => Ok(Binary { package: package.clone(), path: path.clone() }),
        None => Err(PackageError::Missing(package.clone())),
    };
    let binaries = packages.iter().map(binary).collect::<Result<Vec<_>, _>>()?;
    if let Compiler::CargoLambda(architecture) = compiler {
        for binary in &binaries {
            let unfit = |source| PackageError::Unfit { package: binary.package.clone(), source };
            lambda_image::check(&binary.read()?, architecture).map_err(unfit)?;
        }
    }
    Ok(binaries)
}

/// The executable with all functions of this repository.
const ALL_FUNCTIONS: &str = "all-functions";

/// Builds the named functions for this machine: all in one executable, which is linked once. Those that it does not have
/// are built as [`build`] does.
pub async fn build_for_this_machine(
    workspace: &Path,
    functions: &[String],
    release: bool,
) -> Result<Vec<Binary>, PackageError> {
    if functions.is_empty() {
        return Ok(Vec::new());
    }
    let compiler = Compiler::Cargo { release };
    let all = build(workspace, &[ALL_FUNCTIONS.to_owned()], compiler).await?.remove(0).path;
    let unlisted = |why: String| PackageError::Unlisted { path: all.clone(), why };
    let list = Command::new(&all).stdin(Stdio::null()).output().await.map_err(|error| unlisted(error.to_string()))?;
    if !list.status.success() {
        return Err(unlisted(list.status.to_string()));
    }
    let list = String::from_utf8_lossy(&list.stdout);
    let in_all = |name: &String| list.lines().any(|function| function == name);
    let (has, others) = functions.iter().cloned().partition::<Vec<_>, _>(in_all);
    let mut binaries = build(workspace, &others, compiler).await?;
    binaries.extend(has.into_iter().map(|package| Binary { package, path: all.clone() }));
    Ok(binaries)
}

/// Arguments that select the binaries.
///
/// `--bin` from the root of the workspace, not `--package`: cargo then compiles dependencies with the features that the
/// whole workspace needs, and the AWS SDK is not compiled a second time with other features.
fn bins(packages: &[String]) -> impl Iterator<Item = &str> {
    packages.iter().flat_map(|package| ["--bin", package.as_str()])
}

/// A call of cargo at the root of the workspace. If cargo started this program, the same cargo is used.
pub fn cargo(workspace: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(workspace).stdin(Stdio::null()).kill_on_drop(true);
    forget_outer_cargo(&mut command);
    command
}

/// Keeps the variables of an outer cargo from a command that calls cargo.
pub fn forget_outer_cargo(command: &mut Command) {
    // An outer `cargo run` or `cargo test` sets variables that describe this package. Build scripts that watch those
    // (ring's does) would run again whenever the outer command changes, and everything that depends on them would be
    // recompiled.
    for (name, _) in std::env::vars_os() {
        let of_outer = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
        if of_outer.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
}

/// The fields used here of cargo's message about a finished target.
#[derive(Deserialize)]
struct Artifact {
    package_id: String,
    target: ArtifactTarget,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct ArtifactTarget {
    name: String,
}

async fn build_here(
    workspace: &Path,
    packages: &[String],
    release: bool,
) -> Result<BTreeMap<String, PathBuf>, PackageError> {
    let mut command = cargo(workspace);
    command.args(["build", "--message-format=json-render-diagnostics"]).args(bins(packages));
    if release {
        command.arg("--release");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(PackageError::NoCargo)?;
    let stdout = child.stdout.take().expect("standard output is piped");
    let found = read_artifacts(stdout, workspace, packages).await;
    check_status(child.wait().await)?;
    Ok(found)
}

/// Reads cargo's messages to the end: the executables by name. Prints progress lines if they are wanted.
async fn read_artifacts(stdout: ChildStdout, workspace: &Path, packages: &[String]) -> BTreeMap<String, PathBuf> {
    let mut lines = BufReader::new(stdout).lines();
    let mut found = BTreeMap::new();
    let mut progress = CompileProgress::start();
    let mut tick = interval_at(Instant::now() + LINE_INTERVAL, LINE_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            line = lines.next_line() => {
                // A read error ends the listing too; cargo's exit status tells whether the build succeeded.
                let Ok(Some(line)) = line else { return found };
                if let Ok(Artifact { package_id, target, executable }) = serde_json::from_str(&line) {
                    progress.finish(package_id);
                    found.extend(executable.map(|path| (target.name, path)));
                }
            }
            _ = tick.tick(), if CompileProgress::is_wanted() => {
                if progress.needs_total() {
                    progress.set_total_from_tree(&crate_tree(workspace, packages).await);
                }
                eprintln!("{}", progress.line());
            }
        }
    }
}

/// The crates that the packages are built from, one a line, some of them several times. Empty if cargo cannot tell.
async fn crate_tree(workspace: &Path, packages: &[String]) -> String {
    let mut command = cargo(workspace);
    command.args(["tree", "--offline", "--locked", "--prefix", "none", "--edges", "normal,build"]);
    command.args(packages.iter().flat_map(|package| ["--package", package.as_str()]));
    match timeout(TREE_TIMEOUT, command.stderr(Stdio::null()).output()).await {
        Ok(Ok(output)) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => String::new(),
    }
}

async fn build_for_lambda(
    workspace: &Path,
    packages: &[String],
    architecture: Architecture,
) -> Result<BTreeMap<String, PathBuf>, PackageError> {
    let probe = cargo(workspace)
        .args(["lambda", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await
        .map_err(PackageError::NoCargo)?;
    if !probe.success() {
        return Err(PackageError::NoCargoLambda);
    }
    let processor = format!("--{}", architecture.name().replace('_', "-"));
    // A fixed folder: the user's own target folder setting must not move the result.
    let output = workspace.join("target/lambda").join(architecture.name());
    let mut command = cargo(workspace);
    command.args(["lambda", "build", "--release", &processor, "--lambda-dir"]).arg(&output).args(bins(packages));
    // Standard output carries this command's result, so the build's output goes to standard error.
    check_status(command.stdout(std::io::stderr()).status().await)?;
    Ok(packages.iter().map(|package| (package.clone(), output.join(package).join("bootstrap"))).collect())
}

fn check_status(status: std::io::Result<ExitStatus>) -> Result<(), PackageError> {
    let status = status.map_err(PackageError::NoCargo)?;
    if status.success() { Ok(()) } else { Err(PackageError::Build(status)) }
}
