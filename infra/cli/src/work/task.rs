//! The work on one task, from its first beat to the return of what is left.

use std::fmt;
use std::process::ExitStatus;

use rowmill_api::task::{TaskOrder, TaskView};
use rowmill_core::words::Open;
use rustix::process::Signal;
use tokio::time::{Instant, sleep_until};

use super::hold::{Beaten, Hold, is_gone};
use super::outcomes::BadLine;
use super::program::{Event, Program};
use super::{WorkError, Worker};
use crate::api::ApiError;
use crate::terminal::escape_controls;

/// How the work on a task has ended, as the end of a sentence.
pub enum Ended {
    /// All items are done.
    Done,
    /// The rest waits for another worker.
    GivenBack(String),
    /// The same, unless an item has failed so often that this counts.
    Transient,
    /// The command failed at the rest.
    Failed(String),
    /// The task is another worker's, or nobody's.
    Lost,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => Ok(()),
            Self::GivenBack(why) => write!(f, ", the rest given back: {why}"),
            Self::Transient => f.write_str(", an item failed with a transient error"),
            Self::Failed(why) => write!(f, ", the command failed: {why}"),
            Self::Lost => f.write_str(", the rest is no longer this worker's"),
        }
    }
}

/// Why the work on a task ends.
enum Stop {
    Exited(ExitStatus),
    /// What the command prints cannot be trusted.
    Garbage(BadLine),
    /// An item failed with a transient error. To report that ends the work on the task.
    Transient,
    Order(Open<TaskOrder>),
    Refused(ApiError),
    /// No beat was accepted in time.
    Expired,
    Interrupted,
}

/// Works on a task.
///
/// # Errors
/// This worker cannot work on any task.
pub async fn work(worker: &Worker, task: &TaskView, hold: &mut Hold<'_>) -> Result<Ended, WorkError> {
    if worker.is_stopped() {
        return given_back(hold, "this worker ends").await;
    }
    match hold.begin().await {
        Ok(None) => {}
        Ok(Some(order)) => return given_back(hold, order.as_str()).await,
        Err(error) => return lost_by(error),
    }
    let command = &worker.options.command;
    let mut program = match Program::start(command, task, worker.files(task)) {
        Ok(program) => program,
        Err(reason) => {
            given_back(hold, "the command cannot be started").await?;
            return Err(WorkError::Start { program: command[0].clone(), reason });
        }
    };
    let stop = watch(worker, hold, &mut program).await?;
    if !matches!(stop, Stop::Exited(_)) {
        wind_down(hold, &mut program).await;
    }
    // Nothing that belongs to the task runs on.
    program.signal(Signal::KILL);
    let stop = match (rest(hold, &mut program).await, stop) {
        (Some(bad), Stop::Exited(_)) => Stop::Garbage(bad),
        (_, stop) => stop,
    };
    drop(program);
    conclude(hold, stop).await
}

/// Takes lines and beats until there is a reason to stop.
async fn watch(worker: &Worker, hold: &mut Hold<'_>, program: &mut Program) -> Result<Stop, WorkError> {
    loop {
        let end = hold.end() - hold.grace();
        tokio::select! {
            event = program.next() => match event {
                Ok(Event::Line(line)) => match line.and_then(|line| hold.outcomes.add(&line)) {
                    Ok(()) if hold.outcomes.give_back() => return Ok(Stop::Transient),
                    Ok(()) => hold.hasten(),
                    Err(bad) => return Ok(Stop::Garbage(bad)),
                },
                Ok(Event::Ended(status)) => return Ok(Stop::Exited(status)),
                Err(reason) => {
                    return Err(WorkError::Start { program: worker.options.command[0].clone(), reason });
                }
            },
            beaten = hold.beat() => match beaten {
                Beaten::Continue => {}
                Beaten::Order(order) => return Ok(Stop::Order(order)),
                Beaten::Refused(error) => return Ok(Stop::Refused(error)),
            },
            () = sleep_until(end) => return Ok(Stop::Expired),
            () = worker.stopped() => return Ok(Stop::Interrupted),
        }
    }
}

