//! The `rowmill` command.

use std::process::ExitCode;

use clap::Parser;
use rowmill::command::Command;

/// Processes big files row by row on AWS or on a local stack, with counts that can be proved.
#[derive(Debug, Parser)]
#[command(name = "rowmill", version)]
struct Rowmill {
    #[command(subcommand)]
    command: Command,
}

#[tokio::main]
async fn main() -> ExitCode {
    Rowmill::parse().command.execute().await.unwrap_or_else(|error| {
        eprintln!("error: {}", error.explain());
        error.exit_code()
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_and_option_has_a_help_text() {
        let mut rowmill = Rowmill::command();
        rowmill.build();
        for command in rowmill.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
        }
    }
}
