//! Takes one condition of the protocol out after the other, and says which seed or test notices it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use acceptance::mutations::{Mutation, SWITCH, all, files, sources, switched};

const USAGE: &str = "mutations [--seeds COUNT] [--only TEXT]

Copies the repository to target/mutations and builds the mutations of tests/src/mutations/list.diff into the
copy. With each of them in effect it runs what the table of docs/protocol.md names for it, then the tests of
rowmill-testing and rowmill-core, COUNT seeds (20000) of the simulation, and the tests `protocol`, until one
fails. Prints the rows of the table. Fails if a mutation is not found. With `--seeds 0` it runs only what the
table names, which takes seconds once all is compiled, and so tells which rows are out of date.
--only  only mutations whose name has this TEXT";

/// A run that takes longer hangs.
const RUN_MAX: Duration = Duration::from_secs(900);

/// The end of the line of a failed test.
const FAILED: &str = " ... FAILED";

/// Find most of what seeds find, and take less time than the tests `protocol`.
const FEW_SEEDS: u64 = 2_000;

/// Leaves out tests of rowmill-core that take long and know nothing of jobs.
const UNAFFECTED: [&str; 4] = ["--skip", "text::", "--skip", "job_types::"];

/// The compiled copy of the repository.
struct Mutants {
    simulate: PathBuf,
    /// The tests, the quickest first.
    tests: Vec<PathBuf>,
    /// Where tests run.
    folder: PathBuf,
    /// The output of the last run.
    output: PathBuf,
}

