//! The tables of the documents that follow from the declarations. Each stands between two lines of its document.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use rowmill_aws::observe::metrics::{Metric, Unit};
use rowmill_core::model::cost::PriceList;
use rowmill_core::ports::WAKE_SHARDS;

use crate::alarms::{self, Alarm};
use crate::functions::{self, Statement};

/// The documents with their tables as they must be.
pub fn all(repository: &Path, template: &str) -> io::Result<Vec<(&'static str, String)>> {
    let alarms = |is_early| alarm_table(alarms::all().into_iter().filter(move |alarm| alarm.is_early == is_early));
    let limits = crate::limits(template).map_err(|error| io::Error::other(format!("limits.md.jinja: {error:#}")))?;
    let tables = [
        (
            "docs/limits.md",
            vec![
                ("parameters", settings_tables(parameters(template), "parameter")),
                ("other settings", settings_tables(other_settings(template), "setting")),
                ("limits", limits),
            ],
        ),
        ("docs/metrics.md", vec![("metrics", metric_table())]),
        (
            "docs/operating.md",
            vec![("early alarms", alarms(true)), ("alarms", alarms(false)), ("fixed sum", fixed_sum())],
        ),
        ("docs/permissions.md", vec![("used", used_table()), ("only on AWS", unseen_table())]),
    ];
    let filled = |(path, tables): (&'static str, Vec<(&str, String)>)| {
        let mut document = fs::read_to_string(repository.join(path))?;
        for (name, table) in tables {
            document =
                with_table(&document, name, &table).map_err(|error| io::Error::other(format!("{path}: {error}")))?;
        }
        Ok((path, document))
    };
    tables.into_iter().map(filled).collect()
}

/// The document with a table between the two lines of this name.
fn with_table(document: &str, name: &str, table: &str) -> Result<String, String> {
    let [begin, end] = ["begin", "end"].map(|side| format!("<!-- {name}: {side} -->"));
    let missing = |line: &str| format!("there is no line {line}");
    let (before, rest) = document.split_once(&begin).ok_or_else(|| missing(&begin))?;
    let (_, after) = rest.split_once(&end).ok_or_else(|| missing(&end))?;
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", table.trim()))
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn codes<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A parameter, or a setting of `OtherSettings`.
#[derive(Default)]
struct Entry<'a> {
    name: &'a str,
    description: &'a str,
    default: &'a str,
}

/// The parameters in the template, by their headings, which are comments: `# -- Files -----`.
fn parameters(template: &str) -> Vec<(&str, Vec<Entry<'_>>)> {
    entries(template.lines().skip_while(|line| *line != "Parameters:").take_while(|line| *line != "Metadata:"))
}

/// The settings without a parameter of their own, in the same way.
fn other_settings(template: &str) -> Vec<(&str, Vec<Entry<'_>>)> {
    let lines = template.lines().skip_while(|line| *line != "Metadata:").take_while(|line| *line != "Mappings:");
    entries(lines.filter_map(|line| line.strip_prefix("  ")))
}

