//! The emulator's process: starts it on a free port, identifies it by its arguments, stops it with all its functions.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{FunctionsEndpoint, Record};
use crate::api::http_client;

/// Longest wait for the emulator's first answer.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Longest wait for its end after SIGTERM. It gives its functions two seconds, and running requests four.
const STOP_LIMIT: Duration = Duration::from_secs(8);

/// Attempts with other ports if another process takes the free port first.
const PORT_TRIES: usize = 3;

/// Lines of the emulator's log in an error.
const LOG_TAIL_LINES: usize = 8;

/// Error of starting or stopping the emulator.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("cannot start the emulator")]
    Start(#[source] std::io::Error),
    #[error("the emulator ended during its start ({status}):\n{log}")]
    Ended {
        status: String,
        /// The end of its log.
        log: String,
    },
    #[error("the emulator does not answer after {} s:\n{log}", START_LIMIT.as_secs())]
    Silent {
        /// The end of its log.
        log: String,
    },
    /// It does not end even after SIGKILL.
    #[error("the emulator (process {0}) does not stop")]
    Unstoppable(i32),
}

/// The health of a recorded emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Answering,
    /// It runs, but does not answer.
    Silent,
    /// The process does not exist, or is another program.
    Gone,
}

/// An emulator started by this process. It is stopped when the value is dropped, and stops by itself when this process
/// ends without that.
#[derive(Debug)]
pub struct EmulatorProcess {
    child: Option<Child>,
    record: Record,
    state_dir: PathBuf,
}

/// Arguments of an emulator's start.
pub(super) struct Launch<'a> {
    /// The Python of its environment.
    pub(super) python: &'a Path,
    pub(super) launcher: &'a Path,
    /// Folder of its logs and scratch files.
    pub(super) state_dir: &'a Path,
    pub(super) stack_name: &'a str,
    /// The AWS endpoint of the functions, if not the emulator itself.
    pub(super) functions_endpoint: Option<&'a FunctionsEndpoint>,
}

/// Starts the emulator and waits until it answers.
pub(super) async fn launch(launch: &Launch<'_>) -> Result<EmulatorProcess, ProcessError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let launched = start(launch).map_err(ProcessError::Start)?;
        match launched.first_answer().await {
            Err(ProcessError::Ended { log, .. }) if tries < PORT_TRIES && log.contains("Address already in use") => {}
            Err(error) => return Err(error),
            Ok(launched) => return Ok(launched),
        }
    }
}

fn start(launch: &Launch<'_>) -> std::io::Result<EmulatorProcess> {
    let state_dir = launch.state_dir;
    remove_scratch(state_dir);
    let scratch = scratch_dir(state_dir);
    std::fs::create_dir_all(&scratch)?;
    // Logs of an earlier stack would be counted as logs of this one.
    let logs = state_dir.join("logs");
    if logs.exists() {
        std::fs::remove_dir_all(&logs)?;
    }
    let log = File::create(emulator_log(state_dir))?;
    // The port is free again after the listener is dropped. If another process takes it, another port is tried.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let text = |path: &Path| path.to_string_lossy().into_owned();
    // Isolated from Python settings of the shell.
    let mut arguments = vec!["-I".to_owned(), text(launch.launcher)];
    arguments.extend(["--port".into(), port.to_string(), "--log-dir".into(), text(&logs)]);
    arguments.extend(["--stack".into(), launch.stack_name.into(), "--exit-with-stdin".into()]);
    if let Some(functions) = launch.functions_endpoint {
        arguments.extend(["--functions-endpoint-url".into(), functions.url_for(&endpoint)]);
    }
    let child = Command::new(launch.python)
        .args(&arguments)
        .env("TMPDIR", &scratch)
        .stdin(Stdio::piped())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Its own process group, with its functions: the terminal's Ctrl-C only reaches this process.
        .process_group(0)
        .spawn()?;
    let record = Record {
        endpoint,
        pid: i32::try_from(child.id()).expect("a process id is a positive i32"),
        arguments,
        api_url: None,
        outputs: BTreeMap::new(),
    };
    Ok(EmulatorProcess { child: Some(child), record, state_dir: state_dir.to_owned() })
}

