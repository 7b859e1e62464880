//! Shows the progress of transfers and of a job: a bar in a terminal, plain lines elsewhere, JSON lines for programs.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use rowmill_api::job::JobView;
use serde_json::json;

use super::{Observer, RateMeter, message};
use crate::progress::ByteProgress;
use crate::terminal::{bytes, cut, span};
use crate::upload::SourceFile;

/// Shortest time between two lines, except for a new status.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// The form of the output.
enum Form {
    /// A bar on standard error, which is a terminal.
    Bar(ProgressBar),
    /// Lines, on standard output or on standard error.
    Lines(Stream),
    /// JSON lines on standard output.
    Json,
}

/// The target of lines.
#[derive(Clone, Copy)]
enum Stream {
    Out,
    Error,
}

/// Shows progress.
pub struct Reporter {
    form: Form,
    begun: Instant,
    meter: RateMeter,
    throttle: Throttle,
}

impl Reporter {
    /// JSON lines if `json`, else a bar if standard error is a terminal, else plain lines.
    pub fn new(json: bool) -> Self {
        let form = match json {
            true => Form::Json,
            false if std::io::stderr().is_terminal() => Form::Bar(job_bar()),
            false => Form::Lines(Stream::Out),
        };
        Self::of(form)
    }

    /// A bar or plain lines on standard error, for commands whose result is not the job.
    pub fn on_stderr() -> Self {
        Self::of(match std::io::stderr().is_terminal() {
            true => Form::Bar(job_bar()),
            false => Form::Lines(Stream::Error),
        })
    }

    fn of(form: Form) -> Self {
        Self { form, begun: Instant::now(), meter: RateMeter::default(), throttle: Throttle::default() }
    }

    /// Shows the upload of `file`.
    pub fn upload(&self, file: &SourceFile) -> TransferReport {
        self.transfer(Direction::Up, &file.name, file.size)
    }

    /// Shows the download of a file of `size` bytes.
    pub fn download(&self, name: &str, size: u64) -> TransferReport {
        self.transfer(Direction::Down, name, size)
    }

    fn transfer(&self, direction: Direction, name: &str, size: u64) -> TransferReport {
        let (shown_name, name) = (cut(name, 40), name.to_owned());
        let bar = match &self.form {
            Form::Bar(_) => Some(transfer_bar(direction, &shown_name, size)),
            Form::Lines(_) | Form::Json => None,
        };
        let (shown, json) = (bar.clone(), matches!(self.form, Form::Json));
        let stream = match self.form {
            Form::Lines(stream) => stream,
            Form::Bar(_) | Form::Json => Stream::Out,
        };
        let throttle = Mutex::new(Throttle::default());
        let progress = ByteProgress::new(move |moved| {
            if let Some(bar) = &shown {
                return bar.set_position(moved);
            }
            let percent = (moved * 100).checked_div(size).unwrap_or(100);
            // Several parts report at the same time. If the throttle is locked, another part is printing a state that is
            // just as new.
            let ended = moved >= size;
            let Ok(mut throttle) = throttle.try_lock() else { return };
            let status = if ended { "ended" } else { "moving" };
            if !throttle.lets_pass(Instant::now(), status, &percent.to_string()) {
                return;
            }
            let line = match json {
                true => direction.event(&name, moved, size),
                false => format!("{} {shown_name}, {percent}% of {}...", direction.doing(), bytes(size)),
            };
            say(stream, &line);
        });
        TransferReport { progress, bar }
    }

    fn say_progress(&mut self, job: &JobView) {
        let text = message(job);
        let pace = self.meter.pace(job);
        match &self.form {
            Form::Bar(bar) => {
                bar.set_position(u64::from(job.percent));
                bar.set_prefix(pace);
                bar.set_message(text);
            }
            // The summary prints the last line of an ended job.
            Form::Lines(_) if job.status.is_terminal() => {}
            Form::Lines(stream) => {
                if self.throttle.lets_pass(Instant::now(), job.status.as_str(), &text) {
                    say(*stream, format!("{text}  {pace}").trim_end());
                }
            }
            Form::Json => {
                let marks = format!("{} {} {}", job.percent, job.item_progress, job.item_count);
                if self.throttle.lets_pass(Instant::now(), job.status.as_str(), &marks) {
                    say(Stream::Out, &job_event(job, &self.meter));
                }
            }
        }
    }
}

impl Observer for Reporter {
    fn looked(&mut self, job: &JobView) {
        self.meter.note(self.begun.elapsed(), job);
        self.say_progress(job);
        if let (Form::Bar(bar), true) = (&self.form, job.status.is_terminal()) {
            bar.finish_and_clear();
        }
    }

    fn quiet(&mut self, job: &JobView, unchanged: Duration) {
        let text = format!(
            "No progress of job {} for {}; still waiting. SQS delivers the messages of a lost function again, which may \
             take minutes.",
            job.job_guid,
            span(unchanged)
        );
        match &self.form {
            Form::Bar(bar) => bar.suspend(|| eprintln!("{text}")),
            Form::Lines(_) | Form::Json => eprintln!("{text}"),
        }
    }
}

