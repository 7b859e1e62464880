//! The command that works on a task, as a process.
//!
//! It has a process group of its own: a Ctrl-C in the terminal does not reach it, and what it has started ends with it.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rowmill_api::task::TaskView;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt as _, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::files::Files;
use super::outcomes::{BadLine, LINE_MAX_BYTES};

/// The bearer token is not for the command.
const TOKEN_VARIABLE: &str = "ROWMILL_TOKEN";

/// Lines that are read ahead.
const LINES_AHEAD: usize = 16;

/// Longest wait for the rest of the output of a command that has ended. Only a process outside of its group can hold
/// the pipe open.
const REST_LIMIT: Duration = Duration::from_secs(5);

/// An item, as the command reads it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ItemLine<'a> {
    item_identifier: &'a str,
    row: u64,
    record: &'a Value,
    job_guid: String,
    job_type: &'a str,
    params: &'a Map<String, Value>,
}

/// A line of the command's standard output.
pub type Line = Result<String, BadLine>;

pub struct Program {
    child: Child,
    group: Option<Pid>,
    lines: mpsc::Receiver<Line>,
    files: Files,
    /// How the command has ended, and until when its last lines are waited for.
    ended: Option<(ExitStatus, Instant)>,
    /// Feed the command and read from it.
    _pipes: JoinSet<()>,
}

/// What comes from a command.
pub enum Event {
    Line(Line),
    Ended(ExitStatus),
}

impl Program {
    /// Starts a command and feeds it the items of a task.
    pub fn start(command: &[OsString], task: &TaskView, files: Files) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(arguments)
            .env_remove(TOKEN_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let (sender, lines) = mpsc::channel(LINES_AHEAD);
        let mut pipes = JoinSet::new();
        if let Some(stdin) = child.stdin.take() {
            pipes.spawn(feed(stdin, task.clone()));
        }
        if let Some(stdout) = child.stdout.take() {
            pipes.spawn(read(stdout, sender, files.clone()));
        }
        Ok(Self { child, group, lines, files, ended: None, _pipes: pipes })
    }

    /// The next line, or the end of the command once all its lines have come. May be dropped and called again at any
    /// time.
    pub async fn next(&mut self) -> io::Result<Event> {
        loop {
            let Some((status, until)) = self.ended else {
                tokio::select! {
                    Some(line) = self.lines.recv() => return Ok(Event::Line(line)),
                    status = self.child.wait() => self.ended = Some((status?, Instant::now() + REST_LIMIT)),
                }
                continue;
            };
            match timeout_at(until, self.lines.recv()).await {
                Ok(Some(line)) => return Ok(Event::Line(line)),
                Err(_) if self.files.is_storing() => self.ended = Some((status, Instant::now() + REST_LIMIT)),
                Ok(None) | Err(_) => return Ok(Event::Ended(status)),
            }
        }
    }

    /// A line of a command that was ended, until there are no more.
    pub async fn rest(&mut self) -> Option<Line> {
        let until = self.ended.map_or_else(|| Instant::now() + REST_LIMIT, |(_, until)| until);
        timeout_at(until, self.lines.recv()).await.ok().flatten()
    }

    /// Sends a signal to the command and what it has started.
    pub fn signal(&self, signal: Signal) {
        // An error says that none of them runs any more.
        let _ = self.group.map(|group| kill_process_group(group, signal));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Writes the items. A command need not read all of them: its exit code says whether it is done.
async fn feed(mut stdin: ChildStdin, task: TaskView) {
    let job_guid = task.job_guid.to_string();
    for item in &task.items {
        let line = ItemLine {
            item_identifier: &item.item_identifier,
            row: item.row,
            record: &item.record,
            job_guid: job_guid.clone(),
            job_type: &task.job_type,
            params: &task.params,
        };
        let line = serde_json::to_string(&line).expect("the API's types are JSON") + "\n";
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads lines until the end, or until one that is bad, and stores their files.
async fn read(stdout: ChildStdout, sender: mpsc::Sender<Line>, files: Files) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let read = (&mut stdout).take(LINE_MAX_BYTES as u64 + 1).read_until(b'\n', &mut line).await;
        let line = match read {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() > LINE_MAX_BYTES => Err(BadLine::TooLong),
            Ok(_) => String::from_utf8(line).map_err(|_| BadLine::NotText),
        };
        let line = match line {
            Ok(line) => files.stored(line).await,
            bad => bad,
        };
        let is_last = line.is_err();
        if sender.send(line).await.is_err() || is_last {
            return;
        }
    }
}
