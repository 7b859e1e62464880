//! Shows the progress of transfers and of a job: a bar in a terminal, plain lines elsewhere, JSON lines for programs.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use rowmill_api::job::JobView;
use serde_json::json;

use super::{Observer, RateMeter, message};
use crate::progress::{ByteProgress, Transferred};
use crate::terminal::{bytes, cut, span};
use crate::upload::SourceFile;

/// Shortest time between two lines, except for a new status.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

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

    pub fn upload(&self, file: &SourceFile) -> TransferReport {
        self.transfer(Direction::Up, &file.name, file.size)
    }

    /// Shows how far the stack has fetched a file of `size` bytes.
    pub fn fetch(&self, name: &str, size: u64) -> TransferReport {
        self.transfer(Direction::Fetch, name, size)
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
        let pace = Mutex::new(Pace::new(size));
        let progress = ByteProgress::watched(move |transferred: Transferred| {
            let Transferred { moved, stored } = transferred;
            // Several parts report at the same time. If the pace is locked, another part is showing a state that is
            // just as new.
            let Ok(mut pace) = pace.try_lock() else { return };
            pace.note(Instant::now(), stored);
            if let Some(bar) = &shown {
                bar.set_message(pace.text());
                return bar.set_position(moved);
            }
            let percent = (moved * 100).checked_div(size).unwrap_or(100);
            let ended = moved >= size;
            let Ok(mut throttle) = throttle.try_lock() else { return };
            let status = if ended { "ended" } else { "moving" };
            if !throttle.lets_pass(Instant::now(), status, &percent.to_string()) {
                return;
            }
            let line = match json {
                true => direction.event(&name, transferred, size, &pace),
                false => {
                    format!("{} {shown_name}, {percent}% of {}...  {}", direction.doing(), bytes(size), pace.text())
                }
            };
            say(stream, line.trim_end());
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

#[derive(Clone, Copy)]
enum Direction {
    Up,
    /// From an external server into the stack.
    Fetch,
    Down,
}

impl Direction {
    fn doing(self) -> &'static str {
        match self {
            Self::Up => "Uploading",
            Self::Fetch => "Fetching",
            Self::Down => "Downloading",
        }
    }

    fn event(self, name: &str, Transferred { moved, stored }: Transferred, size: u64, pace: &Pace) -> String {
        match self {
            Self::Up => json!({
                "event": "upload",
                "bytesSent": moved,
                "bytesStored": stored,
                "bytesTotal": size,
                "bytesPerSecond": pace.bytes_per_second().map(f64::round),
                "secondsLeft": pace.time_left().map(|left| left.as_secs_f64().round()),
            }),
            Self::Fetch => json!({
                "event": "fetch",
                "fileName": name,
                "bytesStored": stored,
                "bytesTotal": size,
                "bytesPerSecond": pace.bytes_per_second().map(f64::round),
                "secondsLeft": pace.time_left().map(|left| left.as_secs_f64().round()),
            }),
            Self::Down => json!({"event": "download", "fileName": name, "bytesReceived": moved, "bytesTotal": size}),
        }
        .to_string()
    }
}

/// Speed at which bytes are stored, from what the storage has confirmed in this run.
struct Pace {
    size: u64,
    begun: Option<(Instant, u64)>,
    last: (Duration, u64),
}

impl Pace {
    const fn new(size: u64) -> Self {
        Self { size, begun: None, last: (Duration::ZERO, 0) }
    }

    fn note(&mut self, now: Instant, stored: u64) {
        let (begun, _) = *self.begun.get_or_insert((now, stored));
        // The time goes on between two confirmations too.
        self.last = (now.duration_since(begun), stored);
    }

    fn bytes_per_second(&self) -> Option<f64> {
        let (_, first) = self.begun?;
        let (took, stored) = self.last;
        (stored > first && !took.is_zero()).then(|| (stored - first) as f64 / took.as_secs_f64())
    }

    fn time_left(&self) -> Option<Duration> {
        let left = self.size.saturating_sub(self.last.1);
        Duration::try_from_secs_f64(left as f64 / self.bytes_per_second()?).ok()
    }

    fn text(&self) -> String {
        match (self.bytes_per_second(), self.time_left()) {
            (Some(rate), Some(left)) => format!("{}/s, {} left", bytes(rate as u64), span(left)),
            _ => String::new(),
        }
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
    /// True if a line may be printed now: always in a new `phase`, else if `text` is new and the interval has passed.
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
    // Of an upload the storage's figures count: they are the message.
    let pace = match direction {
        Direction::Up | Direction::Fetch => "{msg}",
        Direction::Down => "{binary_bytes_per_sec} {eta}",
    };
    let template = format!("{{prefix}} [{{bar:30}}] {{binary_bytes}}/{{binary_total_bytes}} {pace}");
    // Set before the first drawing, so that no line without a name appears.
    bar.with_style(style(&template)).with_prefix(format!("{} {name}", direction.doing()))
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
        let event = |direction: Direction| {
            let text = direction.event("a", Transferred { moved: 1, stored: 0 }, 2, &Pace::new(2));
            serde_json::from_str::<serde_json::Value>(&text).unwrap()
        };
        let up = json!({"event": "upload", "bytesSent": 1, "bytesStored": 0, "bytesTotal": 2, "bytesPerSecond": null,
            "secondsLeft": null});
        assert_eq!(event(Direction::Up), up);
        let down = json!({"event": "download", "fileName": "a", "bytesReceived": 1, "bytesTotal": 2});
        assert_eq!(event(Direction::Down), down);
    }

    #[test]
    fn the_pace_of_an_upload_counts_what_is_stored_in_this_run() {
        let (begun, mut pace) = (Instant::now(), Pace::new(10 << 20));
        let mut note = |seconds, stored: u64| {
            pace.note(begun + Duration::from_secs(seconds), stored << 20);
            pace.text()
        };
        assert_eq!(note(0, 2), "", "what an earlier run stored says nothing");
        assert_eq!(note(1, 2), "", "bytes on their way do not count");
        assert_eq!(note(2, 6), "2.00 MiB/s, 2.0 s left");
        assert_eq!(note(4, 6), "1.00 MiB/s, 4.0 s left", "it is slow, if nothing more is confirmed");
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
