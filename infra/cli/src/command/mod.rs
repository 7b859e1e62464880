//! The commands: a module each, with its arguments and an `execute` that returns the exit code, and a line in the list
//! below.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | success; for a followed job: every item succeeded |
//! | 1 | the job failed or was cancelled as a whole, or this command failed |
//! | 2 | wrong usage |
//! | 3 | the job completed, but some items failed; for `work`: the command failed at some task |
//! | 130 | interrupted; the job goes on, unless this command started its local stack |

pub mod again;
pub mod audit;
pub mod bench;
pub mod block;
pub mod control;
pub mod datasets;
pub mod dead_letters;
pub mod delete;
pub mod export;
pub mod forget;
pub mod gateway;
pub mod job;
pub mod jobs;
pub mod login;
pub mod open;
pub mod preview;
pub mod prune;
pub mod redrive;
pub mod results;
pub mod retune;
pub mod run;
pub mod top;
pub mod undo;
pub mod upload;
pub mod webhook_key;
pub mod why;
pub mod work;
pub mod workers;

mod arguments;
mod connection;
mod deployed;
mod error;
pub(crate) mod interrupt;
mod lifecycle;
mod limits;
mod operator;
mod params;
mod show;

use std::process::ExitCode;

use clap::Subcommand;

use crate::operate::{Deploy, Down, Status, Up};
use arguments::{PatienceArgs, parse_span, word_of, word_parser};
use control::Control;
pub use error::CommandError;
pub(crate) use error::explain;
use show::{first_of, print_counts, print_hints, print_json, print_list, show_job};
pub(crate) use show::{print, print_result};

/// Declares the commands: what clap reads, and what executes each.
macro_rules! commands {
    ($($(#[$attribute:meta])* $name:ident($arguments:ident: $type:ty) => $call:expr,)+) => {
        #[derive(Debug, Subcommand)]
        pub enum Command {
            $($(#[$attribute])* $name($type),)+
        }

        impl Command {
            /// # Errors
            /// What the command tells the user of its failure.
            pub async fn execute(self) -> Result<ExitCode, CommandError> {
                match self {
                    $(Self::$name($arguments) => $call.await,)+
                }
            }
        }
    };
}

commands! {
    Run(args: Box<run::RunArgs>) => run::execute(*args),
    Export(args: export::ExportArgs) => export::execute(args),
    Again(args: again::AgainArgs) => again::execute(args),
    Prune(args: prune::PruneArgs) => prune::execute(args),
    Undo(args: undo::UndoArgs) => undo::execute(args),
    Datasets(args: datasets::DatasetsArgs) => datasets::execute(args),
    #[command(subcommand)]
    Delete(args: delete::Delete) => delete::execute(args),
    Results(args: results::ResultsArgs) => results::execute(args),
    Upload(args: upload::UploadArgs) => upload::execute(args),
    Preview(args: Box<preview::PreviewArgs>) => preview::execute(*args),
    Jobs(args: jobs::JobsArgs) => jobs::execute(args),
    Job(args: job::JobArgs) => job::execute(args),
    /// Stops a job. Finished items keep their results, the other items are skipped
    ///
    /// Exit codes: 0 if the job is being cancelled or already was, 1 if it had ended before.
    Cancel(args: control::CancelArgs) => control::execute_cancel(args),
    /// Pause a job. Chunks in progress are finished first, no other one begins
    ///
    /// Exit codes: 0 if the job is paused, 1 if it has ended or is about to.
    Pause(args: control::ControlArgs) => control::execute(Control::Pause, args),
    /// Resume a paused job
    ///
    /// Exit codes: 0 if the job goes on, also if it was not paused; 1 if it has ended or is being stopped.
    Resume(args: control::ControlArgs) => control::execute(Control::Resume, args),
    Retune(args: retune::RetuneArgs) => retune::execute(args),
    Redrive(args: redrive::RedriveArgs) => redrive::execute(args),
    DeadLetters(args: dead_letters::DeadLettersArgs) => dead_letters::execute(args),
    Audit(args: audit::AuditArgs) => audit::execute(args),
    Why(args: why::WhyArgs) => why::execute(args),
    Bench(args: bench::BenchArgs) => bench::execute(args),
    Gateway(args: gateway::GatewayArgs) => gateway::execute(args),
    Open(args: open::OpenArgs) => open::execute(args),
    Login(args: login::LoginArgs) => login::execute(args),
    Logout(args: login::LogoutArgs) => login::execute_logout(args),
    Top(args: top::TopArgs) => top::execute(args),
    Work(args: work::WorkArgs) => work::execute(args),
    Workers(args: workers::WorkersArgs) => workers::execute(args),
    Block(args: block::BlockArgs) => block::execute(args),
    Unblock(args: block::UnblockArgs) => block::execute_unblock(args),
    Blocked(args: block::BlockedArgs) => block::execute_blocked(args),
    Forget(args: forget::ForgetArgs) => forget::execute(args),
    WebhookKey(args: webhook_key::WebhookKeyArgs) => webhook_key::execute(args),
    Up(up: Up) => up.run(),
    Down(down: Down) => down.run(),
    Status(status: Status) => status.run(),
    Deploy(deploy: Deploy) => deploy.run(),
}
