//! The `rowmill` command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rowmill::command::control::Control;
use rowmill::command::{
    CommandError, again, audit, bench, block, control, datasets, dead_letters, delete, export, forget, gateway, job,
    jobs, login, open, preview, prune, redrive, results, retune, run, top, undo, upload, webhook_key, why, work,
    workers,
};
use rowmill::operate::{Deploy, Down, Status, Up};

/// Processes big files row by row on AWS or on a local stack, with counts that can be proved.
#[derive(Debug, Parser)]
#[command(name = "rowmill", version)]
struct Rowmill {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::RunArgs>),
    Export(export::ExportArgs),
    Again(again::AgainArgs),
    Prune(prune::PruneArgs),
    Undo(undo::UndoArgs),
    Datasets(datasets::DatasetsArgs),
    #[command(subcommand)]
    Delete(delete::Delete),
    Results(results::ResultsArgs),
    Upload(upload::UploadArgs),
    Preview(Box<preview::PreviewArgs>),
    Jobs(jobs::JobsArgs),
    Job(job::JobArgs),
    /// Stops a job. Finished items keep their results, the other items are skipped
    ///
    /// Exit codes: 0 if the job is being cancelled or already was, 1 if it had ended before.
    Cancel(control::CancelArgs),
    /// Pause a job. Chunks in progress are finished first, no other one begins
    ///
    /// Exit codes: 0 if the job is paused, 1 if it has ended or is about to.
    Pause(control::ControlArgs),
    /// Resume a paused job
    ///
    /// Exit codes: 0 if the job goes on, also if it was not paused; 1 if it has ended or is being stopped.
    Resume(control::ControlArgs),
    Retune(retune::RetuneArgs),
    Redrive(redrive::RedriveArgs),
    DeadLetters(dead_letters::DeadLettersArgs),
    Audit(audit::AuditArgs),
    Why(why::WhyArgs),
    Bench(bench::BenchArgs),
    Gateway(gateway::GatewayArgs),
    Open(open::OpenArgs),
    Login(login::LoginArgs),
    Logout(login::LogoutArgs),
    Top(top::TopArgs),
    Work(work::WorkArgs),
    Workers(workers::WorkersArgs),
    Block(block::BlockArgs),
    Unblock(block::UnblockArgs),
    Blocked(block::BlockedArgs),
    Forget(forget::ForgetArgs),
    WebhookKey(webhook_key::WebhookKeyArgs),
    Up(Up),
    Down(Down),
    Status(Status),
    Deploy(Deploy),
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Rowmill::parse().command {
        Command::Run(args) => run::execute(*args).await,
        Command::Export(args) => export::execute(args).await,
        Command::Again(args) => again::execute(args).await,
        Command::Prune(args) => prune::execute(args).await,
        Command::Undo(args) => undo::execute(args).await,
        Command::Datasets(args) => datasets::execute(args).await,
        Command::Delete(delete) => delete::execute(delete).await,
        Command::Results(args) => results::execute(args).await,
        Command::Upload(args) => upload::execute(args).await,
        Command::Preview(args) => preview::execute(*args).await,
        Command::Jobs(args) => jobs::execute(args).await,
        Command::Job(args) => job::execute(args).await,
        Command::Cancel(args) => control::execute_cancel(args).await,
        Command::Pause(args) => control::execute(Control::Pause, args).await,
        Command::Resume(args) => control::execute(Control::Resume, args).await,
        Command::Retune(args) => retune::execute(args).await,
        Command::Redrive(args) => redrive::execute(args).await,
        Command::DeadLetters(args) => dead_letters::execute(args).await,
        Command::Audit(args) => audit::execute(args).await,
        Command::Why(args) => why::execute(args).await,
        Command::Gateway(args) => gateway::execute(args).await,
        Command::Open(args) => open::execute(args).await,
        Command::Login(args) => login::execute(args).await,
        Command::Logout(args) => login::execute_logout(args).await,
        Command::Bench(args) => bench::execute(args).await,
        Command::Top(args) => top::execute(args).await,
        Command::Workers(args) => workers::execute(args).await,
        Command::Work(args) => work::execute(args).await,
        Command::Block(args) => block::execute(args).await,
        Command::Forget(args) => forget::execute(args).await,
        Command::Unblock(args) => block::execute_unblock(args).await,
        Command::Blocked(args) => block::execute_blocked(args).await,
        Command::WebhookKey(args) => webhook_key::execute(args).await,
        Command::Up(up) => up.run().await,
        Command::Down(down) => down.run().await,
        Command::Status(status) => status.run().await,
        Command::Deploy(deploy) => deploy.run().await,
    };
    result.unwrap_or_else(|error: CommandError| {
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
