//! Mutations of the protocol: which test or seed notices that a condition is missing.
//!
//! [`all`] reads the list. [`switched`] builds every mutation into the sources at once, each as a choice that the
//! environment makes at run time: so a copy of the repository is compiled once, not once for each mutation. The code
//! that is deployed has no such choice. On the command line, `cargo run --bin mutations -- --help`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The list, with its format at the beginning.
const LIST: &str = include_str!("list.diff");

/// The environment variable that holds the number of the mutation in effect.
pub const SWITCH: &str = "ROWMILL_MUTATION";

/// An entry of the list.
#[derive(Debug)]
pub struct Mutation {
    /// The rows of the protocol, and the condition or the rule.
    pub name: &'static str,
    /// The lines of the source, with the expression between « and »; none if no mutation would show.
    old: Vec<&'static str>,
    /// The expression in its place.
    new: &'static str,
}

impl Mutation {
    pub const fn changes_code(&self) -> bool {
        !self.old.is_empty()
    }

    /// The seed or the test that finds it, as the table of docs/protocol.md has it.
    pub fn finder<'p>(&self, protocol: &'p str) -> Option<&'p str> {
        let row =
            |line: &'p str| line.strip_prefix("| ")?.strip_prefix(self.name)?.strip_prefix(" | ")?.strip_suffix(" |");
        protocol.lines().find_map(row).filter(|by| by.starts_with("seed ") || by.starts_with("test `"))
    }

    /// The place of its expression.
    fn place<'s>(&self, sources: &'s Sources) -> Result<(&'s Path, Range<usize>), String> {
        let old = self.old.join("\n");
        let parts = old.split_once('«').and_then(|(before, rest)| Some((before, rest.split_once('»')?)));
        let (before, (expression, after)) = parts.ok_or_else(|| format!("{}: no « and »", self.name))?;
        let plain = [before, expression, after].concat();
        let mut found =
            sources.iter().flat_map(|(path, text)| text.match_indices(&plain).map(move |(at, _)| (path.as_path(), at)));
        match (found.next(), found.next()) {
            (Some((path, at)), None) => {
                let from = at + before.len();
                Ok((path, from..from + expression.len()))
            }
            (None, _) => Err(format!("{}: nothing below functions/ has {plain:?}", self.name)),
            _ => Err(format!("{}: more than one place below functions/ has {plain:?}", self.name)),
        }
    }
}

/// The entries of the list, in its order.
pub fn all() -> Vec<Mutation> {
    let mut all: Vec<Mutation> = Vec::new();
    for (sign, rest) in LIST.lines().filter_map(|line| line.split_once(' ')) {
        match (sign, all.last_mut()) {
            ("@", _) => all.push(Mutation { name: rest, old: Vec::new(), new: "" }),
            ("-", Some(last)) => last.old.push(rest),
            ("+", Some(last)) => last.new = rest,
            _ => {}
        }
    }
    all
}

/// Sources by path below the repository, each line without its indentation.
pub type Sources = BTreeMap<PathBuf, String>;

/// The files of the repository, by path below it.
///
/// # Errors
/// If they cannot be listed.
pub fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            match entry.file_type()? {
                kind if kind.is_file() => files.push(path),
                kind if kind.is_dir()
                    && ![".git", "target", "node_modules"].iter().any(|name| path.ends_with(name)) =>
                {
                    folders.push(path);
                }
                _ => {}
            }
        }
    }
    Ok(files)
}

/// The sources of the functions.
///
/// # Errors
/// If they cannot be read.
pub fn sources(root: &Path) -> io::Result<Sources> {
    let is_source = |path: &PathBuf| path.starts_with("functions") && path.extension().is_some_and(|end| end == "rs");
    let trimmed = |text: String| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let read = |path: PathBuf| fs::read_to_string(root.join(&path)).map(|text| (path, trimmed(text)));
    files(root)?.into_iter().filter(is_source).map(read).collect()
}

