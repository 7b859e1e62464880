//! Takes one condition of the protocol out after the other, and says which seed or test notices it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use acceptance::mutations::{Mutation, SWITCH, all, files, sources, switched};

const USAGE: &str = "mutations [--seeds COUNT] [--only TEXT] [--markdown]

Copies the repository to target/mutations, builds the mutations of tests/src/mutations/list.diff into the
copy, and runs COUNT seeds (20000) of the simulation with each of them in effect. If no seed fails, runs the
tests `protocol`, then those of rowmill-core, with its contract suites. Fails if a mutation is
not found.
--only      only mutations whose name has this TEXT
--markdown  prints the table of docs/protocol.md";

/// A run that takes longer hangs.
const RUN_MAX: Duration = Duration::from_secs(900);

/// The compiled copy of the repository.
struct Mutants {
    simulate: PathBuf,
    tests: Vec<PathBuf>,
    /// Where tests run.
    folder: PathBuf,
    /// The output of the last run.
    output: PathBuf,
}

fn main() -> ExitCode {
    let (mut seeds, mut only, mut is_markdown) = (20_000_u64, String::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--markdown" => is_markdown = true,
            "--only" => only = arguments.next().unwrap_or_default(),
            "--seeds" => seeds = arguments.next().and_then(|value| value.parse().ok()).unwrap_or(seeds),
            _ => {
                println!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    match run(seeds, &only, is_markdown) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Tries the mutations. Returns whether each was found.
fn run(seeds: u64, only: &str, is_markdown: bool) -> io::Result<bool> {
    let mutations = all();
    let mutants = Mutants::build(&mutations)?;
    if let Some(found) = mutants.found_by(mutations.len(), seeds)? {
        return Err(io::Error::other(format!("without a mutation fails {found}")));
    }
    if is_markdown {
        println!("| condition or rule that is taken out | found by |\n|---|---|");
    }
    let (mut tried, mut missed) = (0, 0);
    let chosen = |mutation: &Mutation| mutation.changes_code() && mutation.name.contains(only);
    for (number, mutation) in mutations.iter().enumerate().filter(|(_, mutation)| chosen(mutation)) {
        let began = Instant::now();
        let found = mutants.found_by(number, seeds)?;
        (tried, missed) = (tried + 1, missed + u32::from(found.is_none()));
        let found = found.unwrap_or_else(|| "nothing".into());
        match is_markdown {
            // What a seed violates is for the reader of a run.
            true => println!("| {} | {} |", mutation.name, found.split(": ").next().unwrap_or_default()),
            false => println!("{:6.1} s  {}\n          {found}", began.elapsed().as_secs_f64(), mutation.name),
        }
    }
    eprintln!("{} of {tried} mutations found", tried - missed);
    Ok(missed == 0)
}

impl Mutants {
    /// Copies the repository, with the mutations built in, and compiles it.
    fn build(mutations: &[Mutation]) -> io::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
        let (tree, build) = (root.join("target/mutations/tree"), root.join("target/mutations/build"));
        let changed = switched(&sources(&root)?, mutations).map_err(io::Error::other)?;
        let listed_at = fs::metadata(root.join("tests/src/mutations/list.diff"))?.modified()?;
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        for path in files(&root)? {
            let (from, to) = (root.join(&path), tree.join(&path));
            fs::create_dir_all(to.parent().unwrap_or(&tree))?;
            fs::copy(&from, &to)?;
            // So cargo compiles only what has changed since the last run.
            let mut modified = fs::metadata(&from)?.modified()?;
            if let Some(text) = changed.get(&path) {
                fs::write(&to, text)?;
                modified = modified.max(listed_at);
            }
            File::options().write(true).open(&to)?.set_modified(modified)?;
        }
        let cargo = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO"));
            command.args(arguments).arg("--target-dir").arg(&build).current_dir(&tree).env("CARGO_TERM_COLOR", "never");
            let output = command.stderr(Stdio::piped()).output()?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(said) } else { Err(io::Error::other(said)) }
        };
        cargo(&["build", "--locked", "--bin", "simulate"])?;
        let mut said = cargo(&["test", "--locked", "--no-run", "--test", "protocol"])?;
        said += &cargo(&["test", "--locked", "--no-run", "-p", "rowmill-core", "--lib", "--features", "testing"])?;
        let executable =
            |line: &str| Some(tree.join(line.trim().strip_prefix("Executable ")?.split(['(', ')']).nth(1)?));
        Ok(Self {
            simulate: build.join("debug/simulate"),
            tests: said.lines().filter_map(executable).collect(),
            folder: tree.join("tests"),
            output: root.join("target/mutations/output.txt"),
        })
    }

    /// The seed or the test that notices this mutation.
    fn found_by(&self, number: usize, seeds: u64) -> io::Result<Option<String>> {
        if let Some(output) = self.failing(&self.simulate, &["--seeds", &seeds.to_string()], number)? {
            let seed = output.lines().find(|line| line.starts_with("seed "));
            let panic = || format!("seed unknown: {}", output.lines().last().unwrap_or("it hangs"));
            return Ok(Some(seed.map_or_else(panic, str::to_owned)));
        }
        for test in &self.tests {
            let Some(output) = self.failing(test, &[], number)? else { continue };
            let failed = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
            let mut names: Vec<String> = output.lines().filter_map(failed).collect();
            names.sort();
            let others = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
            let name = names.first().map_or("that hangs", String::as_str);
            return Ok(Some(format!("test `{name}`{others}")));
        }
        Ok(None)
    }

    /// Runs a program with this mutation in effect. Returns its output if it fails or hangs.
    fn failing(&self, program: &Path, arguments: &[&str], number: usize) -> io::Result<Option<String>> {
        let output = File::create(&self.output)?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).env(SWITCH, number.to_string());
        let mut child = command.stdout(output.try_clone()?).stderr(output).spawn()?;
        let until = Instant::now() + RUN_MAX;
        let fails = loop {
            match child.try_wait()? {
                Some(status) => break !status.success(),
                None if Instant::now() >= until => {
                    child.kill()?;
                    child.wait()?;
                    break true;
                }
                None => sleep(Duration::from_millis(50)),
            }
        };
        fails.then(|| fs::read(&self.output).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())).transpose()
    }
}
