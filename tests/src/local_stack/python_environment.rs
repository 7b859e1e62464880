//! Programs in Python that a test runs beside the stack.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

/// The folder with the programs of a virtual environment. Installs these requirements into it, if they are not there in
/// the pinned versions.
///
/// # Panics
/// With the output of the installation, if it fails.
pub async fn python_environment(folder: &Path, requirements: &Path) -> PathBuf {
    let (stamp, pinned) = (folder.join("requirements.txt"), std::fs::read(requirements).expect("a file"));
    // The stamp is written last, so that an interrupted installation is repeated.
    if std::fs::read(&stamp).ok().as_ref() != Some(&pinned) {
        std::fs::create_dir_all(folder).expect("a folder");
        let mut create = Command::new("python3");
        create.args(["-m", "venv", "--clear"]).arg(folder);
        let mut install = Command::new(folder.join("bin/python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
        install.args(["--require-hashes", "--requirement"]).arg(requirements);
        for command in [create, install] {
            let (succeeded, text) = output(command).await;
            assert!(succeeded, "{text}");
        }
        std::fs::write(&stamp, pinned).expect("a file");
    }
    folder.join("bin")
}

/// Runs a program of such an environment; whether it succeeded, and everything that it printed.
///
/// # Panics
/// If it cannot be run.
pub async fn output(mut command: Command) -> (bool, String) {
    alone(&mut command);
    let output = command.stdin(Stdio::null()).output().await.expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Keeps another environment of the user out of it, and ends it with the test.
pub fn alone(command: &mut Command) {
    for name in ["PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"] {
        command.env_remove(name);
    }
    command.kill_on_drop(true);
}
