//! Writes `template.yaml`, and the tables of the documents that follow from it, from what the functions declare.
//!
//! `functions` turns the declarations into what the template repeats for each of them, and `alarms` does so for the
//! alarms. `template.yaml.jinja` is the template itself, in the order of the flow: what occurs once stands there as it
//! is, and a loop writes what occurs for each function, queue or route.

mod alarms;
mod api;
mod constants;
mod dashboard;
mod documents;
mod functions;
mod resources;

use std::path::Path;
use std::{fs, io};

use minijinja::{Environment, ErrorKind, UndefinedBehavior, context};

pub use documents::{unseen, used};
pub use functions::{all as functions, statements, stem};

/// The files that the declarations make, with their texts. Paths are relative to the repository.
///
/// # Errors
/// If a document cannot be read, or lacks a line around a table.
pub fn files(repository: &Path) -> io::Result<Vec<(&'static str, String)>> {
    let template = template();
    let mut files = documents::all(repository, &template)?;
    files.push(("template.yaml", template));
    Ok(files)
}

/// Writes the files.
///
/// # Errors
/// See [`files`].
pub fn write(repository: &Path) -> io::Result<()> {
    for (path, text) in files(repository)? {
        fs::write(repository.join(path), text)?;
    }
    Ok(())
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_keep_trailing_newline(true);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

/// The sections of `docs/limits.md` with numbers of the code.
fn limits(template: &str) -> Result<String, minijinja::Error> {
    let mut environment = environment();
    let wrong = |reason: String| minijinja::Error::new(ErrorKind::InvalidOperation, reason);
    environment.add_function("of", move |file: &str, name: &str| constants::value(file, name).map_err(wrong));
    let defaults = documents::defaults(template);
    environment.add_function("default", move |name: &str| {
        defaults.get(name).copied().ok_or_else(|| wrong(format!("{name} has no number as its default")))
    });
    let mappings = functions::queue_mappings();
    environment.add_function("workers", move |queue: &str| {
        let mut of_queue = mappings.iter().filter(|mapping| mapping.queue == queue);
        of_queue
            .next()
            .map(|mapping| mapping.workers.clone())
            .ok_or_else(|| wrong(format!("no function reads {queue}")))
    });
    environment.add_function("deliveries", move |stem: &str| {
        let queue = resources::declared().find(|queue| queue.stem == stem);
        queue.map(|queue| queue.deliveries.0).ok_or_else(|| wrong(format!("there is no queue {stem}")))
    });
    environment.add_filter("count", constants::count);
    environment.add_filter("bytes", constants::bytes);
    environment.add_filter("time", constants::time);
    environment.add_filter("seconds", |seconds: u64| constants::time(seconds * 1000));
    environment.render_str(include_str!("limits.md.jinja"), ())
}

fn template() -> String {
    let mut environment = environment();
    environment.add_filter("comment", |text: &str, indent: usize| comment(text, indent));
    environment.add_filter("name", |id: &str| resources::name_of(id));
    environment.add_filter("arn", |id: &str| resources::arn_of(id, ""));
    environment.add_filter("objects", |id: &str| resources::arn_of(id, "/*"));
    // JSON strings are YAML.
    environment.add_filter("yaml", |text: &str| serde_json::Value::from(text).to_string());
    let context = context! {
        defaults => functions::defaults(),
        others => functions::other_settings(),
        others_pattern => functions::other_settings_pattern(),
        queues => resources::queues(),
        dead_letter_queues => resources::dead_letter_queues(),
        functions => functions::described(),
        mappings => functions::queue_mappings(),
        streams => functions::streams(),
        alarms => alarms::all(),
        widgets => dashboard::widgets(),
        tables => dashboard::TABLES,
        routes => api::routes(),
        route_metrics_dollars => api::route_metrics_dollars(),
        apis => api::functions(),
        live_routes => api::live_routes(),
    };
    let source = include_str!("template.yaml.jinja");
    environment.render_str(source, context).expect("the template of the template has no error")
}

/// A text as the lines of a comment, 120 characters wide. Empty for an empty text.
fn comment(text: &str, indent: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    let start = " ".repeat(indent) + "#";
    for word in text.split_whitespace() {
        if start.len() + line.len() + 1 + word.chars().count() > 120 {
            lines += &format!("{start}{line}\n");
            line.clear();
        }
        line += " ";
        line += word;
    }
    if line.is_empty() { lines } else { lines + &format!("{start}{line}\n") }
}
