//! The progress of cargo, for a log or a pipe. In a terminal cargo draws its own progress bar.

use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use crate::terminal::{count, span};

/// Time between two lines. A CI system must not take a long compilation for a hang.
pub(super) const LINE_INTERVAL: Duration = Duration::from_secs(15);

/// Counts the crates that cargo has finished.
pub(super) struct CompileProgress {
    started: Instant,
    finished: HashSet<String>,
    total: Option<usize>,
}

impl CompileProgress {
    /// A count from zero. The clock starts now.
    pub(super) fn start() -> Self {
        Self { started: Instant::now(), finished: HashSet::new(), total: None }
    }

    /// True if lines are needed: standard error is not a terminal, so cargo draws no progress bar.
    pub(super) fn is_wanted() -> bool {
        !std::io::stderr().is_terminal()
    }

    /// Counts the package of a finished target. A library, its build script and its binary are one crate.
    pub(super) fn finish(&mut self, package_id: String) {
        self.finished.insert(package_id);
    }

    /// True if the number of crates to compile still has to be found out.
    pub(super) fn needs_total(&self) -> bool {
        self.total.is_none()
    }

    /// Sets the number of crates to compile, from the output of `cargo tree` with one crate a line.
    pub(super) fn set_total_from_tree(&mut self, tree: &str) {
        // `serde v1.0.228 (proc-macro) (*)`: name and version identify a crate, the rest are notes.
        let name_and_version = |line: &str| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        };
        let crates: HashSet<_> = tree.lines().filter_map(name_and_version).collect();
        self.total = (!crates.is_empty()).then_some(crates.len());
    }

    /// The line to print now: `Compiling: 214 of about 430 crates done, 1 min 20 s`, or `Waiting for cargo, 15 s`
    /// before the first one.
    pub(super) fn line(&self) -> String {
        self.line_after(self.started.elapsed())
    }

    fn line_after(&self, elapsed: Duration) -> String {
        let finished = self.finished.len();
        if finished == 0 {
            // It downloads, compiles the first crate, or waits until another cargo has released the target folder.
            return format!("Waiting for cargo, {}", span(elapsed));
        }
        let counts = match self.total {
            // The features that the rest of the workspace needs bring some more.
            Some(total) if finished < total => format!("{} of about {}", count(finished as u64), count(total as u64)),
            _ => count(finished as u64),
        };
        format!("Compiling: {counts} crates done, {}", span(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_many_crates_are_compiled_and_how_long_it_took() {
        let mut progress = CompileProgress::start();
        assert_eq!(progress.line_after(Duration::from_secs(15)), "Waiting for cargo, 15 s");
        for id in ["serde", "serde", "tokio"] {
            progress.finish(id.to_owned());
        }
        assert!(progress.needs_total());
        assert_eq!(progress.line_after(Duration::from_secs(80)), "Compiling: 2 crates done, 1 min 20 s");
        progress.set_total_from_tree(
            "upload v0.1.0 (/w/functions/api/upload)\nserde v1.0.228\nserde v1.0.228 (*)\n\nserde_derive v1.0.228 \
             (proc-macro)\ntokio v1.50.0\n",
        );
        assert_eq!(progress.line_after(Duration::from_secs(95)), "Compiling: 2 of about 4 crates done, 1 min 35 s");
    }

    #[test]
    fn a_total_that_was_too_low_is_not_shown() {
        let mut progress = CompileProgress::start();
        progress.set_total_from_tree("one v1.0.0\n");
        progress.finish("one".to_owned());
        progress.finish("two".to_owned());
        assert_eq!(progress.line_after(Duration::from_secs(20)), "Compiling: 2 crates done, 20 s");
    }
}