fn main() -> ExitCode {
    let (mut seeds, mut only) = (20_000_u64, String::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.next()) {
            ("--only", Some(text)) => only = text,
            ("--seeds", Some(count)) if count.parse::<u64>().is_ok() => seeds = count.parse().unwrap_or(seeds),
            _ => {
                println!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    match run(seeds, &only) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Tries the mutations. Returns whether each was found.
fn run(seeds: u64, only: &str) -> io::Result<bool> {
    let (root, mutations) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?, all());
    let began = Instant::now();
    eprintln!("compiling the mutations");
    let mutants = Mutants::build(&root, &mutations)?;
    eprintln!("compiled in {:.0} s", began.elapsed().as_secs_f64());
    let searches = seeds > 0;
    if searches {
        if let Some(found) = mutants.found_by(mutations.len(), seeds)? {
            return Err(io::Error::other(format!("without a mutation fails {found}")));
        }
        eprintln!("nothing fails without a mutation, {:.0} s", began.elapsed().as_secs_f64());
    }
    let protocol = fs::read_to_string(root.join("docs/protocol.md"))?;
    let chosen = |(_, mutation): &(usize, &Mutation)| mutation.changes_code() && mutation.name.contains(only);
    let chosen: Vec<(usize, &Mutation)> = mutations.iter().enumerate().filter(chosen).collect();
    let mut missed = 0;
    for (place, (number, mutation)) in chosen.iter().enumerate() {
        let tried = Instant::now();
        let mut found = match mutation.finder(&protocol) {
            Some(finder) => mutants.found_again(*number, finder)?,
            None => None,
        };
        if found.is_none() && searches {
            found = mutants.found_by(*number, seeds)?;
        }
        missed += usize::from(found.is_none());
        let found = found.unwrap_or_else(|| "nothing".into());
        // The violation is for the reader of a run, not for the table.
        println!("| {} | {} |", mutation.name, found.split(": ").next().unwrap_or_default());
        let (place, all, seconds) = (place + 1, chosen.len(), tried.elapsed().as_secs_f64());
        eprintln!("{place} of {all}, {seconds:.1} s, {}, found by {found}", mutation.name);
    }
    let (all, seconds) = (chosen.len(), began.elapsed().as_secs_f64());
    eprintln!("{} of {all} mutations found in {seconds:.0} s", all - missed);
    Ok(missed == 0)
}

impl Mutants {
    /// Copies the repository, with the mutations built in, and compiles it.
    fn build(root: &Path, mutations: &[Mutation]) -> io::Result<Self> {
        let (tree, build) = (root.join("target/mutations/tree"), root.join("target/mutations/build"));
        copy(root, &tree, mutations)?;
        // In one call, so that all are compiled with the same features of their dependencies. With a test come the
        // binaries of its package, and so `simulate`.
        let mut command = Command::new(env!("CARGO"));
        command.args(["test", "--locked", "--no-run", "--package", "rowmill-testing", "--package", "rowmill-core"]);
        command.args(["--package", "acceptance", "--lib", "--test", "protocol", "--target-dir"]);
        command.arg(&build).current_dir(&tree).env("CARGO_TERM_COLOR", "never").stderr(Stdio::piped());
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(io::Error::other(said.into_owned()));
        }
        let executable =
            |line: &str| line.trim().strip_prefix("Executable ")?.split(['(', ')']).nth(1).map(PathBuf::from);
        let test = |name: &&str| {
            let is_its = |path: &PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name));
            let found = said.lines().filter_map(executable).find(is_its);
            found.ok_or_else(|| io::Error::other(format!("cargo names no {name}: {said}")))
        };
        Ok(Self {
            simulate: build.join("debug/simulate"),
            tests: ["rowmill_testing-", "rowmill_core-", "protocol-"].iter().map(test).collect::<io::Result<_>>()?,
            folder: tree.join("tests"),
            output: root.join("target/mutations/output.txt"),
        })
    }

    /// The seed or the test that found this mutation before, if it finds it again.
    fn found_again(&self, number: usize, finder: &str) -> io::Result<Option<String>> {
        match finder.strip_prefix("seed ") {
            Some(seed) => self.failing_seed(&["--from", seed, "--seeds", "1"], number),
            None => {
                let name = finder.trim_start_matches("test ").trim_matches('`');
                self.failing_test(&self.tests, &["--exact", name], number)
            }
        }
    }

    /// The test or the seed that notices this mutation: the quick checks first.
    fn found_by(&self, number: usize, seeds: u64) -> io::Result<Option<String>> {
        let few = FEW_SEEDS.min(seeds);
        let (first, rest) = (few.to_string(), (seeds - few).to_string());
        if let Some(found) = self.failing_test(&self.tests[..2], &UNAFFECTED, number)? {
            return Ok(Some(found));
        }
        if let Some(found) = self.failing_seed(&["--seeds", &first], number)? {
            return Ok(Some(found));
        }
        if let Some(found) = self.failing_test(&self.tests[2..], &[], number)? {
            return Ok(Some(found));
        }
        self.failing_seed(&["--from", &first, "--seeds", &rest], number)
    }

    fn failing_seed(&self, arguments: &[&str], number: usize) -> io::Result<Option<String>> {
        let Some(output) = self.failing(&self.simulate, arguments, number)? else { return Ok(None) };
        let seed = output.lines().find(|line| line.starts_with("seed "));
        let panic = || format!("seed unknown: {}", output.lines().last().unwrap_or("it hangs"));
        Ok(Some(seed.map_or_else(panic, str::to_owned)))
    }

    fn failing_test(&self, tests: &[PathBuf], arguments: &[&str], number: usize) -> io::Result<Option<String>> {
        for test in tests {
            let Some(output) = self.failing(test, arguments, number)? else { continue };
            let failed = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(FAILED)?.to_owned());
            let name = output.lines().find_map(failed).unwrap_or_else(|| "that hangs".into());
            return Ok(Some(format!("test `{name}`")));
        }
        Ok(None)
    }

    /// Runs a program with this mutation in effect, until a test fails. Returns its output if it fails or hangs.
    fn failing(&self, program: &Path, arguments: &[&str], number: usize) -> io::Result<Option<String>> {
        let output = File::create(&self.output)?;
        let said = || fs::read(&self.output).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).env(SWITCH, number.to_string());
        let mut child = command.stdout(output.try_clone()?).stderr(output).spawn()?;
        let until = Instant::now() + RUN_MAX;
        let fails = loop {
            if let Some(status) = child.try_wait()? {
                break !status.success();
            }
            if Instant::now() >= until || said()?.lines().any(|line| line.ends_with(FAILED)) {
                child.kill()?;
                child.wait()?;
                break true;
            }
            sleep(Duration::from_millis(100));
        };
        fails.then(said).transpose()
    }
}

/// Copies the repository, with the mutations built in.
fn copy(root: &Path, tree: &Path, mutations: &[Mutation]) -> io::Result<()> {
    let changed = switched(&sources(root)?, mutations).map_err(io::Error::other)?;
    let listed_at = fs::metadata(root.join("tests/src/mutations/list.diff"))?.modified()?;
    if tree.exists() {
        fs::remove_dir_all(tree)?;
    }
    for path in files(root)? {
        let (from, to) = (root.join(&path), tree.join(&path));
        fs::create_dir_all(to.parent().unwrap_or(tree))?;
        fs::copy(&from, &to)?;
        // So cargo compiles only what has changed since the last run.
        let mut modified = fs::metadata(&from)?.modified()?;
        if let Some(text) = changed.get(&path) {
            fs::write(&to, text)?;
            modified = modified.max(listed_at);
        }
        File::options().write(true).open(&to)?.set_modified(modified)?;
    }
    Ok(())
}
