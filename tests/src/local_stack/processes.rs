//! The functions as processes: looked for, killed, run.

use std::collections::BTreeMap;
use std::process::Command;

use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::FunctionConfiguration;

use super::LocalStack;

impl LocalStack {
    /// Has the sweep run now, and waits for its end. A test has no time for its schedule.
    pub async fn sweep(&self) {
        let function = self.output("SweepFunctionName");
        let run = self.lambda.invoke().function_name(function).payload(Blob::new("{}")).send().await;
        run.expect("the function runs");
    }

    /// The ARN of the role of a function, which is named by the template's output.
    pub(super) async fn role_arn_of(&self, function: &str) -> String {
        let request = self.lambda.get_function_configuration().function_name(self.output(function));
        request.send().await.expect("the function is deployed").role.expect("a role")
    }

    /// The name of the role of a function, which is named by the template's output.
    pub async fn role_of(&self, function: &str) -> String {
        let arn = self.role_arn_of(function).await;
        arn.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// The digest of the package of each function.
    pub async fn packages(&self) -> BTreeMap<String, String> {
        let functions =
            self.lambda.list_functions().into_paginator().items().send().collect::<Result<Vec<_>, _>>().await;
        let digest = |function: FunctionConfiguration| Some((function.function_name?, function.code_sha256?));
        functions.expect("the functions").into_iter().filter_map(digest).collect()
    }

    /// The processes of a function, as they are now.
    pub fn processes_of(&self, function: &str) -> Vec<String> {
        let of_function = |environment: &[u8]| {
            let wanted = format!("AWS_LAMBDA_FUNCTION_NAME=rowmill-{function}");
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        // A list a thread of the emulator: a process is in that of the thread that started it.
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.stack.pid())).expect("the emulator runs");
        let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
        let children: Vec<String> =
            lists.flat_map(|list| list.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect();
        // One that has ended meanwhile has no environment any more.
        let runs = |pid: &String| {
            std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| of_function(&environment))
        };
        children.into_iter().filter(runs).collect()
    }

    /// Kills all processes of a function; how many there were.
    pub fn kill_processes_of(&self, function: &str) -> usize {
        self.processes_of(function).iter().filter(|pid| kill(pid)).count()
    }

    /// Number of finished invocations of a function, by its log.
    pub fn invocations_of(&self, function: &str) -> usize {
        let log = std::fs::read_to_string(self.logs.join(format!("{function}.log"))).unwrap_or_default();
        log.lines().filter(|line| line.contains("invocation finished")).count()
    }

    /// True if a line of a function's log has all of these texts.
    pub fn has_logged(&self, function: &str, texts: &[&str]) -> bool {
        let log = std::fs::read_to_string(self.logs.join(format!("{function}.log"))).unwrap_or_default();
        log.lines().any(|line| texts.iter().all(|text| line.contains(text)))
    }

    pub fn log_lines(&self, function: &str) -> Vec<serde_json::Value> {
        let log = std::fs::read_to_string(self.logs.join(format!("{function}.log"))).unwrap_or_default();
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// No function has used more memory than the smallest of them has, by their logs.
    ///
    /// # Panics
    /// Where one has, or where no log says anything.
    pub fn memory_has_been_enough(&self) {
        const MEMORY_BYTES: u64 = 256 * 1024 * 1024;
        let mut peaks = BTreeMap::new();
        for entry in std::fs::read_dir(&self.logs).expect("the logs") {
            let path = entry.expect("a log").path();
            for line in std::fs::read_to_string(&path).unwrap_or_default().lines() {
                let bytes = line.split_once("\"process.peak_rss_bytes\":").map(|(_, rest)| rest);
                let digits = bytes.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
                if let Some(bytes) = digits.and_then(|digits| digits.parse::<u64>().ok()) {
                    let peak = peaks.entry(path.file_stem().unwrap_or_default().to_owned()).or_insert(0);
                    *peak = bytes.max(*peak);
                }
            }
        }
        println!("peak memory in bytes: {peaks:?}");
        assert!(peaks.len() > 3 && peaks.values().all(|peak| *peak <= MEMORY_BYTES), "{peaks:?}");
    }
}

/// Kills a process as nothing can be done about; whether there was one.
pub fn kill(pid: &str) -> bool {
    Command::new("kill").args(["-9", pid]).status().is_ok_and(|status| status.success())
}