/// The direction of a transfer.
#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

impl Direction {
    fn doing(self) -> &'static str {
        match self {
            Self::Up => "Uploading",
            Self::Down => "Downloading",
        }
    }

    fn event(self, name: &str, moved: u64, size: u64) -> String {
        match self {
            Self::Up => json!({"event": "upload", "bytesSent": moved, "bytesTotal": size}),
            Self::Down => json!({"event": "download", "fileName": name, "bytesReceived": moved, "bytesTotal": size}),
        }
        .to_string()
    }
}

/// Shows a transfer. The bar is removed when the value is dropped.
pub struct TransferReport {
    /// The counter of transferred bytes.
    pub progress: Arc<ByteProgress>,
    bar: Option<ProgressBar>,
}

impl Drop for TransferReport {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Limits the number of lines.
#[derive(Debug, Default)]
struct Throttle {
    last: Option<(Instant, String, String)>,
}

impl Throttle {
    /// Whether a line may be printed now: always in a new `phase`, otherwise if `text` is new and the interval has passed.
    fn lets_pass(&mut self, now: Instant, phase: &str, text: &str) -> bool {
        let pass = match &self.last {
            None => true,
            Some((_, last_phase, _)) if last_phase != phase => true,
            Some((at, _, last)) => last != text && now.duration_since(*at) >= LINE_INTERVAL,
        };
        if pass {
            self.last = Some((now, phase.to_owned(), text.to_owned()));
        }
        pass
    }
}

/// Writes a line. A closed stream is ignored; the exit code still tells the result.
fn say(stream: Stream, line: &str) {
    let _ = match stream {
        Stream::Out => writeln!(std::io::stdout().lock(), "{line}"),
        Stream::Error => writeln!(std::io::stderr().lock(), "{line}"),
    };
}

fn job_event(job: &JobView, meter: &RateMeter) -> String {
    json!({
        "event": "progress",
        "message": message(job),
        "jobGuid": job.job_guid,
        "status": job.status,
        "percent": job.percent,
        "itemCount": job.item_count,
        "itemCountFinal": job.item_count_final,
        "itemProgress": job.item_progress,
        "itemsFailed": job.items_failed,
        "itemsPerSecond": meter.items_per_second().map(f64::round),
        "secondsLeft": meter.time_left(job).map(|left| left.as_secs_f64().round()),
    })
    .to_string()
}

fn job_bar() -> ProgressBar {
    let bar = ProgressBar::new(100).with_finish(ProgressFinish::AndClear);
    bar.set_style(style("{msg} [{bar:30}] {prefix}"));
    bar
}

fn transfer_bar(direction: Direction, name: &str, size: u64) -> ProgressBar {
    let bar = ProgressBar::new(size).with_finish(ProgressFinish::AndClear);
    // Set before the first drawing, so that no line without a name appears.
    bar.with_style(style("{prefix} {msg} [{bar:30}] {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}"))
        .with_prefix(direction.doing())
        .with_message(name.to_owned())
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a template of this module").progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::job;

    #[test]
    fn lines_come_with_a_new_text_once_a_second_and_at_once_with_a_new_status() {
        let mut throttle = Throttle::default();
        let begun = Instant::now();
        let mut lets = |ms, phase, text| throttle.lets_pass(begun + Duration::from_millis(ms), phase, text);
        assert!(lets(0, "waiting", "w"));
        assert!(!lets(5000, "waiting", "w"), "the same line is not repeated");
        assert!(lets(5100, "running", "1%"));
        assert!(!lets(5900, "running", "9%"));
        assert!(lets(6100, "running", "10%"));
        assert!(lets(6110, "completed", "done"));
    }

    #[test]
    fn a_transfer_event_says_which_way_the_bytes_go() {
        let event =
            |direction: Direction| serde_json::from_str::<serde_json::Value>(&direction.event("a", 1, 2)).unwrap();
        assert_eq!(event(Direction::Up), json!({"event": "upload", "bytesSent": 1, "bytesTotal": 2}));
        let down = json!({"event": "download", "fileName": "a", "bytesReceived": 1, "bytesTotal": 2});
        assert_eq!(event(Direction::Down), down);
    }

    #[test]
    fn a_progress_event_has_what_a_program_needs() {
        let mut running = job("running", 37);
        (running.item_count, running.item_progress) = (100, 40);
        let event: serde_json::Value = serde_json::from_str(&job_event(&running, &RateMeter::default())).unwrap();
        assert_eq!(event["event"], "progress");
        assert_eq!(event["message"], "Job running, 37% complete...");
        assert_eq!((&event["percent"], &event["itemProgress"]), (&json!(37), &json!(40)));
        assert_eq!(event["secondsLeft"], json!(null));
    }
}
