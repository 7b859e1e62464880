//! The log: one JSON object per line on standard output, with dotted field names as written and errors with all causes.

use std::error::Error;
use std::fmt::{Debug, Write as _};
use std::io::Write as _;
use std::sync::{LazyLock, OnceLock};

use jiff::Timestamp;
use rowmill_settings::{SettingsGroup, StartError};
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{Directive, EnvFilter, LevelFilter};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::observe::audit;
use crate::observe::trace;

/// Lets audit lines through at every level of the log.
static AUDIT: LazyLock<Directive> =
    LazyLock::new(|| format!("{}=info", audit::TARGET).parse().expect("a target and a level are a directive"));

rowmill_settings::settings! {
    /// What is logged.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct LogSettings {
        /// A level, or a list of `target=level`.
        pub filter: String = "info".to_owned(), "LogLevel" in 1..=256;
    }
}

/// Sends the log of this process to standard output.
///
/// # Errors
/// If `LogLevel` is not a filter.
pub fn start(function_name: &'static str) -> Result<(), StartError> {
    let LogSettings { filter: wanted } = LogSettings::from_env()?;
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).parse(&wanted);
    let filter = filter.map(|filter| filter.add_directive(AUDIT.clone()));
    let filter = filter.map_err(|_| StartError::Invalid {
        name: "LogLevel".to_owned(),
        value: wanted,
        expected: "a level (error, warn, info, debug, trace) or a list of target=level",
    })?;
    FUNCTION_NAME.get_or_init(|| function_name);
    // A second start in one process (tests) keeps the first log.
    tracing_subscriber::registry().with(filter).with(JsonLines { function_name }).try_init().ok();
    Ok(())
}

/// The name of this process's function, once its log has started.
static FUNCTION_NAME: OnceLock<&str> = OnceLock::new();

/// The name of this process's function; empty before [`start`].
pub fn function_name() -> &'static str {
    FUNCTION_NAME.get().copied().unwrap_or_default()
}

pub fn write_line(line: &impl Serialize) {
    if let Ok(mut text) = serde_json::to_string(line) {
        text.push('\n');
        // If standard output is closed, there is nowhere to report it.
        std::io::stdout().lock().write_all(text.as_bytes()).ok();
    }
}

/// Writes each event as one object: the fields of the spans around it, then its own.
struct JsonLines {
    function_name: &'static str,
}

struct SpanFields(Map<String, Value>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for JsonLines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(SpanFields(fields.0));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(SpanFields(known)) = span.extensions_mut().get_mut()
        {
            let mut fields = Fields::default();
            values.record(&mut fields);
            known.append(&mut fields.0);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = Fields::default();
        line.put("timestamp", Timestamp::now().to_string());
        line.put("level", metadata.level().as_str());
        line.put("function", self.function_name);
        line.put("target", metadata.target());
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(SpanFields(fields)) = span.extensions().get() {
                line.0.extend(fields.clone());
            }
        }
        event.record(&mut line);
        if let Some(trace) = line.0.get("job.id").and_then(Value::as_str).and_then(trace::of_job) {
            line.put("trace.id", trace.to_string());
        }
        write_line(&line.0);
    }
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

macro_rules! put_as_is {
    ($($record:ident: $value:ty),+) => {
        $(fn $record(&mut self, field: &Field, value: $value) {
            self.put(field.name(), value);
        })+
    };
}

impl Visit for Fields {
    put_as_is! { record_f64: f64, record_i64: i64, record_u64: u64, record_bool: bool, record_str: &str }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field.name(), causes(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field.name(), format!("{value:?}"));
    }
}

/// An error and its causes. A cause that repeats the end of the error before it is left out.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut last = text.clone();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !last.ends_with(&said) {
            write!(text, ": {said}").ok();
        }
        last = said;
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowmill_core::ports::PortError;

    #[test]
    fn an_error_is_logged_with_its_causes() {
        let cause = std::io::Error::other(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer"));
        let error = PortError::unavailable("reading the job", cause);
        assert_eq!(causes(&error), "reading the job: unavailable: no answer");
    }
}