/// Ends the command: with SIGTERM, at which it may finish its item and print its line, and then with SIGKILL.
async fn wind_down(hold: &mut Hold<'_>, program: &mut Program) {
    program.signal(Signal::TERM);
    let end = hold.end().min(Instant::now() + hold.grace());
    let killed = async {
        loop {
            match program.next().await {
                // A line that cannot be read says nothing; the command is ending anyway.
                Ok(Event::Line(line)) => drop(line.and_then(|line| hold.outcomes.add(&line))),
                Ok(Event::Ended(_)) | Err(_) => return,
            }
        }
    };
    let _ = tokio::time::timeout_at(end, killed).await;
}

/// Takes the lines of a command that has ended, until one that cannot be trusted.
async fn rest(hold: &mut Hold<'_>, program: &mut Program) -> Option<BadLine> {
    while let Some(line) = program.rest().await {
        if let Err(bad) = line.and_then(|line| hold.outcomes.add(&line)) {
            return Some(bad);
        }
    }
    None
}

/// Reports what is done, and gives back what is left.
async fn conclude(hold: &mut Hold<'_>, stop: Stop) -> Result<Ended, WorkError> {
    let error = match stop {
        Stop::Refused(error) => error,
        stop => {
            if matches!(&stop, Stop::Exited(status) if status.success()) {
                hold.outcomes.complete();
            }
            match hold.report_all().await {
                Ok(true) if hold.outcomes.are_done() => return Ok(Ended::Done),
                Ok(true) => return Ok(Ended::Transient),
                Ok(false) => return end(hold, &stop).await,
                Err(error) => error,
            }
        }
    };
    if is_unfit(&error) {
        return failed(hold, &error.to_string()).await;
    }
    lost_by(error)
}

/// Gives back what is left, with the reason.
async fn end(hold: &Hold<'_>, stop: &Stop) -> Result<Ended, WorkError> {
    match stop {
        Stop::Exited(status) => failed(hold, &status.to_string()).await,
        Stop::Garbage(bad) => failed(hold, &format!("in its output, {bad}")).await,
        // It has failed so often that this counts, and the items behind it wait.
        Stop::Transient => given_back(hold, "an item failed with a transient error").await,
        Stop::Order(order) => given_back(hold, order.as_str()).await,
        Stop::Expired => given_back(hold, "the API does not answer").await,
        Stop::Interrupted => given_back(hold, "this worker ends").await,
        Stop::Refused(error) => failed(hold, &error.to_string()).await,
    }
}

async fn given_back(hold: &Hold<'_>, why: &str) -> Result<Ended, WorkError> {
    match hold.release(false).await {
        Ok(()) => Ok(Ended::GivenBack(escape_controls(why))),
        Err(error) => lost_by(error),
    }
}

async fn failed(hold: &Hold<'_>, why: &str) -> Result<Ended, WorkError> {
    match hold.release(true).await {
        Ok(()) => Ok(Ended::Failed(why.to_owned())),
        Err(error) if is_gone(&error) || error.is_transient() => Ok(Ended::Failed(why.to_owned())),
        Err(error) => Err(error.into()),
    }
}

/// The API could not be told about the task. Another worker gets it once its time is over.
///
/// # Errors
/// It refuses this worker.
fn lost_by(error: ApiError) -> Result<Ended, WorkError> {
    if is_gone(&error) {
        return Ok(Ended::Lost);
    }
    match error.is_transient() {
        true => Ok(Ended::GivenBack(error.to_string())),
        false => Err(error.into()),
    }
}

/// True if the API refuses what the command has printed, such as outputs of a job type without any.
fn is_unfit(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused(refusal) if matches!(refusal.status.as_u16(), 400 | 413 | 422))
}