impl EmulatorProcess {
    async fn first_answer(mut self) -> Result<Self, ProcessError> {
        let started = Instant::now();
        loop {
            if answers(&self.record.endpoint).await {
                return Ok(self);
            }
            let child = self.child.as_mut().expect("the child is there until it is left running");
            if let Some(status) = child.try_wait().map_err(ProcessError::Start)? {
                return Err(ProcessError::Ended { status: status.to_string(), log: log_tail(&self.state_dir) });
            }
            if started.elapsed() > START_LIMIT {
                return Err(ProcessError::Silent { log: log_tail(&self.state_dir) });
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(super) fn record(&self) -> Record {
        self.record.clone()
    }

    /// Keeps it running after this value and this process.
    pub(super) fn leave_running(mut self) {
        if let Some(mut child) = self.child.take()
            && let Some(mut stdin) = child.stdin.take()
        {
            use std::io::Write as _;
            // After this the launcher ignores the end of its standard input.
            let _ = stdin.write_all(b"stay\n");
        }
    }
}

impl Drop for EmulatorProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // If this fails too, nothing else can be done.
            let _ = end(self.record.pid, || matches!(child.try_wait(), Ok(None)));
            remove_scratch(&self.state_dir);
        }
    }
}

/// Stops a recorded emulator that [`health`] has identified as ours.
pub(super) fn stop(record: &Record) -> Result<(), ProcessError> {
    end(record.pid, || is_ours(record))
}

fn end(pid: i32, mut is_running: impl FnMut() -> bool) -> Result<(), ProcessError> {
    let Some(process) = Pid::from_raw(pid) else { return Ok(()) };
    let mut gone_within = |limit: Duration| {
        let started = Instant::now();
        while is_running() {
            if started.elapsed() > limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    };
    // An error means that the process is gone, which `gone_within` finds out.
    let _ = kill_process(process, Signal::TERM);
    if gone_within(STOP_LIMIT) {
        return Ok(());
    }
    let _ = kill_process_group(process, Signal::KILL);
    if gone_within(STOP_LIMIT) { Ok(()) } else { Err(ProcessError::Unstoppable(pid)) }
}

/// Checks a recorded emulator: the arguments of the process, then whether it answers.
pub(super) async fn health(record: &Record) -> Health {
    if !is_ours(record) {
        Health::Gone
    } else if answers(&record.endpoint).await {
        Health::Answering
    } else {
        Health::Silent
    }
}

/// True if the process with this id still is the recorded one. Process ids are reused.
fn is_ours(record: &Record) -> bool {
    arguments_of(record.pid).is_some_and(|arguments| arguments.ends_with(&record.arguments.join(" ")))
}

#[cfg(target_os = "linux")]
fn arguments_of(pid: i32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " "))
}

#[cfg(not(target_os = "linux"))]
fn arguments_of(pid: i32) -> Option<String> {
    let output = Command::new("ps").args(["-ww", "-o", "command=", "-p", &pid.to_string()]).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

async fn answers(endpoint: &str) -> bool {
    let Ok(url) = format!("{endpoint}/_ministack/ready").parse() else { return false };
    let Ok(client) = http_client(&url) else { return false };
    let answer = client.get(url).timeout(Duration::from_secs(5)).send().await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

fn log_tail(state_dir: &Path) -> String {
    let log = std::fs::read(emulator_log(state_dir)).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}

fn emulator_log(state_dir: &Path) -> PathBuf {
    state_dir.join("emulator.log")
}

pub(super) fn scratch_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("scratch")
}

/// Removes the files that the emulator unpacked.
pub(super) fn remove_scratch(state_dir: &Path) {
    // An error is harmless: the folder is missing, or stays unused.
    let _ = std::fs::remove_dir_all(scratch_dir(state_dir));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_of(child: &Child, arguments: &[&str]) -> Record {
        Record {
            endpoint: "http://127.0.0.1:9".into(),
            pid: i32::try_from(child.id()).unwrap(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            api_url: None,
            outputs: BTreeMap::new(),
        }
    }

    #[tokio::test]
    async fn a_process_with_the_recorded_id_but_other_arguments_is_not_ours() {
        let mut child = Command::new("sleep").arg("30").process_group(0).spawn().unwrap();
        let ours = record_of(&child, &["30"]);
        // Between fork and exec the child still has this test's arguments.
        while !is_ours(&ours) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(health(&ours).await, Health::Silent);
        assert_eq!(health(&record_of(&child, &["31"])).await, Health::Gone);

        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(health(&ours).await, Health::Gone);
    }
}