fn entries<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(&'a str, Vec<Entry<'a>>)> {
    let mut entries: Vec<(&str, Vec<Entry<'_>>)> = Vec::new();
    for line in lines {
        let last = entries.last_mut().map(|(_, entries)| entries);
        if let Some(heading) = line.strip_prefix("  # -- ") {
            entries.push((heading.trim_end_matches(['-', ' ']), Vec::new()));
        } else if let Some(name) = line.strip_prefix("  ").and_then(|line| line.strip_suffix(':')) {
            last.expect("a heading").push(Entry { name, ..Entry::default() });
        } else if let Some(entry) = last.and_then(|entries| entries.last_mut()) {
            if let Some(description) = line.strip_prefix("    Description: ") {
                entry.description = description.trim_matches('\'');
            } else if let Some(default) = line.strip_prefix("    Default: ") {
                entry.default = default.trim_matches(['\'', '"']);
            }
        }
    }
    entries
}

/// The settings whose defaults are numbers.
pub fn defaults(template: &str) -> BTreeMap<String, u64> {
    let all = parameters(template).into_iter().chain(other_settings(template)).flat_map(|(_, entries)| entries);
    all.filter_map(|entry| Some((entry.name.to_owned(), entry.default.parse().ok()?))).collect()
}

/// A table for each heading.
fn settings_tables(settings: Vec<(&str, Vec<Entry<'_>>)>, kind: &str) -> String {
    let mut tables = String::new();
    for (heading, entries) in settings {
        write!(tables, "\n### {heading}\n\n| {kind} | default | description |\n|---|---|---|\n").unwrap();
        for Entry { name, description, default } in entries {
            let default = if default.is_empty() { "–".to_owned() } else { format!("`{}`", cell(default)) };
            writeln!(tables, "| `{name}` | {default} | {} |", cell(description)).unwrap();
        }
    }
    tables
}

fn metric_table() -> String {
    let mut table = String::from("| metric | unit | written by | meaning |\n|---|---|---|---|\n");
    for metric in Metric::ALL {
        let unit = match metric.unit() {
            Unit::Count => "count",
            Unit::Seconds => "seconds",
        };
        let source = |source: &&str| if source.contains(' ') { (*source).to_owned() } else { format!("`{source}`") };
        let sources: Vec<String> = metric.sources().iter().map(source).collect();
        writeln!(table, "| `{}` | {unit} | {} | {} |", metric.name(), sources.join(", "), metric.meaning()).unwrap();
    }
    table
}

/// Alarms with one meaning and one advice have one row.
fn alarm_table(alarms: impl Iterator<Item = Alarm>) -> String {
    let mut rows: Vec<(Alarm, Vec<String>)> = Vec::new();
    for alarm in alarms {
        match rows.iter_mut().find(|(row, _)| row.means == alarm.means && row.advice == alarm.advice) {
            Some((_, names)) => names.push(alarm.name),
            None => rows.push((alarm.clone(), vec![alarm.name])),
        }
    }
    let mut table = String::from("| alarm | means | what happens by itself | what to do |\n|---|---|---|---|\n");
    for (alarm, names) in rows {
        let names = codes(names.iter().map(String::as_str));
        writeln!(table, "| {names} | {} | {} | {} |", alarm.means, alarm.advice.meanwhile, alarm.advice.todo).unwrap();
    }
    table
}

/// What a stack costs a month without a job, in dollars.
fn fixed_sum() -> String {
    const MONTH_SECONDS: u64 = 730 * 60 * 60;
    let dollars = |pico: u64| pico as f64 / 1e12;
    let prices = PriceList::US_EAST_1;
    let alarms = alarms::all();
    let metrics: usize = alarms.iter().map(Alarm::metrics).sum();
    let queues: Vec<_> = functions::queue_mappings();
    let lanes = queues.iter().filter(|mapping| mapping.queue.starts_with("Lanes")).count();
    // Five pollers wait for 20 seconds each. A request to a FIFO queue costs a quarter more.
    let polls = dollars(MONTH_SECONDS / 4 * prices.sqs_request) * (queues.len() as f64 + lanes as f64 / 4.0);
    // A tick takes about a tenth of a second of 256 MB. The sweep reads half a unit for each shard of the index, and the
    // eraser for its own.
    let tick = prices.lambda_request + prices.lambda_gb_second / 40;
    let reads = u64::from(WAKE_SHARDS + 1) * prices.read_unit / 2;
    let minutes = MONTH_SECONDS / 60;
    let rows = [
        (format!("{} alarms over {metrics} metrics, ten of an account free", alarms.len()), metrics as f64 * 0.10),
        ("the dashboard".to_owned(), 3.0),
        (format!("{} queues that Lambda asks for messages, a request every four seconds", queues.len()), polls),
        ("a sweep and a look for deleted jobs each minute".to_owned(), dollars(minutes * (2 * tick + reads))),
        ("their traces, 100,000 of an account free".to_owned(), (2 * minutes) as f64 * 5e-6),
    ];
    let sum: f64 = rows.iter().map(|(_, dollars)| dollars).sum();
    let mut table = String::from("| what | dollars a month |\n|---|---|\n");
    for (what, dollars) in rows {
        writeln!(table, "| {what} | {dollars:.2} |").unwrap();
    }
    writeln!(table, "| together | {sum:.2} |").unwrap();
    table
}

/// A function, a resource and an action.
pub type Permission = (&'static str, String, &'static str);

/// The rights of a statement that a test uses, or those that none does, each with the reason.
fn rights(function: &'static str, statement: &Statement) -> impl Iterator<Item = (Permission, &'static str)> {
    statement.names.iter().flat_map(move |name| {
        statement.actions.iter().map(move |action| {
            let mut unseen = statement.unseen.iter();
            let reason = unseen.find(|(unseen, on, _)| unseen == action && on == name).map(|(.., why)| *why);
            ((function, name.clone(), *action), reason.unwrap_or(statement.of_trigger))
        })
    })
}

fn all_rights() -> Vec<(Permission, &'static str)> {
    let of_function = |function: &'static rowmill_settings::declaration::Function| {
        let statements = functions::statements(function).into_iter();
        statements.flat_map(|statement| rights(function.name, &statement).collect::<Vec<_>>())
    };
    functions::all().into_iter().flat_map(of_function).collect()
}

/// The permissions that the tests use.
pub fn used() -> BTreeSet<Permission> {
    let rights = all_rights().into_iter();
    rights.filter(|(_, reason)| reason.is_empty()).map(|(permission, _)| permission).collect()
}

/// The permissions of calls that the tests do not make in every run.
pub fn unseen() -> BTreeSet<Permission> {
    &all_rights().into_iter().map(|(permission, _)| permission).collect() - &used()
}

fn used_table() -> String {
    let mut actions: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    for (function, resource, action) in used() {
        actions.entry((function, resource)).or_default().push(action);
    }
    let mut table = String::from("| function | resource | actions |\n|---|---|---|\n");
    for ((function, resource), actions) in actions {
        writeln!(table, "| {function} | `{resource}` | {} |", codes(actions)).unwrap();
    }
    table
}

fn unseen_table() -> String {
    let mut rows: Vec<(&str, &str, BTreeSet<String>, BTreeSet<&str>)> = Vec::new();
    for ((function, resource, action), reason) in all_rights().into_iter().filter(|(_, reason)| !reason.is_empty()) {
        let of_row = |row: &&mut (&str, &str, _, _)| (row.0, row.1) == (function, reason);
        match rows.iter_mut().find(of_row) {
            Some((.., resources, actions)) => {
                resources.insert(resource);
                actions.insert(action);
            }
            None => rows.push((function, reason, [resource].into(), [action].into())),
        }
    }
    let writers =
        functions::described().into_iter().filter(|function| function.writes_by_key).map(|function| function.name);
    let mut table = String::from(
        "| functions | resource | actions | needed for |\n|---|---|---|---|\n\
         | all | its log group | `logs:CreateLogStream`, `logs:PutLogEvents` | \
         what the function prints; Lambda writes it in the function's role |\n\
         | all | `*` | `xray:PutTraceSegments`, `xray:PutTelemetryRecords` | \
         traces (`Tracing: Active`); X-Ray has no resources that could be named |\n\
         | all | `KmsKeyArn` | `kms:Decrypt` | reading what is encrypted with the operator's key: \
         the environment of every function, rows, objects and messages |\n",
    );
    let writers: Vec<&str> = writers.collect();
    let stores = "storing an object or sending a message under the operator's key";
    writeln!(table, "| {} | `KmsKeyArn` | `kms:GenerateDataKey` | {stores} |", writers.join(", ")).unwrap();
    for (function, reason, resources, actions) in rows {
        let resources = codes(resources.iter().map(String::as_str));
        writeln!(table, "| {function} | {resources} | {} | {reason} |", codes(actions)).unwrap();
    }
    table
}
