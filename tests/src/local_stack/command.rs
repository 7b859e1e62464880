//! The command `rowmill` as a process that runs to its end.

use tokio::process::Command;

use super::{LocalStack, PATIENCE, rowmill};

/// A run of the command that has ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs a command to its end.
pub async fn ran(mut command: Command) -> Ran {
    let ended = tokio::time::timeout(PATIENCE, command.kill_on_drop(true).output()).await;
    let output = ended.expect("it ends").expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl LocalStack {
    /// The command with these arguments, for the API of this stack.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = rowmill();
        command.args(arguments).args(["--url", self.api_url()]).env_remove("ROWMILL_TOKEN");
        command
    }

    /// Runs the command with these arguments to its end.
    pub async fn runs(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments)).await
    }
}
