//! Progress of a long run on standard error: a bar on a terminal, otherwise a line every few seconds.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const LINE_EVERY: Duration = Duration::from_secs(5);

/// The progress of a run that counts seeds. Dropping it ends the display.
pub struct Progress {
    bar: Arc<ProgressBar>,
    lines: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Shows the progress of so many seeds; `None` if the run ends by time.
    pub fn of_seeds(what: &'static str, seeds: Option<u64>) -> Self {
        let bar = Arc::new(match seeds {
            Some(seeds) => ProgressBar::new(seeds),
            None => ProgressBar::no_length(),
        });
        if std::io::stderr().is_terminal() {
            let template = match seeds {
                Some(_) => "{msg} {wide_bar} {human_pos}/{human_len} seeds, {per_sec}, {eta} left",
                None => "{msg} {spinner} {human_pos} seeds, {per_sec}, {elapsed}",
            };
            bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_message(what);
            bar.enable_steady_tick(Duration::from_millis(200));
            return Self { bar, lines: None };
        }
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let (stop, stopped) = channel();
        let shown = Arc::clone(&bar);
        let printer = std::thread::spawn(move || {
            let began = Instant::now();
            while stopped.recv_timeout(LINE_EVERY) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{}", line(what, shown.position(), seeds, began.elapsed()));
            }
        });
        Self { bar, lines: Some((stop, printer)) }
    }

    /// Counts seeds that are done.
    pub fn add(&self, seeds: u64) {
        self.bar.inc(seeds);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some((stop, printer)) = self.lines.take() {
            drop(stop);
            let _ = printer.join();
        }
    }
}

fn line(what: &str, done: u64, seeds: Option<u64>, elapsed: Duration) -> String {
    let of = seeds.map(|seeds| format!(" of {seeds}")).unwrap_or_default();
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    format!("{what}: {done}{of} seeds, {rate:.0} seeds/s, {:.0} s", elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_many_seeds_are_done_and_how_fast() {
        let half_a_minute = Duration::from_secs(30);
        assert_eq!(line("simulate", 600, Some(1000), half_a_minute), "simulate: 600 of 1000 seeds, 20 seeds/s, 30 s");
        assert_eq!(line("fuzz", 600, None, half_a_minute), "fuzz: 600 seeds, 20 seeds/s, 30 s");
    }
}
