//! The emulator's private Python environment. It is created once, and again when the pinned requirements change.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rowmill_core::model::sha256::sha256_hex;
use tokio::process::Command;

use super::FileLock;
use crate::progress::Progress;

const PYTHON_MIN: (u32, u32) = (3, 10);

/// Timeout of an installation step, for slow networks.
const INSTALL_LIMIT: Duration = Duration::from_secs(600);

/// Error of the installation.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    #[error("the local stack needs Python 3.10 or newer, and there is no python3 on the PATH")]
    NoPython,
    #[error("the local stack needs Python 3.10 or newer, and python3 is {0}")]
    OldPython(String),
    #[error("cannot {step}:\n{output}{hint}")]
    Step {
        /// The step, as a verb with its object.
        step: &'static str,
        output: String,
        hint: &'static str,
    },
    /// A step of the installation exceeded its timeout.
    #[error("cannot {step}: not finished after {} s", INSTALL_LIMIT.as_secs())]
    TooSlow { step: &'static str },
    /// A file of the environment cannot be used.
    #[error("cannot use {}", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Creates the environment if necessary and returns its Python. All stacks of a workspace share it.
pub async fn install(workspace: &Path, progress: Progress) -> Result<PathBuf, EmulatorError> {
    let requirements = workspace.join("infra/local/requirements.txt");
    let folder = super::target_dir(workspace);
    let file_error = |path: &Path| {
        let path = path.to_owned();
        |source| EmulatorError::File { path, source }
    };
    let pinned = std::fs::read(&requirements).map_err(file_error(&requirements))?;
    std::fs::create_dir_all(&folder).map_err(file_error(&folder))?;
    // One installation at a time: tests of one workspace start stacks in parallel.
    let lock_path = folder.join("venv.lock");
    let lock = FileLock::take(&lock_path, progress, "installs the emulator").await.map_err(file_error(&lock_path))?;

    let venv = folder.join("venv");
    let python = venv.join("bin/python");
    let stamp_path = venv.join("requirements.sha256");
    let stamp = sha256_hex(&pinned) + "\n";
    // The stamp is written last, so that an interrupted installation is repeated.
    if std::fs::read_to_string(&stamp_path).is_ok_and(|found| found == stamp) && python.is_file() {
        return Ok(python);
    }
    check_python().await?;
    progress.line("Installing the emulator (once)");
    if venv.exists() {
        std::fs::remove_dir_all(&venv).map_err(file_error(&venv))?;
    }
    let mut create = Command::new("python3");
    create.args(["-m", "venv"]).arg(&venv);
    let hint = "\non Debian and Ubuntu: apt install python3-venv";
    run(create, "create a Python virtual environment", hint).await?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    // Most of the emulator's 236,000 lines are never imported: Python compiles what is.
    pip.args(["--no-compile", "--require-hashes", "--requirement"]).arg(&requirements);
    run(pip, "install the emulator's packages", "\ncheck that the Python package index can be reached").await?;
    std::fs::write(&stamp_path, stamp).map_err(file_error(&stamp_path))?;
    drop(lock);
    Ok(python)
}

async fn check_python() -> Result<(), EmulatorError> {
    let mut command = Command::new("python3");
    command.args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).stdin(Stdio::null());
    let output = command.output().await.map_err(|_| EmulatorError::NoPython)?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match parse_version(&version) {
        Some(found) if found >= PYTHON_MIN => Ok(()),
        Some(_) => Err(EmulatorError::OldPython(version)),
        None => Err(EmulatorError::NoPython),
    }
}

fn parse_version(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

async fn run(mut command: Command, step: &'static str, hint: &'static str) -> Result<(), EmulatorError> {
    // An active environment of the user must not receive the packages.
    for name in ["PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(INSTALL_LIMIT, command.output()).await;
    let output = output.map_err(|_| EmulatorError::TooSlow { step })?;
    let failed = |output: String| EmulatorError::Step { step, output, hint };
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(failed(String::from_utf8_lossy(&said).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_and_not_by_text() {
        assert!(parse_version("3.9").unwrap() < PYTHON_MIN);
        assert!(parse_version("3.10").unwrap() >= PYTHON_MIN);
        assert!(parse_version("3.14").unwrap() >= PYTHON_MIN);
        assert_eq!(parse_version("Python"), None);
    }
}
