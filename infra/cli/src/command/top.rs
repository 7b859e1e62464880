//! `rowmill top`: a live view of a stack for its operator.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc;

use super::connection::FunctionsArgs;
use super::{CommandError, explain, parse_span, print};
use crate::top::draw::Screen;
use crate::top::read::Reader;
use crate::top::text::tables;
use crate::top::{Rates, Snapshot};

/// Shows the queues, active jobs, rates and refusals of a stack, until `q` is pressed
///
/// It reads the queues and the jobs table with your credentials, and invokes job-status in the name of each job's
/// owner, and work-task for the workers that have tasks. On AWS, rates, refusals and the ages of queues come from CloudWatch and are up to five minutes old. An
/// emulator has no such metrics: its rates are those that the active jobs show.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    #[command(flatten)]
    pub stack: FunctionsArgs,
    /// The time between two looks
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = parse_span)]
    pub every: Duration,
    /// Print one look as tables and end, as without a terminal
    #[arg(long)]
    pub once: bool,
}

/// The events that the screen waits for.
enum News {
    /// A key was pressed, or the terminal has another size.
    Terminal(Event),
    Look(Box<Result<Snapshot, String>>),
    /// No key can be read any more.
    Deaf(std::io::Error),
}

pub async fn execute(args: TopArgs) -> Result<ExitCode, CommandError> {
    let mut reader = reader(&args.stack).await?;
    if args.once || !std::io::stdout().is_terminal() {
        let snapshot = reader.snapshot().await?;
        print(&tables(&snapshot, Rates::between(None, &snapshot)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let terminal = ratatui::try_init().map_err(CommandError::Output)?;
    let shown = show(terminal, reader, args.every).await;
    ratatui::restore();
    shown?;
    Ok(ExitCode::SUCCESS)
}

async fn reader(args: &FunctionsArgs) -> Result<Reader, CommandError> {
    let stack = args.deployed().await?;
    let (name, jobs_table) = (stack.name().to_owned(), stack.output("JobsTable")?.to_owned());
    let (outputs, scope) = (stack.outputs(), stack.parameter("ReadScope").to_owned());
    let gateway = crate::gateway::Gateway::connect(stack.aws.target(), &name).await;
    Ok(Reader::new(stack.aws, name, &outputs, jobs_table, gateway, scope))
}

/// Draws until a key quits.
async fn show(mut terminal: DefaultTerminal, mut reader: Reader, every: Duration) -> Result<(), CommandError> {
    let (send, mut news) = mpsc::channel(16);
    let keys = send.clone();
    // Reading a key blocks its thread, which ends with the process.
    std::thread::spawn(move || {
        loop {
            let news = event::read().map_or_else(News::Deaf, News::Terminal);
            let is_last = matches!(news, News::Deaf(_));
            if keys.blocking_send(news).is_err() || is_last {
                break;
            }
        }
    });
    let looks = tokio::spawn(async move {
        loop {
            let look = reader.snapshot().await.map_err(|error| explain(&error));
            if send.send(News::Look(Box::new(look))).await.is_err() {
                break;
            }
            tokio::time::sleep(every).await;
        }
    });
    let mut screen = Screen::default();
    let shown = loop {
        if let Err(error) = terminal.draw(|frame| screen.draw(frame)) {
            break Err(CommandError::Output(error));
        }
        match news.recv().await {
            Some(News::Terminal(Event::Key(key))) if !screen.press(key) => break Ok(()),
            Some(News::Terminal(_)) => {}
            Some(News::Deaf(error)) => break Err(CommandError::Output(error)),
            Some(News::Look(look)) => match *look {
                Ok(snapshot) => screen.show(snapshot),
                Err(reason) => screen.fail(&reason),
            },
            None => break Ok(()),
        }
    };
    looks.abort();
    shown
}