/// The sources that the mutations change, with all of these built in.
///
/// # Errors
/// The mutations that have no place, or several.
pub fn switched(sources: &Sources, mutations: &[Mutation]) -> Result<Sources, String> {
    let mut places: BTreeMap<&Path, BTreeMap<(usize, usize), Vec<usize>>> = BTreeMap::new();
    let mut lost = Vec::new();
    for (number, mutation) in mutations.iter().enumerate().filter(|(_, mutation)| mutation.changes_code()) {
        match mutation.place(sources) {
            Ok((path, at)) => places.entry(path).or_default().entry((at.start, at.end)).or_default().push(number),
            Err(error) => lost.push(error),
        }
    }
    if !lost.is_empty() {
        return Err(lost.join("\n"));
    }
    let change = |(path, edits): (&Path, BTreeMap<(usize, usize), Vec<usize>>)| {
        let mut text = sources[path].clone();
        for ((from, to), numbers) in edits.into_iter().rev() {
            let old = text[from..to].to_owned();
            let new = numbers.into_iter().fold(old, |old, number| choice(number, mutations[number].new, &old));
            text.replace_range(from..to, &new);
        }
        (path.to_owned(), text)
    };
    Ok(places.into_iter().map(change).collect())
}

/// The expression `new` while this mutation is in effect, and else `old`.
fn choice(number: usize, new: &str, old: &str) -> String {
    let is_on = format!("std::env::var(\"{SWITCH}\").as_deref() == Ok(\"{number}\")");
    format!(
        "(if {{ static ON: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {is_on}); *ON }} \
         {{ {new} }} else {{ {old} }})"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    fn protocol() -> String {
        fs::read_to_string(root().join("docs/protocol.md")).unwrap()
    }

    /// The rows that a name such as `Split 9; End 3, 4: own lease` begins with.
    fn rows_of(name: &str) -> Vec<(String, u32)> {
        let (rows, _) = name.split_once(": ").unwrap();
        let of_section = |part: &str| {
            let (section, numbers) = part.split_at(part.find(|c: char| c.is_ascii_digit()).unwrap_or(part.len()));
            let numbers: Vec<u32> = numbers.split(", ").filter_map(|number| number.parse().ok()).collect();
            numbers.into_iter().map(|number| (section.trim().to_owned(), number)).collect::<Vec<_>>()
        };
        rows.split("; ").flat_map(of_section).collect()
    }

    #[test]
    fn each_mutation_has_one_place() {
        if let Err(lost) = switched(&sources(root()).unwrap(), &all()) {
            panic!("{lost}");
        }
    }

    /// rustfmt parses them. Only the command compiles them.
    #[test]
    fn the_sources_with_the_mutations_are_rust() {
        for (path, text) in switched(&sources(root()).unwrap(), &all()).unwrap() {
            let mut command = Command::new("rustfmt");
            command.args(["--edition", "2024", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::null());
            let mut rustfmt = command.spawn().unwrap();
            rustfmt.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            assert!(rustfmt.wait().unwrap().success(), "{}", path.display());
        }
    }

    #[test]
    fn every_write_with_a_condition_is_in_the_list() {
        let listed: BTreeSet<(String, u32)> = all().iter().flat_map(|mutation| rows_of(mutation.name)).collect();
        let protocol = protocol();
        let (_, writes) = protocol.split_once("\n## The writes\n").unwrap();
        let (writes, _) = writes.split_once("\n## ").unwrap();
        let (mut section, mut rows, mut missing) = ("", 0, Vec::new());
        for line in writes.lines() {
            section = line.strip_prefix("### ").unwrap_or(section);
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, number, _, _, condition, _, _, _] = cells[..] else { continue };
            let Ok(number) = number.parse::<u32>() else { continue };
            rows += 1;
            let has_condition = !condition.starts_with("none") && condition != "–";
            if has_condition && !listed.contains(&(section.to_owned(), number)) {
                missing.push(format!("{section} {number}: {condition}"));
            }
        }
        assert!(rows >= 80, "only {rows} rows are read");
        assert!(missing.is_empty(), "{missing:#?}");
    }

    #[test]
    fn the_table_says_what_finds_each_mutation() {
        let protocol = protocol();
        let missing = |mutation: &Mutation| mutation.changes_code() && mutation.finder(&protocol).is_none();
        let missing: Vec<&str> = all().iter().filter(|mutation| missing(mutation)).map(|m| m.name).collect();
        assert!(missing.is_empty(), "cargo run --bin mutations\n{missing:#?}");
    }
}
